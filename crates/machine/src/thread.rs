//! Threads: the operating system's on the real machine, the model's under loom.

pub use crate::backend::thread::{JoinHandle, sleep, spawn, yield_now};
