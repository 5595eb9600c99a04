//! The counts of a slot in the table, added to by threads that have just got a lock.
//!
//! Why not one atomic addition for each count: it waits for the line to come from the processor
//! that counted last, one line after another, while the lock is held. A lock that has a slot of its
//! own is the only one that counts there. Its holders come one after another, so a load and a store
//! suffice: the processor goes on meanwhile, and fetches the lines together. Locks that share a
//! slot add atomically.
//!
//! The counts that every wait touches lie together: sums and the first arrivals in one line, then
//! the wait's bucket.
//!
//! # Orderings
//!
//! All are Relaxed. The lock itself makes one holder's counts visible to the next.
//! [`table`](super::table) passes on a slot that is given to another lock. A thread that reads
//! meanwhile may see one wait in one count and not yet in another: [`Distribution::reconcile`].

use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::buckets::{self, ARRIVALS, LATENCIES, LENGTHS, MAX_LENGTH_NS};
use super::distribution::{Counts, Observation};

#[repr(C)]
pub(super) struct Counters {
    /// The sum of the waits, in nanoseconds. Written by holders, as all counts here.
    total: AtomicU64,
    /// The part of that sum that was spun.
    spun_time: AtomicU64,
    /// The longest wait.
    max: AtomicU64,
    /// The number of times that a waiter saw the holder change.
    holder_changes: AtomicU64,
    /// The number of waits by how many others waited when they began.
    arrivals: [AtomicU64; ARRIVALS],
    /// The number of waits without blocking, by length.
    spun: [AtomicU64; LENGTHS],
    /// The number of waits that blocked, by length.
    blocked: [AtomicU64; LENGTHS],
    /// The number of wake-ups, by latency.
    latencies: [AtomicU64; LATENCIES],
}

/// The locks that count in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writers {
    /// One at a time, by the lock that it is for.
    One,
    /// Any number.
    Many,
}

impl Writers {
    #[inline]
    fn add(self, count: &AtomicU64, more: u64) {
        match self {
            Self::One => {
                count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
            Self::Many => {
                count.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn raise(self, most: &AtomicU64, value: u64) {
        let mut before = most.load(Ordering::Relaxed);
        if self == Self::One {
            if before < value {
                most.store(value, Ordering::Relaxed);
            }
            return;
        }
        while before < value {
            match most.compare_exchange(before, value, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }
}

impl Counters {
    pub(super) const fn new() -> Self {
        Self {
            total: AtomicU64::new(0),
            spun_time: AtomicU64::new(0),
            max: AtomicU64::new(0),
            holder_changes: AtomicU64::new(0),
            arrivals: [const { AtomicU64::new(0) }; ARRIVALS],
            spun: [const { AtomicU64::new(0) }; LENGTHS],
            blocked: [const { AtomicU64::new(0) }; LENGTHS],
            latencies: [const { AtomicU64::new(0) }; LATENCIES],
        }
    }

    /// Counts one wait.
    #[inline]
    pub(super) fn add(&self, wait: &Observation, unit: u64, writers: Writers) {
        let length = wait.length_ns.min(MAX_LENGTH_NS);
        let bucket = buckets::of_length(length, unit);
        writers.add(&self.total, length);
        writers.add(&self.spun_time, wait.spun_ns.min(length));
        writers.raise(&self.max, length);
        if wait.holder_changes > 0 {
            writers.add(&self.holder_changes, wait.holder_changes.into());
        }
        if wait.others != Observation::UNKNOWN {
            writers.add(&self.arrivals[(wait.others as usize).min(ARRIVALS - 1)], 1);
        }
        if wait.blocked {
            writers.add(&self.blocked[bucket], 1);
            if let Some(latency) = wait.wake_latency_ns {
                writers.add(&self.latencies[buckets::of_latency(latency)], 1);
            }
        } else {
            writers.add(&self.spun[bucket], 1);
        }
    }

    pub(super) fn read(&self) -> Counts {
        self.each(|count| count.load(Ordering::Relaxed))
    }

    /// The counts, which are 0 from then on.
    pub(super) fn take(&self) -> Counts {
        self.each(|count| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        })
    }

    fn each(&self, value: impl Fn(&AtomicU64) -> u64) -> Counts {
        let mut counts = Counts::new();
        counts.total = value(&self.total);
        counts.spun_time = value(&self.spun_time);
        counts.max = value(&self.max);
        counts.holder_changes = value(&self.holder_changes);
        let copy = |from: &[AtomicU64], to: &mut [u64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = value(from));
        };
        copy(&self.arrivals, &mut counts.arrivals);
        copy(&self.spun, &mut *counts.spun);
        copy(&self.blocked, &mut *counts.blocked);
        copy(&self.latencies, &mut *counts.latencies);
        counts
    }

    /// Moves what `from` has counted here, where others may be counting. `from` counts no more.
    /// Does not allocate: it runs as a lock is dropped.
    pub(super) fn drain(&self, from: &Self) {
        let sums = [
            (&self.total, &from.total),
            (&self.spun_time, &from.spun_time),
            (&self.holder_changes, &from.holder_changes),
        ];
        let rows = [
            (&self.spun[..], &from.spun[..]),
            (&self.blocked[..], &from.blocked[..]),
            (&self.arrivals[..], &from.arrivals[..]),
            (&self.latencies[..], &from.latencies[..]),
        ];
        let rows = rows.into_iter().flat_map(|(to, from)| to.iter().zip(from));
        for (to, from) in sums.into_iter().chain(rows) {
            if from.load(Ordering::Relaxed) > 0 {
                to.fetch_add(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Writers::Many.raise(&self.max, from.max.swap(0, Ordering::Relaxed));
    }
}
