//! The parts of the example `regsim`, which its tests call too.

pub mod app;
pub mod report;
