//! The threads of a run: the caller is one of them, all have ended when the call returns, and a
//! panic of one ends the others.
//!
//! Why not `std::thread::scope`: these programs also run on loom's machine, which has no scoped
//! threads. So the data that the threads share is in an [`Arc`], and only the caller's own part may
//! borrow from the caller.

use stanchion_machine::sync::Arc;
use stanchion_machine::{thread, topology};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The most threads a run may have.
pub const MAX_THREADS: usize = 64;

/// The processors that threads run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// The system chooses.
    Free,
    /// Each thread stays on a processor of its own. If there are not enough, the system chooses:
    /// two threads that share a processor while another is free would be worse.
    Own,
    /// Each thread stays on one processor, and processors are dealt out in turn. This is for many
    /// threads that wake each other. Left to the system, a woken thread may run where its waker
    /// did. Then all threads take turns on one processor and never find a lock held.
    RoundRobin,
}

/// A wrapper of the work of each thread of a run. The thread calls it, on its processor, with the
/// thread's number and its work.
///
/// It is for things that belong to a thread and not to a program: to be a member of a
/// pseudo-scheduler, to be recorded. A thread whose wrapper does not call the work does nothing.
///
/// ```
/// use stanchion_applications::Around;
/// use stanchion_applications::quicksort::{InStack, Options, numbers, run_with};
/// # use stanchion_lockfree::{memory::Counted, stack::TreiberStack};
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}};
///
/// let done = Arc::new(AtomicUsize::new(0));
/// let count = Arc::clone(&done);
/// let around = Around::new(move |_number, work| {
///     work();
///     count.fetch_add(1, Relaxed);
/// });
/// let options = Options { threads: 3, ..Options::default() };
/// let pool = InStack(TreiberStack::with_memory(Counted));
/// run_with(&options, numbers(1_000, 1), pool, &around, &mut |_| ())?;
/// assert_eq!(done.load(Relaxed), 3);
/// # Ok::<(), stanchion_applications::quicksort::Refused>(())
/// ```
#[derive(Clone)]
pub struct Around(std::sync::Arc<Surround>);

/// With the number of the thread, and its work.
type Surround = dyn Fn(usize, &mut dyn FnMut()) + Send + Sync;

impl core::fmt::Debug for Around {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

impl Default for Around {
    /// The work and nothing else.
    fn default() -> Self {
        Self::new(|_, work| work())
    }
}

impl Around {
    /// Calls `surround` in each thread.
    pub fn new(surround: impl Fn(usize, &mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(surround))
    }

    /// Does `work` as thread `number`.
    pub(crate) fn surround(&self, thread: usize, mut work: impl FnMut()) {
        (self.0)(thread, &mut work);
    }
}

/// The data that the threads of a run share.
pub(crate) trait Shared: Send + Sync + 'static {
    /// Wakes all threads that wait for a thread that has panicked, or will wait for it: it does
    /// nothing more. Must not panic.
    fn give_up(&self);
}

/// Runs `mine` as number 0 and `other` as numbers 1 to `threads` - 1. Returns their results in that
/// order.
///
/// Each gets the processor that it stays on, if there is one and the system did not refuse.
///
/// # Panics
///
/// With the panic of a thread, when all have ended; and if a thread cannot be started.
pub(crate) fn run<S: Shared, W: Send + 'static>(
    shared: &Arc<S>,
    threads: usize,
    affinity: Affinity,
    mine: impl FnOnce(Option<usize>) -> W,
    other: fn(&S, usize, Option<usize>) -> W,
) -> Vec<W> {
    let processors = if affinity == Affinity::Free { Vec::new() } else { topology::processors() };
    let enough = affinity == Affinity::RoundRobin || threads <= processors.len();
    let pins = enough && !processors.is_empty();
    let assigned = |thread: usize| pins.then(|| processors[thread % processors.len()]);
    let mut handles = Vec::with_capacity(threads - 1);
    let mine = catch_unwind(AssertUnwindSafe(|| {
        // For a thread that cannot be started.
        let breaker = Breaker(&**shared);
        for thread in 1..threads {
            let shared = Arc::clone(shared);
            let assigned = assigned(thread);
            handles.push(thread::spawn(move || {
                on_processor(&*shared, assigned, |processor| other(&shared, thread, processor))
            }));
        }
        core::mem::forget(breaker);
        // Last, for a thread inherits where its starter may run.
        on_processor(&**shared, assigned(0), mine)
    }));
    // All are waited for before the first panic goes on, so that none outlives the call.
    let others: Vec<_> = handles.into_iter().map(thread::JoinHandle::join).collect();
    core::iter::once(mine)
        .chain(others)
        .collect::<Result<_, _>>()
        .unwrap_or_else(|panic| resume_unwind(panic))
}

fn on_processor<S: Shared, W>(
    shared: &S,
    assigned: Option<usize>,
    work: impl FnOnce(Option<usize>) -> W,
) -> W {
    // Kept to the end. A refusal changes the speed of the run, not its result.
    let pinned = assigned.and_then(|processor| topology::pin(processor).ok());
    let processor = assigned.filter(|_| pinned.is_some());
    let breaker = Breaker(shared);
    let result = work(processor);
    core::mem::forget(breaker);
    result
}

/// Gives up when it is dropped, which is by a panic: a thread that comes to its end forgets it.
struct Breaker<'a, S: Shared>(&'a S);

impl<S: Shared> Drop for Breaker<'_, S> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
