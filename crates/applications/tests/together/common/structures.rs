//! The simplest structures with the traits of `lockfree`: the tests are about the programs above
//! them.

use parking_lot::Mutex;
use stanchion_lockfree::{
    ConcurrentQueue, ConcurrentStack, Counter, Full, PriorityQueue, Progress,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A stack in a vector.
pub(crate) struct Stack<T>(Mutex<Vec<T>>);

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ConcurrentStack for Stack<T> {
    type Item = T;
    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, value: T) {
        self.0.lock().push(value);
    }

    fn pop(&self) -> Option<T> {
        self.0.lock().pop()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// A queue, with room for so many.
pub(crate) struct Queue<T> {
    /// The values, the oldest first.
    values: Mutex<VecDeque<T>>,
    /// The most values.
    room: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(room: usize) -> Self {
        Self { values: Mutex::default(), room }
    }
}

impl<T> ConcurrentQueue for Queue<T> {
    type Item = T;
    const PROGRESS: Progress = Progress::Blocking;

    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let mut values = self.values.lock();
        if values.len() == self.room {
            return Err(Full(value));
        }
        values.push_back(value);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        self.values.lock().pop_front()
    }

    fn is_empty(&self) -> bool {
        self.values.lock().is_empty()
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.room)
    }
}

/// A heap: those with the same key come out last in, first out.
pub(crate) struct Heap<T>(Mutex<BTreeMap<(u64, Reverse<u64>), T>>);

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PriorityQueue for Heap<T> {
    type Key = u64;
    type Value = T;
    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, key: u64, value: T) {
        static PUSHED: AtomicU64 = AtomicU64::new(0);
        self.0.lock().insert((key, Reverse(PUSHED.fetch_add(1, Relaxed))), value);
    }

    fn pop_min(&self) -> Option<(u64, T)> {
        let ((key, _), value) = self.0.lock().pop_first()?;
        Some((key, value))
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// A counter.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Counter for Count {
    const PROGRESS: Progress = Progress::WaitFree;

    fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
