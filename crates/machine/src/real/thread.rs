//! The operating system's threads.

pub use std::thread::{JoinHandle, sleep, spawn, yield_now};
