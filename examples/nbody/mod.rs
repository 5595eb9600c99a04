//! The parts of the example `nbody`, which its tests call too.

pub mod app;
pub mod copies;
pub mod disk;
pub mod picture;
mod processors;
pub mod report;
mod runtime;
