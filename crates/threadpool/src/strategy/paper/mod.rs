//! The strategies of Anderson, Lazowska and Levy (1989), and the two hybrids that they name.

mod central_else_local;
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
