//! Tests of `Blocking` with real threads. A watch reports a thread that sleeps for ever.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_lockfree::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, NikolaevQueue, SegmentedQueue, TwoLockQueue,
};
use stanchion_lockfree::{Blocking, ConcurrentQueue, Full, Progress, SendTimeoutError};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Blocking<LockedQueue<u32>>: Send, Sync, Default);
assert_not_impl_any!(Blocking<LockedQueue<std::rc::Rc<u32>>>: Send, Sync);

/// Runs `body` in a thread of its own and fails if it does not end: a lost wake-up is a failure,
/// not a test that hangs.
fn in_time(body: impl FnOnce() + Send + 'static) {
    let limit = Duration::from_secs(60);
    let (done, is_done) = mpsc::channel();
    let runner = thread::spawn(move || {
        body();
        // The receiver may have given up.
        let _ = done.send(());
    });
    match is_done.recv_timeout(limit) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            runner.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("not done after {limit:?}: a thread sleeps that should have been woken")
        }
    }
}

/// Waits for something that only other threads can bring about.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// A queue of so many values. Its next pop panics if `breaks` is set.
struct Bounded<T> {
    /// The values. Written by every thread that pushes or pops.
    values: Mutex<VecDeque<T>>,
    /// The most values that it holds.
    capacity: usize,
    /// Set by the test: the next pop panics.
    breaks: Arc<AtomicBool>,
}

impl<T> Bounded<T> {
    fn new(capacity: usize) -> Self {
        Self { values: Mutex::default(), capacity, breaks: Arc::default() }
    }
}

impl<T> ConcurrentQueue for Bounded<T> {
    type Item = T;

    const PROGRESS: Progress = Progress::Blocking;

    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let mut values = self.values.lock().unwrap();
        if values.len() == self.capacity {
            return Err(Full(value));
        }
        values.push_back(value);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        let mut values = self.values.lock().unwrap_or_else(|poison| poison.into_inner());
        if !values.is_empty() && self.breaks.swap(false, Relaxed) {
            drop(values);
            panic!("as it was told to");
        }
        values.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.values.lock().unwrap().is_empty()
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.capacity)
    }
}

#[test]
fn what_was_pushed_comes_out_before_the_end() {
    let queue = Blocking::new(LockedQueue::<u32>::new());
    assert_eq!(queue.try_pop(), Err(TryRecvError::Empty));
    queue.try_push(1).unwrap();
    queue.push(2).unwrap();
    assert!(!queue.is_closed());
    assert!(queue.close());
    assert!(!queue.close());
    assert!(queue.is_closed());
    assert_eq!(queue.try_push(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(queue.push(4), Err(SendError(4)));
    assert_eq!(queue.try_pop(), Ok(1));
    assert_eq!(queue.pop(), Ok(2));
    assert_eq!(queue.try_pop(), Err(TryRecvError::Disconnected));
    assert_eq!(queue.pop(), Err(RecvError));
    assert_eq!(queue.pop_timeout(Duration::ZERO), Err(RecvTimeoutError::Disconnected));
    assert_eq!(queue.pop_deadline(Instant::now()), Err(RecvTimeoutError::Disconnected));
    let (soon, never) = (Instant::now(), Duration::MAX);
    assert_eq!(queue.push_timeout(5, never), Err(SendTimeoutError::Disconnected(5)));
    assert_eq!(queue.push_deadline(6, soon), Err(SendTimeoutError::Disconnected(6)));
    assert!(queue.is_empty());
}

#[test]
fn into_inner_keeps_the_values() {
    let queue = Blocking::from([7, 8].into_iter().collect::<LockedQueue<u32>>());
    assert_eq!(queue.capacity(), None);
    assert!(queue.into_inner().into_iter().eq([7, 8]));
}

#[test]
fn full_gives_the_value_back() {
    let queue = Blocking::new(Bounded::new(1));
    queue.try_push("one").unwrap();
    assert_eq!(queue.capacity(), Some(1));
    assert_eq!(queue.try_push("two"), Err(TrySendError::Full("two")));
    let soon = Duration::from_millis(2);
    let late = queue.push_timeout("two", soon).unwrap_err();
    assert_eq!(late, SendTimeoutError::Timeout("two"));
    assert_eq!(
        format!("{late:?}: {late}"),
        "Timeout(..): timed out waiting for room in a full channel"
    );
    let late = queue.push_deadline("two", Instant::now() + soon).unwrap_err();
    assert_eq!(late.into_inner(), "two");
}

#[test]
fn debug_shows_the_waiting_threads() {
    let queue = Blocking::new(LockedQueue::<u32>::new());
    assert_eq!(
        format!("{queue:?}"),
        "Blocking { queue: LockedQueue { len: Some(0), .. }, closed: false, waiting: 0, .. }"
    );
}

#[test]
fn everything_comes_out_once() {
    everything(LockedQueue::<usize>::new(), 3, 3);
    everything(SegmentedQueue::<usize>::new(), 3, 3);
    everything(TwoLockQueue::<usize>::new(), 3, 3);
    everything(Bounded::new(1), 1, 1);
    everything(Bounded::new(2), 3, 3);
    everything(LockedRing::<usize>::with_capacity(1), 3, 3);
    // Full although it has no value, while a thread is in the middle of a pop.
    everything(NikolaevQueue::with_capacity(1), 3, 3);
    everything(NikolaevQueue::with_capacity(3), 3, 3);
    everything(FaaArrayQueue::new(), 3, 3);
}

fn everything<Q>(queue: Q, pushers: usize, poppers: usize)
where
    Q: ConcurrentQueue<Item = usize> + Send + Sync + 'static,
{
    const EACH: usize = 3_000;
    let queue = Blocking::new(queue);
    in_time(move || {
        let (sum, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..poppers {
                scope.spawn(|| {
                    loop {
                        // Now and then impatient: giving up must not swallow a notification.
                        let value = match queue.pop_timeout(Duration::from_micros(30)) {
                            Err(RecvTimeoutError::Timeout) => queue.pop().ok(),
                            outcome => outcome.ok(),
                        };
                        let Some(value) = value else { return };
                        sum.fetch_add(value, Relaxed);
                        count.fetch_add(1, Relaxed);
                    }
                });
            }
            let push_all = || (1..=EACH).for_each(|value| queue.push(value).unwrap());
            let running: Vec<_> = (0..pushers).map(|_| scope.spawn(push_all)).collect();
            running.into_iter().for_each(|pusher| pusher.join().unwrap());
            queue.close();
        });
        assert_eq!(count.into_inner(), pushers * EACH);
        assert_eq!(sum.into_inner(), pushers * EACH * (EACH + 1) / 2);
    });
}

#[test]
fn as_many_pushes_wake_as_many_sleepers() {
    in_time(|| {
        for _ in 0..20 {
            let queue = Blocking::new(LockedQueue::<u32>::new());
            thread::scope(|scope| {
                let poppers: Vec<_> = (0..4).map(|_| scope.spawn(|| queue.pop())).collect();
                until(|| queue.waiting() == 4);
                (0..4).for_each(|value| queue.try_push(value).unwrap());
                let values = poppers.into_iter().map(|popper| popper.join().unwrap().unwrap());
                let mut values: Vec<_> = values.collect();
                values.sort_unstable();
                assert_eq!(values, [0, 1, 2, 3]);
            });
        }
    });
}

#[test]
fn room_wakes_a_pusher() {
    in_time(|| {
        let queue = Blocking::new(Bounded::new(1));
        queue.try_push(0).unwrap();
        thread::scope(|scope| {
            let pusher = scope.spawn(|| queue.push(1));
            thread::sleep(Duration::from_millis(5));
            assert_eq!(queue.try_pop(), Ok(0));
            assert_eq!(pusher.join().unwrap(), Ok(()));
            assert_eq!(queue.try_pop(), Ok(1));
        });
    });
}

#[test]
fn closing_wakes_everybody() {
    in_time(|| {
        let (full, empty) = (Blocking::new(Bounded::new(1)), Blocking::new(Bounded::<u32>::new(1)));
        full.try_push(0).unwrap();
        thread::scope(|scope| {
            let push = |value| {
                let full = &full;
                scope.spawn(move || assert_eq!(full.push(value), Err(SendError(value))))
            };
            let pop = |_| scope.spawn(|| assert_eq!(empty.pop(), Err(RecvError)));
            let threads: Vec<_> = (1..4).map(push).chain((0..3).map(pop)).collect();
            until(|| empty.waiting() == 3);
            full.close();
            empty.close();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(full.try_pop(), Ok(0));
    });
}

/// Every push that succeeds beside a close is found by the poppers. They go on to the end.
#[test]
fn a_push_beside_a_close_is_not_lost() {
    in_time(|| {
        for round in 0..300_u32 {
            let queue = Blocking::new(LockedQueue::<u32>::new());
            let (pushed, popped) = (AtomicUsize::new(0), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while queue.try_push(1).is_ok() {
                            pushed.fetch_add(1, Relaxed);
                        }
                    });
                    scope.spawn(|| {
                        while queue.pop().is_ok() {
                            popped.fetch_add(1, Relaxed);
                        }
                    });
                }
                (0..round * 10).for_each(|_| std::hint::spin_loop());
                queue.close();
            });
            assert_eq!(pushed.into_inner(), popped.into_inner(), "round {round}");
            assert_eq!(queue.into_inner().pop(), None);
        }
    });
}

/// The one that was woken panics: another sleeper must get the value.
#[test]
fn a_popper_that_panics_wakes_another() {
    in_time(|| {
        for _ in 0..20 {
            let bounded = Bounded::new(4);
            let breaks = Arc::clone(&bounded.breaks);
            let queue = Blocking::new(bounded);
            thread::scope(|scope| {
                let pop = || catch_unwind(AssertUnwindSafe(|| queue.pop()));
                let poppers = [scope.spawn(pop), scope.spawn(pop)];
                until(|| queue.waiting() == 2);
                breaks.store(true, Relaxed);
                queue.try_push(1).unwrap();
                let outcomes = poppers.map(|popper| popper.join().unwrap());
                assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
                assert!(outcomes.into_iter().flatten().eq([Ok(1)]));
            });
        }
    });
}
