//! Optimum on-line, approximated: the threshold that is best for the waits this lock has seen.
//!
//! Why not the exact optimum: its distribution is known only after a run. Why a histogram of 16
//! classes: recomputing the threshold then takes 16 steps.
//!
//! The histogram does not fit a lock of 16 bytes. It lies in a static table, [`TABLE`]. A lock
//! takes a slot of it at its first wait and gives it back when it is dropped. A lock that finds the
//! table full spins for C, as [`FixedSpin`](super::FixedSpin) does. A lock in a `static` keeps its
//! slot.
//!
//! # Invariants
//!
//! 1. A slot belongs to the one lock that names it in `slot`, from the `taken` exchange until that
//!    lock is dropped.
//! 2. Only the lock's holder writes its histogram. Waiters read the threshold in the lock.
//!
//! # Orderings
//!
//! All are Relaxed: the user's lock orders its holders, and a waiter that reads an old threshold
//! spins for it. A slot that changes hands may keep a count of the lock that had it before: one
//! wait more or less, of some thousand.
//!
//! Source: Karlin et al. 1991, sections 2.5 and 5: observations rounded up to 64 spins and capped
//! at 1008.

use super::{Contention, Policy, Wait, percent};
use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicBool, AtomicU32, Ordering};
use stanchion_machine::park;

/// Spins for the threshold that is best for the histogram of this lock's waits. Its classes are
/// `STEP` hundredths of C wide.
///
/// If a lock's waits all come from one distribution, its cost approaches that of
/// [`OptimalOnline`](super::OptimalOnline), which is at most e/(e-1) = 1.58 times the off-line
/// optimum's. Counts are halved now and then, so that the policy follows a lock with waits that
/// change.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::OptimalOnlineApproximation};
/// let mutex = PolicyMutex::<_, OptimalOnlineApproximation>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Debug)]
pub struct OptimalOnlineApproximation<const STEP: u32 = 32> {
    /// In hundredths of C, above the slot in the table: 0 for none yet, else the slot and 1.
    state: AtomicU32,
}

constructors!(OptimalOnlineApproximation<STEP>);

/// The number of locks that can have a histogram at a time: 512, and one in a model.
const SLOTS: usize = if park::BUCKETS == 1 { 1 } else { 512 };
/// Classes of a histogram; the last holds all that is longer.
const CLASSES: usize = 16;
/// The number of waits in one class at which all classes are halved.
const FULL: u32 = 4_096;
/// No slot was free when this lock first asked.
const NONE_FREE: u32 = 0xFFFF;

struct Histogram {
    /// Set while a lock has it. Written by the lock that takes it, or gives it back.
    taken: AtomicBool,
    /// The number of waits in each class. Written by the lock's holder.
    counts: [AtomicU32; CLASSES],
}

stanchion_machine::global! {
    static TABLE: [CachePadded<Histogram>; SLOTS] =
        [const { CachePadded::new(Histogram::new()) }; SLOTS];
}

impl Histogram {
    const fn new() -> Self {
        Self { taken: AtomicBool::new(false), counts: [const { AtomicU32::new(0) }; CLASSES] }
    }

    /// Takes a free slot.
    fn take() -> Option<usize> {
        TABLE.iter().position(|histogram| {
            // A look before the exchange.
            let free = !histogram.taken.load(Ordering::Relaxed)
                && !histogram.taken.swap(true, Ordering::Relaxed);
            if free {
                histogram.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
            }
            free
        })
    }

    fn give_back(&self) {
        self.taken.store(false, Ordering::Relaxed);
    }

    /// Counts a wait and returns the counts as they are now.
    fn count(&self, class: usize) -> [u32; CLASSES] {
        let mut counts: [u32; CLASSES] =
            core::array::from_fn(|class| self.counts[class].load(Ordering::Relaxed));
        counts[class] += 1;
        if counts[class] >= FULL {
            counts.iter_mut().for_each(|count| *count /= 2);
            for (word, count) in self.counts.iter().zip(counts) {
                word.store(count, Ordering::Relaxed);
            }
        } else {
            self.counts[class].store(counts[class], Ordering::Relaxed);
        }
        counts
    }
}

/// Returns the threshold of least cost, as a number of classes: `counts[i]` waits were `i * step`
/// long, and blocking costs 100.
///
/// It takes one pass: from threshold k - 1 to k, the cost falls by what the waits of class k save,
/// and rises by what the longer ones spin more.
fn best(counts: &[u32; CLASSES], step: u64) -> u64 {
    let step = step as i64;
    let mut longer: i64 = counts[1..].iter().map(|&count| i64::from(count)).sum();
    let (mut cost, mut least, mut best) = (0, 0, 0);
    // Relative to blocking at once. The last class is of waits that are too long to tell, so a
    // threshold in it means nothing.
    for (threshold, &count) in (1_i64..).zip(&counts[1..CLASSES - 1]) {
        let count = i64::from(count);
        // Those of this class no longer spin a step less and block, those longer spin one step
        // more.
        cost += longer * step - count * 100;
        longer -= count;
        if cost < least {
            (least, best) = (cost, threshold);
        }
    }
    best as u64
}

impl<const STEP: u32> OptimalOnlineApproximation<STEP> {
    fn slot(state: u32) -> u32 {
        state & 0xFFFF
    }
}

impl<const STEP: u32> Policy for OptimalOnlineApproximation<STEP> {
    const INIT: Self = {
        assert!(STEP >= 1 && STEP <= 100, "the step is in hundredths of C, from 1 to 100");
        Self { state: AtomicU32::new(100 << 16) }
    };

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 {
            return 0;
        }
        let threshold = self.state.load(Ordering::Relaxed) >> 16;
        percent::nanos(threshold.into(), contention.cost())
    }

    fn adjust(&self, wait: &Wait) {
        let mut slot = Self::slot(self.state.load(Ordering::Relaxed));
        if slot == 0 {
            slot = Histogram::take().map_or(NONE_FREE, |slot| slot as u32 + 1);
        }
        let threshold = if slot == NONE_FREE {
            100
        } else {
            let class = percent::of(wait.length(), wait.cost(), STEP.into()) / u64::from(STEP);
            let counts = TABLE[slot as usize - 1].count((class as usize).min(CLASSES - 1));
            best(&counts, STEP.into()) as u32 * STEP
        };
        self.state.store(threshold << 16 | slot, Ordering::Relaxed);
    }
}

impl<const STEP: u32> Drop for OptimalOnlineApproximation<STEP> {
    fn drop(&mut self) {
        match Self::slot(self.state.load(Ordering::Relaxed)) {
            0 | NONE_FREE => (),
            slot => TABLE[slot as usize - 1].give_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: the sum of section 2.4.
    fn cost(counts: &[u32; CLASSES], step: u64, threshold: u64) -> u64 {
        (0_u64..)
            .zip(counts)
            .map(|(class, &count)| {
                let each = if class <= threshold { class * step } else { threshold * step + 100 };
                u64::from(count) * each
            })
            .sum()
    }

    proptest::proptest! {
        #[test]
        fn one_pass_finds_the_least(counts: [u8; CLASSES], step in 1_u64..=100) {
            let counts = counts.map(u32::from);
            let found = best(&counts, step);
            for threshold in 0..CLASSES as u64 - 1 {
                assert!(cost(&counts, step, found) <= cost(&counts, step, threshold), "{threshold}");
            }
        }
    }

    /// Locked by a test while it needs slots, or takes all.
    static TABLE_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn it_learns_and_follows() {
        let _alone = TABLE_TESTS.lock();
        let policy = OptimalOnlineApproximation::<32>::INIT;
        let contention = Contention::of_cost(10_000);
        assert_eq!(policy.threshold(&contention), 10_000);
        for _ in 0..100 {
            policy.adjust(&Wait::of(3_000, 10_000));
        }
        assert_eq!(policy.threshold(&contention), 3_200);
        for _ in 0..10_000 {
            policy.adjust(&Wait::of(1_000_000, 10_000));
        }
        assert_eq!(policy.threshold(&contention), 0);
    }

    #[test]
    fn places_come_back_and_a_full_table_is_no_harm() {
        let _alone = TABLE_TESTS.lock();
        let contention = Contention::of_cost(10_000);
        let locks: [_; SLOTS + 8] =
            core::array::from_fn(|_| OptimalOnlineApproximation::<32>::INIT);
        for policy in &locks {
            policy.adjust(&Wait::of(1_000_000, 10_000));
        }
        let without = locks.iter().filter(|policy| policy.threshold(&contention) == 10_000).count();
        assert!(without >= 8, "the table holds {SLOTS}, {without} of {} went without", locks.len());
        drop(locks);
        let next = OptimalOnlineApproximation::<32>::INIT;
        next.adjust(&Wait::of(1_000_000, 10_000));
        assert_eq!(next.threshold(&contention), 0, "a slot came back");
    }
}
