#![doc = include_str!("../README.md")]

pub mod barrier;
pub mod matrix;
mod switching;

pub use barrier::{Barrier, Broken, Crossing, Waiter, WrongSize};
pub use switching::{Refused, Switching};
