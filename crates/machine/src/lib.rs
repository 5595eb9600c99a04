#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(stanchion_loom, allow(dead_code, unused_imports))]

#[cfg(any(feature = "std", stanchion_loom, test))]
extern crate std;

#[cfg(not(stanchion_loom))]
extern crate alloc;

// The one place where the machine is chosen. Everything below asks `backend`; nothing above this crate asks which it is.
#[cfg(not(stanchion_loom))]
#[path = "real/mod.rs"]
mod backend;
#[cfg(stanchion_loom)]
#[path = "loom/mod.rs"]
mod backend;

#[macro_use]
mod macros;

pub mod atomic;
pub mod cell;
pub mod clock;
pub mod hint;
mod model;
pub mod sync;
pub mod wait;

#[cfg(feature = "std")]
pub mod thread;

pub use backend::choice;
pub use model::{Explored, Model, model};

/// What the macros of this crate expand to; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::backend::private::*;
}
