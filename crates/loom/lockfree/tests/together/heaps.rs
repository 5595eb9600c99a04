//! Models of the heaps.
//!
//! Each model, its threads, and its bound for `HerlihyHeap`:
//!
//! - `a_look_meets_a_push`, `a_look_meets_a_pop`: 2 threads, one looking at the smallest key; no
//!   bound.
//! - `a_look_meets_used_nodes_bounded`: 2, as above, and the node comes back with another key; 2
//!   preemptions.
//! - `a_look_sees_whole_keys_bounded`: 2, as above, with keys of two words; 2 preemptions.
//! - `two_push_bounded`, `a_push_meets_a_pop_bounded`: 2; 3 preemptions.
//! - `two_pop_bounded`: 2; 2 preemptions.
//! - `nodes_are_used_again_bounded`: 2, one popping and pushing, so that a node comes back with
//!   another key; 2 preemptions.
//! - `free_nodes_wander_bounded`: 2, one giving away the free node that the other needs; 2
//!   preemptions.
//! - `three_threads_bounded`: 3; 1 preemption.
//!
//! Two operations of `HerlihyHeap` without bound have more than half a million executions: each
//! look at the root after a node is a step. The heaps under a lock are explored without bound,
//! except `MultiQueue`: a thread with two operations has 48,000 executions there, and only
//! `multi_queue::two_push` is without bound. Each heap has its own constructor for models, so this
//! file names the heaps instead of expanding the table (`crates/lockfree/src/table.rs`).
//!
//! Values are counted references, so that one that is lost or dropped twice is reported; slots are
//! checked cells. Every model prints `model NAME: N executions`.

use stanchion_lockfree_loom::PriorityQueue;
use stanchion_lockfree_loom::heap::{HerlihyHeap, LockedArrayHeap, LockedHeap, MultiQueue};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};
use stanchion_spin::TestAndSet;

/// A key's value.
type Value = Arc<u64>;

trait Heap: PriorityQueue<Key = u64, Value = Value> + Send + Sync + 'static {
    fn with(keys: &[u64]) -> Arc<Self>;
}

macro_rules! heap {
    ($($type:ty = $new:expr;)+) => {$(
        impl Heap for $type {
            fn with(keys: &[u64]) -> Arc<Self> {
                let heap = Arc::new($new);
                keys.iter().for_each(|key| push(&*heap, *key));
                heap
            }
        }
    )+};
}

heap! {
    HerlihyHeap<u64, Value> = HerlihyHeap::with_batch(1);
    LockedHeap<u64, Value, TestAndSet> = Default::default();
    LockedArrayHeap<u64, Value, TestAndSet> = Default::default();
    // One heap: with several, what comes first is a matter of chance.
    MultiQueue<u64, Value> = MultiQueue::with_heaps(1);
}

fn push<H: Heap>(heap: &H, key: u64) {
    heap.push(key, Arc::new(10 * key));
}

fn pop<H: Heap>(heap: &H) -> Option<u64> {
    let (key, value) = heap.pop_min()?;
    assert_eq!(*value, 10 * key, "a key came with another's value");
    Some(key)
}

/// Returns the entries that are left, in order.
fn rest<H: Heap>(heap: &H) -> Vec<u64> {
    core::iter::from_fn(|| pop(heap)).collect()
}

fn two_push<H: Heap>() {
    let heap = H::with(&[]);
    let other = beside(&heap, |heap| push(heap, 2));
    push(&*heap, 1);
    other.join().unwrap();
    assert_eq!(rest(&*heap), [1, 2]);
}

fn a_push_meets_a_pop<H: Heap>() {
    let heap = H::with(&[2]);
    let other = beside(&heap, |heap| push(heap, 1));
    let popped = pop(&*heap);
    other.join().unwrap();
    let expected = if popped == Some(1) { [2] } else { [1] };
    assert!(matches!(popped, Some(1 | 2)));
    assert_eq!(rest(&*heap), expected);
}

fn two_pop<H: Heap>() {
    let heap = H::with(&[2, 1]);
    let other = beside(&heap, pop);
    let mut both = [pop(&*heap), other.join().unwrap()];
    both.sort();
    assert_eq!(both, [Some(1), Some(2)]);
    assert!(heap.is_empty());
}

/// ABA: the node that the other looks at is taken out, and comes back with another key.
fn nodes_are_used_again<H: Heap>() {
    let heap = H::with(&[2, 1]);
    let other = beside(&heap, |heap| {
        let popped = pop(heap);
        push(heap, 3);
        popped
    });
    let mut popped = vec![pop(&*heap), other.join().unwrap()];
    popped.sort();
    let (popped, rest) = (popped, rest(&*heap));
    match popped[..] {
        [Some(1), Some(2)] => assert_eq!(rest, [3]),
        // One popped 1 and pushed 3, and the other popped neither 2 nor 3 before the first's 1:
        // impossible.
        _ => panic!("popped {popped:?}, and {rest:?} is left"),
    }
}

/// The third pop gives a free node to the stock, from where the other takes it, or not yet.
fn free_nodes_wander<H: Heap>() {
    let heap = H::with(&[3, 2, 1]);
    assert_eq!((pop(&*heap), pop(&*heap)), (Some(1), Some(2)));
    let other = beside(&heap, |heap| push(heap, 4));
    assert_eq!(pop(&*heap), Some(3));
    other.join().unwrap();
    assert_eq!(rest(&*heap), [4]);
}

fn three_threads<H: Heap>() {
    let heap = H::with(&[2]);
    let pusher = beside(&heap, |heap| push(heap, 1));
    let popper = beside(&heap, pop);
    let mut popped = vec![pop(&*heap), popper.join().unwrap()];
    pusher.join().unwrap();
    popped.extend(rest(&*heap).into_iter().map(Some));
    popped.retain(Option::is_some);
    popped.sort();
    assert_eq!(popped, [Some(1), Some(2)]);
}

macro_rules! models {
    ($($module:ident: $heap:ty, $objects:literal, $bound:expr;)+) => {$(
        mod $module {
            use super::*;

            /// This many preemptions, if the heap needs a bound.
            fn bound(preemptions: usize) -> Option<usize> {
                let needed: bool = $bound;
                needed.then_some(preemptions)
            }

            fn run(name: &str, preemptions: Option<usize>, body: fn()) {
                let mut model = Model::new().objects($objects);
                if let Some(preemptions) = preemptions {
                    model = model.preemptions(preemptions);
                }
                explore(&format!("{}::{name}", stringify!($module)), model, body);
            }

            #[test]
            fn two_push_bounded() {
                run("two_push_bounded", bound(3), super::two_push::<$heap>);
            }

            #[test]
            fn a_push_meets_a_pop_bounded() {
                run("a_push_meets_a_pop_bounded", bound(3), super::a_push_meets_a_pop::<$heap>);
            }

            #[test]
            fn two_pop_bounded() {
                run("two_pop_bounded", bound(2), super::two_pop::<$heap>);
            }

            #[test]
            fn nodes_are_used_again_bounded() {
                run("nodes_are_used_again_bounded", bound(2), super::nodes_are_used_again::<$heap>);
            }

            #[test]
            fn free_nodes_wander_bounded() {
                run("free_nodes_wander_bounded", bound(2), super::free_nodes_wander::<$heap>);
            }

            #[test]
            fn three_threads_bounded() {
                run("three_threads_bounded", bound(1).or(Some(2)), super::three_threads::<$heap>);
            }
        }
    )+};
}

models! {
    herlihy_heap: HerlihyHeap<u64, Value>, 40, true;
    locked_heap: LockedHeap<u64, Value, TestAndSet>, 20, false;
    locked_array_heap: LockedArrayHeap<u64, Value, TestAndSet>, 20, false;
    multi_queue: MultiQueue<u64, Value>, 20, true;
}

#[test]
fn multi_queue_two_push() {
    explore("multi_queue::two_push", Model::new().objects(20), two_push::<MultiQueue<u64, Value>>);
}

/// The smallest key, looked at while another thread is in its operation.
fn a_look_meets(
    name: &str,
    model: Model,
    before: &'static [u64],
    seen: &'static [Option<u64>],
    other: fn(&HerlihyHeap<u64, Value>),
) {
    explore(&format!("herlihy_heap::{name}"), model.objects(40), move || {
        let heap = <HerlihyHeap<u64, Value> as Heap>::with(before);
        let other = beside(&heap, other);
        assert!(seen.contains(&heap.min_key()));
        other.join().unwrap();
    });
}

#[test]
fn a_look_meets_a_push() {
    a_look_meets("a_look_meets_a_push", Model::new(), &[], &[None, Some(1)], |heap| push(heap, 1));
}

#[test]
fn a_look_meets_a_pop() {
    a_look_meets("a_look_meets_a_pop", Model::new(), &[2, 1], &[Some(1), Some(2)], |heap| {
        assert_eq!(pop(heap), Some(1));
    });
}

/// The node that is looked at comes back with another key.
#[test]
fn a_look_meets_used_nodes_bounded() {
    let seen = &[None, Some(1), Some(2)];
    let model = Model::new().preemptions(2);
    a_look_meets("a_look_meets_used_nodes_bounded", model, &[1], seen, |heap| {
        assert_eq!(pop(heap), Some(1));
        push(heap, 2);
    });
}

/// A key of two words, read while the node comes back with another: it is one of the two, never
/// half of each.
#[test]
fn a_look_sees_whole_keys_bounded() {
    let model = Model::new().preemptions(2).objects(40);
    explore("herlihy_heap::a_look_sees_whole_keys_bounded", model, || {
        let heap: Arc<HerlihyHeap<(u64, u64), ()>> = Arc::new(HerlihyHeap::with_batch(1));
        heap.push((1, 1), ());
        let other = {
            let heap = heap.clone();
            thread::spawn(move || {
                assert_eq!(heap.pop_min(), Some(((1, 1), ())));
                heap.push((2, 2), ());
            })
        };
        assert!(matches!(heap.min_key(), None | Some((1, 1) | (2, 2))));
        other.join().unwrap();
    });
}
