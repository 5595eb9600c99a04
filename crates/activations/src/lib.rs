#![doc = include_str!("../README.md")]

mod arbiter;
mod blocking;
mod builder;
mod capabilities;
mod carrier;
mod demand;
mod error;
mod fiber;
mod handover;
mod join;
mod local;
mod lookout;
mod metrics;
mod packet;
mod park;
mod ready;
mod reserve;
mod runtime;
mod seat;
mod shared;
mod sleeping;
#[allow(dead_code, unused_imports, reason = "fibers are about to take their stacks from it")]
mod stack;
mod standing;
pub mod sync;
mod thread;
mod timers;
mod trace;
mod upcall;

pub use arbiter::{Arbiter, ArbiterError};
pub use blocking::blocking;
pub use builder::RuntimeBuilder;
pub use capabilities::{Capabilities, Tier};
pub use error::BuildError;
pub use join::JoinHandle;
pub use metrics::Metrics;
pub use park::{park, park_timeout};
pub use runtime::Runtime;
pub use thread::{Thread, ThreadId, current, spawn, yield_now};
pub use trace::Trace;
pub use upcall::Upcall;
