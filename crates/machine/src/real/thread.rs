//! The operating system's threads.

pub use std::thread::{Builder, JoinHandle, sleep, spawn, yield_now};

mod ids;
pub(crate) use ids::index;
