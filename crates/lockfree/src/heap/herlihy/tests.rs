//! Tests that look at nodes and caches, which cannot be seen from outside.

use static_assertions::{assert_impl_all, assert_not_impl_any};

use super::*;

assert_impl_all!(HerlihyHeap<u32, std::cell::Cell<u32>>: Send, Sync);
// Returns a number without order from another.
assert_not_impl_any!(HerlihyHeap<u32, std::rc::Rc<u32>>: Send, Sync);

/// A number without order from another.
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

#[test]
fn smallest_first() {
    let mut heap: HerlihyHeap<u32, &str> = HerlihyHeap::default();
    heap.extend([(2, "b"), (3, "c")]);
    (&heap).extend([(1, "a")]);
    assert_eq!(heap.min_key(), Some(1));
    assert_eq!(format!("{heap:?}"), "HerlihyHeap { empty: false, .. }");
    assert_eq!(heap.pop_min(), Some((1, "a")));
    assert!(heap.drain().eq([(2, "b"), (3, "c")]));
    assert!(heap.is_empty() && heap.min_key().is_none() && heap.pop_min().is_none());
}

#[test]
fn steady_state_makes_no_nodes() {
    let heap = HerlihyHeap::new();
    let run = || {
        (0..500).for_each(|number| heap.push(scattered(number), Box::new(number)));
        assert_eq!(core::iter::from_fn(|| heap.pop_min()).count(), 500);
    };
    run();
    let nodes = heap.depot.nodes.given();
    (0..10).for_each(|_| run());
    assert_eq!(heap.depot.nodes.given(), nodes);
    assert!(nodes < 500 + 64 + 64, "{nodes} nodes: 500 entries, a path, a cache's worth");
}

#[test]
fn room_is_made_beforehand() {
    let heap = HerlihyHeap::with_capacity(100);
    (0..50).for_each(|number| heap.push(scattered(number), number));
    assert_eq!(heap.drain().count(), 50);
}

/// One thread only pushes, the other only pops: nodes come back, a batch at a time.
#[test]
fn free_nodes_wander() {
    const ROUNDS: u64 = 20_000;
    let heap = HerlihyHeap::with_batch(4);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..ROUNDS {
                // Not far ahead of the other, so that the number of nodes says something.
                while number > POPPED.load(Relaxed) + 100 {
                    std::thread::yield_now();
                }
                heap.push(scattered(number), Box::new(number));
            }
        });
        let mut popped = 0;
        while popped < ROUNDS {
            match heap.pop_min() {
                Some((key, value)) => {
                    assert_eq!(key, scattered(*value));
                    popped += 1;
                    POPPED.store(popped, Relaxed);
                }
                None => std::thread::yield_now(),
            }
        }
    });
    let nodes = heap.depot.nodes.given();
    assert!(nodes < 400, "{nodes} nodes for 100 entries");
}

use std::sync::atomic::AtomicU64 as Counter;
use std::sync::atomic::Ordering::Relaxed;
static POPPED: Counter = Counter::new(0);

/// A comparison that uses the heap itself has a cache of its own.
#[test]
fn a_comparison_may_use_the_heap() {
    use std::cmp;

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Nosy(u64);

    static HEAP: HerlihyHeap<Nosy, u64> = HerlihyHeap::new();

    impl Words for Nosy {
        type Block = u64;
        fn to_words(self) -> u64 {
            self.0
        }
        fn from_words(word: u64) -> Self {
            Self(word)
        }
    }

    impl PartialOrd for Nosy {
        fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Nosy {
        fn cmp(&self, other: &Self) -> cmp::Ordering {
            if self.0 == 7 && other.0 == 1 {
                HEAP.push(Self(0), 100);
            }
            self.0.cmp(&other.0)
        }
    }

    HEAP.push(Nosy(1), 1);
    HEAP.push(Nosy(7), 7);
    let values: Vec<u64> = HEAP.drain().map(|(_, value)| value).collect();
    assert_eq!(values, [100, 1, 7]);
}

/// A stopped thread keeps its cache; the others go on.
#[test]
fn a_taken_cache_stops_no_other_thread() {
    let heap = HerlihyHeap::new();
    heap.push(1, 'a');
    let kept = heap.depot.take();
    heap.push(2, 'b');
    assert!(heap.drain().eq([(1, 'a'), (2, 'b')]));
    drop(kept);
    heap.push(3, 'c');
    assert_eq!(heap.pop_min(), Some((3, 'c')));
}
