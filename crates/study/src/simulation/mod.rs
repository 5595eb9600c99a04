//! Tools that all experiments on simulated machines share: threads that start together, many runs
//! at a time, and runs with a piece that the model lacks.

mod cells;
mod counterfactual;
mod program;

pub use cells::cells;
pub use counterfactual::run as run_simulated;
pub use program::{failed, simulation, together};
