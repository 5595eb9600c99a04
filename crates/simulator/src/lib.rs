#![doc = include_str!("../README.md")]

pub mod machine;
pub mod machines;
#[allow(dead_code)] // until the run uses it
mod memory;
mod time;

pub use machine::Machine;
pub use time::Time;
