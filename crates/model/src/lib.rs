#![doc = include_str!("../README.md")]

mod random;
pub mod scan;

pub use random::Random;
