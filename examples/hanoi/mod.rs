//! The parts of the example `hanoi`, which its tests call too.

pub mod app;
pub mod report;
