//! Feitelson, Rudolph: Gang scheduling performance benefits for fine-grain synchronization, 1992.
//!
//! ```text
//! methods ──┬─ real (this computer; the system's scheduler) ──┐
//!           └─ simulated (Makbilan) ──────────────────────────┴─▶ stage ─▶ fig4 … fig9
//!                                                                          beside formulas::gang
//! ```
//!
//! `points` has the measurements and the model's predictions. The file of each figure states the
//! rule of its verdict.

mod draw;
mod fig4;
mod fig5;
mod fig7;
mod fig8;
mod fig9;
mod points;
mod real;
mod simulated;
mod stage;
mod stated;
mod table1;

use stanchion_study::experiment::Experiment;
pub use stated::{points, stated};

/// The paper's figures and tables, in its order.
pub const EXPERIMENTS: &[Experiment] = &[
    table1::EXPERIMENT,
    fig4::EXPERIMENT,
    fig5::EXPERIMENT,
    fig5::SIX,
    fig7::EXPERIMENT,
    fig8::EXPERIMENT,
    fig9::EXPERIMENT,
];

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
