//! The workers: kernel threads that run user-level threads while they own a slot.
//!
//! ```text
//! scheduler_loop   find ─► run ─► lay aside ─► find … rest
//!   │ order          the next thread: bound threads, new threads, other workers that want the slot
//!   │ take           the runtime's ready queue, and stealing from other slots (`steal_throttle`)
//!   │ priorities     threads of a higher priority than the one that runs
//!   │ bound_threads  the threads that began on this worker, and the turns of threads (`turns`)
//!   │ slot           owning a slot: getting one, giving it up, resting without one
//!   └ panicking      threads that wait while they panic
//! state            the part of a worker that only it touches
//! make_ready       a thread becomes ready, on this worker or another one
//! context          the calling worker, and how its thread leaves it: to pause, or to yield
//! wait             waiting for a condition: the calling thread parks, whatever kind it is
//! ```
//!
//! This room imports `upcalls`, `runtime` and the rooms below them.

pub(crate) mod bound_threads;
pub(crate) mod context;
pub(crate) mod make_ready;
pub(crate) mod order;
pub(crate) mod panicking;
pub(crate) mod priorities;
pub(crate) mod scheduler_loop;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod steal_throttle;
pub(crate) mod take;
pub(crate) mod turns;
pub(crate) mod wait;
