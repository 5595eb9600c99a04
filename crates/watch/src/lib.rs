#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod account;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod facades;
mod history;
mod hooks;
mod polls;
mod records;
mod registry;
mod sample;
mod sampler;
mod sequence;
mod system;
mod watch;
mod worker;

pub use polls::Task;
pub use sample::{Cause, Means, Parts, Sample, Stall, State, WorkerSample};
pub use sampler::Sampler;
pub use system::BlockedIn;
pub use watch::{Entered, Watch, WatchBuilder, Watching};
pub use worker::Pool;

#[cfg(any(feature = "rayon", feature = "threadpool"))]
pub use hooks::PoolHooks;
#[cfg(feature = "tokio")]
pub use hooks::TokioHooks;
