//! The parts of the example `galaxy`, which its tests call too.

pub mod app;
pub mod picture;
mod report;
