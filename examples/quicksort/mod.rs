//! The parts of the example `quicksort`, which its tests call too.

pub mod app;
pub mod pool;
mod report;
