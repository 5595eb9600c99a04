#![doc = include_str!("../README.md")]

mod arena;
mod event;
mod failure;
pub mod inside;
mod jitter;
mod local;
pub mod machine;
pub mod machines;
mod memory;
pub mod os;
mod random;
mod scheduler;
mod simulation;
mod state;
mod statistics;
mod thread;
mod time;
mod timeline;
mod world;

pub use arena::Arena;
pub use failure::Failure;
pub use machine::Machine;
pub use memory::{Accesses, Rates};
pub use simulation::{Run, Simulation};
pub use statistics::{Activity, Statistics, ThreadStatistics, Times, WordStatistics};
pub use thread::ThreadId;
pub use time::{NotATime, Time};
pub use timeline::{Drawing, Rows, Span, Timeline};
