#![doc = include_str!("../README.md")]

#[allow(dead_code, unused_imports)] // until the run uses it
mod arena;
pub mod machine;
pub mod machines;
#[allow(dead_code)] // until the run uses it
mod memory;
mod time;

pub use arena::Arena;
pub use machine::Machine;
pub use time::Time;
