#![doc = include_str!("../README.md")]

pub mod barrier;
pub mod matrix;

pub use barrier::{Barrier, Broken, Crossing, Waiter, WrongSize};
