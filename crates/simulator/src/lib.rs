#![doc = include_str!("../README.md")]

mod arena;
mod failure;
pub mod inside;
mod locals;
pub mod machine;
pub mod machines;
mod memory;
pub mod os;
mod random;
mod scheduler;
mod services;
mod simulation;
mod statistics;
mod time;
mod timeline;
mod world;

pub use arena::Arena;
pub use failure::Failure;
pub use machine::Machine;
pub use memory::{Accesses, Rates};
pub use scheduler::ThreadId;
pub use simulation::{Run, Simulation};
pub use statistics::{Activity, Statistics, ThreadStatistics, Times, WordStatistics};
pub use time::{NotATime, Time};
pub use timeline::{Drawing, Rows, Span, Timeline};
