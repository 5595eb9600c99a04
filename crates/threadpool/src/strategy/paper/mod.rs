//! The strategies of Anderson, Lazowska and Levy (1989), and the two hybrids that they name.
//!
//! | file | section of the paper |
//! | --- | --- |
//! | `single_lock.rs` | 3.1 |
//! | `multiple_locks.rs` | 3.2 |
//! | `local_free_list.rs` | 3.3 |
//! | `idle_queue/` | 3.4 |
//! | `local_ready_queue/` | 3.5 |
//! | `central_else_local.rs`, `probe_idle_else_central.rs` | 3.6, the hybrids |
//!
//! They share `ready_queue.rs`, a queue under a lock, `handoff.rs`, by which a creator hands a task
//! to an idle worker, and `numbers.rs`, random numbers.

mod central_else_local;
mod handoff;
mod idle_queue;
mod local_free_list;
mod local_ready_queue;
mod multiple_locks;
mod numbers;
mod probe_idle_else_central;
mod ready_queue;
mod single_lock;

pub use central_else_local::CentralElseLocal;
pub use idle_queue::IdleQueue;
pub use local_free_list::LocalFreeList;
pub use local_ready_queue::{LocalReadyQueue, OwnQueue, Placement, Random, TwoChoices};
pub use multiple_locks::MultipleLocks;
pub use probe_idle_else_central::ProbeIdleElseCentral;
pub use single_lock::SingleLock;
