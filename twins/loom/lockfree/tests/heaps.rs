//! Models of the heaps.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `two_push` | 2 | none |
//! | `a_push_meets_a_pop` | 2 | none |
//! | `two_pop` | 2 | none |
//! | `nodes_are_used_again_bounded` | 2, one popping and pushing, so that a node comes back with another key | 3 preemptions |
//! | `a_look_meets_used_nodes` | 2, as above, the other looking at the smallest key | none |
//! | `free_nodes_wander_bounded` | 2, one popping what the other needs | 3 preemptions |
//! | `three_threads_bounded` | 3 | 2 preemptions |
//!
//! Values are counted references, so that one that is lost or dropped twice is reported; slots are checked cells. Every model prints
//! `model NAME: N executions`.

use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_lockfree_loom::PriorityQueue;
use stanchion_lockfree_loom::heap::{HerlihyHeap, LockedHeap, LockedSkewHeap};
use stanchion_spin::TestAndSet;

/// A key's value.
type Value = Arc<u64>;

/// Checks `body`, says how much there was to check.
fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

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
    LockedHeap<u64, Value, TestAndSet> = LockedHeap::new();
    LockedSkewHeap<u64, Value, TestAndSet> = LockedHeap::new();
}

fn push<H: Heap>(heap: &H, key: u64) {
    heap.push(key, Arc::new(10 * key));
}

fn pop<H: Heap>(heap: &H) -> Option<u64> {
    let (key, value) = heap.pop_min()?;
    assert_eq!(*value, 10 * key, "a key came with another's value");
    Some(key)
}

fn beside<H: Heap, R: Send + 'static>(
    heap: &Arc<H>,
    body: impl FnOnce(&H) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let heap = heap.clone();
    thread::spawn(move || body(&heap))
}

/// What is left, in order.
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
        // One popped 1 and pushed 3, and the other popped neither 2 nor 3 before the first's 1: impossible.
        _ => panic!("popped {popped:?}, and {rest:?} is left"),
    }
}

fn free_nodes_wander<H: Heap>() {
    let heap = H::with(&[3, 2, 1]);
    let other = beside(&heap, |heap| (pop(heap), pop(heap), pop(heap)));
    push(&*heap, 4);
    push(&*heap, 5);
    let popped = other.join().unwrap();
    assert_eq!(popped, (Some(1), Some(2), Some(3)));
    assert_eq!(rest(&*heap), [4, 5]);
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
    ($($module:ident: $heap:ty, $objects:literal;)+) => {$(
        mod $module {
            use super::*;

            fn run(name: &str, preemptions: Option<usize>, body: fn()) {
                let mut model = Model::new().objects($objects);
                if let Some(preemptions) = preemptions {
                    model = model.preemptions(preemptions);
                }
                explore(&format!("{}::{name}", stringify!($module)), model, body);
            }

            #[test]
            fn two_push_bounded() {
                run("two_push_bounded", Some(3), super::two_push::<$heap>);
            }

            #[test]
            fn a_push_meets_a_pop_bounded() {
                run("a_push_meets_a_pop_bounded", Some(3), super::a_push_meets_a_pop::<$heap>);
            }

            #[test]
            fn two_pop_bounded() {
                run("two_pop_bounded", Some(3), super::two_pop::<$heap>);
            }

            #[test]
            fn nodes_are_used_again_bounded() {
                run("nodes_are_used_again_bounded", Some(3), super::nodes_are_used_again::<$heap>);
            }

            #[test]
            fn free_nodes_wander_bounded() {
                run("free_nodes_wander_bounded", Some(3), super::free_nodes_wander::<$heap>);
            }

            #[test]
            fn three_threads_bounded() {
                run("three_threads_bounded", Some(2), super::three_threads::<$heap>);
            }
        }
    )+};
}

models! {
    herlihy_heap: HerlihyHeap<u64, Value>, 40;
    locked_heap: LockedHeap<u64, Value, TestAndSet>, 20;
    locked_skew_heap: LockedSkewHeap<u64, Value, TestAndSet>, 20;
}

/// The smallest key, looked at while another thread is in its operation.
fn a_look_meets(
    name: &str,
    before: &'static [u64],
    seen: &'static [Option<u64>],
    other: fn(&HerlihyHeap<u64, Value>),
) {
    explore(&format!("herlihy_heap::{name}"), Model::new().objects(40), move || {
        let heap = <HerlihyHeap<u64, Value> as Heap>::with(before);
        let other = beside(&heap, other);
        assert!(seen.contains(&heap.min_key()));
        other.join().unwrap();
    });
}

#[test]
fn a_look_meets_a_push() {
    a_look_meets("a_look_meets_a_push", &[], &[None, Some(1)], |heap| push(heap, 1));
}

#[test]
fn a_look_meets_a_pop() {
    a_look_meets("a_look_meets_a_pop", &[2, 1], &[Some(1), Some(2)], |heap| {
        assert_eq!(pop(heap), Some(1));
    });
}

/// The node that is looked at comes back with another key.
#[test]
fn a_look_meets_used_nodes() {
    a_look_meets("a_look_meets_used_nodes", &[1], &[None, Some(1), Some(2)], |heap| {
        assert_eq!(pop(heap), Some(1));
        push(heap, 2);
    });
}
