//! Faults of other people's concurrent structures, each as a test named by its advisory
//! (<https://rustsec.org>), over all structures of this crate.
//!
//! - 2018-0009, crossbeam: a popped value is dropped again by the reclamation. Here: exactly one
//!   drop, with reclamation driven on.
//! - 2022-0019, 2022-0020, 2022-0021, crossbeam-channel, crossbeam, crossbeam-queue: `mem::zeroed`
//!   for `T`. Here: values that are never zero, and of every alignment.
//! - 2022-0029, crossbeam: orderings too weak in the Michael-Scott queue. Here: the data that a
//!   value points to is there when the value is; the models decide.
//! - 2021-0093, crossbeam-deque: a task taken twice, another lost. Here: two takers at a length of
//!   one, and each value comes out once.
//! - 2020-0052, crossbeam-channel: memory given back with another capacity. Here: an allocator that
//!   ends the process.
//! - 2025-0024, crossbeam-channel: a block freed twice in `drop`. Here: dropped at every length,
//!   around the ends of blocks.
//! - 2026-0204, crossbeam-epoch: formatting followed a null pointer. Here: every handle is
//!   formatted, empty and after its end.
//! - 2026-0205, scc: a comparison panics, and a value is freed twice. Here: each comparison of a
//!   heap panics once.
//! - 2026-0254, 2026-0255, 2026-0256, 2025-0054, circular-buffer, sized-chunks, array-queue: a drop
//!   panics before the indices are right. Here: `drops.rs`, and a structure that goes on after the
//!   panic.
//! - 2026-0221, 2020-0088, 2020-0099, 2020-0106, 2020-0111, 2020-0116, 2020-0117, 2020-0133,
//!   2020-0137, 2020-0142, 2020-0143, 2021-0113, 2025-0045, event-listener, may_queue, multiqueue
//!   and ten more: `Send` or `Sync` without a bound. Here: for every structure and handle, at
//!   compile time.
//! - 2020-0150, 2026-0142, 2026-0143, 2026-0152, disrustor, mutringbuf, oneringbuf: a handle that
//!   can be cloned owns the storage. Here: no owner is `Clone`, at compile time.
//! - 2025-0023, tokio: values cloned by several threads at once with only `T: Send`. Here: a
//!   structure that copies is `Sync` only if its values are, at compile time; `copied.rs` has
//!   clones that panic.
//! - 2022-0006, thread_local: threads' slots read while they are made. Here: threads come and go
//!   while others take out.
//!
//! Advisories on other things than structures: 2026-0005 (oneshot), 2020-0151 and 2019-0020
//! (generator), 2021-0072 (tokio) and 2024-0005 (threadalone) are tests of the same name in
//! `crates/activations/tests/advisories.rs`. Nothing here is a future, runs a closure on another
//! stack, or asks which thread drops a value. A thread that pops a value or drops a structure drops
//! values that others pushed. So a structure that others can have demands `Send`, as the rows above
//! check.
//!
//! Two more: crossbeam#1146, a large value that overflows the stack, and lists that are dropped by
//! recursion.

use stanchion_lockfree as lockfree;

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/structures.rs"]
mod structures;
#[path = "common/values.rs"]
mod values;

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, MutexGuard};
use std::thread;

use lockfree::heap::{LockedArrayHeap, LockedHeap};
use lockfree::queue::{LockedQueue, TwoLockQueue};
use lockfree::stack::{LockedStack, TreiberStack};
use lockfree::{Blocking, Herlihy, PriorityQueue, counter, heap, iter, memory, queue, stack};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use structures::{Family, Shared, all_structures, each};
use values::{Ledger, Value};

#[global_allocator]
static ALLOCATOR: allocator::Checked = allocator::Checked;

#[test]
fn rustsec_2018_0009_the_reclamation_drops_no_value() {
    const TAKERS: u64 = 3;
    const EACH: u64 = 4_000;
    fn test<F: Family>() {
        let ledger = Ledger::new((TAKERS * EACH) as usize);
        let structure = F::make::<Value>();
        let together = Barrier::new(TAKERS as usize);
        let taken: Vec<Value> = thread::scope(|scope| {
            let threads: Vec<_> = (0..TAKERS)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        let mut taken = Vec::new();
                        for number in 0..EACH {
                            let _ = structure.put(number, ledger.value(number));
                            taken.extend(structure.take());
                        }
                        taken
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        // Nodes that were retired meanwhile are freed now, and the others below. The taken values
        // still live.
        drop(structure);
        for value in &taken {
            value.number();
        }
        assert_eq!(ledger.made() - ledger.dropped(), taken.len());
        drop(taken);
        ledger.assert_settled(F::NAME);
    }
    each!(test);
}

#[test]
fn rustsec_2022_0019_2022_0020_2022_0021_values_that_are_never_zero() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(64))]
    struct Aligned(u8);

    /// Zero in no part.
    type Nowhere = (&'static str, Box<u64>, NonZeroUsize, fn(u64) -> u64, (char, bool));

    fn with<F: Family, T: Send + Clone + PartialEq + Debug + 'static>(values: &[T]) {
        let structure = F::make::<T>();
        for _ in 0..40 {
            for (key, value) in values.iter().enumerate() {
                assert!(structure.put(key as u64, value.clone()).is_ok());
            }
            for _ in values {
                let value = structure.take().expect("as many as were put in");
                assert!(values.contains(&value), "{value:?}");
                assert!((&raw const value).is_aligned());
            }
            assert!(structure.take().is_none());
        }
        structure.put(0, values[0].clone()).expect("there is room");
        assert_eq!(structure.into_some(9).len(), 1);
    }
    fn test<F: Family>() {
        let one: Nowhere = ("", Box::new(1), NonZeroUsize::MIN, u64::swap_bytes, ('a', true));
        let two: Nowhere = ("2", Box::new(2), NonZeroUsize::MAX, u64::reverse_bits, ('b', false));
        with::<F, Nowhere>(&[one, two]);
        with::<F, Option<Box<u64>>>(&[None, Some(Box::new(2))]);
        with::<F, ()>(&[(), ()]);
        with::<F, Aligned>(&[Aligned(1), Aligned(2), Aligned(3)]);
        with::<F, [u8; 3]>(&[[1, 2, 3], [4, 5, 6]]);
    }
    each!(test);
}

/// Weak orderings are found by the models; this is the shape in which they were noticed.
#[test]
fn rustsec_2022_0029_what_a_value_points_to_has_been_written() {
    fn test<F: Family>() {
        let structure = F::make::<Box<[u64; 16]>>();
        thread::scope(|scope| {
            for thread in 0..3_u64 {
                let structure = &structure;
                scope.spawn(move || {
                    for number in 0..4_000 {
                        let value = thread << 32 | number;
                        let _ = structure.put(number % 3, Box::new([value; 16]));
                        if let Some(taken) = structure.take() {
                            assert!(taken.iter().all(|part| *part == taken[0]), "{taken:x?}");
                        }
                    }
                });
            }
        });
    }
    each!(test);
}

#[test]
fn rustsec_2021_0093_two_takers_and_one_value_at_a_time() {
    const ROUNDS: u64 = 4_000;
    fn test<F: Family>() {
        let structure = F::make::<u64>();
        let (taken, count) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while count.load(Relaxed) < ROUNDS {
                        match structure.take() {
                            Some(value) => {
                                taken.fetch_add(value * value, Relaxed);
                                count.fetch_add(1, Relaxed);
                            }
                            None => thread::yield_now(),
                        }
                    }
                });
            }
            for value in 0..ROUNDS {
                structure.put(value, value).expect("it is empty, or as good as");
                while count.load(Relaxed) <= value {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(count.load(Relaxed), ROUNDS, "{}", F::NAME);
        assert_eq!(taken.load(Relaxed), (0..ROUNDS).map(|value| value * value).sum::<u64>());
        assert!(structure.look());
    }
    each!(test);
}

/// The allocator of this file looks at every layout; here are capacities that are no powers of two.
#[test]
fn rustsec_2020_0052_memory_goes_back_with_the_capacity_it_came_with() {
    for capacity in [0, 1, 2, 3, 5, 31, 33, 100] {
        let count = capacity as u64 * 2 + 1;
        fn stack<S: lockfree::ConcurrentStack<Item = Box<u64>>>(stack: S, count: u64) {
            (0..count).for_each(|value| stack.push(Box::new(value)));
            (0..count / 2).for_each(|_| _ = stack.pop());
        }
        fn queue<Q: lockfree::ConcurrentQueue<Item = Box<u64>>>(queue: Q, count: u64) {
            (0..count).for_each(|value| _ = queue.try_push(Box::new(value)));
            (0..count / 2).for_each(|_| _ = queue.pop());
        }
        fn heap<H: PriorityQueue<Key = u64, Value = Box<u64>>>(heap: H, count: u64) {
            (0..count).for_each(|value| heap.push(value % 7, Box::new(value)));
            (0..count / 2).for_each(|_| _ = heap.pop_min());
        }
        stack(LockedStack::with_capacity(capacity), count);
        stack(TreiberStack::with_capacity_and_memory(capacity, memory::Counted), count);
        stack(TreiberStack::with_capacity_and_memory(capacity, memory::Hazard), count);
        queue(LockedQueue::with_capacity(capacity), count);
        queue(TwoLockQueue::with_capacity(capacity), count);
        queue(queue::MichaelScottQueue::with_capacity_and_memory(capacity, memory::Counted), count);
        queue(queue::MichaelScottQueue::with_capacity_and_memory(capacity, memory::Hazard), count);
        queue(
            queue::PrakashLeeJohnsonQueue::with_capacity_and_memory(capacity, memory::Counted),
            count,
        );
        heap(LockedHeap::with_capacity(capacity), count);
        heap(LockedArrayHeap::with_capacity(capacity), count);
    }
}

#[test]
fn rustsec_2025_0024_dropped_at_every_length() {
    fn test<F: Family>() {
        for put in (0..70_u64).chain([127, 128, 129]) {
            for taken in [0, 1, put / 2, put.saturating_sub(1), put] {
                let ledger = Ledger::new(200);
                let structure = F::make::<Value>();
                for number in 0..put {
                    let _ = structure.put(number, ledger.value(number));
                }
                (0..taken).for_each(|_| drop(structure.take()));
                drop(structure);
                ledger.assert_settled(F::NAME);
            }
        }
    }
    each!(test);
}

#[test]
fn rustsec_2026_0204_every_handle_can_be_formatted() {
    fn shown(value: &dyn Debug) -> usize {
        format!("{value:?}{value:#?}").len()
    }
    fn test<F: Family>() {
        let structure = F::make::<Opaque>();
        assert!(shown(&structure) > 0);
        for _ in 0..4 {
            let _ = structure.put(0, Opaque);
            assert!(shown(&structure) > 0);
        }
        while structure.take().is_some() {
            assert!(shown(&structure) > 0);
        }
    }
    /// It cannot be formatted itself.
    struct Opaque;

    each!(test);
    let stack = TreiberStack::<_>::from_iter([1, 2]);
    let mut all = stack.pop_all();
    assert!(shown(&all) > 0);
    assert_eq!(all.by_ref().count(), 2);
    assert!(shown(&all) > 0, "also when it has ended");
    drop(all);
    let mut drain = stack.drain();
    assert!(shown(&drain) > 0);
    assert_eq!(drain.next(), None);
    assert!(shown(&drain) > 0);
    let mut items = stack.into_iter();
    assert_eq!(items.next(), None);
    assert!(shown(&items) > 0);
    assert!(shown(&lockfree::Full(Opaque)) > 0);
}

thread_local! {
    /// The number of comparisons that are left until one panics.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A key with a comparison that may panic.
#[derive(PartialEq, Eq)]
struct Key(u64);

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        LEFT.set(LEFT.get() - 1);
        if LEFT.get() == 0 {
            LEFT.set(usize::MAX);
            std::panic::resume_unwind(Box::new("a comparison breaks"));
        }
        self.0.cmp(&other.0)
    }
}

#[test]
fn rustsec_2026_0205_a_comparison_that_panics_costs_no_value() {
    fn test<H: PriorityQueue<Key = Key, Value = Value>>(new: fn() -> H, name: &str) {
        let mut broken = 0;
        for left in 1..400 {
            let ledger = Ledger::new(40);
            let heap = new();
            LEFT.set(left);
            let mut panics = 0;
            for number in 0..40 {
                let value = ledger.value(number);
                let pushed =
                    catch_unwind(AssertUnwindSafe(|| heap.push(Key(number * 29 % 41), value)));
                panics += usize::from(pushed.is_err());
            }
            let mut popped = 0;
            loop {
                match catch_unwind(AssertUnwindSafe(|| heap.pop_min())) {
                    Ok(None) => break,
                    Ok(Some(_)) => popped += 1,
                    Err(_) => panics += 1,
                }
            }
            LEFT.set(usize::MAX);
            assert!(popped >= 40 - panics, "{name}: {popped} came out after {panics} panics");
            assert!(panics <= 1);
            broken += panics;
            drop(heap);
            ledger.assert_settled(name);
        }
        assert!(broken > 100, "{name}: only {broken} comparisons broke");
    }
    test(LockedHeap::<Key, Value>::new, "LockedHeap");
    test(LockedArrayHeap::<Key, Value>::new, "LockedArrayHeap");
}

#[test]
fn rustsec_2025_0054_2026_0254_2026_0255_2026_0256_a_drop_that_panics_leaves_the_rest_in_order() {
    fn test<F: Family>() {
        let ledger = Ledger::new(8);
        let structure = F::make::<Value>();
        for number in 0..4 {
            assert!(structure.put(number, ledger.value_that(number, number % 2 == 0)).is_ok());
        }
        // The values break while the vector is dropped, outside. The structure must not notice.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(structure.drained(2))));
        assert!(dropped.is_err());
        assert_eq!(ledger.dropped(), 2);
        for number in 4..6 {
            assert!(structure.put(number, ledger.value(number)).is_ok());
        }
        let mut left = 0;
        loop {
            match catch_unwind(AssertUnwindSafe(|| structure.take().is_some())) {
                Ok(false) => break,
                Ok(true) | Err(_) => left += 1,
            }
        }
        assert_eq!(left, 4);
        drop(structure);
        ledger.assert_settled(F::NAME);
    }
    each!(test);
}

/// RUSTSEC-2026-0221, -2020-0088, -0099, -0106, -0111, -0116, -0117, -0133, -0137, -0142, -0143,
/// -2021-0113, -2025-0045, and those about `Clone`: -2020-0150, -2026-0142, -0143, -0152. At
/// compile time.
macro_rules! bounds {
    ([$($kind:tt)*] $({ $name:ident: $type:ty, $($rest:tt)* })+) => {$(
        const _: () = {
            type T = Cell<u8>;
            // A value is with one thread at a time: it need not be `Sync`.
            assert_impl_all!($type: Send, Sync);
            assert_not_impl_any!($type: Clone, Copy);
        };
        const _: () = {
            type T = Rc<u8>;
            assert_not_impl_any!($type: Send, Sync);
            assert_not_impl_any!(iter::Drain<'static, $type>: Send, Sync);
            assert_not_impl_any!(iter::IntoIter<$type>: Send, Sync);
        };
        const _: () = {
            // `Sync`, but of the thread that has it.
            type T = MutexGuard<'static, u8>;
            assert_not_impl_any!($type: Send, Sync);
        };
        const _: () = {
            type T = *mut u8;
            assert_not_impl_any!($type: Send, Sync);
        };
    )+};
}
all_structures!(bounds);

assert_not_impl_any!(stack::PopAll<'static, Rc<u8>, memory::Hazard>: Send, Sync);
assert_not_impl_any!(stack::PopAll<'static, Rc<u8>, memory::Counted>: Send, Sync);
assert_not_impl_any!(Blocking<LockedQueue<Rc<u8>>>: Send, Sync);
assert_impl_all!(Blocking<LockedQueue<Cell<u8>>>: Send, Sync);
assert_not_impl_any!(Blocking<LockedQueue<u8>>: Clone);
assert_not_impl_any!(heap::MultiQueue<u8, Rc<u8>>: Send, Sync);
assert_not_impl_any!(heap::MultiQueue<Rc<u8>, u8>: Send, Sync);
assert_impl_all!(heap::MultiQueue<Cell<u8>, Cell<u8>>: Send, Sync);
assert_not_impl_any!(heap::MultiQueue<u8, u8>: Clone);
// A counter is as `Sync` as its lock.
assert_impl_all!(counter::LockedCounter: Send, Sync);

/// RUSTSEC-2025-0023: several threads clone the same value. At compile time.
const _: () = {
    assert_not_impl_any!(Herlihy<Rc<u8>>: Send, Sync);
    assert_not_impl_any!(Herlihy<Cell<u8>>: Sync);
    assert_impl_all!(Herlihy<Cell<u8>>: Send);
    assert_not_impl_any!(Herlihy<u8>: Clone);
    assert_not_impl_any!(heap::CopiedHeap<u8, Rc<u8>>: Send, Sync);
    assert_not_impl_any!(heap::CopiedHeap<u8, Cell<u8>>: Sync);
    assert_not_impl_any!(heap::CopiedHeap<Cell<u8>, u8>: Sync);
    assert_impl_all!(heap::CopiedHeap<u8, u8>: Send, Sync);
    assert_not_impl_any!(heap::CopiedHeap<u8, u8>: Clone);
};

// The key is looked at by all threads, and is dropped by any.
assert_not_impl_any!(heap::LockedHeap<Rc<u8>, u8>: Send, Sync);

/// Threads announce the nodes that they look at in slots of their own. Other threads read the slots
/// while threads begin and end.
#[test]
fn rustsec_2022_0006_threads_come_and_go() {
    fn test<F: Family>() {
        let ledger = Ledger::new(3 * 40 * 30);
        let structure = F::make::<Value>();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        let (structure, ledger) = (&structure, &ledger);
                        thread::scope(|scope| {
                            scope.spawn(move || {
                                for number in 0..30 {
                                    let _ = structure.put(number, ledger.value(number));
                                    drop(structure.take());
                                }
                            });
                        });
                    }
                });
            }
        });
        drop(structure);
        ledger.assert_settled(F::NAME);
    }
    each!(test);
}

/// On a stack of so many bytes.
fn on_a_stack_of(bytes: usize, body: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(bytes).spawn_scoped(scope, body).unwrap();
        small.join().unwrap();
    });
}

/// Tests crossbeam#1146: a block of many values was made on the stack. 31 of these values would not
/// fit there, a few copies of one do.
///
/// `FaaArrayQueue` is left out: its docs say that its segments pass through the stack.
#[test]
fn crossbeam_1146_a_large_value_does_not_overflow_the_stack() {
    type Large = [u64; 16_384];
    fn test<F: Family>() {
        if F::NAME == "FaaArrayQueue" {
            return;
        }
        on_a_stack_of(3 << 20, || {
            let structure = F::make::<Large>();
            for _ in 0..2 {
                assert!(structure.put(0, [7; 16_384]).is_ok());
                assert_eq!(structure.take().map(|value| value[16_383]), Some(7));
            }
            assert!(structure.put(1, [8; 16_384]).is_ok());
        });
    }
    each!(test);
}

/// A frame for each node would need some megabytes.
#[test]
fn a_long_list_is_dropped_without_recursion() {
    fn test<F: Family>() {
        for descending in [false, true] {
            on_a_stack_of(128 << 10, || {
                let structure = F::make::<Box<u64>>();
                for number in 0..50_000 {
                    let key = if descending { 50_000 - number } else { number };
                    if structure.put(key, Box::new(number)).is_err() {
                        break;
                    }
                }
                drop(structure);
            });
        }
    }
    each!(test);
    on_a_stack_of(128 << 10, || {
        let stack = TreiberStack::<_>::from_iter(0..50_000);
        drop(stack.pop_all());
        assert!(stack.is_empty());
    });
}
