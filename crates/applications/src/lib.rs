#![doc = include_str!("../README.md")]

pub mod barrier;
mod crew;
pub mod galaxy;
pub mod hanoi;
mod mix;
mod named;
pub mod regsim;
mod waits;

pub use crew::MAX_THREADS;
pub use named::{LockWaits, groups};
pub use waits::Waits;
