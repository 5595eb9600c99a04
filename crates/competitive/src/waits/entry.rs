//! A place for one wait in memory that several processes share.
//!
//! | `state` | |
//! | --- | --- |
//! | 0 | free |
//! | 2 n + 1 | wait number n is being written; for good, if its writer was killed meanwhile |
//! | 2 n | wait number n |
//!
//! # Invariants
//!
//! 1. Bytes that are all 0 are a free entry.
//! 2. Each number is given to one wait, from 1 on. So a state comes once.
//! 3. Only the thread that made the state odd by its exchange writes the other words, and makes the
//!    state even.
//! 4. A reader that finds the same even state before and after it reads the other words has the
//!    words of one wait.
//!
//! # Orderings
//!
//! As in [`current`](super::current): a sequence lock.

use stanchion_machine::atomic::{AtomicU64, Ordering, fence};

use super::events::Meanwhile;

/// The bit of an entry that is being written.
const WRITING: u64 = 1;
/// The time of a waker that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A wait that has ended, as it is written into an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The system's number of the process.
    pub process: u32,
    /// The system's number of the thread.
    pub thread: u32,
    /// The time at which it began, in nanoseconds on the monotonic clock.
    pub start_ns: u64,
    /// Its length, in nanoseconds.
    pub length_ns: u64,
    /// The index of its name in the table of waits.
    pub name: Option<u32>,
    /// The number of the thread that ended it, or 0 if that is not known. It is a thread of the
    /// same process.
    pub waker: u32,
    /// The waker's times during the wait, if they are known.
    pub meanwhile: Option<Meanwhile>,
}

/// A place for one wait: a state, by which a reader sees whether the other words are of one wait.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Entry {
    /// Free, or the number of the wait and whether it is being written. Written by the waiter, as
    /// are the others.
    state: AtomicU64,
    /// The process in the upper half and the thread in the lower.
    thread: AtomicU64,
    /// The time at which the wait began.
    start: AtomicU64,
    /// Its length.
    length: AtomicU64,
    /// The waker in the upper half. In the lower half the index of the name plus 1, or 0.
    label: AtomicU64,
    /// The three times of the waker, or `UNKNOWN`.
    meanwhile: [AtomicU64; 3],
}

impl Entry {
    /// Returns a free entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes wait number `number` into the entry, if it is free or `is_old` says that the wait in
    /// it may be overwritten. Returns whether it was written: one exchange and some stores.
    #[inline]
    pub fn write(&self, number: u64, is_old: impl FnOnce(u64) -> bool, wait: &Wait) -> bool {
        // Relaxed: a look before the exchange.
        let before = self.state.load(Ordering::Relaxed);
        if before & WRITING != 0 || before != 0 && !is_old(before >> 1) {
            return false;
        }
        let written = number << 1;
        // Acquire: pairs with the last Release of the `write` before. Its words come before these.
        let taken = self.state.compare_exchange(
            before,
            written | WRITING,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return false;
        }
        // Release: pairs with the Acquire fence of `read`.
        fence(Ordering::Release);
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let name = wait.name.map_or(0, |name| name.wrapping_add(1));
        let times = wait.meanwhile.map_or([UNKNOWN; 3], |meanwhile| {
            [meanwhile.ran_ns, meanwhile.preempted_ns, meanwhile.blocked_ns]
        });
        self.thread.store(pair(wait.process, wait.thread), Ordering::Relaxed);
        self.start.store(wait.start_ns, Ordering::Relaxed);
        self.length.store(wait.length_ns, Ordering::Relaxed);
        self.label.store(pair(wait.waker, name), Ordering::Relaxed);
        for (word, time) in self.meanwhile.iter().zip(times) {
            word.store(time, Ordering::Relaxed);
        }
        // Release: pairs with the first Acquire of `read`.
        self.state.store(written, Ordering::Release);
        true
    }

    /// Returns the wait in it and its number, if there is one and it stays while it is read.
    #[must_use]
    pub fn read(&self) -> Option<(u64, Wait)> {
        // Acquire: pairs with the last Release of `write`.
        let state = self.state.load(Ordering::Acquire);
        if state == 0 || state & WRITING != 0 {
            return None;
        }
        let thread = self.thread.load(Ordering::Relaxed);
        let label = self.label.load(Ordering::Relaxed);
        let [ran_ns, preempted_ns, blocked_ns] =
            [0, 1, 2].map(|index: usize| self.meanwhile[index].load(Ordering::Relaxed));
        let meanwhile = Meanwhile { ran_ns, preempted_ns, blocked_ns };
        let wait = Wait {
            process: (thread >> 32) as u32,
            thread: thread as u32,
            start_ns: self.start.load(Ordering::Relaxed),
            length_ns: self.length.load(Ordering::Relaxed),
            name: (label as u32).checked_sub(1),
            waker: (label >> 32) as u32,
            meanwhile: (ran_ns != UNKNOWN).then_some(meanwhile),
        };
        // Acquire: pairs with the Release fence of `write`.
        fence(Ordering::Acquire);
        // Relaxed: after the fence.
        (self.state.load(Ordering::Relaxed) == state).then_some((state >> 1, wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait() -> Wait {
        let meanwhile = Meanwhile { ran_ns: 1, preempted_ns: 2, blocked_ns: 3 };
        Wait {
            process: 4,
            thread: 5,
            start_ns: 6,
            length_ns: 7,
            name: Some(8),
            waker: 9,
            meanwhile: Some(meanwhile),
        }
    }

    #[test]
    fn an_entry_fills_a_line_and_keeps_a_wait() {
        assert_eq!(size_of::<Entry>(), 64);
        let entry = Entry::new();
        assert_eq!(entry.read(), None);
        assert!(entry.write(7, |_| unreachable!("it is free"), &wait()));
        assert_eq!(entry.read(), Some((7, wait())));
        assert!(!entry.write(8, |number| number != 7, &wait()));
        let bare = Wait { name: None, waker: 0, meanwhile: None, ..wait() };
        assert!(entry.write(8, |number| number == 7, &bare));
        assert_eq!(entry.read(), Some((8, bare)));
    }

    #[test]
    fn an_entry_of_a_killed_writer_stays_as_it_is() {
        let entry = Entry::new();
        entry.state.store(7 << 1 | WRITING, Ordering::Relaxed);
        assert_eq!(entry.read(), None);
        assert!(!entry.write(8, |_| true, &wait()));
    }
}
