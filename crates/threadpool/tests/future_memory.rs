//! The heap use of futures: one allocation each, and nothing is left when a pool has ended, even if
//! a thread still has a waker.

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use stanchion_threadpool::{Cancelled, ThreadPool};

/// The system's, counting.
struct Counting;

static MADE: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.fetch_add(1, Relaxed);
        LIVE.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const FUTURES: usize = 1_000;

/// Futures that are ready, that wait for ever, detached and not, and wakers that are used after the
/// end.
fn a_pools_life() {
    let pool = ThreadPool::new(2).unwrap();
    let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
    for _ in 0..FUTURES {
        let wakers = wakers.clone();
        let waits = async move {
            poll_fn(|cx| {
                wakers.lock().unwrap().push(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            pending::<()>().await;
        };
        pool.spawn_future(waits).detach();
    }
    let kept = pool.spawn_future(pending::<Vec<u8>>());
    let ready = pool.spawn_future(async { vec![1] });
    pool.shutdown();
    let wakers = core::mem::take(&mut *wakers.lock().unwrap());
    assert_eq!(wakers.len(), FUTURES);
    wakers.into_iter().for_each(Waker::wake);
    assert_eq!(kept.join(), Err(Cancelled));
    assert_eq!(ready.join(), Ok(vec![1]));
}

#[test]
fn a_future_is_one_allocation_and_leaves_none() {
    a_pools_life();
    let live = LIVE.load(Relaxed);
    for _ in 0..5 {
        a_pools_life();
    }
    // The test harness may keep a few; a future or a pool that is left is many more.
    let left = LIVE.load(Relaxed) - live;
    assert!(left.abs() < 10, "{left} allocations are left");

    let pool = ThreadPool::new(1).unwrap();
    let round = || {
        let before = MADE.load(Relaxed);
        for n in 0..FUTURES {
            assert_eq!(pool.spawn_future(async move { n }).join(), Ok(n));
        }
        MADE.load(Relaxed) - before
    };
    round();
    let made = round();
    assert!((FUTURES..FUTURES + 10).contains(&made), "{made} allocations for {FUTURES} futures");
    pool.shutdown();
}
