//! Threads: the operating system's on the real machine, the model's under loom, virtual ones in a simulation.

pub use crate::backend::thread::{Builder, JoinHandle, sleep, spawn, yield_now};
/// Whether the calling thread is unwinding: on every machine it unwinds as the standard library says.
pub use std::thread::panicking;

/// The calling thread's name, if it has one and is not about to end: on every machine that which the standard library knows.
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

/// How many threads can have an [`index`] at the same time.
///
/// Twice what Linux runs by default in a control group on a large server; a table with one line for each is still only 1 MiB.
pub const INDICES: usize = 16_384;

/// A small number for the calling thread: the smallest that no other thread has, below [`INDICES`].
///
/// The thread keeps it until it ends; then the next thread that asks may get it. What the last holder of a number wrote before it ended
/// happened before what the next one does with it. So a table indexed by it needs no more lines than there were threads
/// at one time.
///
/// `None` if [`INDICES`] threads have one already (a later call tries again), and while the thread is ending, when its number
/// has been given back: code that runs in the destructor of a thread-local must be ready for that.
///
/// In a simulation it is the thread's place in the order of their beginnings, and is not given to another.
///
/// A forked child goes on with its parent's numbers; those of threads that it does not have stay taken.
///
/// The first call costs about 100 ns, later ones a nanosecond or two.
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

/// Asks the system not to take a processor from another thread when the calling one wakes up: for a thread that looks after others, whose wake-up should
/// not put off what it looks after. It gets its turn with the next time slice, or at once where a processor is idle.
///
/// Linux calls that `SCHED_BATCH`. A hint: where there is no such thing, or it is refused, nothing changes. There is no way back.
///
/// ```
/// std::thread::spawn(stanchion_machine::thread::wake_politely).join().unwrap();
/// ```
pub fn wake_politely() {
    crate::backend::thread::wake_politely();
}
