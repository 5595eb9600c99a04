//! What the threads of a pool share, and the loop that each of them runs.
//!
//! [`Registry`] adds the strategy to what is [`PoolState`] to all pools, and is seen through [`Core`]
//! by whoever does not know its type: the free functions, scopes, workers that wait.
//!
//! # A worker's life
//!
//! ```text
//! start ─► take the next task, giving back the last block ─► run it ─┐        orders, looked at between two tasks:
//!            ^   │ none                                              │          mail    run what is meant for this worker
//!            │   v                                                   │          leave   end: the pool has become smaller, or is closed
//!            │  search: spin a while, then sleep ────────────────────┤          serve   (a spare) take part
//!            └───────────────────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! 1. A seat has one thread at a time, which has its place. A thread is started on a free seat
//!    under the roster's lock, and frees it under that lock when it is through, after its exit
//!    handler: nobody has to wait for it.
//! 2. A worker that is told to leave a pool that is open leaves between two tasks; when the pool is
//!    closed, when all have nothing to do (see `closing.rs`). So all that tasks create is run; what
//!    others create while the last one goes, and later, see `ending.rs`.
//! 3. Whoever creates a task holds the registry, so it is alive.

mod core;
mod main_loop;
mod monitor;
mod search;
mod shutdown;
mod spares;
mod threads;

use std::sync::Arc;

use crate::strategy::Strategy;
use crate::workers::pool_state::PoolState;

/// A pool's threads, tasks and sleepers.
pub(crate) struct Registry<S> {
    pool: PoolState,
    strategy: S,
    /// Itself, for the threads that it starts.
    weak: std::sync::Weak<Self>,
}

impl<S: Strategy> Registry<S> {
    pub(crate) fn new(pool: PoolState, strategy: S) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { pool, strategy, weak: me.clone() })
    }

    pub(crate) fn pool(&self) -> &PoolState {
        &self.pool
    }

    pub(crate) fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Another owner of the same; none while it is being dropped.
    pub(crate) fn upgrade(&self) -> Option<Arc<Self>> {
        self.weak.upgrade()
    }

    /// Whether a task or a fork is ready.
    pub(crate) fn has_ready(&self) -> bool {
        self.strategy.len() > 0 || self.pool.has_forks()
    }
}
