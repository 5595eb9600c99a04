#![doc = include_str!("../README.md")]
#![no_std]

pub use stanchion_machine as machine;
#[cfg(feature = "model")]
pub use stanchion_model as model;
#[cfg(feature = "spin")]
pub use stanchion_spin as spin;
