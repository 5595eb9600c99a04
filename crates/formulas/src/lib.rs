#![doc = include_str!("../README.md")]

pub mod competitive;
pub mod contention;
mod estimate;
pub mod gang;
pub mod mva;
mod random;
pub mod scan;

pub use estimate::Estimate;
pub use random::Random;
