//! The waits that go on: a slot for each, in memory that other processes read.
//!
//! A thread writes its wait into a slot before it sleeps, and clears the slot afterwards. A reader
//! in another process learns where the thread waits while it waits. So a program that hangs can be
//! explained without a signal to it, and without stopping it.
//!
//! The two lowest bits of `state` are the phase. Above them is the number of waits that the slot
//! has had.
//!
//! | phase | |
//! | --- | --- |
//! | 0 | free |
//! | 1 | being written; for good, if the writer was killed meanwhile |
//! | 2 | a wait; also after its thread ended in the wait, or left it by `longjmp` |
//!
//! # Invariants
//!
//! 1. Bytes that are all 0 are a free slot.
//! 2. Only the thread that took a slot out of phase 0 changes it, until it is in phase 0 again. The
//!    exception is [`Slot::clear`], when that thread is gone.
//! 3. A reader that finds the same state in phase 2 before and after it reads the other words has
//!    the words of one wait.
//!
//! # Orderings
//!
//! It is a sequence lock. The words are written between a Release fence after the first change of
//! the state and a Release store of the next one. They are read between an Acquire load of the
//! state and an Acquire fence before it is loaded again. If a reader sees a word of a later wait,
//! the two fences make its second load see the change that came before that word.

use stanchion_machine::atomic::{AtomicU64, Ordering, fence};

/// The bits of the phase.
const PHASE: u64 = 3;
/// The slot is free.
const FREE: u64 = 0;
/// The slot is being written.
const WRITING: u64 = 1;
/// The slot has a wait.
const WAITING: u64 = 2;
/// One wait, in the number of waits.
const ONE: u64 = 4;
/// The number of times that a reader looks at a slot that changes.
const LOOKS: usize = 4;

/// A kind of wait, by the function that the thread called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// An unknown one: of another version, or overwritten.
    Unknown,
    /// For a pthread mutex.
    Mutex,
    /// For a pthread condition variable.
    Condition,
    /// In the system call `futex`. The name of the wait says for what.
    Futex,
    /// For a pthread read-write lock.
    RwLock,
    /// For a semaphore.
    Semaphore,
    /// For the end of a thread.
    Join,
}

impl Kind {
    /// All kinds, by number.
    const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Mutex,
        Self::Condition,
        Self::Futex,
        Self::RwLock,
        Self::Semaphore,
        Self::Join,
    ];
}

/// A wait that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentWait {
    /// The process of the thread.
    pub process: u32,
    /// The system's number of the thread.
    pub thread: u32,
    /// The time at which it began, in nanoseconds on the monotonic clock.
    pub since_ns: u64,
    /// The index of its name in the table.
    pub name: Option<u32>,
    /// Its kind.
    pub kind: Kind,
    /// The address of the lock, the condition or the word.
    pub address: u64,
}

/// A slot for a wait. See the module's head.
///
/// ```
/// use stanchion_competitive::waits::current::{CurrentWait, Kind, Slot};
/// let slot = Slot::new();
/// let wait = CurrentWait {
///     process: 7,
///     thread: 8,
///     since_ns: 1_000,
///     name: None,
///     kind: Kind::Mutex,
///     address: 0x10,
/// };
/// let taken = slot.begin(&wait).unwrap();
/// assert_eq!(slot.read(), Some(wait));
/// assert!(slot.begin(&wait).is_none());
/// slot.end(taken);
/// assert_eq!(slot.read(), None);
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct Slot {
    /// The phase and the number of waits. Written by the thread that has the slot, or takes it.
    state: AtomicU64,
    /// The process in the upper half and the thread in the lower. Written by the waiter, as are
    /// the next three.
    thread: AtomicU64,
    /// The time at which the wait began.
    since: AtomicU64,
    /// The kind in the upper half. In the lower half the index of the name plus 1, or 0.
    label: AtomicU64,
    /// The address that the thread waits for.
    address: AtomicU64,
    /// Room for later versions. It fills a cache line.
    spare: [AtomicU64; 3],
}

/// A slot that a thread has taken.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the slot stays taken until `end`"]
pub struct Taken(u64);

impl Slot {
    /// Returns a free slot.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the slot if it is free, and writes the wait into it. That is one exchange and some
    /// plain stores.
    #[inline]
    pub fn begin(&self, wait: &CurrentWait) -> Option<Taken> {
        // Relaxed: a look before the exchange.
        let before = self.state.load(Ordering::Relaxed);
        if before & PHASE != FREE {
            return None;
        }
        let writing = before.wrapping_add(ONE) | WRITING;
        // Acquire: pairs with the last Release of the `begin` before. Its words come before these.
        self.state.compare_exchange(before, writing, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // Release: pairs with the Acquire fence of `read`.
        fence(Ordering::Release);
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let name = wait.name.map_or(0, |name| name.wrapping_add(1));
        self.thread.store(pair(wait.process, wait.thread), Ordering::Relaxed);
        self.since.store(wait.since_ns, Ordering::Relaxed);
        self.label.store(pair(wait.kind as u32, name), Ordering::Relaxed);
        self.address.store(wait.address, Ordering::Relaxed);
        let waiting = writing - WRITING + WAITING;
        // Release: pairs with the first Acquire of `read`.
        self.state.store(waiting, Ordering::Release);
        Some(Taken(waiting))
    }

    /// Clears the slot, unless another process has cleared it: one exchange.
    #[inline]
    pub fn end(&self, taken: Taken) {
        let free = taken.0 - WAITING;
        // Relaxed: an exchange keeps what the last Release of `begin` shows, for the next one. If
        // it fails, the slot may be another wait's.
        let _ = self.state.compare_exchange(taken.0, free, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Clears the slot if `is_gone` says that the process of its wait is gone. Returns true if
    /// it did.
    ///
    /// If the process is not gone, its waits may be missing or mixed in later readings.
    pub fn clear(&self, is_gone: impl FnOnce(u32) -> bool) -> bool {
        // Acquire: pairs with the last Release of `begin`. The process is that of this wait, and
        // not of an earlier one.
        let state = self.state.load(Ordering::Acquire);
        if state & PHASE != WAITING {
            return false;
        }
        let process = (self.thread.load(Ordering::Relaxed) >> 32) as u32;
        // Relaxed: an exchange keeps what the last Release of `begin` shows, for the next one.
        is_gone(process)
            && self
                .state
                .compare_exchange(state, state - WAITING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Returns the wait in it, if there is one and it stays while it is read.
    #[must_use]
    pub fn read(&self) -> Option<CurrentWait> {
        for _ in 0..LOOKS {
            // Acquire: pairs with the last Release of `begin`.
            let state = self.state.load(Ordering::Acquire);
            if state & PHASE != WAITING {
                return None;
            }
            let thread = self.thread.load(Ordering::Relaxed);
            let label = self.label.load(Ordering::Relaxed);
            let wait = CurrentWait {
                process: (thread >> 32) as u32,
                thread: thread as u32,
                since_ns: self.since.load(Ordering::Relaxed),
                name: (label as u32).checked_sub(1),
                kind: Kind::ALL.get((label >> 32) as usize).copied().unwrap_or(Kind::Unknown),
                address: self.address.load(Ordering::Relaxed),
            };
            // Acquire: pairs with the Release fence of `begin`.
            fence(Ordering::Acquire);
            // Relaxed: after the fence.
            if self.state.load(Ordering::Relaxed) == state {
                return Some(wait);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_fills_a_line_and_kinds_have_their_numbers() {
        assert_eq!(size_of::<Slot>(), 64);
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn wild_words_are_read_as_some_wait() {
        let slot = Slot::new();
        let words = [&slot.state, &slot.thread, &slot.label];
        for (word, value) in words.into_iter().zip([WAITING, u64::MAX, u64::MAX]) {
            word.store(value, Ordering::Relaxed);
        }
        let wait = slot.read().unwrap();
        assert_eq!((wait.kind, wait.name), (Kind::Unknown, Some(u32::MAX - 1)));
    }
}
