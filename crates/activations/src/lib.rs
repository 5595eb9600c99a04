#![doc = include_str!("../README.md")]

mod api;
mod detection;
mod processors;
mod queues;
mod reports;
mod runtime;
mod stats;
pub mod sync;
mod thread;
mod upcalls;
mod worker;

pub use api::blocking::blocking;
pub use api::builder::RuntimeBuilder;
pub use api::capabilities::{Capabilities, Tier};
pub use api::error::BuildError;
pub use api::join::JoinHandle;
pub use api::park::{park, park_timeout, sleep};
pub use api::runtime::Runtime;
pub use api::scope::{Scope, ScopedJoinHandle, scope};
pub use api::spawn::Builder;
pub use api::thread_local::{AccessError, LocalKey};
pub use machine::stack::{Guards, StackError};
pub use processors::arbiter::{Arbiter, ArbiterError};
pub use reports::metrics::Metrics;
pub use reports::stall::Stalled;
pub use stats::histogram::Latencies;
pub use stats::trace::Trace;
pub use stats::upcalls::Upcall;
pub use thread::header::{Thread, ThreadId, current, spawn, yield_now};
pub use thread::priority::Priority;
