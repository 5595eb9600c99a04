//! Anderson, Bershad, Lazowska, Levy: Scheduler activations, 1992.
//!
//! ```text
//! setting ──▶ stage ──┬─ real (this computer) ──┬─▶ fig2, fig3, table5
//!                     └─ simulated (Firefly)  ──┘
//! ```
//!
//! On the Firefly the runtime itself runs, and beside it a model of the paper's threads (`fibers`).
//!
//! The file of each figure states the rule of its verdict.

mod fibers;
mod fig2;
mod fig3;
mod operations;
mod real;
mod setting;
mod simulated;
mod stage;
mod stated;
mod table4;
mod table5;
mod upcall;

use stanchion_study::experiment::Experiment;
pub use stated::stated;

/// The paper's figures and tables, in its order.
pub const EXPERIMENTS: &[Experiment] = &[
    table4::EXPERIMENT,
    upcall::EXPERIMENT,
    fig2::EXPERIMENT,
    fig3::EXPERIMENT,
    table5::EXPERIMENT,
];

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
