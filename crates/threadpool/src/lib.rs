#![doc = include_str!("../README.md")]

// The rooms, from top to bottom. Each imports only those below it.
//
// api                          the pool, its builder, the free functions
// future                       futures on a pool
// scope, broadcast, install,
// spawn, blocking, waiter      the verbs, and the threads that wait for them
// registry                     the state of a pool with its strategy, the loop of its threads
// workers                      a worker, and the state that all threads of a pool share
// strategy                     ways of managing ready work
// queues, shutdown, threads    work outside of the strategy, the end of a pool, its threads
// sleep                        idle workers
// sync, random, metrics, error parts that know nothing of a pool
mod api;
mod blocking;
mod broadcast;
mod error;
mod future;
mod install;
mod metrics;
mod queues;
mod random;
mod registry;
mod scope;
mod shutdown;
mod sleep;
mod spawn;
pub mod strategy;
mod sync;
mod threads;
mod waiter;
mod workers;

pub use lock_api;

pub use api::builder::ThreadPoolBuilder;
pub use api::global::{
    FnContext, broadcast, current_num_threads, current_thread_index, in_place_scope,
    in_place_scope_fifo, join, join_context, scope, scope_fifo, spawn, spawn_blocking,
    spawn_broadcast, spawn_fifo, spawn_future, yield_local, yield_now,
};
pub use api::thread_pool::ThreadPool;
pub use blocking::blocking;
pub use error::{BuildError, Cancelled, ResizeError};
pub use future::JoinHandle;
pub use metrics::{Metrics, WorkerMetrics};
pub use scope::{Scope, ScopeFifo};
pub use strategy::blocks::control_block::{Link, Stack, TASK_WORDS, Task};
pub use strategy::{Plan, Strategy, WakeTarget, WorkerSlot};
pub use threads::custom::{CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn};
pub use workers::config::{MAX_NESTED_TASKS, Wait};
pub use workers::worker::Worker;

/// Parts that the models in this workspace check one by one. Not part of the crate's interface:
/// what is in here may change or go with any release.
#[doc(hidden)]
pub mod __internal {
    #![allow(missing_docs)]
    pub use crate::future::state::{Finished, FutureState};
    pub use crate::queues::fork_stack::ForkStack;
    pub use crate::shutdown::drain::Drain;
    pub use crate::shutdown::termination::{AllIdle, Termination};
    pub use crate::sleep::{LastCheck, Sleep};
    pub use crate::strategy::work_stealing::biased::{Barrier, BiasedLock};
    pub use crate::sync::count_latch::CountLatch;
    pub use crate::sync::latch::Latch;
    pub use crate::workers::Monitor;
}
