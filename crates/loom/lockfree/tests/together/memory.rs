//! Models of the memory alone, by its own trait.
//!
//! Each model, its threads, its bound, and the fault that it would find:
//!
//! - `a_late_reader_with_…`: 2 threads, 2 preemptions: a thread looks at a node that is taken out
//!   meanwhile, and reads freed memory or follows a wrong link.
//! - `a_hazard_is_seen_bounded`: 2, 3: a scan misses an announcement and frees the node, or lets it
//!   be used again too early.
//! - `a_reader_…has_read_before_the_next_use_bounded`: 2, 3: the next use of a node writes to it
//!   while it is still read.
//! - `nested_operations_of_two_threads_bounded`: 2, 2: two operations of one thread, or of two
//!   without an index, take one record.
//! - `two_threads_allocate_and_discard_…`: 2, none; 3 with the free list alone: two own one node.
//! - `two_threads_keep_nodes_bounded`: 2, 2: two own one node that one of them has kept.
//!
//! With counts a thread keeps the node that it gave back last. `…_in_a_free_list…` are stores in
//! which no thread does: in a model, those with a capacity of 2.
//!
//! A thread writes to its own nodes in checked cells, so that a node that it owns too early is
//! found.

use stanchion_lockfree_loom::memory::{Counted, Hazard, Link, Memory, Operation, Pointer, Store};
use stanchion_machine::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A structure with one link, which is where a node can be found.
struct Place<M: Memory> {
    /// The link to the only node that can be found. Written by every thread.
    link: <M::Store<u32> as Store<u32>>::Link,
    /// The memory of the nodes.
    store: M::Store<u32>,
}

// SAFETY: links and stores are made to be shared; values are plain numbers.
unsafe impl<M: Memory> Send for Place<M> {}
// SAFETY: as above.
unsafe impl<M: Memory> Sync for Place<M> {}

impl<M: Memory> Place<M> {
    /// With a node behind the link, and another behind that.
    fn with_two() -> Arc<Self> {
        Self::with_two_of(Store::NEW)
    }

    fn with_two_of(store: M::Store<u32>) -> Arc<Self> {
        let place = Self { link: Link::NULL, store };
        {
            let operation = place.store.enter();
            let [first, second] = [1, 2].map(|value| operation.allocate(value));
            // SAFETY: the node is owned.
            unsafe { operation.next(first) }.store(second, Relaxed);
            place.link.store(first, Release);
        }
        Arc::new(place)
    }

    /// Takes out the first node, if no other thread does so at the same time, and gives it back.
    fn pop(&self) -> Option<u32> {
        let operation = self.store.enter();
        let first = operation.protect(0, &self.link);
        if first.is_null() {
            return None;
        }
        // SAFETY: protected.
        let next = unsafe { operation.next(first) }.load(Acquire);
        // SAFETY: protected.
        let slot = unsafe { operation.slot(first) };
        if !self.link.compare_exchange(first, next, AcqRel, Relaxed) {
            return None;
        }
        // SAFETY: the exchange gave it to this thread.
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above.
        unsafe { operation.retire(first, slot) };
        Some(value)
    }

    /// Puts a node in front.
    fn push(&self, value: u32) -> bool {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        let first = self.link.load(Relaxed);
        // SAFETY: the node is owned.
        unsafe { operation.next(node) }.store(first, Release);
        let pushed = self.link.compare_exchange(first, node, Release, Relaxed);
        if !pushed {
            // SAFETY: the node is owned, and no other thread has seen it.
            unsafe { operation.discard(node) };
        }
        pushed
    }

    /// Looks at the slot of the second node as a dequeuer of Michael and Scott's queue does:
    /// protected while the first is still in place.
    fn look_behind(&self) -> bool {
        let operation = self.store.enter();
        let first = operation.protect(0, &self.link);
        if first.is_null() {
            return false;
        }
        // SAFETY: protected.
        let second = unsafe { operation.next(first) }.load(Acquire);
        operation.announce(1, second);
        if self.link.load(Relaxed) != first || second.is_null() {
            return false;
        }
        // SAFETY: protected, since the first was still in place after the announcement.
        let _slot = unsafe { operation.slot(second) };
        // SAFETY: as above.
        let _third = unsafe { operation.next(second) }.load(Relaxed);
        true
    }

    /// Takes all out.
    fn empty(&self) {
        while self.pop().is_some() {}
    }
}

/// One thread looks behind the first node while the other puts another in front, takes both out and
/// gives them back. With counts the first node then has the other one behind it, which lies in a
/// segment that the looking thread may not have seen.
fn late_reader<M: Memory>(store: M::Store<u32>) {
    let place = Place::<M>::with_two_of(store);
    let other = {
        let place = place.clone();
        thread::spawn(move || place.look_behind())
    };
    assert!(place.push(3));
    assert_eq!(place.pop(), Some(3));
    assert_eq!(place.pop(), Some(1));
    other.join().unwrap();
    place.empty();
}

/// One takes a node out while the other takes it out, gives it back and uses it again.
fn seen<M: Memory>() {
    let place = Place::<M>::with_two();
    let other = {
        let place = place.clone();
        thread::spawn(move || place.pop())
    };
    let mine = place.pop();
    place.push(3);
    let others = other.join().unwrap();
    assert!(mine.is_some() || others.is_some());
    assert_ne!(mine, others);
    place.empty();
}

/// One thread reads the values of two nodes under one hazard. The other takes one of them away, the
/// first or the last, and uses it again as soon as it can.
///
/// No thread takes a value out here, so that the reads and the next write of the cell have only the
/// hazard between them.
fn read<M: Memory>(contested_first: bool) {
    let place = Place::<M>::with_two();
    let elsewhere = Place::<M>::with_two();
    let reader = {
        let (place, elsewhere) = (place.clone(), elsewhere);
        thread::spawn(move || {
            let operation = place.store.enter();
            let links = [&place.link, &elsewhere.link];
            for link in if contested_first { links } else { [links[1], links[0]] } {
                let node = operation.protect(0, link);
                if !node.is_null() {
                    // SAFETY: protected.
                    let slot = unsafe { operation.slot(node) };
                    // SAFETY: it is protected, the value is a plain number, and no other thread
                    // takes it.
                    assert_eq!(unsafe { operation.take(slot) }, 1);
                }
            }
        })
    };
    {
        let operation = place.store.enter();
        let first = place.link.load(Acquire);
        let null = <M::Store<u32> as Store<u32>>::NULL;
        assert!(place.link.compare_exchange(first, null, AcqRel, Relaxed));
        // SAFETY: owned since the exchange.
        let slot = unsafe { operation.slot(first) };
        // SAFETY: as above.
        unsafe { operation.retire(first, slot) };
        // Another scan, if the first node was looked at in the last one; and two nodes, one of
        // which may be it.
        let another = operation.allocate(8);
        // SAFETY: owned.
        let slot = unsafe { operation.slot(another) };
        // SAFETY: as above.
        unsafe { operation.retire(another, slot) };
        let _used = [operation.allocate(9), operation.allocate(9)];
    }
    reader.join().unwrap();
}

/// Operations inside of operations, of two threads.
fn nested() {
    let place = Place::<Hazard>::with_two();
    let inner = |place: &Place<Hazard>| {
        let _outer = place.store.enter();
        place.pop()
    };
    let other = {
        let place = place.clone();
        thread::spawn(move || inner(&place))
    };
    let mine = inner(&place);
    let others = other.join().unwrap();
    assert!(mine.is_some() || others.is_some());
    assert_ne!(mine, others);
    place.empty();
}

/// Each writes into a node of its own and gives it back; one of the nodes has been used before.
fn allocate_and_discard<M: Memory>(store: M::Store<u32>) {
    fn once<M: Memory>(place: &Place<M>) {
        let operation = place.store.enter();
        let node = operation.allocate(7);
        // SAFETY: the node is owned.
        let slot = unsafe { operation.slot(node) };
        // SAFETY: as above.
        assert_eq!(unsafe { operation.take(slot) }, 7);
        // SAFETY: as above.
        unsafe { operation.discard(node) };
    }
    let place = Arc::new(Place::<M> { link: Link::NULL, store });
    once(&place);
    let other = {
        let place = place.clone();
        thread::spawn(move || once(&place))
    };
    once(&place);
    other.join().unwrap();
}

/// Each owns two nodes at a time, gives them back, of which it keeps one, and goes on with one that
/// it gets.
fn keep() {
    fn own(place: &Place<Counted>, count: u32) {
        let operation = place.store.enter();
        let nodes: Vec<_> = (0..count).map(|value| operation.allocate(value)).collect();
        for (value, node) in nodes.into_iter().enumerate() {
            // SAFETY: the node is owned.
            let slot = unsafe { operation.slot(node) };
            // SAFETY: as above.
            assert_eq!(unsafe { operation.take(slot) }, value as u32);
            // SAFETY: as above.
            unsafe { operation.discard(node) };
        }
    }
    let place = Arc::new(Place::<Counted> { link: Link::NULL, store: Store::NEW });
    let other = {
        let place = place.clone();
        thread::spawn(move || {
            own(&place, 2);
            own(&place, 1);
        })
    };
    own(&place, 2);
    own(&place, 1);
    other.join().unwrap();
    own(&place, 2);
}

/// One test: unbounded, or with a bound of preemptions.
macro_rules! models {
    ($($name:ident: $body:expr $(, $bound:expr)?;)+) => {$(
        #[test]
        fn $name() {
            let model = Model::new()$(.preemptions($bound))?;
            explore(stringify!($name), model, $body);
        }
    )+};
}

models! {
    a_late_reader_with_counts_bounded: || late_reader::<Counted>(Store::NEW), 2;
    a_late_reader_in_a_free_list_bounded: || late_reader::<Counted>(Store::with_capacity(2)), 2;
    a_late_reader_with_hazards_bounded: || late_reader::<Hazard>(Store::NEW), 2;
    a_hazard_is_seen_bounded: seen::<Hazard>, 3;
    a_reader_has_read_before_the_next_use_bounded: || read::<Hazard>(true), 3;
    a_last_reader_has_read_before_the_next_use_bounded: || read::<Hazard>(false), 3;
    nested_operations_of_two_threads_bounded: nested, 2;
    two_threads_allocate_and_discard_with_counts: || allocate_and_discard::<Counted>(Store::NEW);
    two_threads_allocate_and_discard_in_a_free_list_bounded: || allocate_and_discard::<Counted>(Store::with_capacity(2)), 3;
    two_threads_allocate_and_discard_with_hazards: || allocate_and_discard::<Hazard>(Store::NEW);
    two_threads_keep_nodes_bounded: keep, 2;
}
