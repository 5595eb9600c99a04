//! Anderson, Lazowska and Levy 1989: thread management and spin locks on a Sequent Symmetry with 20
//! processors.

mod exchange;
mod fig3_1;
mod fig3_2;
mod fig3_3;
mod fig3_4;
mod fig3_5;
mod fig4_1;
mod fig4_2;
mod fig4_3;
mod fig5_1;
mod fig5_2;
mod fig5_3;
mod fig5_4;
mod projection;
mod sec3_6;
mod sec5_1;
mod stated;
mod table3_1;
mod threads;

use stanchion_study::experiment::Experiment;
pub use stated::{points, stated};

/// The paper's figures and tables, in its order, and the sections of results without one.
pub const EXPERIMENTS: &[Experiment] = &[
    table3_1::EXPERIMENT,
    fig3_1::EXPERIMENT,
    fig3_2::EXPERIMENT,
    fig3_3::EXPERIMENT,
    fig3_4::EXPERIMENT,
    sec3_6::EXPERIMENT,
    fig3_5::EXPERIMENT,
    fig4_1::EXPERIMENT,
    fig4_2::EXPERIMENT,
    fig4_3::EXPERIMENT,
    sec5_1::EXPERIMENT,
    fig5_1::EXPERIMENT,
    fig5_2::EXPERIMENT,
    fig5_3::EXPERIMENT,
    fig5_4::EXPERIMENT,
];

/// Puts what a simulated program of a test allocates where its run says, so that addresses are the
/// same in every run.
#[cfg(test)]
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
