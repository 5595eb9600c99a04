//! Adds up the switch records of a time in which a worker was awake.

use stanchion_machine::presence::switches::{Ring, Switch};

/// The records of a ring that are safe to read: a few fewer than it keeps.
const READABLE: u64 = 240;

/// The times off the processor between two numbers of records, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffProcessor {
    /// Off it to wait for something.
    pub(crate) blocked: u64,
    /// Off it although it could have gone on.
    pub(crate) preempted: u64,
    /// Records that were overwritten before they were read.
    pub(crate) lost: u64,
}

/// A source of switch records.
pub(crate) trait Records {
    /// Returns record number `number`: its kind, and its moment in nanoseconds.
    fn record(&self, number: u64) -> Option<(Switch, u64)>;
}

impl Records for Ring {
    fn record(&self, number: u64) -> Option<(Switch, u64)> {
        Some((self.switch(number)?, self.time(number)?))
    }
}

impl OffProcessor {
    /// Adds the times of another part.
    pub(crate) fn add(&mut self, other: Self) {
        self.blocked += other.blocked;
        self.preempted += other.preempted;
        self.lost += other.lost;
    }

    /// Adds up the absences from record `first` to before record `end`. `first` is even: the thread
    /// was on its processor. Returns the sum, and the first record of an absence that had not
    /// ended.
    pub(crate) fn between(ring: &impl Records, first: u64, end: u64) -> (Self, u64) {
        let mut sum = Self::default();
        // Even, as `first` is.
        let readable = end.saturating_sub(READABLE).next_multiple_of(2);
        let mut next = first;
        if readable > first {
            sum.lost = readable - first;
            next = readable;
        }
        while next + 2 <= end {
            match (ring.record(next), ring.record(next + 1)) {
                (Some((kind, left)), Some((Switch::In, came))) => {
                    sum.count(kind, came.saturating_sub(left));
                }
                _ => sum.lost += 2,
            }
            next += 2;
        }
        (sum, next)
    }

    /// Adds the absence that began with record `number` and lasts at `now`.
    pub(crate) fn open(ring: &impl Records, number: u64, now: u64) -> Self {
        let mut sum = Self::default();
        if let Some((kind, left)) = ring.record(number) {
            sum.count(kind, now.saturating_sub(left));
        }
        sum
    }

    /// Adds an absence.
    fn count(&mut self, kind: Switch, time: u64) {
        match kind {
            Switch::Blocked => self.blocked += time,
            Switch::Preempted => self.preempted += time,
            // Not an absence. The records are out of step.
            Switch::In => self.lost += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Switch::{Blocked, In, Preempted};

    struct Written(Vec<(Switch, u64)>);

    impl Records for Written {
        fn record(&self, number: u64) -> Option<(Switch, u64)> {
            self.0.get(usize::try_from(number).unwrap()).copied()
        }
    }

    fn sum(blocked: u64, preempted: u64, lost: u64) -> OffProcessor {
        OffProcessor { blocked, preempted, lost }
    }

    #[test]
    fn absences_are_added_by_kind() {
        let ring = Written(vec![
            (Blocked, 10),
            (In, 15),
            (Preempted, 20),
            (In, 120),
            (Blocked, 130),
            (In, 131),
            (Preempted, 140),
        ]);
        assert_eq!(OffProcessor::between(&ring, 0, 6), (sum(6, 100, 0), 6));
        assert_eq!(OffProcessor::between(&ring, 2, 7), (sum(1, 100, 0), 6));
        assert_eq!(OffProcessor::open(&ring, 6, 200), sum(0, 60, 0));
        assert_eq!(OffProcessor::between(&ring, 6, 6), (sum(0, 0, 0), 6));
    }

    #[test]
    fn overwritten_records_are_counted_as_lost() {
        let pair = |number: u64| [(Blocked, number * 10), (In, number * 10 + 1)];
        let ring = Written((0..500).flat_map(pair).collect());
        let (found, next) = OffProcessor::between(&ring, 0, 1000);
        assert_eq!((found, next), (sum(120, 0, 760), 1000));
        assert_eq!(OffProcessor::between(&ring, 998, 1002).0, sum(1, 0, 2));
    }
}
