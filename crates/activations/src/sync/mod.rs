//! Synchronization of user-level threads: locks, conditions, permits, barriers, channels.
//!
//! A user-level thread that waits here leaves its processor to others, a kernel thread sleeps. So
//! the same value serves threads of one runtime, of several, and of none. An
//! [unpark](crate::Thread::unpark) that comes while its thread waits here is kept for the next
//! [`park`](crate::park()).
//!
//! - [`Mutex`]. Uncontended: two compare-exchanges. Order: a running thread may overtake; handed
//!   over after 0.5 ms. Gives up: yes.
//! - [`Condvar`]. Uncontended: notifying without a waiter: one load. Order: first come, first
//!   notified. Gives up: yes.
//! - [`Semaphore`]. Uncontended: a compare-exchange each way. Order: first come, first served,
//!   strictly. Gives up: yes.
//! - [`Barrier`]. Uncontended: a spin lock. Order: all at once. Gives up: no.
//! - [`channel`]. Uncontended: the mutex. Order: first come, first served, strictly. Gives up:
//!   yes.
//!
//! Nothing here allocates in order to wait: waiters lie on the stacks of the threads that wait.
//! Only the mutex spins before it parks, because only a mutex has a holder that can be observed.
//! With one processor, or if the holder is on none, spinning is in vain.
//!
//! Nothing is poisoned: a thread that panics with a lock releases it. A guard that is forgotten
//! keeps its lock for ever. A user-level thread must not wait here in a signal handler. A kernel
//! thread may wait also in the destructors of its thread-locals.

mod barrier;
mod condvar;
mod mutex;
mod queue;
mod semaphore;

pub mod channel;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, RawCondvar};
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, PolicyMutex, PolicyMutexGuard, RawMutex};
pub use semaphore::{Permits, Semaphore};
