//! Heaps of one thread, for the structures that put a lock or a copy around one.
//!
//! | heap | memory | push | pop | for |
//! | --- | --- | --- | --- | --- |
//! | [`SkewHeap`] | nodes, in one block | amortized O(log n) | amortized O(log n) | comparison |
//! | [`QuaternaryHeap`] | an array | O(log n), O(1) for random keys | O(log n) | speed |
//!
//! The papers of 1993 and 1997 measured the skew heap.

mod quaternary;
mod skew;

pub use quaternary::QuaternaryHeap;
pub use skew::SkewHeap;

/// A priority queue of one thread.
///
/// If comparing two keys panics, every entry is still there, and in order: an operation compares
/// first and moves afterwards. The entry that was to be pushed is dropped.
///
/// ```
/// use stanchion_lockfree::heap::sequential::{QuaternaryHeap, SequentialHeap};
///
/// let mut heap = QuaternaryHeap::NEW;
/// heap.push(3, "three");
/// heap.push(1, "one");
/// assert_eq!(heap.min_key(), Some(&1));
/// assert_eq!(heap.pop_min(), Some((1, "one")));
/// assert_eq!(heap.len(), 1);
/// ```
pub trait SequentialHeap {
    /// The key: the smallest comes first.
    type Key;
    /// The value that comes with a key.
    type Value;

    /// An empty heap, which has not allocated.
    const NEW: Self;

    /// Returns an empty heap with room for `capacity` entries.
    #[must_use]
    fn with_capacity(capacity: usize) -> Self;

    /// Puts `value` in.
    ///
    /// # Panics
    ///
    /// If there are more entries than the heap can number: 2^32 - 1 for [`SkewHeap`].
    fn push(&mut self, key: Self::Key, value: Self::Value);

    /// Takes an entry with the smallest key.
    fn pop_min(&mut self) -> Option<(Self::Key, Self::Value)>;

    /// Returns the entry that [`pop_min`](Self::pop_min) would take.
    fn peek_min(&self) -> Option<(&Self::Key, &Self::Value)>;

    /// Returns the entry that [`pop_min`](Self::pop_min) would take. Its value may be changed.
    fn peek_min_mut(&mut self) -> Option<(&Self::Key, &mut Self::Value)>;

    /// Returns the smallest key.
    fn min_key(&self) -> Option<&Self::Key> {
        self.peek_min().map(|(key, _)| key)
    }

    /// Returns the number of entries.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::collections::BinaryHeap;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Returns numbers without any order to speak of.
    fn numbers(count: usize, below: u64) -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % below
        })
        .take(count)
    }

    fn agrees_with_the_standard_heap<S: SequentialHeap<Key = u64, Value = Box<u64>>>() {
        for below in [1, 7, 1_000_000] {
            let mut heap = S::with_capacity(3);
            let mut standard = BinaryHeap::new();
            let mut choices = numbers(20_000, 5);
            for key in numbers(10_000, below) {
                for _ in 0..choices.next().unwrap() % 3 {
                    let expected = standard.pop().map(|std::cmp::Reverse(key)| key);
                    let got = heap.pop_min();
                    assert_eq!(got.as_ref().map(|(key, _)| *key), expected);
                    assert!(got.is_none_or(|(key, value)| key == *value));
                }
                heap.push(key, Box::new(key));
                standard.push(std::cmp::Reverse(key));
                assert_eq!(heap.len(), standard.len());
                assert_eq!(heap.min_key(), standard.peek().map(|key| &key.0));
                let peeked = heap.peek_min().map(|(key, value)| (*key, **value));
                assert_eq!(peeked, heap.peek_min_mut().map(|(key, value)| (*key, **value)));
                assert!(peeked.is_some_and(|(key, value)| key == value));
            }
            while let Some(std::cmp::Reverse(key)) = standard.pop() {
                assert_eq!(heap.pop_min().unwrap().0, key);
            }
            assert!(heap.is_empty() && heap.pop_min().is_none() && heap.min_key().is_none());
            assert!(heap.peek_min().is_none() && heap.peek_min_mut().is_none());
        }
    }

    thread_local! {
        /// The number of comparisons that are left until one panics.
        static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    }

    #[derive(PartialEq, Eq)]
    struct Faulty(u64);

    impl PartialOrd for Faulty {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Faulty {
        fn cmp(&self, other: &Self) -> Ordering {
            LEFT.set(LEFT.get().checked_sub(1).expect("no comparison left"));
            self.0.cmp(&other.0)
        }
    }

    /// A value that counts how often it is dropped.
    struct Counted<'c>(u64, &'c Cell<u64>);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
        }
    }

    /// Tests RUSTSEC-2026-0205: a comparison that panics, at every point where one is made.
    fn loses_nothing<'c, S>(dropped: &'c Cell<u64>)
    where
        S: SequentialHeap<Key = Faulty, Value = Counted<'c>>,
    {
        const ENTRIES: u64 = 24;
        let heap = || {
            LEFT.set(u32::MAX);
            let mut heap = S::NEW;
            for key in numbers(ENTRIES as usize, 100) {
                heap.push(Faulty(key), Counted(key, dropped));
            }
            heap
        };
        let check = |mut heap: S, entries: u64| {
            LEFT.set(u32::MAX);
            assert_eq!(heap.len() as u64, entries);
            let mut last = 0;
            for _ in 0..entries {
                let (key, value) = heap.pop_min().unwrap();
                assert!(key.0 == value.0 && last <= key.0, "{} after {last}", key.0);
                last = key.0;
            }
            assert!(heap.pop_min().is_none());
            drop(heap);
        };
        let (mut pops, mut pushes) = (0, 0);
        for at in 0.. {
            dropped.set(0);
            let mut heap = heap();
            LEFT.set(at);
            let popped = catch_unwind(AssertUnwindSafe(|| heap.pop_min().is_some()));
            pops += u32::from(popped.is_err());
            check(heap, ENTRIES - u64::from(popped.is_ok()));
            assert_eq!(dropped.get(), ENTRIES);
            if popped.is_ok() {
                break;
            }
        }
        for key in [0, 50, 100] {
            for at in 0.. {
                dropped.set(0);
                let mut heap = heap();
                LEFT.set(at);
                let push = AssertUnwindSafe(|| heap.push(Faulty(key), Counted(key, dropped)));
                let pushed = catch_unwind(push);
                pushes += u32::from(pushed.is_err());
                check(heap, ENTRIES + u64::from(pushed.is_ok()));
                assert_eq!(dropped.get(), ENTRIES + 1, "what was pushed is dropped as well");
                if pushed.is_ok() {
                    break;
                }
            }
        }
        assert!(pops > 2 && pushes > 2, "{pops} and {pushes} comparisons");
    }

    /// Tests that a value's `Drop` that panics does not keep the others from being dropped.
    fn drops_all_the_same<S: SequentialHeap<Key = u64, Value = Bomb>>() {
        DROPPED.set(0);
        let mut heap = S::NEW;
        for key in 0..10 {
            heap.push(key, Bomb(key == 4));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(heap))).is_err());
        assert_eq!(DROPPED.get(), 10);
    }

    thread_local! {
        static DROPPED: Cell<u32> = const { Cell::new(0) };
    }

    struct Bomb(bool);

    impl Drop for Bomb {
        fn drop(&mut self) {
            DROPPED.set(DROPPED.get() + 1);
            assert!(!self.0, "this one panics");
        }
    }

    macro_rules! heaps {
        ($($name:ident: $heap:ident;)+) => {$(
            mod $name {
                use super::*;

                #[test]
                fn agrees_with_the_standard_heap() {
                    super::agrees_with_the_standard_heap::<$heap<_, _>>();
                }

                #[test]
                fn loses_nothing_when_a_comparison_panics() {
                    super::loses_nothing::<$heap<_, _>>(&Cell::new(0));
                }

                #[test]
                fn drops_all_when_a_drop_panics() {
                    super::drops_all_the_same::<$heap<_, _>>();
                }
            }
        )+};
    }

    heaps! {
        skew: SkewHeap;
        quaternary: QuaternaryHeap;
    }
}
