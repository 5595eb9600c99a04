//! Workers, and the state that they share, whatever the strategy of their pool.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `worker.rs` | a worker, as its tasks see it |
//! | `worker_info.rs` | the part of a worker that other threads see |
//! | `pool_state.rs` | the state that all threads of a pool share |
//! | `core.rs` | the registry as its workers see it |
//! | `config.rs` | the configuration of a pool |
//! | `job.rs`, `run.rs` | tasks: how they are written into blocks, created and run |
//! | `join.rs` | `join`, from the fork to the result |
//! | `wait.rs` | how a worker waits for what another worker runs |
//! | `spin.rs` | how long an idle worker spins before it sleeps |
//! | `signals.rs` | signals and calls to one worker |
//! | `monitor.rs`, `compensation.rs` | the state of the monitor, and of compensated workers |
//! | `waiting_futures.rs` | futures that wait on a worker |
//!
//! `worker`, `worker_info`, `pool_state` and `core` import each other. All else goes one way.

pub(crate) mod compensation;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod job;
pub(crate) mod join;
pub(crate) mod monitor;
pub(crate) mod pool_state;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod spin;
pub(crate) mod wait;
pub(crate) mod waiting_futures;
pub(crate) mod worker;
pub(crate) mod worker_info;

pub(crate) use self::config::{Config, MAX_NESTED_TASKS, Wait};
pub(crate) use self::core::{Core, QueuePosition, SpareLease, Work};
pub(crate) use self::join::JobResult;
pub use self::monitor::Monitor;
pub(crate) use self::monitor::{BLOCKED_US, BlockObservation, Excused, HEARTBEAT};
pub(crate) use self::pool_state::{CURRENT_THREAD_SLOT, Fate, PoolState};
pub(crate) use self::signals::{COMPENSATED, START, STOP};
pub(crate) use self::wait::{Awaited, UNWOUND};
pub(crate) use self::waiting_futures::{Abort, WaitingFutures};
pub(crate) use self::worker::{Fork, StolenFork, Worker};
pub(crate) use self::worker_info::{Call, CallOf, Detached, ScopeTask, UNSEEN, WorkerInfo};
