//! The configuration of a pool, apart from its strategy and its threads.

use std::any::Any;

use stanchion_competitive::Mutex;

use crate::threads::Names;

/// The most tasks that a waiting worker runs one inside the other. Beyond that it waits without
/// running any.
pub const MAX_NESTED_TASKS: usize = 64;

/// The behaviour of a worker while it waits for a task that another worker runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The worker runs any ready task, one inside the other up to [`MAX_NESTED_TASKS`]. Beyond that
    /// it runs only tasks of the scope that it waits for. The processors are never idle while there
    /// is work. A task that waits may find an unrelated one on top of it. So do not hold a lock,
    /// and do not wait for the pool to [end](crate::ThreadPool::shutdown).
    ///
    /// Beyond the bound, a worker that waits for a future, a broadcast or another pool runs any
    /// task after all. Its stack grows by one task for each such wait.
    #[default]
    Any,
    /// The worker runs only tasks of the scope it waits for, or what the thief has ready, one at a
    /// time from the oldest (Wagner and Calder 1993). Those are parts of what it waits for, unless
    /// the thief had other tasks before, or has moved some to itself. So do not hold a lock.
    /// Strategies with a central queue do not know which worker's tasks are which, and run nothing.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork also leases a
    /// spare.
    Leapfrog,
    /// The worker runs only tasks of the scope it waits for, and broadcasts. Locks may be held
    /// across a `join`, but not one that a [`broadcast`](crate::ThreadPool::broadcast) takes. The
    /// processor is idle meanwhile.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork also leases a
    /// spare.
    Isolated,
    /// As `Isolated`, and a spare thread takes part meanwhile, as with
    /// [`blocking`](crate::blocking).
    Park,
}

/// The user's function for panics for which no thread waits.
pub(crate) type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
/// The user's function for a thread that begins or ends.
pub(crate) type IndexHandler = dyn Fn(usize) + Send + Sync;

/// The configuration of a pool. The builder writes it once.
pub(crate) struct Config {
    pub(crate) wait: Wait,
    /// The time for which an idle worker spins before it sleeps. None for the cost of blocking.
    pub(crate) idle_spin_ns: Option<u64>,
    /// Each thread stays on one processor.
    pub(crate) pinned: bool,
    /// Workers that are seen blocked get a spare in their place.
    pub(crate) compensate_blocking: bool,
    /// The program starts the threads when the pool is built.
    pub(crate) custom_threads: bool,
    /// The thread that builds the pool has its first slot.
    pub(crate) uses_current_thread: bool,
    /// Gives threads their names.
    pub(crate) thread_names: Option<Mutex<Names>>,
    pub(crate) panic_handler: Option<Box<PanicHandler>>,
    pub(crate) start_handler: Option<Box<IndexHandler>>,
    pub(crate) exit_handler: Option<Box<IndexHandler>>,
}
