//! Michael, Scott: Relative performance of preemption-safe locking and non-blocking synchronization
//! on multiprogrammed shared-memory multiprocessors, 1997.
//!
//! ```text
//! rows, programs ──┬─ real (this computer, a pseudo-scheduler; peers) ──┐
//!                  └─ simulated (Challenge) ────────────────────────────┴─▶ grid ─┬─▶ fig1 … fig4
//!                                                                                 └─▶ applications
//!                                                                                (fig5 … fig7)
//! ```
//!
//! The pseudo-scheduler stops the programs on this computer in turn.
//!
//! `levels` stands beside the figures: the cost of a multiprogramming level here, by the
//! processor time of the threads.
//!
//! `grid` has the measurements: every structure, every number of processors, every
//! multiprogramming level. The file of each figure states the rule of its verdict.

mod applications;
mod fig1;
mod fig2;
mod fig3;
mod fig4;
mod grid;
mod judge;
mod levels;
mod peers;
mod real;
mod simulated;
mod stated;

use stanchion_study::experiment::Experiment;
pub use stated::{points, stated};

/// The paper's figures and tables, in its order, and what a multiprogramming level costs.
pub const EXPERIMENTS: &[Experiment] = &[
    fig1::EXPERIMENT,
    fig2::EXPERIMENT,
    fig3::EXPERIMENT,
    fig4::EXPERIMENT,
    applications::FIG5,
    applications::FIG6,
    applications::FIG7,
    levels::EXPERIMENT,
];

/// The row all others are divided by: the preemption-safe single lock. The same in every figure.
const BASE: usize = real::BASE;

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
