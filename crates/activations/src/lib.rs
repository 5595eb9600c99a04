#![doc = include_str!("../README.md")]
// Types that only `__internal` exports are no types to default to.
#![allow(clippy::new_without_default)]

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
pub use api::park::{park, park_timeout, sleep, yield_now};
pub use api::runtime::Runtime;
pub use api::scope::{Scope, ScopedJoinHandle, scope};
pub use api::spawn::{Builder, spawn};
pub use api::thread_local::{AccessError, LocalKey};
pub use processors::arbiter::{Arbiter, ArbiterError};
pub use reports::metrics::Metrics;
pub use reports::stall::Stalled;
pub use stanchion_machine::stack::{Guards, StackError};
pub use stats::histogram::Latencies;
pub use stats::trace::Trace;
pub use stats::upcalls::Upcall;
pub use thread::handle::Thread;
pub use thread::id::ThreadId;
pub use thread::priority::Priority;
pub use worker::context::current;

/// The parts that the models of `crates/loom` explore. Outside of semver: any version may change
/// it.
#[doc(hidden)]
pub mod __internal {
    pub use crate::detection::monitor::{
        Found, Monitor, Monitored, MonitoredWorker, ensure_watched,
    };
    pub use crate::detection::observed::{Observed, ObservedState};
    pub use crate::detection::watch_state::WatchState;
    pub use crate::processors::idle_workers::{IdleWorkers, Rest};
    pub use crate::processors::limit::ProcessorLimit;
    pub use crate::processors::overcommit::Overcommit;
    pub use crate::processors::ownership::{Ownership, WokenFor};
    pub use crate::processors::parking::ParkedSlots;
    pub use crate::queues::mailbox::Mailbox;
    pub use crate::queues::timers::Timers;
    pub use crate::reports::stall::{Snapshot, StallView, all_wait};
    pub use crate::stats::live_threads::{LiveThreads, ThreadCounts};
    pub use crate::stats::upcalls::UpcallCounts;
    pub use crate::sync::channel::wait::{Entries, Entry, Waiter};
    pub use crate::thread::attributes::Attributes;
    #[cfg(stanchion_loom)]
    pub use crate::thread::free_fibers::unused_fiber;
    pub use crate::thread::handle::Thread;
    pub use crate::thread::header::{Header, ThreadCell, ThreadFiber};
    pub use crate::thread::home::ThreadHome;
    pub use crate::thread::notice::{CompletionNotice, ScopeData};
    pub use crate::thread::park_state::Pause;
    pub use crate::thread::process::Process;
    pub use crate::thread::reference_count::ReferenceCount;
    pub use crate::thread::scheduler::Scheduler;
    pub use crate::thread::task_cell::TaskCell;
    pub use crate::upcalls::monitor::{MonitoredRuntime, run as run_monitor};
    pub use crate::worker::wait::{wait_for_end, wait_until};
}
