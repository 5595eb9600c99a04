//! The MultiQueue: several heaps, each with a lock of its own. A push goes to any of them, a pop to
//! the better of two.
//!
//! Why not one heap: threads that all pop the smallest key must agree on which it is. Here no
//! thread waits for a lock that is held: it goes to another heap. The price is that a popped key is
//! only *among* the smallest. Programs that search best first usually do not mind, and check what
//! they pop anyway. It is for many processors: on two, a
//! [`LockedArrayHeap`](super::LockedArrayHeap) is several times faster
//! (`cargo bench -p benches --bench lockfree -- heaps`).
//!
//! ```text
//! push:  any heap with a free lock
//! pop:   two random heaps, if their locks are free: the smaller of their smallest keys
//!        neither had an entry: look at all heaps, from a random one on
//!        none had an entry: look again; if there was no push in between, it was empty
//! ```
//!
//! Why the lock is a part of `state` and not a lock of the caller's choice: no thread ever waits
//! for it, so a choice would change nothing. And a push needs one locked instruction that makes it
//! visible to all threads before it returns. The one that takes the lock does both.
//!
//! Why no [`Handshake`](stanchion_machine::handshake::Handshake) with its fences: the word that the
//! caller reads after a push is the caller's, so the promise must hold when the push returns. The
//! locked instruction is there already, and a fence would be a second one.
//!
//! # How far from the smallest
//!
//! The *rank error* of a pop is the number of entries with a smaller key. With *n* heaps and pops
//! one after another it is E = 5/6 *n* - 1 + 1/(6 *n*) on average, for any number of entries that
//! is not small: 2.4 for four heaps, 5.7 for eight (Walzer and Williams 2025). Entries in the hands
//! of other threads count besides: one for each thread that is in the middle of a pop.
//!
//! A thread that loses its processor while it holds *m* heaps keeps their entries back. Say that
//! the other threads pop *r* entries a second, that the thread is away for *P* seconds, and that
//! keys do not depend on heaps. Then D = *r* *P* pops find their entries in *n* - *m* heaps, and
//! the held heaps fall behind by B = D *m* / (*n* - *m*) entries.
//!
//! - During the preemption and after it, the rank error is at most E + B on average. A push holds
//!   one heap (*m* = 1), a pop two (*m* = 2).
//! - Afterwards each pop takes one entry off those B with probability 1 - (1 - *m*/*n*)^2, and adds
//!   *m* / (*n* - *m*) to them otherwise. That is *m*/*n* fewer a pop, so the rank error is back at
//!   E after *n* B / *m* pops.
//! - So a preemption adds at most B (D + *n* B / *m*) / 2 to the sum of all rank errors.
//!   Preemptions that do not overlap add up.
//!
//! # Invariants
//!
//! 1. A heap is touched only by the thread that holds it: the one that has set [`HELD`] by its
//!    exchange.
//! 2. A heap that no thread holds has [`ENTRIES`] set exactly if it has entries. It is set from the
//!    exchange that begins a push on.
//! 3. If each of two looks at all states found every heap empty, and the pushes add up to the same
//!    number, then between the two looks all were empty: the number of pushes does not get smaller,
//!    and a heap without pushes stays empty.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | set `HELD` | Acquire | the Release that cleared it: the last holder's writes |
//! | clear `HELD` | Release | the above |
//! | set `ENTRIES`, with `HELD` and one more push | SeqCst | the looks |
//! | clear `ENTRIES`, with `HELD` | SeqCst | the looks |
//! | look at `state` for an answer that it is empty | SeqCst | the two above |
//!
//! [`is_empty`](MultiQueue::is_empty) gives such an answer, and so does a pop that finds nothing.
//!
//! All exchanges that change whether there are entries, and all looks that report it, are in one
//! order, and each is in it before its call returns. So of two threads that each push into a queue
//! and then look at the other's, at least one finds something. Plain stores would wait in the
//! processor's store buffer while the look goes ahead.
//!
//! Source: Rihani, Sanders and Dementiev, "MultiQueues: simple relaxed concurrent priority queues",
//! SPAA 2015. The bound under preemption is derived here.

use core::cell::Cell;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::topology::{CachePadded, parallelism};
use stanchion_machine::wait::{WaitPolicy, retry_until};
use stanchion_spin::Backoff;

use super::sequential::{QuaternaryHeap, SequentialHeap};
use crate::Progress;

#[cfg(test)]
mod tests;

/// Heaps for each processor, by default.
const FACTOR: usize = 2;

/// In a heap's state: a thread holds the heap.
const HELD: u64 = 1;

/// In a heap's state: the heap has entries, or is about to get one.
const ENTRIES: u64 = 2;

/// In a heap's state: one push. The number of pushes is in this bit and those above.
const PUSH: u64 = 4;

/// A relaxed priority queue: what is popped is among the smallest.
///
/// - Progress: [`Blocking`](Progress::Blocking). If the holder of a heap stops, the entries of that
///   heap cannot be had, and a pop waits if there are no others. All else goes on.
/// - Rank error: E = 5/6 n - 1 + 1/(6 n) on average with n heaps.
/// - Rank error under preemption: E + r P m / (n - m) on average. The preempted thread holds m
///   heaps (1 in a push, 2 in a pop) for P seconds while other threads pop r entries a second.
/// - Cost: one locked instruction to push. A pop costs two if there are many entries, the length of
///   the list of heaps if there are few, and one more for a heap's last entry.
/// - Memory: n arrays that double when they are full, and do not shrink.
///
/// Emptiness is exact and linearizable: [`is_empty`](Self::is_empty) returns `true`, and
/// [`pop_min`](Self::pop_min) returns `None`, only if at some moment during the call there was
/// nothing in the queue, held heaps included. Pops of one thread may yield a smaller key after a
/// larger one. A comparison that panics loses only the entry that was to be pushed.
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
/// Entries that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::heap::MultiQueue::<u32, std::rc::Rc<()>>::new());
/// ```
pub struct MultiQueue<K, V> {
    /// The heaps. Their number never changes.
    heaps: Box<[CachePadded<Heap<K, V>>]>,
}

/// One heap and its lock.
struct Heap<K, V> {
    /// `HELD`, `ENTRIES` and the number of pushes. Written by the holder, and by the thread that
    /// becomes the holder.
    state: AtomicU64,
    /// The entries. Touched by the holder only (Invariant 1).
    entries: UnsafeCell<QuaternaryHeap<K, V>>,
}

// SAFETY: entries are reached by the holder only (Invariant 1), and go from one thread to another,
// hence `Send`. No thread gets a reference to an entry that another can reach.
unsafe impl<K: Send, V: Send> Sync for Heap<K, V> {}

/// A heap that this thread holds, until this is dropped.
struct Held<'q, K: Ord, V> {
    /// The heap that is held.
    heap: &'q Heap<K, V>,
    /// The heap's state since this thread holds it.
    state: u64,
}

/// Waits for the holders of heaps: away from them, and then off the processor.
struct Snooze(Backoff);

impl WaitPolicy for Snooze {
    fn start() -> Self {
        Self(Backoff::new())
    }

    fn pause(&mut self) {
        self.0.snooze();
    }

    fn leaves(&self) -> bool {
        self.0.is_completed()
    }
}

stanchion_machine::thread_local! {
    /// The state of this thread's random source; 0 until it is first asked.
    static RANDOM: Cell<u64> = Cell::new(0);
}

/// Returns a seed that differs between threads, also between those of which one begins where
/// another has ended.
///
/// Such threads have the same stack, so the moment is mixed in. All bits are mixed because the
/// first numbers of xorshift from similar seeds are similar.
fn seed() -> u64 {
    let moment = stanchion_machine::clock::now().to_bits();
    // Steele, Lea and Flood's SplitMix64.
    let mut mixed = stanchion_machine::hint::entropy() ^ moment.rotate_left(32);
    mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) | 1
}

/// Returns a number below `below`.
fn random(below: usize) -> usize {
    let step = |random: &Cell<u64>| {
        let mut state = random.get();
        if state == 0 {
            state = seed();
        }
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        random.set(state);
        state
    };
    // While the thread ends it has no source any more, so each number is a new seed.
    let state = RANDOM.try_with(step).unwrap_or_else(|_| seed());
    // The high bits are the good ones.
    ((u128::from(state) * below as u128) >> 64) as usize
}

impl<K: Ord, V> MultiQueue<K, V> {
    /// Returns an empty queue of twice as many heaps as this process may use processors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty queue of so many heaps, and at least one. A queue of one heap is exact.
    #[must_use]
    pub fn with_heaps(heaps: usize) -> Self {
        let fresh = || {
            CachePadded::new(Heap {
                state: AtomicU64::fresh(0),
                entries: UnsafeCell::new(QuaternaryHeap::NEW),
            })
        };
        Self { heaps: core::iter::repeat_with(fresh).take(heaps.max(1)).collect() }
    }

    /// Returns the number of heaps, for the rank error.
    #[must_use]
    pub fn heaps(&self) -> usize {
        self.heaps.len()
    }

    /// Puts `value` in.
    pub fn push(&self, key: K, value: V) {
        self.any_free().push(key, value);
    }

    /// Takes an entry with one of the smallest keys. Returns `None` only if at some moment during
    /// the call there was none.
    ///
    /// If the only entries are in heaps that other threads hold, the call waits for them.
    pub fn pop_min(&self) -> Option<(K, V)> {
        let attempt = || {
            if let Some(entry) = self.pop_of_two() {
                return Some(Some(entry));
            }
            match self.find() {
                Found::Nothing => Some(None),
                Found::Entry(entry) => Some(Some(entry)),
                // There are some in heaps that are held, or some have come and gone.
                Found::Busy => None,
            }
        };
        retry_until(attempt, &mut Snooze::start())
    }

    /// Returns whether there was nothing in it at some moment during the call.
    ///
    /// It takes no lock. While another thread pushes and pops without end it may have to look more
    /// than twice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        loop {
            let Some(pushes) = self.pushes_if_empty() else { return false };
            if self.pushes_if_empty() == Some(pushes) {
                return true;
            }
        }
    }

    /// Holds any heap that is free, for a push.
    fn any_free(&self) -> Held<'_, K, V> {
        let attempt = || {
            let mut heaps = (0..self.heaps.len()).map(|_| &self.heaps[random(self.heaps.len())]);
            heaps.find_map(|heap| heap.hold_to_push())
        };
        retry_until(attempt, &mut Snooze::start())
    }

    /// Takes the smaller of the smallest of two heaps, if they have any and are free.
    fn pop_of_two(&self) -> Option<(K, V)> {
        let count = self.heaps.len();
        // Independent of each other, as in the paper: they may be the same.
        let (one, two) = (random(count), random(count));
        let one = self.heaps[one].hold_to_pop();
        // If it is the same heap, this thread holds it already, and there is no second one.
        let two = self.heaps[two].hold_to_pop();
        let mut smaller = match (one, two) {
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
            let mut entries =
                heaps.filter_map(|heap| heap.hold_to_pop().and_then(|mut held| held.pop()));
            return entries.next().map_or(Found::Busy, Found::Entry);
        };
        if self.pushes_if_empty() == Some(pushes) { Found::Nothing } else { Found::Busy }
    }

    /// Returns the number of pushes into all heaps so far, if no heap has entries.
    fn pushes_if_empty(&self) -> Option<u64> {
        self.heaps.iter().try_fold(0_u64, |pushes, heap| {
            // SeqCst: after this thread's own pushes and pops in the order that all threads agree
            // on, and before all pushes that it does not see (Invariant 3).
            let state = heap.state.load(Ordering::SeqCst);
            (state & ENTRIES == 0).then(|| pushes.wrapping_add(state / PUSH))
        })
    }

    /// Returns the number of entries in heaps that are free.
    fn about(&self) -> usize {
        let free = self.heaps.iter().filter_map(|heap| heap.hold());
        free.map(|held| held.with(|entries| entries.len())).sum()
    }
}

/// The result of a look at all heaps.
enum Found<E> {
    /// There was nothing (Invariant 3).
    Nothing,
    /// This was taken out.
    Entry(E),
    /// It is not known.
    Busy,
}

impl<K: Ord, V> Heap<K, V> {
    /// Holds the heap, if it is free.
    fn hold(&self) -> Option<Held<'_, K, V>> {
        // Relaxed: the exchange decides.
        let state = self.state.load(Ordering::Relaxed);
        self.try_hold(state, state, Ordering::Acquire)
    }

    /// Holds the heap, if it is free and has entries.
    #[inline]
    fn hold_to_pop(&self) -> Option<Held<'_, K, V>> {
        // Relaxed: the exchange decides. The queue is not called empty because of this load.
        let state = self.state.load(Ordering::Relaxed);
        if state & ENTRIES == 0 {
            return None;
        }
        self.try_hold(state, state, Ordering::Acquire)
    }

    /// Holds the heap for a push, if it is free. From here on its state tells that it has entries.
    #[inline]
    fn hold_to_push(&self) -> Option<Held<'_, K, V>> {
        // Relaxed: the exchange decides.
        let state = self.state.load(Ordering::Relaxed);
        // SeqCst: the push is in the order that all threads agree on before it returns.
        self.try_hold(state, (state | ENTRIES).wrapping_add(PUSH), Ordering::SeqCst)
    }

    /// Changes the state from `free` to `held`, with [`HELD`], if it is `free`, and no thread holds
    /// the heap.
    #[inline]
    fn try_hold(&self, free: u64, held: u64, order: Ordering) -> Option<Held<'_, K, V>> {
        if free & HELD != 0 {
            return None;
        }
        let state = held | HELD;
        // Acquire, at least: pairs with the Release of the last holder. Relaxed: it was not free.
        self.state.compare_exchange(free, state, order, Ordering::Relaxed).ok()?;
        Some(Held { heap: self, state })
    }
}

impl<K: Ord, V> Held<'_, K, V> {
    #[inline]
    fn with<R>(&self, operation: impl FnOnce(&mut QuaternaryHeap<K, V>) -> R) -> R {
        self.heap.entries.with_mut(|entries| {
            // SAFETY: this thread holds the heap (Invariant 1), and no operation is within another:
            // a comparison of two keys cannot reach this heap's guard.
            let entries = unsafe { &mut *entries };
            operation(entries)
        })
    }

    /// Puts `value` in. The heap is held [to push](Heap::hold_to_push).
    fn push(self, key: K, value: V) {
        self.with(|entries| entries.push(key, value));
    }

    fn pop(&mut self) -> Option<(K, V)> {
        self.with(QuaternaryHeap::pop_min)
    }

    /// Returns whether its smallest key is smaller than the other's.
    fn is_before(&self, other: &Self) -> bool {
        self.heap.entries.with(|mine| {
            other.heap.entries.with(|others| {
                // SAFETY: this thread holds the heap (Invariant 1), and nothing is written until
                // the keys have been compared.
                let mine = unsafe { &*mine };
                // SAFETY: as above; they are two heaps, because no heap can be held twice.
                let others = unsafe { &*others };
                match (mine.min_key(), others.min_key()) {
                    (Some(mine), Some(others)) => mine < others,
                    (mine, _) => mine.is_some(),
                }
            })
        })
    }
}

impl<K: Ord, V> Drop for Held<'_, K, V> {
    /// Lets the heap go, also after a comparison that has panicked.
    #[inline]
    fn drop(&mut self) {
        let state = self.state & !HELD;
        let has_entries = self.with(|entries| !entries.is_empty());
        if has_entries || state & ENTRIES == 0 {
            // Release: pairs with the Acquire of the next holder. Looks report the same as before.
            self.heap.state.store(state, Ordering::Release);
        } else {
            // The heap has become empty. SeqCst: that is in the order that all threads agree on
            // before the pop returns, so it is an exchange and not a store. It is a Release too,
            // and pairs with the Acquire of the next holder.
            self.heap.state.swap(state & !ENTRIES, Ordering::SeqCst);
        }
    }
}

forward! {
    impl[K: Ord, V] PriorityQueue for MultiQueue<K, V>;
    entry: K, V;
    progress: Progress::Blocking;
}

conveniences! {
    impl[K: Ord, V] MultiQueue<K, V>;
    entry: K, V;
    new: MultiQueue::with_heaps(FACTOR * parallelism());
    debug: |queue| heaps = queue.heaps(), about = queue.about();
}

exclusive! {
    impl[K: Ord, V] MultiQueue<K, V>;
    entry: K, V;
    key: &K;
    push_mut: |queue, key, value| queue.push(key, value);
    pop_mut: |queue| queue.heaps[queue.smallest()?].hold_to_pop()?.pop();
    peek_mut: |queue| {
        let smallest = queue.smallest()?;
        queue.heaps[smallest].entries.get_mut().peek_min_mut()
    };
    cost: "A pop looks at each heap, and takes the smallest of all. A push costs what `push` does.";
}

impl<K: Ord, V> MultiQueue<K, V> {
    /// Returns the number of the heap with the smallest key, for the only owner.
    fn smallest(&mut self) -> Option<usize> {
        let heaps = self.heaps.iter_mut().enumerate();
        let keys =
            heaps.filter_map(|(heap, entries)| Some((entries.entries.get_mut().min_key()?, heap)));
        keys.min_by(|one, other| one.0.cmp(other.0)).map(|(_, heap)| heap)
    }
}
