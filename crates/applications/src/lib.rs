#![doc = include_str!("../README.md")]

pub mod barrier;
mod crew;
pub mod galaxy;
pub mod hanoi;
mod mix;
mod named;
mod pace;
pub mod regsim;
mod waits;

pub use crew::MAX_THREADS;
pub use named::{LockWaits, groups};
pub use pace::CVAX_INSTRUCTION_NS;
pub use waits::Waits;
