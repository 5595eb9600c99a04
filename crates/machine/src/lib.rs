#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(any(stanchion_loom, stanchion_simulated), allow(dead_code, unused_imports))]

#[cfg(any(feature = "std", stanchion_loom, stanchion_simulated, test))]
extern crate std;

#[cfg(all(any(feature = "alloc", stanchion_simulated), not(stanchion_loom)))]
extern crate alloc;

// Chooses the machine of the seam: its modules use `backend`. The rooms above the seam choose in
// the same way. No crate above this one asks which machine it is.
#[cfg(not(any(stanchion_loom, stanchion_simulated)))]
#[path = "real/mod.rs"]
mod backend;
#[cfg(stanchion_loom)]
#[path = "loom/mod.rs"]
mod backend;
#[cfg(all(stanchion_simulated, not(stanchion_loom)))]
#[path = "simulated/mod.rs"]
mod backend;

#[macro_use]
mod macros;

#[doc(hidden)]
pub mod modes;
#[cfg(any(
    stanchion_simulated,
    all(feature = "std", target_os = "linux", target_has_atomic = "64", not(miri))
))]
mod saturation;
#[doc(hidden)]
pub mod sharing;

// The seam: the questions that each algorithm asks. `backend` answers them.
pub mod asymmetric;
pub mod atomic;
#[doc(hidden)]
pub mod bomb;
pub mod cell;
pub mod checking;
pub mod clock;
mod data;
#[cfg(feature = "std")]
pub mod fork;
pub mod handshake;
pub mod hint;
mod model;
#[cfg(feature = "std")]
pub mod park;
#[cfg(feature = "std")]
pub mod preemption;
pub mod reliance;
#[cfg(any(feature = "alloc", stanchion_loom, stanchion_simulated))]
pub mod sync;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "std")]
pub mod topology;
pub mod wait;
#[cfg(feature = "std")]
mod warm_up;

// Libraries of their own above the seam, for schedulers and for locks that observe their holders.
// The seam imports none of them. Each has a front page, and its own file for each machine.
#[cfg(feature = "std")]
pub mod control;
#[cfg(feature = "std")]
pub mod presence;
#[cfg(feature = "std")]
pub mod stack;

pub use backend::{apart, choice};
pub use data::{burn, label, read, work, write};
pub use model::{Explored, Model, model, sized};
#[cfg(feature = "std")]
pub use warm_up::warm_up;

/// Holds the items that the macros of this crate expand to. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::backend::private::*;
}
