//! The parts of the example `heat`, which its tests call too.

pub mod app;
pub mod picture;
pub mod plate;
pub mod report;
