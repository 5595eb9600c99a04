//! Nikolaev's bounded queue: a ring that a stopped thread does not hold up, without pointers and
//! without memory to reclaim.
//!
//! Why not the usual ring ([`crossbeam_queue::ArrayQueue`] is one, and Vyukov's): a thread that has
//! claimed a slot there and stops before it has filled it keeps all others from the values behind
//! it. Why not a linked queue: that needs a node for each value, and a way to know when a node may
//! be used again.
//!
//! Values lie in an array, and do not move in it. Two rings hand round the *indices* of that array,
//! both of them queues that cannot be held up (see `nikolaev/index_ring.rs`):
//!
//! ```text
//!            ┌──────────── free ◄───────────┐
//!   push: take a free index            pop: put it back
//!         write the value                   read the value
//!         put the index ─────► filled ────► take an index
//! ```
//!
//! # Invariants
//!
//! 1. Each index is in `free`, in `filled`, or owned by the one thread that took it out and has not
//!    put it back.
//! 2. The slot of an index in `filled` has a value. The slot of an index in `free` has none.
//!
//! So a thread that has taken an index is alone in touching the value.
//!
//! # Orderings
//!
//! An index carries with it what its last owner did: [`IndexRing::put`] releases it,
//! [`IndexRing::take`] acquires it.
//!
//! Source: Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue", DISC 2019,
//! section 5 (SCQ, with the indirection of figure 3).
//!
//! [`crossbeam_queue::ArrayQueue`]: https://docs.rs/crossbeam-queue/latest/crossbeam_queue/

mod index_ring;

use core::mem::MaybeUninit;

use stanchion_machine::cell::UnsafeCell;

use self::index_ring::IndexRing;
use super::Full;
use crate::Progress;
use crate::dropping::drop_each;

/// A bounded queue of `T` that no stopped thread can hold up.
///
/// - Progress: [`LockFree`](Progress::LockFree).
/// - Cost of a push and a pop: eight locked instructions. [`ArrayQueue`] and a [ring under a
///   lock](super::LockedRing) need two, and take about a third of the time.
/// - Cost of a pop that finds nothing: six locked instructions, some 40 ns, for the first four
///   million after a push. After that it is one load.
/// - Memory: the values' array, and 4 words of 8 bytes for each slot, rounded up to a power of two.
///   Nothing is allocated later.
/// - Order: by the moment at which an index is put into the ring of the filled ones.
///
/// Use it where a thread may stop in the middle of an operation (a signal handler, real-time
/// priorities, a debugger), or where very many processors want one queue. Otherwise
/// [`LockedRing`](super::LockedRing) is faster: with one thread 10 ns a pair against 22
/// (`cargo bench -p benches --bench lockfree`).
///
/// **Full** means that each slot has a value *or is worked on by a thread* that is about to fill it
/// or has emptied it and not put its index back. A push or a pop that has not returned yet may keep
/// a slot from the pushes. One that has returned does not.
///
/// ```
/// use stanchion_lockfree::queue::NikolaevQueue;
///
/// let queue = NikolaevQueue::with_capacity(2);
/// assert!(queue.try_push("first").is_ok());
/// assert!(queue.try_push("second").is_ok());
/// assert_eq!(queue.try_push("third").unwrap_err().0, "third");
/// assert_eq!(queue.pop(), Some("first"));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::NikolaevQueue::<std::rc::Rc<()>>::with_capacity(1));
/// ```
///
/// [`ArrayQueue`]: https://docs.rs/crossbeam-queue/latest/crossbeam_queue/struct.ArrayQueue.html
pub struct NikolaevQueue<T> {
    /// The indices of slots with a value.
    filled: IndexRing,
    /// The indices of slots without a value.
    free: IndexRing,
    /// The values. Touched by the thread that has taken the index.
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: by Invariant 1 a value is touched by one thread at a time, so sharing the queue only
// moves values from thread to thread.
unsafe impl<T: Send> Sync for NikolaevQueue<T> {}
// SAFETY: it owns its values.
unsafe impl<T: Send> Send for NikolaevQueue<T> {}

impl<T> NikolaevQueue<T> {
    /// Returns an empty queue for at most `capacity` values, which need not be a power of two.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than memory can hold.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::starting_at(capacity, 0, None)
    }

    /// Returns a queue for tests and models. `start` is the first turn. `limit` is the number of
    /// times that takers may come in vain before the queue counts as empty. Too small a `limit`
    /// breaks it.
    #[doc(hidden)]
    #[must_use]
    pub fn starting_at(capacity: usize, start: u64, limit: Option<u64>) -> Self {
        assert!(
            capacity > 0,
            "a NikolaevQueue of capacity 0 could hold nothing: ask for 1 at least"
        );
        Self {
            filled: IndexRing::new(capacity, false, start, limit),
            free: IndexRing::new(capacity, true, start, limit),
            values: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        }
    }

    /// Puts `value` at the end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there was no free slot.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let Some(index) = self.free.take() else { return Err(Full(value)) };
        self.values[index].with_mut(|slot| {
            // SAFETY: this thread owns the index (Invariant 1).
            unsafe { slot.write(MaybeUninit::new(value)) };
        });
        self.filled.put(index);
        Ok(())
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let index = self.filled.take()?;
        let value = self.values[index].with(|slot| {
            // SAFETY: this thread owns the index (Invariant 1).
            let value = unsafe { slot.read() };
            // SAFETY: its index was in `filled`, so the slot has a value (Invariant 2). It is this
            // thread's now: no thread reads the slot of an index in `free`.
            unsafe { value.assume_init() }
        });
        self.free.put(index);
        Some(value)
    }

    /// Returns whether there was nothing in it at some moment during the call.
    ///
    /// Looks at two words. Looks at more if pushes are going on, or if pushes lost slots to takers
    /// that were faster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// Returns whether there was no free slot at some moment during the call: a push would have
    /// failed then.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Returns the number of values. Exact if no other thread pushes or pops meanwhile, else an
    /// estimate. Looks at each slot that has a value.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filled.len()
    }

    /// Returns the most that it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.values.len()
    }
}

impl<T> Drop for NikolaevQueue<T> {
    fn drop(&mut self) {
        drop_each(|| self.pop());
    }
}

forward! {
    impl[T] ConcurrentQueue for NikolaevQueue<T>;
    item: T;
    progress: Progress::LockFree;
    capacity: |queue| queue.capacity();
}

conveniences! {
    impl[T] NikolaevQueue<T>;
    value: T;
    debug: |queue| capacity = queue.capacity(), is_empty = queue.is_empty();
}

exclusive! {
    impl[T] NikolaevQueue<T>;
    value: T;
    push_mut: |queue, value| queue.try_push(value);
    returns: Result<(), Full<T>>;
    pop_mut: |queue| queue.pop();
    peek_mut: |queue| {
        let index = queue.filled.first()?;
        // SAFETY: the slot of an index in `filled` has a value (Invariant 2).
        Some(unsafe { queue.values[index].get_mut().assume_init_mut() })
    };
    cost: "Costs as much as the shared operation when no other thread is there.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    assert_impl_all!(NikolaevQueue<u32>: Send, Sync);
    assert_impl_all!(NikolaevQueue<std::cell::Cell<u32>>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(NikolaevQueue<std::rc::Rc<u32>>: Send, Sync);

    /// Checks that it does the same as a sequential queue with a bound, for every small capacity,
    /// from `start` on.
    fn like_a_sequential_one(start: u64) {
        for capacity in 1..=17 {
            let queue = NikolaevQueue::starting_at(capacity, start, Some(2 * 64));
            let mut model = VecDeque::new();
            let mut random = 1_u64;
            for number in 0..2_000_u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // In stretches, so that it becomes full and empty.
                if (random >> 60) + (number / 64 % 2) * 8 > 11 {
                    let outcome = queue.try_push(number);
                    if model.len() < capacity {
                        assert_eq!(outcome, Ok(()), "capacity {capacity}, {number}");
                        model.push_back(number);
                    } else {
                        assert_eq!(outcome, Err(Full(number)), "capacity {capacity}, {number}");
                    }
                } else {
                    assert_eq!(queue.pop(), model.pop_front(), "capacity {capacity}, {number}");
                }
                assert_eq!(queue.is_empty(), model.is_empty(), "capacity {capacity}, {number}");
            }
            assert!(queue.drain().eq(model), "capacity {capacity}");
        }
    }

    #[test]
    fn every_small_capacity() {
        like_a_sequential_one(0);
    }

    /// Turns wrap at 2^64, cycles in the slots at 2^63 turns, and comparisons change their sign
    /// between.
    #[test]
    fn turns_wrap_around() {
        for wraps in [u64::MAX - 1_000, (1 << 63) - 1_000, (1 << 62) - 1_000] {
            like_a_sequential_one(wraps);
        }
    }

    /// Pops in vain take turns until the limit is used up, and none from then on until a push.
    #[test]
    fn an_empty_queue_is_found_by_a_look_beyond_the_limit() {
        const LIMIT: u64 = 17;
        let queue = NikolaevQueue::starting_at(3, 0, Some(LIMIT));
        for number in 0..10 {
            assert_eq!(queue.try_push(number), Ok(()));
            assert_eq!(queue.pop(), Some(number));
            let turns = queue.filled.turns_taken();
            (0..100).for_each(|_| assert_eq!(queue.pop(), None));
            assert_eq!(queue.filled.turns_taken() - turns, LIMIT + 1);
        }
    }

    /// dotnet/runtime#132736: a queue that looked empty while something was in it. Here the
    /// threshold is used up again and again.
    #[test]
    fn a_used_up_threshold_is_restored() {
        let queue = NikolaevQueue::starting_at(3, 0, Some(17));
        for number in 0..100 {
            for _ in 0..40 {
                assert_eq!(queue.pop(), None);
            }
            assert_eq!(queue.try_push(number), Ok(()));
            assert!(!queue.is_empty());
            assert_eq!(queue.pop(), Some(number));
        }
    }

    /// Every value once, those of one pusher in their order, under as much contention as there is.
    #[test]
    fn threads_exchange_everything() {
        const EACH: u64 = if cfg!(miri) { 50 } else { 5_000 };
        for capacity in [1, 2, 3, 64] {
            let queue = NikolaevQueue::starting_at(capacity, u64::MAX - 100, None);
            let count = AtomicU64::new(0);
            let popped = std::thread::scope(|scope| {
                for pusher in 0..3 {
                    let queue = &queue;
                    scope.spawn(move || {
                        for number in 0..EACH {
                            let mut value = pusher * EACH + number;
                            while let Err(Full(back)) = queue.try_push(value) {
                                value = back;
                                std::thread::yield_now();
                            }
                        }
                    });
                }
                let poppers: Vec<_> = (0..3)
                    .map(|_| {
                        let (queue, count) = (&queue, &count);
                        scope.spawn(move || {
                            let mut mine = Vec::new();
                            while count.load(Relaxed) < 3 * EACH {
                                match queue.pop() {
                                    Some(value) => {
                                        count.fetch_add(1, Relaxed);
                                        mine.push(value);
                                    }
                                    None => std::thread::yield_now(),
                                }
                            }
                            mine
                        })
                    })
                    .collect();
                poppers.into_iter().map(|popper| popper.join().unwrap()).collect::<Vec<_>>()
            });
            for mine in &popped {
                for pusher in 0..3 {
                    let own = mine.iter().filter(|value| **value / EACH == pusher);
                    assert!(
                        own.is_sorted(),
                        "capacity {capacity}: values of one thread overtook each other"
                    );
                }
            }
            let mut all: Vec<u64> = popped.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..3 * EACH), "capacity {capacity}");
        }
    }
}
