//! Every structure of the crate, by name, with two operations: one that puts in and one that takes out. A structure is a line in [`all`].
//!
//! The tests that go over all structures, here and in the simulated twin, include this file; `crate::lockfree` is the crate, or the twin.

use std::sync::Arc;

use crate::lockfree::{ConcurrentQueue, ConcurrentStack, Counter, PriorityQueue, Progress, stack};

/// A structure with numbers in it.
pub(crate) trait Subject: Send + Sync {
    /// Puts `value` in; `false` if there was no room.
    fn put(&self, value: u64) -> bool;
    /// Takes one out.
    fn take(&self) -> Option<u64>;
    /// Looks without changing anything: whether it is empty.
    fn look(&self) -> bool;
}

/// One of the structures.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What it says of itself.
    pub(crate) progress: Progress,
    pub(crate) make: fn() -> Arc<dyn Subject>,
}

// A test may go over some kinds only.
struct OfStack<S>(S);

impl<S: ConcurrentStack<Item = u64> + Send + Sync> Subject for OfStack<S> {
    fn put(&self, value: u64) -> bool {
        self.0.push(value);
        true
    }
    fn take(&self) -> Option<u64> {
        self.0.pop()
    }
    fn look(&self) -> bool {
        self.0.is_empty()
    }
}

struct OfQueue<Q>(Q);

impl<Q: ConcurrentQueue<Item = u64> + Send + Sync> Subject for OfQueue<Q> {
    fn put(&self, value: u64) -> bool {
        self.0.try_push(value).is_ok()
    }
    fn take(&self) -> Option<u64> {
        self.0.pop()
    }
    fn look(&self) -> bool {
        self.0.is_empty()
    }
}

struct OfHeap<H>(H);

impl<H: PriorityQueue<Key = u64, Value = u64> + Send + Sync> Subject for OfHeap<H> {
    fn put(&self, value: u64) -> bool {
        // Not in the order of their coming.
        self.0.push(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32, value);
        true
    }
    fn take(&self) -> Option<u64> {
        self.0.pop_min().map(|(_, value)| value)
    }
    fn look(&self) -> bool {
        self.0.is_empty()
    }
}

struct OfCounter<C>(C);

impl<C: Counter + Send + Sync> Subject for OfCounter<C> {
    fn put(&self, _: u64) -> bool {
        self.0.increment();
        true
    }
    fn take(&self) -> Option<u64> {
        self.0.add(2);
        None
    }
    fn look(&self) -> bool {
        self.0.get() == 0
    }
}

macro_rules! case {
    ($name:literal, stack $type:ty = $new:expr) => {
        case!($name, <$type as ConcurrentStack>::PROGRESS, OfStack::<$type>($new))
    };
    ($name:literal, queue $type:ty = $new:expr) => {
        case!($name, <$type as ConcurrentQueue>::PROGRESS, OfQueue::<$type>($new))
    };
    ($name:literal, heap $type:ty = $new:expr) => {
        case!($name, <$type as PriorityQueue>::PROGRESS, OfHeap::<$type>($new))
    };
    ($name:literal, counter $type:ty = $new:expr) => {
        case!($name, <$type as Counter>::PROGRESS, OfCounter::<$type>($new))
    };
    ($name:literal, $progress:expr, $made:expr) => {
        Case { name: $name, progress: $progress, make: || Arc::new($made) }
    };
}

/// The structures. Bounded ones have room for 4: full after the four that the tests put in.
pub(crate) fn all() -> Vec<Case> {
    vec![case!("LockedStack", stack stack::LockedStack<u64> = stack::LockedStack::new())]
}
