#![doc = include_str!("../README.md")]

pub mod barrier;
mod body;
mod crew;
pub mod galaxy;
pub mod hanoi;
pub mod iterations;
mod mix;
mod named;

pub mod nbody;
pub mod null_threads;
pub mod outstanding;
mod pace;
pub mod quicksort;
pub mod regsim;
pub mod tsp;
mod waits;

pub use crew::{Around, MAX_THREADS};
pub use named::{LockWaits, groups};
pub use pace::CVAX_INSTRUCTION_NS;
pub use waits::Waits;
