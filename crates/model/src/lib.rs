#![doc = include_str!("../README.md")]

pub mod competitive;
mod estimate;
pub mod mva;
mod random;
pub mod scan;

pub use estimate::Estimate;
pub use random::Random;
