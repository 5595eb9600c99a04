//! The parts of the example `hasher`, which its tests call too.

pub mod app;
pub mod cold;
pub mod crews;
pub mod hash;
mod report;
pub mod walk;
