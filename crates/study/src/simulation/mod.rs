//! What experiments on simulated machines have in common: threads that start together, and many
//! runs at a time.

mod cells;
mod program;

pub use cells::cells;
pub use program::{failed, simulation, together};
