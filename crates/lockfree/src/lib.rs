#![doc = include_str!("../README.md")]

#[macro_use]
mod macros;

pub mod counter;
mod dropping;
pub mod heap;
pub mod iter;
pub mod memory;
pub mod progress;
pub mod queue;
pub mod stack;

pub use lock_api;

pub use counter::Counter;
pub use heap::PriorityQueue;
pub use progress::Progress;
pub use queue::{ConcurrentQueue, Full};
pub use stack::ConcurrentStack;
