//! The services of the operating system, and the state of a run.

pub(crate) mod allocator;
pub(crate) mod delays;
pub(crate) mod interrupt;
pub(crate) mod jitter;
pub(crate) mod kernel;
mod shares;
