//! Tools that all experiments on simulated machines share: threads that start together, and many
//! runs at a time.

mod cells;
mod program;

pub use cells::cells;
pub use program::{failed, simulation, together};
