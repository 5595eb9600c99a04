//! The parts of the example `tsp`, which its tests call too.

pub mod app;
mod family;
mod report;
