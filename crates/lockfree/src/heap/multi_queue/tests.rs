//! Tests that need to hold a heap, or to choose the random numbers. The tests with threads are in
//! `tests/together/rank_error.rs`.

use super::*;
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(MultiQueue<u32, u32>: Send, Sync);
// An entry that must stay with its thread must not be pushed here and popped there.
assert_not_impl_any!(MultiQueue<std::rc::Rc<u32>, u32>: Send, Sync);
assert_not_impl_any!(MultiQueue<u32, std::rc::Rc<u32>>: Send, Sync);

/// The keys from 0 on that are left: counts by key, as sums over ranges (Fenwick).
struct Ranks(Vec<usize>);

impl Ranks {
    /// Returns the number of smaller keys that are left, and takes `key` out.
    fn take(&mut self, key: usize) -> usize {
        let mut smaller = 0;
        let mut index = key;
        while index > 0 {
            smaller += self.0[index];
            index &= index - 1;
        }
        let mut index = key + 1;
        while index < self.0.len() {
            self.0[index] -= 1;
            index += index & index.wrapping_neg();
        }
        smaller
    }

    /// Returns the mean rank error of so many pops.
    fn mean_of(&mut self, queue: &MultiQueue<usize, ()>, pops: usize) -> f64 {
        let mut rank = || self.take(queue.pop_min().expect("there are more entries than pops").0);
        (0..pops).map(|_| rank()).sum::<usize>() as f64 / pops as f64
    }
}

/// Returns a queue of `heaps` heaps with the keys below `entries`, by the same random numbers on
/// every run.
fn filled(heaps: usize, entries: usize) -> (MultiQueue<usize, ()>, Ranks) {
    let queue = MultiQueue::with_heaps(heaps);
    RANDOM.set(0x9e37_79b9_7f4a_7c15 ^ heaps as u64);
    (0..entries).for_each(|key| queue.push(key, ()));
    let mut left = vec![0; entries + 1];
    for index in 1..=entries {
        left[index] += 1;
        let above = index + (index & index.wrapping_neg());
        if above <= entries {
            left[above] += left[index];
        }
    }
    (queue, Ranks(left))
}

/// Returns the mean rank error of pops one after another.
fn stated(heaps: usize) -> f64 {
    let heaps = heaps as f64;
    5.0 / 6.0 * heaps - 1.0 + 1.0 / (6.0 * heaps)
}

#[test]
fn one_heap_is_exact() {
    let queue: MultiQueue<u32, ()> = MultiQueue::with_heaps(0);
    (&queue).extend([5, 1, 3].map(|key| (key, ())));
    assert_eq!(format!("{queue:?}"), "MultiQueue { heaps: 1, about: 3, .. }");
    assert!(queue.drain().map(|(key, ())| key).eq([1, 3, 5]));
    assert!(queue.is_empty() && queue.pop_min().is_none());
}

/// Walzer and Williams 2025: the mean rank error of pops one after another, with many entries.
#[test]
fn the_rank_error_is_as_stated() {
    const ENTRIES: usize = 30_000;
    for heaps in [2, 4, 8] {
        let (queue, mut ranks) = filled(heaps, ENTRIES);
        let mean = ranks.mean_of(&queue, ENTRIES / 2);
        let stated = stated(heaps);
        assert!((mean - stated).abs() < 0.1 * stated + 0.05, "{mean}, not {stated}");
    }
}

/// One thread holds heaps, as one that has lost its processor does, while others pop: the bound
/// that the file's header derives.
#[test]
fn the_rank_error_under_preemption_is_bounded() {
    /// Pops during the preemption.
    const AWAY: usize = 20_000;
    for (heaps, held) in [(2, 1), (4, 1), (8, 1), (8, 2), (16, 2)] {
        let (n, m, away) = (heaps as f64, held as f64, AWAY as f64);
        let behind = away * m / (n - m);
        let back = (n * behind / m) as usize;
        let (queue, mut ranks) = filled(heaps, 2 * (AWAY + back) + 50_000);
        let preempted: Vec<_> = queue.heaps.iter().take(held).map(|heap| heap.hold()).collect();
        assert!(preempted.iter().all(Option::is_some));
        let (mut during, mut last) = (0.0, 0.0);
        for _ in 0..10 {
            last = ranks.mean_of(&queue, AWAY / 10);
            during += last / 10.0;
        }
        drop(preempted);
        let stated = stated(heaps);
        // What was counted varies around its mean.
        let bound = (stated + behind) * 1.05;
        assert!(last <= bound, "{heaps} heaps, {held} held: {last} at the end, bound {bound}");
        // The bound is no larger than it need be.
        assert!(last > 0.8 * behind, "{heaps} heaps, {held} held: only {last} of {behind}");
        let after = ranks.mean_of(&queue, back);
        let sum = during * away + after * back as f64 - stated * (away + back as f64);
        let bound = behind * (away + n * behind / m) / 2.0;
        assert!(sum <= 1.1 * bound, "{heaps} heaps, {held} held: {sum} in all, bound {bound}");
        let mean = ranks.mean_of(&queue, 20_000);
        assert!(mean < 1.2 * stated + 0.1, "{heaps} heaps, {held} held: {mean} afterwards");
    }
}

/// A heap that another thread holds keeps back its own entries only.
#[test]
fn a_held_heap_stops_nobody_else() {
    let queue: MultiQueue<u32, ()> = MultiQueue::with_heaps(4);
    let held = queue.heaps[2].hold();
    (0..40).for_each(|key| queue.push(key, ()));
    assert_eq!((0..40).filter(|_| queue.pop_min().is_some()).count(), 40);
    assert!(queue.pop_min().is_none() && queue.is_empty());
    drop(held);
}

/// A push is seen before its entry can be had: a thread that looks must not report that there is
/// nothing.
#[test]
fn a_push_is_seen_from_its_beginning() {
    let queue: MultiQueue<u32, ()> = MultiQueue::with_heaps(4);
    let pusher = queue.heaps[2].hold_to_push().unwrap();
    assert!(!queue.is_empty());
    pusher.push(1, ());
    assert_eq!(queue.pop_min(), Some((1, ())));
    assert!(queue.is_empty());
    // One that came to nothing.
    drop(queue.heaps[1].hold_to_push());
    assert!(queue.is_empty() && queue.pop_min().is_none());
}
