//! The MultiQueue: several heaps, each under a lock of its own. Push into any, pop the smaller of two.
//!
//! Why not one heap: whoever pops the smallest of all must agree with everybody else who does. Here nobody waits for a lock that is held, but goes to
//! another heap; the price is that what is popped is only *among* the smallest. Programs that search best first usually do not mind, and check what
//! they pop anyway. It is for many processors: on two, a [`LockedHeap`](super::LockedHeap) is several times faster (`cargo bench -p benches --bench
//! lockfree -- heaps/`).
//!
//! ```text
//! push:  any heap whose lock is free
//! pop:   two heaps at random, if their locks are free; the smaller of their smallest
//!        none of the two had any: look at all, from a random one on
//!        none had any: look again; nobody has pushed since? it was empty
//! ```
//!
//! # How far from the smallest
//!
//! The *rank error* of a pop is the number of entries with a smaller key. With *n* heaps and pops one after another it is 5/6 *n* - 1 + 1/(6 *n*)
//! on average, whatever the number of entries, as long as there are many: 2.4 for four heaps, 5.7 for eight (Walzer and Williams 2025; a test holds
//! this against it). With operations at the same time, an entry in another thread's hands counts besides.
//!
//! # Invariants
//!
//! 1. A heap is touched only by the holder of its lock.
//! 2. `state` is written under the lock, after the heap: twice the number of pushes, and one if the heap has entries.
//! 3. If each of two looks at all states found every heap empty, and the pushes add up to the same number, then between the two looks all were empty:
//!    the number of pushes does not get smaller, and a heap without pushes stays empty.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | store `state` | Release | the next |
//! | load `state` | Acquire | keeps the second look after the first; what the first saw of other heaps, the second sees or newer |
//!
//! Source: Rihani, Sanders and Dementiev, "MultiQueues: simple relaxed concurrent priority queues", SPAA 2015.

use core::cell::Cell;

use lock_api::{Mutex, MutexGuard, RawMutex};
use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::topology::{CachePadded, parallelism};
use stanchion_spin::{Backoff, TestAndSet};

use super::PriorityQueue;
use super::sequential::{QuaternaryHeap, SequentialHeap};
use crate::Progress;

/// Heaps for each processor, by default.
const FACTOR: usize = 2;

/// A relaxed priority queue: what is popped is among the smallest.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): what is in a heap whose holder stops cannot be had; all else goes on |
/// | rank error | 5/6 n - 1 + 1/(6 n) on average with n heaps |
/// | cost | one uncontended lock to push, two to pop, if there are many entries; the length of the list of heaps, if there are few |
/// | memory | n arrays that double when they are full, and do not shrink |
///
/// A pop that finds nothing is exact: at some moment during the call there was nothing, locked heaps included. Pops of one thread may yield a smaller
/// key after a larger one. A comparison that panics loses nothing but what was to be pushed.
///
/// ```
/// use stanchion_lockfree::heap::MultiQueue;
///
/// let queue = MultiQueue::with_heaps(4);
/// (&queue).extend([(2, "second"), (1, "first")]);
/// // Most likely the first, but not for sure: they lie in different heaps.
/// let (key, value) = queue.pop_min().unwrap();
/// assert_eq!(value, ["first", "second"][key as usize - 1]);
/// assert_eq!(queue.drain().count(), 1);
/// assert!(queue.is_empty());
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::heap::MultiQueue::<u32, std::rc::Rc<()>>::new());
/// ```
pub struct MultiQueue<K, V, L = TestAndSet> {
    heaps: Box<[CachePadded<Heap<K, V, L>>]>,
}

struct Heap<K, V, L> {
    /// See Invariant 2.
    state: AtomicU64,
    entries: Mutex<L, UnsafeCell<QuaternaryHeap<K, V>>>,
}

/// A heap whose lock is held.
struct Held<'q, K, V, L: RawMutex> {
    heap: &'q Heap<K, V, L>,
    entries: MutexGuard<'q, L, UnsafeCell<QuaternaryHeap<K, V>>>,
}

machine::thread_local! {
    /// The state of this thread's random source; 0 until it is first asked.
    static RANDOM: Cell<u64> = Cell::new(0);
}

/// A number below `below`.
fn random(below: usize) -> usize {
    let step = |random: &Cell<u64>| {
        let mut state = random.get();
        if state == 0 {
            state = machine::hint::entropy().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        random.set(state);
        state
    };
    // While the thread ends: any heap is right.
    let state = RANDOM
        .try_with(step)
        .unwrap_or_else(|_| machine::hint::entropy().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The high bits are the good ones.
    ((u128::from(state) * below as u128) >> 64) as usize
}

impl<K: Ord, V> MultiQueue<K, V> {
    /// Returns an empty queue of twice as many heaps as this process may use processors, each under
    /// the default lock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty queue of so many heaps, and at least one, each under the default lock. A queue
    /// of one heap is exact.
    #[must_use]
    pub fn with_heaps(heaps: usize) -> Self {
        Self::with_heaps_and_locks(heaps, || RawMutex::INIT)
    }
}

impl<K: Ord, V, L: RawMutex> MultiQueue<K, V, L> {
    /// Returns an empty queue of so many heaps, and at least one, each under a lock that `lock` makes.
    /// Those locks must be free.
    #[must_use]
    pub fn with_heaps_and_locks(heaps: usize, mut lock: impl FnMut() -> L) -> Self {
        let fresh = || {
            CachePadded::new(Heap {
                state: AtomicU64::fresh(0),
                entries: Mutex::from_raw(lock(), UnsafeCell::new(QuaternaryHeap::NEW)),
            })
        };
        Self { heaps: core::iter::repeat_with(fresh).take(heaps.max(1)).collect() }
    }

    /// How many heaps there are, for the rank error.
    #[must_use]
    pub fn heaps(&self) -> usize {
        self.heaps.len()
    }

    /// Puts `value` in.
    pub fn push(&self, key: K, value: V) {
        self.any_free().push(key, value);
    }

    /// Takes an entry with one of the smallest keys.
    pub fn pop_min(&self) -> Option<(K, V)> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(entry) = self.pop_of_two() {
                return Some(entry);
            }
            match self.find() {
                Found::Nothing => return None,
                Found::Entry(entry) => return Some(entry),
                // Some are there, and their locks are held, or some have come and gone.
                Found::Busy => backoff.snooze(),
            }
        }
    }

    /// Whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        loop {
            let Some(pushes) = self.pushes_if_empty() else { return false };
            if self.pushes_if_empty() == Some(pushes) {
                return true;
            }
        }
    }

    /// Any heap whose lock is free, and is now held.
    fn any_free(&self) -> Held<'_, K, V, L> {
        let mut backoff = Backoff::new();
        loop {
            for _ in 0..self.heaps.len() {
                if let Some(held) = self.heaps[random(self.heaps.len())].try_hold() {
                    return held;
                }
            }
            backoff.snooze();
        }
    }

    /// The smaller of the smallest of two heaps, if they have any and their locks are free.
    fn pop_of_two(&self) -> Option<(K, V)> {
        let count = self.heaps.len();
        // Independent of each other, as in the paper: they may be the same.
        let (one, two) = (random(count), random(count));
        let hold = |heap: usize| {
            let heap = &self.heaps[heap];
            if heap.has_entries() { heap.try_hold() } else { None }
        };
        let one = hold(one);
        // If it is the same, its lock is held.
        let two = hold(two);
        let smaller = match (one, two) {
            (Some(one), Some(two)) => {
                if two.is_before(&one) {
                    two
                } else {
                    one
                }
            }
            (one, two) => one.or(two)?,
        };
        smaller.pop()
    }

    /// Looks at all heaps.
    fn find(&self) -> Found<(K, V)> {
        let Some(pushes) = self.pushes_if_empty() else {
            let count = self.heaps.len();
            let first = random(count);
            let heaps = (first..count).chain(0..first).map(|heap| &self.heaps[heap]);
            let mut entries = heaps
                .filter(|heap| heap.has_entries())
                .filter_map(|heap| heap.try_hold().and_then(Held::pop));
            return entries.next().map_or(Found::Busy, Found::Entry);
        };
        if self.pushes_if_empty() == Some(pushes) { Found::Nothing } else { Found::Busy }
    }

    /// How many pushes there have been into all heaps, if none has entries.
    fn pushes_if_empty(&self) -> Option<u64> {
        self.heaps.iter().try_fold(0_u64, |pushes, heap| {
            let state = heap.look();
            (state & 1 == 0).then(|| pushes.wrapping_add(state >> 1))
        })
    }

    /// How many entries there are in heaps whose locks are free.
    fn about(&self) -> usize {
        let free = self.heaps.iter().filter_map(|heap| heap.try_hold());
        free.map(|held| held.with(|entries| entries.len())).sum()
    }
}

/// What a look at all heaps has found.
enum Found<E> {
    /// There was nothing (Invariant 3).
    Nothing,
    Entry(E),
    /// It is not known.
    Busy,
}

impl<K: Ord, V, L: RawMutex> Heap<K, V, L> {
    #[inline]
    fn look(&self) -> u64 {
        // Acquire: later looks come after it (Invariant 3).
        self.state.load(Ordering::Acquire)
    }

    #[inline]
    fn has_entries(&self) -> bool {
        self.look() & 1 == 1
    }

    #[inline]
    fn try_hold(&self) -> Option<Held<'_, K, V, L>> {
        Some(Held { heap: self, entries: self.entries.try_lock()? })
    }
}

impl<K: Ord, V, L: RawMutex> Held<'_, K, V, L> {
    #[inline]
    fn with<R>(&self, operation: impl FnOnce(&mut QuaternaryHeap<K, V>) -> R) -> R {
        self.entries.with_mut(|entries| {
            // SAFETY: the lock is held (Invariant 1), and no operation is within another: keys are compared inside the heap, not here.
            let entries = unsafe { &mut *entries };
            operation(entries)
        })
    }

    fn push(self, key: K, value: V) {
        self.with(|entries| entries.push(key, value));
        let state = self.heap.look();
        self.write((state | 1).wrapping_add(2));
    }

    fn pop(self) -> Option<(K, V)> {
        let (entry, left) = self.with(|entries| (entries.pop_min(), entries.len()));
        let state = self.heap.look() & !1;
        self.write(state | u64::from(left > 0));
        entry
    }

    /// Whether its smallest key is smaller than the other's.
    fn is_before(&self, other: &Self) -> bool {
        self.entries.with(|mine| {
            other.entries.with(|others| {
                // SAFETY: the lock is held (Invariant 1), and nothing is written until the keys have been compared.
                let mine = unsafe { &*mine };
                // SAFETY: as above; two heaps, or no second one could be held.
                let others = unsafe { &*others };
                match (mine.min_key(), others.min_key()) {
                    (Some(mine), Some(others)) => mine < others,
                    (mine, _) => mine.is_some(),
                }
            })
        })
    }

    fn write(&self, state: u64) {
        // Release: pairs with the Acquire of a look.
        self.heap.state.store(state, Ordering::Release);
    }
}

impl<K: Ord, V, L: RawMutex> PriorityQueue for MultiQueue<K, V, L> {
    type Key = K;
    type Value = V;

    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, key: K, value: V) {
        self.push(key, value);
    }

    fn pop_min(&self) -> Option<(K, V)> {
        self.pop_min()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[K: Ord, V, L: RawMutex] MultiQueue<K, V, L>;
    item: (K, V);
    take: |queue| queue.pop_min();
    take_mut: |queue| queue.pop_min_mut();
    put: |queue, entry| queue.push(entry.0, entry.1);
    new: MultiQueue::with_heaps_and_locks(FACTOR * parallelism(), || L::INIT);
    debug: |queue| heaps = queue.heaps(), about = queue.about();
}

exclusive! {
    impl[K: Ord, V, L: RawMutex] MultiQueue<K, V, L>;
    entry: K, V;
    key: &K;
    push_mut: |queue, key, value| queue.push(key, value);
    pop_mut: |queue| queue.heaps[queue.smallest()?].try_hold()?.pop();
    peek_mut: |queue| {
        let smallest = queue.smallest()?;
        queue.heaps[smallest].entries.get_mut().get_mut().peek_min_mut()
    };
    cost: "A pop looks at each heap, and takes the smallest of all. A push costs what `push` does.";
}

impl<K: Ord, V, L: RawMutex> MultiQueue<K, V, L> {
    /// The heap with the smallest key, for the only owner.
    fn smallest(&mut self) -> Option<usize> {
        let heaps = self.heaps.iter_mut().enumerate();
        let keys = heaps.filter_map(|(heap, entries)| {
            Some((entries.entries.get_mut().get_mut().min_key()?, heap))
        });
        keys.min_by(|one, other| one.0.cmp(other.0)).map(|(_, heap)| heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(MultiQueue<u32, u32>: Send, Sync);
    // An entry that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(MultiQueue<std::rc::Rc<u32>, u32>: Send, Sync);
    assert_not_impl_any!(MultiQueue<u32, std::rc::Rc<u32>>: Send, Sync);

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
            let queue: MultiQueue<usize, (), TestAndSet> = MultiQueue::with_heaps(heaps);
            // The same numbers on every run.
            RANDOM.set(0x9e37_79b9_7f4a_7c15 ^ heaps as u64);
            (0..ENTRIES).for_each(|key| queue.push(key, ()));
            // Counts of entries by key, as sums over ranges (Fenwick), to find ranks in.
            let mut left = vec![0_usize; ENTRIES + 1];
            for place in 1..=ENTRIES {
                left[place] += 1;
                let above = place + (place & place.wrapping_neg());
                if above <= ENTRIES {
                    left[above] += left[place];
                }
            }
            let (mut total, pops) = (0, ENTRIES / 2);
            for _ in 0..pops {
                let (key, ()) = queue.pop_min().expect("half of them are left");
                let mut place = key;
                while place > 0 {
                    total += left[place];
                    place &= place - 1;
                }
                let mut place = key + 1;
                while place <= ENTRIES {
                    left[place] -= 1;
                    place += place & place.wrapping_neg();
                }
            }
            let mean = total as f64 / pops as f64;
            let heaps = heaps as f64;
            let stated = 5.0 / 6.0 * heaps - 1.0 + 1.0 / (6.0 * heaps);
            assert!((mean - stated).abs() < 0.1 * stated + 0.05, "{mean}, not {stated}");
        }
    }

    /// A heap whose lock is held keeps back its own entries only.
    #[test]
    fn a_held_heap_stops_nobody_else() {
        let queue: MultiQueue<u32, ()> = MultiQueue::with_heaps(4);
        let held = queue.heaps[2].try_hold();
        (0..40).for_each(|key| queue.push(key, ()));
        assert_eq!((0..40).filter(|_| queue.pop_min().is_some()).count(), 40);
        assert!(queue.pop_min().is_none() && queue.is_empty());
        drop(held);
    }
}
