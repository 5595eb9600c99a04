//! Watching threads by a ring of switch records for each that has been armed.
//!
//! An entry is in one of three states:
//!
//! - None: there is no ring. If the thread is armed for the first time, or again after a thread of
//!   that index has ended, it gets a ring, which the sleeper listens to.
//! - Armed: the ring takes records, and each rings the bell. The sleeper pauses the ring after the
//!   first record, or the thread that disarms pauses it.
//! - Not armed: the ring is paused. The thread that arms lets it take records again. A thread that
//!   arms another entry may close it, for want of descriptors.
//!
//! # Invariants
//!
//! 1. An entry stands for one registration: its `generation` is that of the slot while that thread
//!    is registered. Another is another thread's, or a later time of the same, and its ring is
//!    replaced.
//! 2. If a thread has ended, its ring hangs up, which is an event like others. Its entry goes when
//!    that is heard, or when the index is armed again.
//! 3. A switch that falls into the arming is seen all the same. The kernel writes the records of
//!    one switch one after the other, into the watch's ring first, which drops it while it is
//!    paused, and into the one that `presence` reads last. A thread that arms in between, and looks
//!    there before the second, would see neither. So each entry keeps the count of switches from
//!    before it was armed, and the sleeper compares before it sleeps, and after a first short
//!    sleep, and a longer one: by then no switch is half written, unless a processor of a virtual
//!    machine stands still for that long.
//! 4. A child of a fork has the parent's descriptors, and shares what they stand for with it: it
//!    must not touch them. A word that a fork wipes tells.

use super::bell::{Bell, Happened};
use super::sleep_blind;
use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::clock::Deadline;
use crate::fork;
use crate::park;
use crate::presence::Refused;
use crate::presence::real as presence;
use crate::presence::switches::real::{Mapped, event, wiped};
use crate::presence::watch::Slept;
use core::time::Duration;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// The times that the sleeper sleeps before it compares again.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// One in so many of the descriptors that the process may have is for rings.
const SHARE: u64 = 8;

/// The number of rings of all watches of the process.
static RINGS: AtomicUsize = AtomicUsize::new(0);

/// The watcher, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Eye(Result<Open, Refused>);

#[derive(Debug)]
struct Open {
    /// The bell and the epoll of the sleeper.
    bell: Bell,
    /// Of the process that has opened it.
    generation: u32,
    /// By the thread's index.
    entries: Mutex<BTreeMap<usize, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The registration that the entry stands for; Invariant 1.
    generation: u64,
    /// The event of the ring.
    event: OwnedFd,
    /// True while the ring takes records.
    armed: bool,
    /// Switches of the thread before it was armed; Invariant 3.
    count: Option<u64>,
    /// Keeps the ring, which is never read: an event without one records nothing, and so wakes
    /// no thread.
    _ring: Mapped,
    /// Counts the ring in `RINGS`.
    _counted: Counted,
}

/// One of `RINGS`.
#[derive(Debug)]
struct Counted(());

impl Counted {
    fn new() -> Self {
        // Relaxed, here and below: a number that others compare with a limit, and nothing else.
        RINGS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether there may be one more ring. Threads that ask at the same time may get a few
/// more.
fn may_open() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable and of the type asked for.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    !asked || (RINGS.load(Ordering::Relaxed) as u64) < (limit.rlim_cur / SHARE).max(1)
}

impl Eye {
    pub(crate) fn new() -> Self {
        Self(Open::new())
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.0.as_ref().err()
    }

    /// Returns what is open, in the process that has opened it; Invariant 4.
    fn open(&self) -> Option<&Open> {
        self.0.as_ref().ok().filter(|open| open.generation == fork::generation())
    }

    pub(crate) fn arm(&self, _word: &AtomicU32, index: usize) -> bool {
        self.open().is_some_and(|open| open.arm(index))
    }

    pub(crate) fn disarm(&self, _word: &AtomicU32, index: usize) {
        if let Some(open) = self.open() {
            open.disarm(index);
        }
    }

    pub(crate) fn sleep(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
        match self.open() {
            Some(open) => open.sleep(word, expected, deadline),
            None => sleep_blind(word, expected, deadline),
        }
    }

    pub(crate) fn ring(&self, word: &AtomicU32) {
        match self.open() {
            Some(open) => open.bell.ring(),
            None => {
                park::wake_one(word);
            }
        }
    }
}

impl Open {
    fn new() -> Result<Self, Refused> {
        presence::status()?;
        Ok(Self { bell: Bell::new()?, generation: fork::generation(), entries: Mutex::default() })
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<usize, Entry>> {
        // Nothing panics under it but the allocator, which leaves the map whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arm(&self, index: usize) -> bool {
        let Some(slot) = wiped::existing().and_then(|wiped| wiped.slots.get(index)) else {
            return false;
        };
        // Relaxed, all three: numbers for the kernel and for comparing; the ring is only asked for.
        // Should they be of two threads, the first's ring has hung up, or does (Invariant 2).
        let generation = slot.generation.load(Ordering::Relaxed);
        let tid = slot.tid.load(Ordering::Relaxed);
        let seen = generation != 0 && tid != 0 && !slot.ring.load(Ordering::Relaxed).is_null();
        let mut entries = self.entries();
        if !seen {
            entries.remove(&index);
            return false;
        }
        if let Some(entry) = entries.get_mut(&index)
            && entry.generation == generation
        {
            if !entry.armed {
                // In this order, which a fence keeps: the kernel's call is one.
                entry.count = presence::count(index);
                entry.armed = event::pause(&entry.event, false);
            }
            return entry.armed;
        }
        // The old ring goes first: its memory may be what the new one needs.
        entries.remove(&index);
        if !may_open() {
            let idle = entries.iter().find(|(_, entry)| !entry.armed).map(|(&index, _)| index);
            let Some(idle) = idle else { return false };
            entries.remove(&idle);
        }
        match presence::unless_refused(|| self.entry(index, generation, tid)) {
            Ok(entry) => {
                entries.insert(index, entry);
                true
            }
            Err(_) => false,
        }
    }

    /// A ring that takes records, listened to.
    fn entry(&self, index: usize, generation: u64, tid: u32) -> Result<Entry, Refused> {
        let count = presence::count(index);
        let event = event::open_to_wake(tid)?;
        // In this order: an event without a ring reads as hung up. What is recorded before it is
        // listened to is heard.
        let ring = Mapped::of(&event)?;
        self.bell.listen(&event, index)?;
        Ok(Entry { generation, event, armed: true, count, _ring: ring, _counted: Counted::new() })
    }

    fn disarm(&self, index: usize) {
        Self::pause(&mut self.entries(), index);
    }

    /// Disarms an entry, if it is there; one that cannot be (before Linux 4.7) goes.
    fn pause(entries: &mut BTreeMap<usize, Entry>, index: usize) {
        let Some(entry) = entries.get_mut(&index).filter(|entry| entry.armed) else { return };
        entry.armed = false;
        if !event::pause(&entry.event, true) {
            entries.remove(&index);
        }
    }

    /// Which threads have been switched since before they were armed: they are disarmed. None, if
    /// no thread is armed. Invariant 3.
    fn compare(&self) -> Option<bool> {
        let mut entries = self.entries();
        let mut armed = None;
        let mut missed = Vec::new();
        for (index, entry) in entries.iter().filter(|(_, entry)| entry.armed) {
            if presence::count(*index) != entry.count {
                missed.push(*index);
            }
            armed = Some(!missed.is_empty());
        }
        for index in missed {
            Self::pause(&mut entries, index);
        }
        armed
    }

    fn sleep(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
        let mut naps = NAPS.into_iter();
        loop {
            let mut switched = false;
            let until = match self.compare() {
                // What else has happened is fetched as well.
                Some(true) => {
                    switched = true;
                    Deadline::PAST
                }
                Some(false) => {
                    naps.next().map_or(deadline, |nap| deadline.min(Deadline::after(nap)))
                }
                None => deadline,
            };
            self.bell.sleep(until, |happened| {
                let Happened::Switched { index, ended } = happened else { return };
                switched = true;
                let mut entries = self.entries();
                if ended {
                    entries.remove(&index);
                } else {
                    Self::pause(&mut entries, index);
                }
            });
            if switched {
                return Slept::Switched;
            }
            // Relaxed: the caller that finds another value acquires it.
            if word.load(Ordering::Relaxed) != expected {
                return Slept::Changed;
            }
            if deadline.passed() {
                return Slept::TimedOut;
            }
        }
    }
}
