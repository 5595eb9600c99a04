#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod barrier;
pub mod matrix;
#[cfg(feature = "mpi")]
pub mod mpi;

mod builder;
mod data;
mod declare;
mod error;
mod executor;
mod member;
mod metrics;
mod panics;
mod scheduler;
mod spawn;
mod state;
mod switching;

pub use barrier::{Barrier, Broken, Crossing, Waiter, WrongSize};
pub use builder::GangExecutorBuilder;
pub use data::Data;
#[doc(hidden)]
pub use declare::size_of_data;
pub use error::{BuildError, Ended, GangError, SpawnError};
pub use executor::GangExecutor;
pub use matrix::{Alternates, Packing};
pub use member::{Exchanged, Member};
pub use metrics::{Metrics, Overstay};
pub use spawn::{GangHandle, GangScope, ScopedGangHandle};
pub use switching::{Refused, Switching};

/// Holds the parts that the models of this crate build. Not part of the interface.
#[doc(hidden)]
pub mod __internal {
    pub use crate::scheduler::{Parker, Preemption, SlotScheduler, Turn};
    pub use crate::state::{Completion, ExchangeBuffers};
}
