#![doc = include_str!("../README.md")]

pub mod competitive;
mod estimate;
mod random;
pub mod scan;

pub use estimate::Estimate;
pub use random::Random;
