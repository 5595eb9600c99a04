//! Tools that all measurements on this computer share: threads that start together, cells that are
//! measured in turn, and statistics of the times.

mod precision;
mod required;
mod start;
mod sweep;
mod take;

pub use precision::{Precision, Repeated, Round, on_scale, rounds_until, sweep_until, width};
pub use required::{REQUIRED, Required};
pub use start::{Placement, StartLine};
pub use sweep::{Grid, lower_quartile, median, steps, sweep};
pub use take::{jain, least, nanos, processor_time};
