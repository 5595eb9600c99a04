//! The promises of a pool about futures, under every strategy. The channels are written here, as
//! any executor must do.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use stanchion_threadpool::strategy::{
    IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks, SingleLock, Strategy, WorkStealing,
};
use stanchion_threadpool::{
    Cancelled, JoinHandle, ThreadPool, ThreadPoolBuilder, Wait, spawn_future,
};

fn pool<S: Strategy>(threads: usize) -> ThreadPool<S> {
    ThreadPoolBuilder::new().num_threads(threads).build_with().unwrap()
}

/// A channel of any number of values, for one receiver.
struct Channel<T>(Mutex<(VecDeque<T>, Option<Waker>)>);

impl<T> Channel<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new((VecDeque::new(), None))))
    }

    fn send(&self, value: T) {
        let mut inner = self.0.lock().unwrap();
        inner.0.push_back(value);
        let waker = inner.1.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.0.lock().unwrap();
        match inner.0.pop_front() {
            Some(value) => Poll::Ready(value),
            None => {
                inner.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    async fn receive(&self) -> T {
        std::future::poll_fn(|cx| self.poll_receive(cx)).await
    }
}

/// Is pending once, and wakes itself.
async fn again() {
    let mut was = false;
    std::future::poll_fn(|cx| {
        if core::mem::replace(&mut was, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Panics when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(self.0);
    }
}

/// Waits for `until`; what it waits for must happen, or the test does not end.
fn wait_until(until: impl Fn() -> bool) {
    while !until() {
        thread::yield_now();
    }
}

fn payload<T>(handle: JoinHandle<T>) -> &'static str {
    let caught = catch_unwind(AssertUnwindSafe(|| handle.join().map(drop)));
    caught.unwrap_err().downcast_ref::<&str>().copied().unwrap()
}

fn joins_and_awaits<S: Strategy>() {
    for threads in [1, 3] {
        let pool = pool::<S>(threads);
        let parts: Vec<_> = (0..200u64)
            .map(|n| {
                pool.spawn_future(async move {
                    again().await;
                    n
                })
            })
            .collect();
        let sum = pool.spawn_future(async {
            let mut sum = 0;
            for part in parts {
                sum += part.await.unwrap();
            }
            sum
        });
        assert_eq!(sum.join(), Ok(19_900));
        pool.shutdown();
    }
}

fn wake_storms_lose_nothing<S: Strategy>() {
    let pool = pool::<S>(2);
    let channels: Vec<_> = (0..8).map(|_| Channel::new()).collect();
    let handles: Vec<_> = channels
        .iter()
        .map(|channel| {
            let channel = channel.clone();
            pool.spawn_future(async move {
                let mut sum = 0;
                for _ in 0..600 {
                    sum += channel.receive().await;
                }
                sum
            })
        })
        .collect();
    thread::scope(|s| {
        for sender in 0..3 {
            let channels = &channels;
            s.spawn(move || {
                for n in 0..200 {
                    for channel in channels {
                        channel.send(sender * 1_000 + n);
                    }
                }
            });
        }
    });
    for handle in handles {
        assert_eq!(handle.join(), Ok(600 * 1_000 + 3 * 19_900));
    }
    pool.shutdown();
}

fn a_future_that_wakes_itself_for_ever_starves_no_task<S: Strategy>() {
    let pool = pool::<S>(1);
    let restless = pool.spawn_future(async {
        loop {
            again().await;
        }
    });
    // From outside, from a worker, and by another future.
    pool.install(|| ());
    let (send, receive) = mpsc::channel();
    pool.spawn(move || stanchion_threadpool::spawn(move || send.send(1).unwrap()));
    assert_eq!(receive.recv(), Ok(1));
    assert_eq!(pool.spawn_future(async { again().await }).join(), Ok(()));
    restless.abort();
    let output: Result<(), Cancelled> = restless.join();
    assert_eq!(output, Err(Cancelled));
    pool.shutdown();
}

fn shutdown_finishes_what_is_ready_and_drops_what_waits<S: Strategy>() {
    let drops = Arc::new(AtomicUsize::new(0));
    let pool = pool::<S>(2);
    let channel = Channel::new();
    let waits = {
        let (kept, channel) = (Counted(drops.clone()), channel.clone());
        pool.spawn_future(async move {
            let _kept = kept;
            channel.receive().await
        })
    };
    wait_until(|| channel.0.lock().unwrap().1.is_some());
    let ready: Vec<_> = (0..100)
        .map(|n| {
            pool.spawn_future(async move {
                again().await;
                n
            })
        })
        .collect();
    pool.shutdown();
    for (n, handle) in ready.into_iter().enumerate() {
        assert!(handle.is_finished());
        assert_eq!(handle.join(), Ok(n));
    }
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert!(waits.is_finished());
    // Its waker is left, and used after the end.
    channel.send(7);
    assert_eq!(waits.join(), Err(Cancelled));
    assert_eq!(Arc::strong_count(&channel), 1);
}

fn wakes_race_the_end_and_nothing_is_left<S: Strategy>() {
    for round in 0..24 {
        let drops = Arc::new(AtomicUsize::new(0));
        let pool = pool::<S>(2);
        let channels: Vec<_> = (0..4).map(|_| Channel::new()).collect();
        let handles: Vec<_> = channels
            .iter()
            .map(|channel| {
                let (kept, channel) = (Counted(drops.clone()), channel.clone());
                pool.spawn_future(async move {
                    let _kept = kept;
                    loop {
                        channel.receive().await;
                    }
                })
            })
            .collect();
        let stop = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    channels.iter().for_each(|channel| channel.send(()));
                }
            });
            for _ in 0..round {
                thread::yield_now();
            }
            match round % 3 {
                0 => pool.shutdown_now(),
                // The sender keeps them going, and the pool with them.
                1 => {
                    drop(pool);
                    handles.iter().for_each(JoinHandle::abort);
                }
                _ => {
                    handles.iter().for_each(JoinHandle::abort);
                    pool.shutdown();
                }
            }
            for handle in handles {
                let output: Result<(), Cancelled> = match round % 2 {
                    0 => handle.join(),
                    _ => block_on(handle),
                };
                assert_eq!(output, Err(Cancelled));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(drops.load(Ordering::Relaxed), 4);
        assert!(channels.iter().all(|channel| Arc::strong_count(channel) == 1));
    }
}

fn panics_reach_the_waiter<S: Strategy>() {
    let pool = pool::<S>(2);
    let polled = pool.spawn_future(async {
        again().await;
        panic_any("poll");
    });
    assert_eq!(payload::<()>(polled), "poll");
    let awaited = pool.spawn_future(async { spawn_future(async { panic_any("inner") }).await });
    assert_eq!(payload::<Result<(), _>>(awaited), "inner");

    /// Is ready at once; its drop panics.
    struct Dropped(#[allow(dead_code)] Bomb);
    impl Future for Dropped {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
    assert_eq!(payload(pool.spawn_future(Dropped(Bomb("drop")))), "drop");
    assert_eq!(pool.install(|| 1), 1);
    pool.shutdown();
}

fn panics_without_a_waiter_are_handled<S: Strategy>() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pool = {
        let seen = seen.clone();
        ThreadPoolBuilder::new()
            .num_threads(2)
            .panic_handler(move |payload| {
                seen.lock().unwrap().push(*payload.downcast::<&'static str>().unwrap())
            })
            .build_with::<S>()
            .unwrap()
    };
    pool.spawn_future(async { panic_any("poll") }).detach();
    // The output's drop, by the worker or by the handle; and the drop of one that is aborted.
    pool.spawn_future(async { Bomb("output") }).detach();
    let done = pool.spawn_future(async { Bomb("output") });
    wait_until(|| done.is_finished());
    drop(done);
    let panicked = pool.spawn_future(async { panic_any("poll") });
    wait_until(|| panicked.is_finished());
    drop(panicked);
    let aborted = pool.spawn_future(async {
        let _bomb = Bomb("captured");
        std::future::pending::<()>().await;
    });
    pool.install(|| ());
    aborted.abort();
    assert_eq!(aborted.join(), Err(Cancelled));
    pool.shutdown();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort_unstable();
    // The last may have been aborted before its first poll, when it had no bomb yet.
    assert!(
        seen == ["captured", "output", "output", "poll", "poll"]
            || seen == ["output", "output", "poll", "poll"],
        "{seen:?}"
    );
}

fn workers_join<S: Strategy>() {
    for wait in [Wait::Any, Wait::Park] {
        let pool = ThreadPoolBuilder::new().num_threads(1).wait(wait).build_with::<S>().unwrap();
        let other = ThreadPoolBuilder::new().num_threads(1).build_with::<S>().unwrap();
        let sum = pool.install(|| {
            let here = spawn_future(async {
                again().await;
                1
            });
            let there = other.spawn_future(async {
                again().await;
                2
            });
            here.join().unwrap() + there.join().unwrap()
        });
        assert_eq!(sum, 3, "{wait:?}");
        pool.shutdown();
        other.shutdown();
    }
}

fn detached_futures_go_on<S: Strategy>() {
    let pool = pool::<S>(2);
    let channel = Channel::new();
    let done = Channel::new();
    for _ in 0..50 {
        let (channel, done) = (channel.clone(), done.clone());
        pool.spawn_future(async move {
            again().await;
            channel.send(());
            done.send(());
        })
        .detach();
    }
    let all = pool.spawn_future(async move {
        for _ in 0..50 {
            done.receive().await;
        }
    });
    assert_eq!(all.join(), Ok(()));
    pool.shutdown();
}

/// Polls a future on the calling thread, which parks.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

macro_rules! under_each {
    ($($strategy:ident: $name:ty),*) => { $(
        mod $strategy {
            use super::*;
            #[test]
            fn joins_and_awaits() { super::joins_and_awaits::<$name>(); }
            #[test]
            fn wake_storms_lose_nothing() { super::wake_storms_lose_nothing::<$name>(); }
            #[test]
            fn a_future_that_wakes_itself_for_ever_starves_no_task() {
                super::a_future_that_wakes_itself_for_ever_starves_no_task::<$name>();
            }
            #[test]
            fn shutdown_finishes_what_is_ready_and_drops_what_waits() {
                super::shutdown_finishes_what_is_ready_and_drops_what_waits::<$name>();
            }
            #[test]
            fn wakes_race_the_end_and_nothing_is_left() {
                super::wakes_race_the_end_and_nothing_is_left::<$name>();
            }
            #[test]
            fn panics_reach_the_waiter() { super::panics_reach_the_waiter::<$name>(); }
            #[test]
            fn panics_without_a_waiter_are_handled() {
                super::panics_without_a_waiter_are_handled::<$name>();
            }
            #[test]
            fn workers_join() { super::workers_join::<$name>(); }
            #[test]
            fn detached_futures_go_on() { super::detached_futures_go_on::<$name>(); }
        }
    )* };
}

under_each!(
    single_lock: SingleLock,
    multiple_locks: MultipleLocks,
    local_free_list: LocalFreeList,
    idle_queue: IdleQueue,
    local_ready_queue: LocalReadyQueue,
    work_stealing: WorkStealing
);

#[test]
fn a_handle_that_changes_its_waiter_tells_the_last() {
    let pool = ThreadPool::new(1).unwrap();
    let channel = Channel::new();
    let mut handle = {
        let channel = channel.clone();
        pool.spawn_future(async move { channel.receive().await })
    };
    for _ in 0..3 {
        let poll = Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending());
    }
    let waiter = thread::spawn(move || block_on(handle));
    channel.send(5);
    assert_eq!(waiter.join().unwrap(), Ok(5));
    pool.shutdown();
}

#[test]
fn a_future_dropped_with_the_pool_may_wake_others_and_spawn_nothing() {
    /// Wakes another future when it is dropped.
    struct Waking(Arc<Channel<u32>>);
    impl Drop for Waking {
        fn drop(&mut self) {
            self.0.send(1);
        }
    }
    let pool = ThreadPool::new(2).unwrap();
    let mut handles = Vec::new();
    // A ring: whichever is dropped first wakes the next.
    let channels: Vec<_> = (0..10_000).map(|_| Channel::new()).collect();
    for n in 0..channels.len() {
        let waking = Waking(channels[(n + 1) % channels.len()].clone());
        let channel = channels[n].clone();
        handles.push(pool.spawn_future(async move {
            let _waking = waking;
            loop {
                // Not ready by the drop of another, or the ring would end by itself.
                if channel.receive().await == 0 {
                    break;
                }
            }
        }));
    }
    pool.shutdown_now();
    assert!(handles.into_iter().all(|handle| handle.join() == Err(Cancelled)));
    assert!(channels.iter().all(|channel| Arc::strong_count(channel) == 1));
}

static_assertions::assert_impl_all!(JoinHandle<std::cell::Cell<u32>>: Send, Sync, Unpin);
