#![doc = include_str!("../README.md")]

mod biased;
mod blocking;
mod broadcast;
mod builder;
mod closing;
mod common;
mod control_block;
mod countdown;
mod ending;
mod error;
mod fifo;
mod forks;
mod free_list;
mod future;
mod global;
mod guest;
mod handler;
mod job;
mod join;
mod latch;
mod listed;
mod locked;
mod lookout;
mod metrics;
mod pool;
mod registry;
mod roster;
mod scope;
mod slab;
mod sleeping;
pub mod strategy;
mod visit;
mod worker;

pub use lock_api;

pub use blocking::{blocking, spawn_blocking};
pub use builder::ThreadPoolBuilder;
pub use control_block::{Link, Stack, Task, WORDS};
pub use error::{BuildError, Cancelled, ResizeError};
pub use future::{JoinHandle, spawn_future};
pub use global::{
    FnContext, broadcast, current_num_threads, current_thread_index, in_place_scope,
    in_place_scope_fifo, join, join_context, scope, scope_fifo, spawn, spawn_broadcast, spawn_fifo,
    yield_local, yield_now,
};
pub use handler::{CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn};
pub use metrics::{Metrics, WorkerMetrics};
pub use pool::ThreadPool;
pub use scope::{Scope, ScopeFifo};
pub use strategy::{Place, Plan, Strategy, Told};
pub use worker::{MOST_NESTED, Wait, Worker};
