//! Litmus models: the order of two threads' calls on two objects, if nothing but the objects' own
//! accesses orders the calls. `crates/lockfree/tests/litmus.rs` runs the same shapes on the
//! processor.
//!
//! - `litmus_message_…`: a thread changes `x`, then `y`. Another looks at `y`, then at `x`. If it
//!   sees the later change, it sees the earlier one.
//! - `litmus_flag_…`: a thread changes `x` and stores a flag (Release). Another loads the flag
//!   (Acquire) and looks at `x`. If it sees the flag, it sees the change.
//! - `litmus_buffers_…`: a thread changes `x` and looks at `y`. Another changes `y` and looks at
//!   `x`. One of them sees the other's change.
//! - `litmus_independent_…`: two threads change `x` and `y`. A third looks at `x`, then at `y`, a
//!   fourth at `y`, then at `x`. These two agree on which change came first.
//!
//! An object without a lock does not promise the last two on every processor, and loom takes a
//! `SeqCst` load for weaker than it is. A caller's fence stands before the second look there.
//!
//! The objects are a selection: a structure may have several looks, and a look its own bound.
//!
//! Models that do not end without a bound have 3 preemptions, those of four threads 1. Both are
//! named `…_bounded`. Every model prints `model NAME: N executions`.

use stanchion_lockfree_loom::heap::{HerlihyHeap, LockedHeap, MultiQueue};
use stanchion_lockfree_loom::memory::{Counted, Hazard};
use stanchion_lockfree_loom::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, MichaelScottQueue, NikolaevQueue,
    PrakashLeeJohnsonQueue, SegmentedQueue, TwoLockQueue,
};
use stanchion_lockfree_loom::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};
use stanchion_lockfree_loom::{Herlihy, LinkedCell};
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering, fence};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_spin::TestAndSet;

/// An object, a call that changes it, and one that only looks unless it sees the change.
struct Litmus<S> {
    /// The name of the object in those of its models.
    name: &'static str,
    /// Makes the object.
    make: fn() -> S,
    /// Changes the object.
    change: fn(&S),
    /// Looks at the object. Returns whether it sees the change.
    sees: fn(&S) -> bool,
    /// Set if the caller has a fence between its change and its look in `buffers`.
    fenced: bool,
    /// For what does not end without a bound.
    preemptions: Option<usize>,
}

impl<S> Clone for Litmus<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Litmus<S> {}

impl<S: Send + Sync + 'static> Litmus<S> {
    fn explore(self, shape: &str, body: impl Fn() + Send + Sync + 'static) {
        self.explore_within(shape, self.preemptions, body);
    }

    fn explore_within(
        self,
        shape: &str,
        preemptions: Option<usize>,
        body: impl Fn() + Send + Sync + 'static,
    ) {
        let (bounded, model) = match preemptions {
            Some(preemptions) => ("_bounded", Model::new().preemptions(preemptions)),
            None => ("", Model::new()),
        };
        let name = format!("litmus_{shape}_{}{bounded}", self.name);
        println!("model {name}: {}", model.objects(60).check(body));
    }

    fn both(self) -> Arc<[S; 2]> {
        Arc::new([(self.make)(), (self.make)()])
    }

    fn between(self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        }
    }

    fn message(self) {
        self.explore("message", move || {
            let objects = self.both();
            let writer = {
                let objects = objects.clone();
                thread::spawn(move || {
                    (self.change)(&objects[0]);
                    (self.change)(&objects[1]);
                })
            };
            let later = (self.sees)(&objects[1]);
            let earlier = (self.sees)(&objects[0]);
            writer.join().unwrap();
            assert!(earlier || !later, "the later change was seen, and the earlier one was not");
        });
    }

    fn flag(self) {
        self.explore("flag", move || {
            let shared = Arc::new(((self.make)(), AtomicBool::fresh(false)));
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    (self.change)(&shared.0);
                    shared.1.store(true, Ordering::Release);
                })
            };
            let flag = shared.1.load(Ordering::Acquire);
            let seen = (self.sees)(&shared.0);
            writer.join().unwrap();
            assert!(seen || !flag, "the flag was seen, and the change before it was not");
        });
    }

    fn buffers(self) {
        self.explore("buffers", move || {
            let objects = self.both();
            let step = move |mine: &S, other: &S| {
                (self.change)(mine);
                self.between();
                (self.sees)(other)
            };
            let other = {
                let objects = objects.clone();
                thread::spawn(move || step(&objects[1], &objects[0]))
            };
            let first = step(&objects[0], &objects[1]);
            let second = other.join().unwrap();
            assert!(first || second, "neither saw the other's change");
        });
    }

    fn independent(self) {
        self.explore_within("independent", Some(1), move || {
            let objects = self.both();
            for at in 0..2 {
                let objects = objects.clone();
                thread::spawn(move || (self.change)(&objects[at]));
            }
            let looks = move |objects: &[S; 2], at: usize| {
                let first = (self.sees)(&objects[at]);
                self.between();
                // Only one of the two outcomes of the first look says anything about the second.
                first && !(self.sees)(&objects[1 - at])
            };
            let other = {
                let objects = objects.clone();
                thread::spawn(move || looks(&objects, 1))
            };
            let only_x = looks(&objects, 0);
            let only_y = other.join().unwrap();
            assert!(!only_x || !only_y, "one thread saw only the one change, one only the other");
        });
    }
}

macro_rules! litmus {
    ($($test:ident: $type:ty = $new:expr, $change:expr, $sees:expr, [$($word:ident)? $($bound:literal)?];)+) => {$(
        mod $test {
            use super::*;

            pub(super) fn litmus() -> Litmus<$type> {
                Litmus {
                    name: stringify!($test),
                    make: || $new,
                    change: $change,
                    sees: $sees,
                    fenced: !concat!("", $(stringify!($word))?).is_empty(),
                    preemptions: [$($bound,)?].first().copied(),
                }
            }

            #[test]
            fn message() {
                litmus().message();
            }

            #[test]
            fn flag() {
                litmus().flag();
            }

            #[test]
            fn buffers() {
                litmus().buffers();
            }
        }
    )+};
}

litmus! {
    locked_stack_is_empty: LockedStack<u32, TestAndSet> = Default::default(),
        |s| s.push(1), |s| !s.is_empty(), [];
    treiber_hazard_is_empty: TreiberStack<u32, Hazard> = TreiberStack::with_memory(Hazard),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    treiber_hazard_pop: TreiberStack<u32, Hazard> = TreiberStack::with_memory(Hazard),
        |s| s.push(1), |s| s.pop().is_some(), [fenced];
    treiber_counted_is_empty: TreiberStack<u32, Counted> = TreiberStack::with_memory(Counted),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    treiber_counted_pop: TreiberStack<u32, Counted> = TreiberStack::with_memory(Counted),
        |s| s.push(1), |s| s.pop().is_some(), [fenced];
    elimination_is_empty: EliminationStack<u32, Hazard> = EliminationStack::with_memory(Hazard),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    herlihy_stack_is_empty: HerlihyStack<u32, Counted> = HerlihyStack::with_memory(Counted),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    locked_queue_is_empty: LockedQueue<u32, TestAndSet> = Default::default(),
        |s| s.push(1), |s| !s.is_empty(), [];
    two_lock_is_empty: TwoLockQueue<u32, TestAndSet> = Default::default(),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    two_lock_pop: TwoLockQueue<u32, TestAndSet> = Default::default(),
        |s| s.push(1), |s| s.pop().is_some(), [fenced];
    segmented_is_empty: SegmentedQueue<u32> = SegmentedQueue::new(),
        |s| s.push(1), |s| !s.is_empty(), [];
    segmented_pop: SegmentedQueue<u32> = SegmentedQueue::new(),
        |s| s.push(1), |s| s.pop().is_some(), [];
    ring_is_empty: LockedRing<u32> = LockedRing::with_capacity(1),
        |s| assert!(s.try_push(1).is_ok()), |s| !s.is_empty(), [];
    ring_pop: LockedRing<u32> = LockedRing::with_capacity(1),
        |s| assert!(s.try_push(1).is_ok()), |s| s.pop().is_some(), [];
    ring_push: LockedRing<u32> = one(LockedRing::with_capacity(1)),
        |s| assert!(s.pop().is_some()), |s| s.try_push(1).is_ok(), [];
    michael_scott_is_empty: MichaelScottQueue<u32, Hazard> = MichaelScottQueue::with_memory(Hazard),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    michael_scott_pop: MichaelScottQueue<u32, Counted> = MichaelScottQueue::with_memory(Counted),
        |s| s.push(1), |s| s.pop().is_some(), [fenced 3];
    prakash_lee_johnson_is_empty: PrakashLeeJohnsonQueue<u32, Hazard> =
        PrakashLeeJohnsonQueue::with_memory(Hazard),
        |s| s.push(1), |s| !s.is_empty(), [fenced 3];
    nikolaev_is_empty: NikolaevQueue<u32> = NikolaevQueue::starting_at(1, 0, Some(1)),
        |s| assert!(s.try_push(1).is_ok()), |s| !s.is_empty(), [fenced];
    nikolaev_pop: NikolaevQueue<u32> = NikolaevQueue::starting_at(1, 0, Some(1)),
        |s| assert!(s.try_push(1).is_ok()), |s| s.pop().is_some(), [fenced];
    segments_is_empty: FaaArrayQueue<u32> = FaaArrayQueue::new(),
        |s| s.push(1), |s| !s.is_empty(), [fenced];
    segments_pop: FaaArrayQueue<u32> = FaaArrayQueue::new(),
        |s| s.push(1), |s| s.pop().is_some(), [fenced 3];
    locked_heap_is_empty: LockedHeap<u32, u32, TestAndSet> = Default::default(),
        |s| s.push(1, 1), |s| !s.is_empty(), [];
    herlihy_heap_is_empty: HerlihyHeap<u32, u32> = HerlihyHeap::with_batch(1),
        |s| s.push(1, 1), |s| !s.is_empty(), [fenced];
    multi_queue_is_empty: MultiQueue<u32, u32> = MultiQueue::with_heaps(1),
        |s| s.push(1, 1), |s| !s.is_empty(), [fenced];
    multi_queue_pop: MultiQueue<u32, u32> = MultiQueue::with_heaps(1),
        |s| s.push(1, 1), |s| s.pop_min().is_some(), [fenced];
    herlihy_get: Herlihy<u32> = Herlihy::new(0),
        |s| s.update(|n| *n += 1), |s| s.get() > 0, [fenced 3];
    linked_cell_load: LinkedCell = LinkedCell::new(0),
        |s| assert!(s.load_linked().store_conditional(1)), |s| s.load() > 0, [fenced];
    treiber_hazard_popped: TreiberStack<u32, Hazard> = TreiberStack::from_iter([1]),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced];
    treiber_counted_popped: TreiberStack<u32, Counted> = one(TreiberStack::with_memory(Counted)),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced];
    treiber_hazard_emptied: TreiberStack<u32, Hazard> = TreiberStack::from_iter([1]),
        |s| assert!(s.pop_all().next().is_some()), |s| s.is_empty(), [fenced];
    treiber_counted_emptied: TreiberStack<u32, Counted> = one(TreiberStack::with_memory(Counted)),
        |s| assert!(s.pop_all().next().is_some()), |s| s.is_empty(), [fenced];
    elimination_popped: EliminationStack<u32, Counted> =
        one(EliminationStack::with_memory(Counted)),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced];
    herlihy_stack_popped: HerlihyStack<u32, Counted> = one(HerlihyStack::with_memory(Counted)),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced 3];
    michael_scott_popped: MichaelScottQueue<u32, Counted> =
        one(MichaelScottQueue::with_memory(Counted)),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced 3];
    prakash_lee_johnson_popped: PrakashLeeJohnsonQueue<u32, Counted> =
        one(PrakashLeeJohnsonQueue::with_memory(Counted)),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced 3];
    two_lock_popped: TwoLockQueue<u32, TestAndSet> = one(Default::default()),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced];
    nikolaev_popped: NikolaevQueue<u32> = one(NikolaevQueue::starting_at(1, 0, Some(1))),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced];
    nikolaev_room: NikolaevQueue<u32> = one(NikolaevQueue::starting_at(1, 0, Some(1))),
        |s| assert!(s.pop().is_some()), |s| s.try_push(1).is_ok(), [fenced 3];
    segments_popped: FaaArrayQueue<u32> = one(FaaArrayQueue::new()),
        |s| assert!(s.pop().is_some()), |s| s.is_empty(), [fenced 3];
    herlihy_heap_popped: HerlihyHeap<u32, u32> = one(HerlihyHeap::with_batch(1)),
        |s| assert!(s.pop_min().is_some()), |s| s.is_empty(), [fenced];
    multi_queue_popped: MultiQueue<u32, u32> = one(MultiQueue::with_heaps(1)),
        |s| assert!(s.pop_min().is_some()), |s| s.is_empty(), [fenced];
}

macro_rules! independent {
    ($($test:ident,)+) => {
        mod independent {
            $(
                #[test]
                fn $test() {
                    super::$test::litmus().independent();
                }
            )+
        }
    };
}

// The objects with a look that takes nothing: a look that takes hides the change from the other
// thread.
independent! {
    locked_stack_is_empty,
    treiber_hazard_is_empty,
    treiber_counted_is_empty,
    elimination_is_empty,
    herlihy_stack_is_empty,
    locked_queue_is_empty,
    two_lock_is_empty,
    segmented_is_empty,
    ring_is_empty,
    michael_scott_is_empty,
    prakash_lee_johnson_is_empty,
    nikolaev_is_empty,
    segments_is_empty,
    locked_heap_is_empty,
    herlihy_heap_is_empty,
    multi_queue_is_empty,
    herlihy_get,
    linked_cell_load,
    treiber_hazard_popped,
    treiber_counted_popped,
    treiber_hazard_emptied,
    treiber_counted_emptied,
    elimination_popped,
    herlihy_stack_popped,
    michael_scott_popped,
    prakash_lee_johnson_popped,
    two_lock_popped,
    nikolaev_popped,
    segments_popped,
    herlihy_heap_popped,
    multi_queue_popped,
}

/// A structure that takes a value in.
trait Put {
    fn put(&self);
}

macro_rules! put {
    ($($type:ty: $push:expr;)+) => {$(
        impl Put for $type {
            fn put(&self) {
                let push: fn(&Self) = $push;
                push(self);
            }
        }
    )+};
}

put! {
    TreiberStack<u32, Counted>: |s| s.push(1);
    EliminationStack<u32, Counted>: |s| s.push(1);
    HerlihyStack<u32, Counted>: |s| s.push(1);
    MichaelScottQueue<u32, Counted>: |s| s.push(1);
    PrakashLeeJohnsonQueue<u32, Counted>: |s| s.push(1);
    TwoLockQueue<u32, TestAndSet>: |s| s.push(1);
    LockedRing<u32>: |s| assert!(s.try_push(1).is_ok());
    NikolaevQueue<u32>: |s| assert!(s.try_push(1).is_ok());
    FaaArrayQueue<u32>: |s| s.push(1);
    HerlihyHeap<u32, u32>: |s| s.push(1, 1);
    MultiQueue<u32, u32>: |s| s.push(1, 1);
}

/// With one value in it.
fn one<S: Put>(object: S) -> S {
    object.put();
    object
}
