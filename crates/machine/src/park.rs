//! Sleeping on a word: wait while it holds an expected value, wake those who wait on it.
//!
//! This is the futex of Linux (Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002), private to the process. Other
//! systems get the same meaning from a table of queues, each waiter on a condition variable of its own; Linux tests run over both.
//!
//! Why not [`std::thread::park`] alone: its token belongs to the thread, so a library that leaves one behind wakes a stranger's
//! wait; and its waker must know the thread, where a futex needs the word only.
//!
//! ```text
//! waiter                                waker
//! ------                                -----
//! (1) see word == expected              (3) change the word
//! (2) wait(word, expected)              (4) wake(word)
//! ```
//!
//! The check in (2) and the going to sleep are one step as seen from (4): either (2) sees the change of (3) and returns
//! [`Woken::Changed`], or the waiter is asleep before (4) and is woken. No wake-up is lost, whatever the interleaving.
//!
//! Neither call orders memory: the word's own loads and stores do. The address is only a name; [`wake_at`] does not read the word.

use crate::atomic::AtomicU32;
use crate::backend;
use crate::clock::Deadline;

/// How many buckets a table hashed by address should have: one in a model, where addresses differ from one execution to the next and the
/// order of things must not.
pub const BUCKETS: usize = backend::park::BUCKETS;

/// What a table hashed by address is to hash: the address, or under simulation, where addresses differ from run to run and the order of things must
/// not, the run's own number of the place, which keeps its alignment.
#[inline]
#[must_use]
pub fn place_of<T>(address: *const T) -> usize {
    backend::park::place_of(address.cast())
}

/// Why [`wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Woken {
    /// Somebody woke this word, or a signal arrived, or nothing happened at all: look at the word again.
    Woken,
    /// The word did not hold the expected value; nothing was waited for.
    Changed,
    /// The deadline has passed.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until woken or until `deadline`.
///
/// Wake-ups may be spurious, so this belongs in a loop that looks at the word. A deadline that is already past returns at once:
/// [`Woken::Changed`] if the word differs, else [`Woken::TimedOut`].
///
/// Costs about 1 µs when it need not sleep, and some 3 µs to 50 µs from wake to return when it does.
///
/// ```
/// use machine::{atomic::{AtomicU32, Ordering::{Acquire, Release}}, clock::Deadline, park, sync::Arc, thread};
///
/// let door = Arc::new(AtomicU32::new(0));
/// let opener = { let door = door.clone(); thread::spawn(move || { door.store(1, Release); park::wake_all(&door); }) };
/// while door.load(Acquire) == 0 {
///     park::wait(&door, 0, Deadline::NEVER);
/// }
/// opener.join().unwrap();
/// # use stanchion_machine as machine;
/// ```
#[cfg_attr(stanchion_loom, track_caller)]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    backend::park::wait(word, expected, deadline)
}

/// Wakes up to `count` of those who wait on `word`, longest waiting first where the system keeps to that; says how many it woke.
pub fn wake(word: &AtomicU32, count: usize) -> usize {
    wake_at(word, count)
}

/// Wakes one who waits on `word`; says whether there was one.
pub fn wake_one(word: &AtomicU32) -> bool {
    wake_at(word, 1) == 1
}

/// Wakes all who wait on `word`; says how many there were.
pub fn wake_all(word: &AtomicU32) -> usize {
    wake_at(word, usize::MAX)
}

/// [`wake`] by address, for a waker whose change of the word allowed its owner to take the memory back.
///
/// The word is not read. If something else lives at the address by now, its waiters see a spurious wake-up, for which
/// everyone who calls [`wait`] is prepared.
pub fn wake_at(word: *const AtomicU32, count: usize) -> usize {
    if count == 0 { 0 } else { backend::park::wake(word, count) }
}
