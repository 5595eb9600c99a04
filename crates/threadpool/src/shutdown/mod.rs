//! How a closed pool finds out that it is done, and what becomes of later tasks.

pub(crate) mod drain;
pub(crate) mod termination;
