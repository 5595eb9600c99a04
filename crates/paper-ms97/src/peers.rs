//! The structures of other crates, as further rows on this computer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crossbeam_queue::{ArrayQueue, SegQueue};
use parking_lot::Mutex;

use super::grid::Kind;
use super::real::{Row, Subject};

/// Makes `Subject` from a push and a pop.
macro_rules! peer {
    ($peer:ident: $of:ty = $make:expr; push($this:ident, $key:ident) $push:expr; pop $pop:expr) => {
        struct $peer($of);

        impl Subject for $peer {
            fn turn(&self, $key: u64, rest: &mut dyn FnMut()) {
                let $this = &self.0;
                assert!($push, "there is always room");
                rest();
                assert!($pop, "more was popped than pushed");
                rest();
            }
        }

        impl $peer {
            const fn row(name: &'static str, kind: Kind) -> Row {
                Row {
                    name,
                    kind,
                    make: |entries| {
                        let peer = Self($make);
                        for $key in 0..entries as u64 {
                            let $this = &peer.0;
                            assert!($push, "there is always room");
                        }
                        Box::new(peer)
                    },
                }
            }
        }
    };
}

/// The capacity of bounded structures: more than all processes hold at a time.
const ROOM: usize = 1_024;

peer! { Seg: SegQueue<u64> = SegQueue::new();
push(queue, key) { queue.push(key); true }; pop queue.pop().is_some() }
peer! { Array: ArrayQueue<u64> = ArrayQueue::new(ROOM);
push(queue, key) queue.push(key).is_ok(); pop queue.pop().is_some() }
peer! { Concurrent: concurrent_queue::ConcurrentQueue<u64> = concurrent_queue::ConcurrentQueue::unbounded();
push(queue, key) queue.push(key).is_ok(); pop queue.pop().is_ok() }
peer! { SccQueue: scc::Queue<u64> = scc::Queue::default();
push(queue, key) { queue.push(key); true }; pop queue.pop().is_some() }
peer! { SccStack: scc::Stack<u64> = scc::Stack::default();
push(stack, key) { stack.push(key); true }; pop stack.pop().is_some() }
peer! { Deque: Mutex<VecDeque<u64>> = Mutex::new(VecDeque::new());
push(queue, key) { queue.lock().push_back(key); true }; pop queue.lock().pop_front().is_some() }
peer! { Vector: Mutex<Vec<u64>> = Mutex::new(Vec::new());
push(stack, key) { stack.lock().push(key); true }; pop stack.lock().pop().is_some() }
peer! { Binary: Mutex<BinaryHeap<Reverse<(u64, u64)>>> = Mutex::new(BinaryHeap::new());
push(heap, key) { heap.lock().push(Reverse((key, key))); true }; pop heap.lock().pop().is_some() }

struct Locked(Mutex<u64>);

impl Subject for Locked {
    fn turn(&self, _key: u64, rest: &mut dyn FnMut()) {
        *self.0.lock() += 1;
        rest();
    }
}

/// The queues beside figure 1. `SegQueue`, `ArrayQueue` and `concurrent-queue` take no lock, but a
/// pop waits for a push that has begun.
pub(super) const QUEUES: &[Row] = &[
    Seg::row("crossbeam SegQueue", Kind::Ordinary),
    Array::row("crossbeam ArrayQueue", Kind::Ordinary),
    Concurrent::row("concurrent-queue", Kind::Ordinary),
    SccQueue::row("scc::Queue", Kind::NonBlocking),
    Deque::row("parking_lot Mutex<VecDeque>", Kind::Ordinary),
];

/// The stacks beside figure 2.
pub(super) const STACKS: &[Row] = &[
    SccStack::row("scc::Stack", Kind::NonBlocking),
    Vector::row("parking_lot Mutex<Vec>", Kind::Ordinary),
];

/// The heaps beside figure 3.
pub(super) const HEAPS: &[Row] = &[Binary::row("parking_lot Mutex<BinaryHeap>", Kind::Ordinary)];

/// The counters beside figure 4.
pub(super) const COUNTERS: &[Row] = &[Row {
    name: "parking_lot Mutex<u64>",
    kind: Kind::Ordinary,
    make: |_| Box::new(Locked(Mutex::new(0))),
}];
