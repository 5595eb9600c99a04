//! The parts of the example `wordcount`, which its tests call too.

pub mod app;
pub mod fault;
pub mod part;
mod report;
pub mod tally;
pub mod walk;
