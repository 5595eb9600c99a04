//! How a pool behaves, apart from its strategy and its threads.

use std::any::Any;

use stanchion_competitive::Mutex;

use crate::threads::table::Names;

/// How many tasks a worker that waits may run one inside the other, before it waits without running
/// any.
pub const MAX_NESTED_TASKS: usize = 64;

/// What a worker does while it waits for a task that another one runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Runs any task that is ready, one inside the other up to [`MAX_NESTED_TASKS`], then only those of
    /// the scope that it waits for. The processors are never idle while there is work, and a task
    /// that waits may find an unrelated one on top of it: do not hold a lock, and do not wait for
    /// the pool to [end](crate::ThreadPool::shutdown).
    ///
    /// A worker that waits there for a future, a broadcast or another pool runs any task after all:
    /// its stack grows by one for each such wait.
    #[default]
    Any,
    /// Runs only the tasks of the scope it waits for, or what the thief has ready, one at a time
    /// from the oldest (Wagner and Calder 1993). Those are parts of what is waited for, unless the
    /// thief had other tasks before, or has moved some to itself: so do not hold a lock. Strategies
    /// with a central queue do not know whose task is whose, and run nothing.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork lends its seat too.
    Leapfrog,
    /// Runs nothing but the tasks of the scope it waits for, and broadcasts. Locks may be held
    /// across a `join`, but not one that a [`broadcast`](crate::ThreadPool::broadcast) takes; the
    /// processor is idle meanwhile.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork lends its seat too.
    Isolated,
    /// As `Isolated`, and lends its seat to a spare thread as [`blocking`](crate::blocking) does.
    Park,
}

pub(crate) type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
pub(crate) type IndexHandler = dyn Fn(usize) + Send + Sync;

/// How a pool behaves, apart from its strategy and its threads.
pub(crate) struct Config {
    pub(crate) wait: Wait,
    pub(crate) idle_spin_ns: u64,
    pub(crate) pinned: bool,
    pub(crate) compensate_blocking: bool,
    /// The program starts the threads, when the pool is built.
    pub(crate) custom_threads: bool,
    /// The thread that builds the pool has its first seat.
    pub(crate) uses_current_thread: bool,
    pub(crate) thread_names: Option<Mutex<Names>>,
    pub(crate) panic_handler: Option<Box<PanicHandler>>,
    pub(crate) start_handler: Option<Box<IndexHandler>>,
    pub(crate) exit_handler: Option<Box<IndexHandler>>,
}
