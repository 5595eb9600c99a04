//! What user-level threads wait for each other with: locks, conditions, permits, barriers,
//! channels.
//!
//! A user-level thread that waits here leaves its processor to others, a kernel thread sleeps. So
//! the same value serves threads of one runtime, of several, and of none. An
//! [unpark](crate::Thread::unpark) that comes while its thread waits here is kept for the next
//! [`park`](crate::park()).
//!
//! | type | uncontended | order | gives up |
//! | --- | --- | --- | --- |
//! | [`Mutex`] | two compare-exchanges | a running thread may overtake; handed over after 0.5 ms | yes |
//! | [`Condvar`] | notifying nobody: one load | first come, first notified | yes |
//! | [`Semaphore`] | a compare-exchange each way | first come, first served, strictly | yes |
//! | [`Barrier`] | a spin lock | all at once | no |
//! | [`channel`] | the mutex | first come, first served, strictly | yes |
//!
//! Nothing here allocates in order to wait: waiters lie on the stacks of the threads that wait.
//! Only the mutex spins before it parks, because only it knows whom it waits for: with one
//! processor, or if the owner is on none, spinning is in vain.
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
