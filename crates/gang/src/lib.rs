#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod barrier;
pub mod matrix;

mod board;
mod builder;
mod clock;
mod data;
mod declare;
mod desk;
mod ending;
mod error;
mod executor;
mod gate;
mod handle;
mod member;
mod metrics;
#[cfg(feature = "mpi")]
pub mod mpi;
mod post;
mod scope;
mod switching;
mod team;
mod thread;

pub use barrier::{Barrier, Broken, Crossing, Waiter, WrongSize};
pub use builder::GangExecutorBuilder;
pub use data::Data;
#[doc(hidden)]
pub use declare::size_of_data;
pub use error::{BuildError, Ended, GangError, SpawnError};
pub use executor::GangExecutor;
pub use handle::{GangHandle, ScopedGangHandle};
pub use matrix::{Alternates, Packing};
pub use member::{Exchanged, Member};
pub use metrics::{Metrics, Overstay};
pub use scope::GangScope;
pub use switching::{Refused, Switching};
