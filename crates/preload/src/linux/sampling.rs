//! Finds the names of a thread's waits, and bounds the time that this takes.
//!
//! To walk the calls of a thread takes a microsecond or so. A thread that waits some thousand times
//! a second can have all its waits walked. For one that waits more often, walks would take more
//! than one part in [`SHARE`] of its time. Then only some of its waits are walked, a random number
//! of others apart. Another wait gets the name of the last walk that began with the same registers.
//! It may have come by another path, which left the stack at the same place. So the number and the
//! length of waits stay exact, and names are a sample. The shared table has the number of waits
//! that were not walked.
//!
//! A thread's own memory has the last walks. A signal handler that waits may change them while they
//! are read: one wait may then have the name of another.

use core::cell::Cell;

use stanchion_competitive::waits::shared::Shared;

use super::unwind::{self, Registers};
use super::{filter, locks, waits};

/// One part in so many of a thread's time may be spent in walks.
const SHARE: u64 = 100;

/// The most waits between two walks, in the mean.
const MOST: u64 = 255;

/// A walk is too old after this time, in nanoseconds.
const FRESH_NS: u64 = 10_000_000;

/// A longer time between waits counts as this, in nanoseconds.
const LONGEST_NS: u64 = 10_000_000;

/// The number of walks that a thread keeps.
const KEPT: usize = 16;

/// A walk that is kept.
struct Walk {
    /// A hash of the registers that it began with; 0 if there is none.
    key: Cell<usize>,
    /// The time at which it began.
    began: Cell<u64>,
    /// The index of the name plus 1, or 0 without a name.
    name: Cell<u32>,
    /// The number of waits that will still get this name without a walk.
    left: Cell<u64>,
}

/// The memory of a thread.
struct Thread {
    /// The walks, each at a place that its key gives.
    walks: [Walk; KEPT],
    /// The time at which the last walk began.
    began: Cell<u64>,
    /// The number of waits since then.
    waits: Cell<u64>,
    /// The time between waits, in nanoseconds. It follows the last ones slowly, so that one short
    /// pause changes little.
    apart: Cell<u64>,
    /// The cost of a walk, in nanoseconds.
    cost: Cell<u64>,
    /// The last random number.
    random: Cell<u64>,
}

std::thread_local! {
    /// The memory of the calling thread. It needs no destructor.
    static THREAD: Thread = const { Thread::new() };
}

/// Returns the index of the name of a wait of that kind, which began at `since` with these
/// registers.
pub(super) fn name(kind: u8, registers: Registers, since: u64, table: &Shared) -> Option<u32> {
    THREAD.with(|thread| {
        let key = key(kind, registers);
        let kept = if filter::is_installed() { thread.last(key) } else { thread.kept(key, since) };
        if let Some(name) = kept {
            return name;
        }
        let path = unwind::walk(registers);
        // The first look for a name takes much longer than a walk, and is no part of its cost.
        let cost = waits::now().saturating_sub(since);
        let name = locks::path(kind, &path, table);
        match thread.keep(key, since, cost, name) {
            0 => {}
            unwalked => table.add_unwalked(unwalked),
        }
        name
    })
}

/// Returns a hash of the kind and the registers. It is never 0.
fn key(kind: u8, registers: Registers) -> usize {
    let mix = |key: u64, value: usize| {
        (key ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
    };
    [registers.code, registers.stack, registers.frame].into_iter().fold(u64::from(kind), mix)
        as usize
        | 1
}

impl Thread {
    const fn new() -> Self {
        Self {
            walks: [const { Walk::new() }; KEPT],
            began: Cell::new(0),
            waits: Cell::new(0),
            apart: Cell::new(LONGEST_NS),
            cost: Cell::new(0),
            random: Cell::new(1),
        }
    }

    /// Returns the name of a wait by a walk that is kept; `None` if it must be walked.
    fn kept(&self, key: usize, since: u64) -> Option<Option<u32>> {
        let kept = self.place(key);
        let left = kept.left.get();
        let is_fresh = since.saturating_sub(kept.began.get()) < FRESH_NS;
        if kept.key.get() != key || left == 0 || !is_fresh {
            return None;
        }
        kept.left.set(left - 1);
        self.waits.set(self.waits.get() + 1);
        Some(kept.name.get().checked_sub(1))
    }

    /// Returns the name of the last wait with that key, however long ago that was.
    fn last(&self, key: usize) -> Option<Option<u32>> {
        let kept = self.place(key);
        (kept.key.get() == key).then(|| kept.name.get().checked_sub(1))
    }

    /// Keeps a walk that began at `since` and took `cost` nanoseconds. Returns the number of waits
    /// that had none since the last.
    fn keep(&self, key: usize, since: u64, cost: u64, name: Option<u32>) -> u64 {
        let before = self.cost.get();
        // A walk during which the thread lost its processor says little.
        let cost = if before == 0 { cost } else { (7 * before + cost.min(8 * before)) / 8 };
        self.cost.set(cost.clamp(1, LONGEST_NS));
        let waits = self.waits.replace(0);
        let apart = since.saturating_sub(self.began.replace(since)) / (waits + 1);
        let apart = (3 * self.apart.get() + apart.min(LONGEST_NS)) / 4;
        self.apart.set(apart);
        let kept = self.place(key);
        kept.left.set(self.draw(self.cost.get() * SHARE / apart.max(1)));
        kept.key.set(key);
        kept.began.set(since);
        kept.name.set(name.map_or(0, |name| name + 1));
        waits
    }

    /// Returns the place of a walk with that key.
    fn place(&self, key: usize) -> &Walk {
        &self.walks[key >> (usize::BITS - KEPT.ilog2())]
    }

    /// Draws a number of waits that is `mean` in the mean.
    fn draw(&self, mean: u64) -> u64 {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        random % (2 * mean.min(MOST) + 1)
    }
}

impl Walk {
    const fn new() -> Self {
        Self { key: Cell::new(0), began: Cell::new(0), name: Cell::new(0), left: Cell::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with a clock, and walks that take a microsecond.
    struct Test {
        /// The thread.
        thread: Thread,
        /// The time.
        now: Cell<u64>,
        /// The number of walks.
        walks: Cell<u64>,
        /// The number of waits without a walk, as reported.
        unwalked: Cell<u64>,
    }

    impl Test {
        fn new() -> Self {
            let zero = || Cell::new(0);
            Self { thread: Thread::new(), now: zero(), walks: zero(), unwalked: zero() }
        }

        /// Waits after `pause` nanoseconds, by the path with that name.
        fn wait(&self, pause: u64, key: usize, name: u32) -> Option<u32> {
            self.now.set(self.now.get() + pause);
            let since = self.now.get();
            if let Some(name) = self.thread.kept(key, since) {
                return name;
            }
            self.walks.set(self.walks.get() + 1);
            self.now.set(since + 1_000);
            let unwalked = self.thread.keep(key, since, 1_000, Some(name));
            self.unwalked.set(self.unwalked.get() + unwalked);
            Some(name)
        }
    }

    #[test]
    fn seldom_waits_are_all_walked() {
        let test = Test::new();
        for name in 0..1_000 {
            assert_eq!(test.wait(200_000, 1, name), Some(name));
        }
        assert_eq!((test.walks.get(), test.unwalked.get()), (1_000, 0));
    }

    #[test]
    fn walks_take_a_hundredth_of_the_time_of_frequent_waits() {
        for (keys, pause) in [(1, 1_000), (1, 10_000), (3, 2_000)] {
            let test = Test::new();
            let waits = 200_000_usize;
            for wait in 0..waits {
                test.wait(pause, (wait % keys).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, 7);
            }
            let share = (test.walks.get() * 1_000) as f64 / test.now.get() as f64;
            assert!(share < 0.02 && share > 0.003, "{share} with {keys} places");
            let last = test.thread.waits.get();
            assert_eq!(test.walks.get() + test.unwalked.get() + last, waits as u64);
        }
    }

    #[test]
    fn paths_that_begin_alike_share_the_waits_as_they_come() {
        let test = Test::new();
        let mut found = [0; 2];
        for wait in 0..300_000 {
            // In turn, as in a loop that takes two locks.
            found[test.wait(2_000, 1, wait % 2).unwrap() as usize] += 1;
        }
        assert!(found[0].min(found[1]) > 130_000, "{found:?}");
    }

    #[test]
    fn a_walk_is_not_believed_for_long() {
        let test = Test::new();
        (0..10_000).for_each(|_| {
            test.wait(1_000, 1, 0);
        });
        assert!(test.unwalked.get() > 5_000);
        assert_eq!(test.wait(FRESH_NS, 1, 5), Some(5));
    }
}
