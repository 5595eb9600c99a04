//! The registry: a pool's state together with its strategy, and the loop of each thread.
//!
//! [`Registry`] adds the strategy to the [`PoolState`] that all pools have. The free functions,
//! scopes and waiting workers do not know the strategy's type. They see the registry as a
//! [`Core`](crate::workers::core::Core).
//!
//! | file | what it does |
//! | --- | --- |
//! | `main_loop.rs` | the loop of a thread: it finds work, runs it, and stops |
//! | `search.rs` | how a worker finds ready work, spins, sleeps, and wakes others |
//! | `core.rs` | what workers ask of the registry |
//! | `threads.rs` | starts threads, restarts them, grows and shrinks the pool |
//! | `spares.rs` | leases spare threads, and puts them to sleep |
//! | `shutdown.rs` | closes the pool, detects that it is done, waits for its threads |
//! | `monitor.rs` | finds workers that block without saying so, and compensates them |
//!
//! # A worker's life
//!
//! ```text
//!                                            none           spin, then sleep
//! start ─► take a task, give the last block back ─► search ─────────────────┐
//!            ▲   │ a task                                                   │ a task or a fork
//!            │   ▼                                                          │
//!            └── run it ◄───────────────────────────────────────────────────┘
//!
//! signals, looked at between two tasks:
//!   CALLS  make the calls of broadcasts
//!   STOP   stop: the pool has become smaller, or is closed
//!   START  (a spare) take part
//! ```
//!
//! # Invariants
//!
//! 1. A slot has one thread at a time, which has its [`WorkerSlot`](crate::WorkerSlot). A thread is
//!    started on a free slot under the lock of the thread table. It frees the slot under that lock
//!    when it is through, after its exit handler. No thread has to wait for it.
//! 2. A worker of an open pool that is told to stop does so between two tasks. A worker of a closed
//!    pool stops when the pool is done (`termination.rs`). So all that tasks create is run. What
//!    other threads create while the last worker stops, and later, is dropped (`drain.rs`).
//! 3. A thread that creates a task holds the registry, so the registry is alive.

mod core;
mod main_loop;
mod monitor;
mod search;
mod shutdown;
mod spares;
mod threads;

use std::sync::Arc;

use crate::strategy::Strategy;
use crate::workers::PoolState;

/// A pool: its state, its strategy, and a way to itself.
pub(crate) struct Registry<S> {
    pool: PoolState,
    strategy: S,
    /// Itself, for the threads that it starts.
    weak: std::sync::Weak<Self>,
}

impl<S: Strategy> Registry<S> {
    /// Creates a registry without threads.
    pub(crate) fn new(pool: PoolState, strategy: S) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { pool, strategy, weak: me.clone() })
    }

    /// Returns the state that does not depend on the strategy.
    pub(crate) fn pool(&self) -> &PoolState {
        &self.pool
    }

    /// Returns the strategy.
    pub(crate) fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Returns another owner of the registry; `None` while the registry is being dropped.
    pub(crate) fn upgrade(&self) -> Option<Arc<Self>> {
        self.weak.upgrade()
    }

    /// Returns whether a task or a fork is ready.
    pub(crate) fn has_ready(&self) -> bool {
        self.strategy.len() > 0 || self.pool.has_forks()
    }
}
