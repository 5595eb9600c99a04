//! Tests that look at the records, which cannot be seen from outside.

use super::pace::{MOST, SCAN};
use super::*;
use std::sync::Barrier;

/// Uses up a node: as a value pushed and popped.
fn use_up(store: &HazardStore<u64>, value: u64) -> *mut Node<u64> {
    let operation = store.enter();
    let node = operation.allocate(value);
    // SAFETY: the node and its value are owned, and taken once.
    assert_eq!(unsafe { operation.take(node) }, value);
    // SAFETY: as above; the node is not touched again.
    unsafe { operation.retire(node, node) };
    node
}

/// Returns the number of nodes that wait in the records of a store that no thread uses, and the
/// number that are ready.
fn kept(store: &HazardStore<u64>) -> (usize, usize) {
    let records = store.records.iter().map(|record| &**record).chain(store.guests());
    records.fold((0, 0), |(retired, ready), record| {
        record.lists.with(|lists| {
            // SAFETY: the threads of the test are at rest.
            let lists = unsafe { &*lists };
            (retired + lists.retired.len(), ready + lists.ready.len())
        })
    })
}

/// The bound of the module's documentation, while one thread stands still in the middle of an
/// operation.
#[test]
fn garbage_is_bounded_while_a_thread_stands_still() {
    const THREADS: usize = 3;
    let store = HazardStore::<u64>::NEW;
    let link = HazardLink::NULL;
    link.store(store.enter().allocate(42), Ordering::Release);
    let (looking, over) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let operation = store.enter();
            let node = operation.protect(0, &link);
            looking.wait();
            over.wait();
            // SAFETY: the node was protected while it was linked; if it has not been used
            // again, its value is the one that was put in, a plain number.
            assert_eq!(unsafe { operation.take(node) }, 42);
        });
        looking.wait();
        let node = link.load(Ordering::Relaxed);
        link.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: it is not linked any more, and was by this thread.
        unsafe { store.enter().retire(node, node) };
        std::thread::scope(|scope| {
            for _ in 0..THREADS - 1 {
                scope.spawn(|| (0..20_000).for_each(|value| _ = use_up(&store, value)));
            }
        });
        for value in 0..20_000 {
            assert_ne!(use_up(&store, value), node, "it is still looked at");
        }
        let (retired, ready) = kept(&store);
        let threads = THREADS + 1;
        assert!(retired <= (MOST + HAZARDS * threads) * threads, "{retired} nodes wait");
        assert!(ready <= SCAN * threads, "{ready} nodes lie ready");
        over.wait();
    });
    let before = kept(&store).0;
    (0..2 * MOST as u64).for_each(|value| _ = use_up(&store, value));
    assert!(kept(&store).0 <= before + MOST);
}

#[test]
fn nodes_are_used_again() {
    let store = HazardStore::<u64>::NEW;
    let used =
        (0..10_000).map(|value| use_up(&store, value)).collect::<std::collections::HashSet<_>>();
    assert!(used.len() <= MOST + 2 * SCAN, "{} nodes for one value at a time", used.len());
}

#[test]
fn an_operation_inside_of_another_has_a_record_of_its_own() {
    let store = HazardStore::<u64>::NEW;
    let outer = store.enter();
    for _ in 0..10 {
        let [inner, innermost] = [store.enter(), store.enter()];
        assert!(!ptr::eq(outer.record, inner.record));
        assert!(!ptr::eq(inner.record, innermost.record));
    }
    assert_eq!(store.guests().count(), 2, "they are used again");
}

/// Its number is asked for last, so its destructor would be the first of all.
#[test]
fn a_thread_that_is_ending_pushes() {
    use crate::stack::TreiberStack;
    static STACK: TreiberStack<u32> = TreiberStack::new();
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            STACK.push(2);
        }
    }
    std::thread_local! {
        static LAST: Last = const { Last };
    }
    std::thread::spawn(|| {
        LAST.with(|_| ());
        STACK.push(1);
    })
    .join()
    .expect("no panic");
    let mut out: Vec<_> = STACK.drain().collect();
    out.sort_unstable();
    assert_eq!(out, [1, 2]);
}
