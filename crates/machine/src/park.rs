//! Sleeping on a word: waits while the word holds an expected value, and wakes the threads that
//! wait on it.
//!
//! This is the futex of Linux (Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002),
//! private to the process. Other systems get the same meaning from a table of queues, with a
//! condition variable for each waiter. The tests on Linux run over both.
//!
//! Why not [`std::thread::park`] alone: its token belongs to the thread, so a library that leaves a
//! token behind ends an unrelated wait of that thread. A waker must also know the thread there,
//! while a waker of a futex needs only the word.
//!
//! ```text
//! waiter                                waker
//! ------                                -----
//! (1) see word == expected              (3) change the word
//! (2) wait(word, expected)              (4) wake(word)
//! ```
//!
//! The waker sees the check in (2) and going to sleep as one step. Either (2) sees the change of
//! (3) and returns [`Woken::Changed`], or the waiter is asleep before (4) and is woken. No wake-up
//! is lost in any interleaving.
//!
//! Neither call orders memory: the word's own loads and stores do. The address is only a name:
//! [`wake_at`] does not read the word.

use crate::atomic::AtomicU32;
use crate::backend;
use crate::clock::Deadline;

/// The number of buckets that a table hashed by address should have. It is one in a model:
/// addresses differ from one execution to the next there, and the order of events must not.
pub const BUCKETS: usize = backend::park::BUCKETS;

/// Returns the number that a table hashed by address should hash. That is the address, except under
/// simulation. There addresses differ from run to run and the order of events must not, so it is
/// the run's own number for the address. That number keeps the alignment.
#[inline]
#[must_use]
pub fn place_of<T>(address: *const T) -> usize {
    backend::park::place_of(address.cast())
}

/// The reason why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Woken {
    /// A thread woke this word, or a signal arrived, or nothing happened at all: look at the word
    /// again.
    Woken,
    /// The word did not hold the expected value, and the call did not wait.
    Changed,
    /// The deadline has passed.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until it is woken or until `deadline`.
///
/// Wake-ups may be spurious, so this belongs into a loop that looks at the word. If the deadline is
/// already past, the call returns at once: [`Woken::Changed`] if the word differs, else
/// [`Woken::TimedOut`].
///
/// Costs about 1 µs if it does not sleep, and some 3 µs to 50 µs from wake to return if it does.
///
/// ```
/// use stanchion_machine::atomic::{AtomicU32, Ordering::{Acquire, Release}};
/// use stanchion_machine::{clock::Deadline, park, sync::Arc, thread};
///
/// let door = Arc::new(AtomicU32::new(0));
/// let opener = {
///     let door = door.clone();
///     thread::spawn(move || {
///         door.store(1, Release);
///         park::wake_all(&door);
///     })
/// };
/// while door.load(Acquire) == 0 {
///     park::wait(&door, 0, Deadline::NEVER);
/// }
/// opener.join().unwrap();
/// ```
#[cfg_attr(stanchion_loom, track_caller)]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    backend::park::wait(word, expected, deadline)
}

/// Wakes up to `count` of the threads that wait on `word`, the longest waiting first where the
/// system keeps to that order. Returns how many it woke.
pub fn wake(word: &AtomicU32, count: usize) -> usize {
    wake_at(word, count)
}

/// Wakes one thread that waits on `word`. Returns whether there was one.
pub fn wake_one(word: &AtomicU32) -> bool {
    wake_at(word, 1) == 1
}

/// Wakes all threads that wait on `word`. Returns how many there were.
pub fn wake_all(word: &AtomicU32) -> usize {
    wake_at(word, usize::MAX)
}

/// Wakes as [`wake`] does, by address: for a waker that, by its change of the word, allowed the
/// owner to free the memory.
///
/// The word is not read. If something else lives at the address by now, its waiters see a spurious
/// wake-up, and every caller of [`wait`] is prepared for that.
pub fn wake_at(word: *const AtomicU32, count: usize) -> usize {
    if count == 0 { 0 } else { backend::park::wake(word, count) }
}
