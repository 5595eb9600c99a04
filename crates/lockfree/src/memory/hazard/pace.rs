//! The number of retired nodes after which a record scans: see "Garbage" in the [module
//! above](super).

use stanchion_machine::clock::{self, Ticks};

use super::RETIREMENT;

/// The number of retired nodes that a record collects before it scans, if they are small. One
/// [`heavy`](stanchion_machine::asymmetric::heavy), up to 2 µs with one other running thread, is
/// then 8 ns of each node.
pub(super) const SCAN: usize = stanchion_machine::sized(256, 1);

/// The number of retired nodes that a record collects at most, while barriers take long.
pub(super) const MOST: usize = stanchion_machine::sized(4_096, 1);

/// The number of nodes that a record collects at least, however large they are. A node with room
/// for 64 values pays for as many values by then as 256 nodes of one value.
const LEAST: usize = stanchion_machine::sized(4, 1);

/// A thread spends at most one in so many parts of its time in barriers. If it spends more, it
/// collects up to [`MOST`] nodes.
const SHARE: u64 = 8;

/// The number of nodes after which a record scans.
pub(super) struct Pace {
    /// The number now: between `least` and `most`.
    pub(super) nodes: usize,
    /// The least value of `nodes`.
    least: usize,
    /// The greatest value of `nodes`.
    most: usize,
    /// The end of the last barrier. Written by the thread that scans.
    last: Option<Ticks>,
}

impl Pace {
    /// Returns the pace for nodes of this size in bytes.
    pub(super) const fn of(size: usize) -> Self {
        let least = between(LEAST, (64 << 10) / size, SCAN);
        Self { nodes: least, least, most: between(least, (256 << 10) / size, MOST), last: None }
    }

    /// Makes the barrier of a scan, and changes the number for the next one.
    pub(super) fn barrier(&mut self) {
        let begin = (self.least < self.most).then(clock::now);
        RETIREMENT.heavy();
        // The number cannot change: the time is of no use.
        let Some(begin) = begin else { return };
        let end = clock::now();
        if let Some(last) = self.last.replace(end) {
            self.adapt(end.nanos_since(begin), end.nanos_since(last));
        }
    }

    /// Changes the number, after a barrier that took `barrier` of the `whole` time since the last
    /// one. Both are in nanoseconds.
    fn adapt(&mut self, barrier: u64, whole: u64) {
        if barrier.saturating_mul(SHARE) > whole {
            self.nodes = (2 * self.nodes).min(self.most);
        } else if barrier.saturating_mul(4 * SHARE) < whole {
            self.nodes = (self.nodes / 2).max(self.least);
        }
    }
}

/// Returns `number`, or the nearer of the bounds. If they cross, it is `least`.
const fn between(least: usize, number: usize, most: usize) -> usize {
    let number = if number < most { number } else { most };
    if number > least { number } else { least }
}

/// Returns the most nodes of this size in bytes that a record keeps ready.
pub(super) const fn ready(size: usize) -> usize {
    between(1, (64 << 10) / size, SCAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_nodes_are_kept_by_their_size() {
        let pace = |size| {
            let pace = Pace::of(size);
            (pace.nodes, pace.most)
        };
        assert_eq!(pace(16), (256, 4_096));
        assert_eq!(pace(64), (256, 4_096));
        assert_eq!(pace(256), (256, 1_024));
        assert_eq!(pace(1 << 10), (64, 256));
        assert_eq!(pace(1 << 16), (4, 4));
        assert_eq!(pace(1 << 30), (4, 4));
        assert_eq!([16, 1 << 10, 1 << 19].map(ready), [256, 64, 1]);
    }

    #[test]
    fn scans_are_rarer_while_barriers_take_long() {
        let mut pace = Pace::of(16);
        // An eighth of the time is allowed.
        pace.adapt(1_000, 8_000);
        assert_eq!(pace.nodes, 256);
        for nodes in [512, 1_024, 2_048, 4_096, 4_096] {
            pace.adapt(1_001, 8_000);
            assert_eq!(pace.nodes, nodes);
        }
        // They do not get frequent again as soon as barriers take less: that would swing.
        pace.adapt(1_000, 32_000);
        assert_eq!(pace.nodes, 4_096);
        for nodes in [2_048, 1_024, 512, 256, 256] {
            pace.adapt(999, 32_000);
            assert_eq!(pace.nodes, nodes);
        }
    }
}
