//! Threads: the operating system's on the real machine, the model's under loom, virtual ones in a
//! simulation.

pub use crate::backend::thread::{Builder, JoinHandle, sleep, spawn, yield_now};
/// Returns whether the calling thread is unwinding, as the standard library reports it on every
/// machine.
pub use std::thread::panicking;

/// Returns the calling thread's name, if it has one and is not about to end. On every machine it is
/// the name that the standard library knows.
///
/// ```
/// let named = std::thread::Builder::new().name("sorter".into());
/// let name = named.spawn(stanchion_machine::thread::name).unwrap().join().unwrap();
/// assert_eq!(name.as_deref(), Some("sorter"));
/// ```
#[must_use]
pub fn name() -> Option<std::boxed::Box<str>> {
    std::thread::current().name().map(std::boxed::Box::from)
}

/// The number of threads that can have an [`index`] at the same time.
///
/// It is twice the number that Linux runs by default in a control group on a large server. A table
/// with one line for each is still only 1 MiB.
pub const INDICES: usize = 16_384;

/// Returns a small number for the calling thread: the smallest that no other thread has, below
/// [`INDICES`].
///
/// The thread keeps the number until it ends. Then the next thread that asks may get it. What the
/// last holder of a number wrote before it ended happened before what the next holder does with it.
/// So a table indexed by it needs no more lines than there were threads at one time.
///
/// On Unix systems the number outlives all thread-locals of its thread: their destructors find the
/// same number, and so does a lock that keeps its guard in one. The number is given back in the
/// third round of the destructors of POSIX keys (`pthread_key_create`), the last but one that is
/// guaranteed. On other systems it is given back in the midst of the destructors of thread-locals.
///
/// Returns `None` in these cases, for which a caller must be ready:
///
/// - [`INDICES`] threads have one already, or the process has no POSIX key left; a later call tries
///   again;
/// - the number has been given back, see above;
/// - this call interrupted another call of the same thread, as a signal handler or an allocator
///   does.
///
/// In a simulation the number is the thread's position in the order in which the threads began, and
/// is not given to another thread. A forked child continues with its parent's numbers. The numbers
/// of threads that it does not have stay taken.
///
/// The first call of a thread costs less than 1 µs, later ones a nanosecond or two. On Linux it
/// calls no allocator. The exception is a library that is loaded by `dlopen`: there glibc allocates
/// the thread-locals of each thread when the first of them is used, and a table for each thread if
/// the process had made 32 POSIX keys when the library was loaded.
///
/// ```
/// use stanchion_machine::thread::{INDICES, index};
/// let mine = index().unwrap();
/// assert_eq!(index(), Some(mine));
/// assert!(mine < INDICES);
/// ```
#[inline]
#[must_use]
pub fn index() -> Option<usize> {
    crate::backend::thread::index()
}

/// Asks the system not to take a processor from another thread when the calling thread wakes up.
/// For a thread that monitors other threads, and should not delay them by waking up. It gets its
/// turn with the next time slice, or at once where a processor is idle.
///
/// Linux calls that `SCHED_BATCH`. It is a hint: where the system does not have it, or refuses it,
/// nothing changes. It cannot be undone.
///
/// ```
/// std::thread::spawn(stanchion_machine::thread::wake_politely).join().unwrap();
/// ```
pub fn wake_politely() {
    crate::backend::thread::wake_politely();
}
