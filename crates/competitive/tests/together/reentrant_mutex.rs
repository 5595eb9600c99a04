//! The reentrant mutex with real threads.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use stanchion_competitive::lock_api::GetThreadId;
use stanchion_competitive::{
    MappedReentrantMutexGuard, RawThreadId, ReentrantMutex, ReentrantMutexGuard,
    const_reentrant_mutex,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::common::within;

assert_impl_all!(ReentrantMutex<Cell<u32>>: Send, Sync);
assert_not_impl_any!(ReentrantMutex<std::rc::Rc<u32>>: Send, Sync);
assert_not_impl_any!(ReentrantMutexGuard<'static, u32>: Send);
assert_not_impl_any!(MappedReentrantMutexGuard<'static, u32>: Send);
assert_impl_all!(RawThreadId: Send, Sync, Copy, Default);

#[test]
fn its_holder_locks_it_again_and_others_wait() {
    within(Duration::from_secs(60), || {
        static SUM: ReentrantMutex<Cell<u64>> = const_reentrant_mutex(Cell::new(0));
        fn add(depth: u64) {
            let sum = SUM.lock();
            let before = sum.get();
            if depth > 0 {
                add(depth - 1);
            }
            // No other thread was inside meanwhile.
            assert_eq!(sum.get(), before + depth);
            sum.set(sum.get() + 1);
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| add(3)));
            }
        });
        assert_eq!(SUM.lock().get(), 4 * 200 * 4);
        assert!(!SUM.is_locked());
    });
}

#[test]
fn another_thread_gets_it_after_the_last_guard() {
    let mutex = ReentrantMutex::new(());
    let refused =
        || std::thread::scope(|scope| scope.spawn(|| mutex.try_lock().is_none()).join().unwrap());
    let (first, second) = (mutex.lock(), mutex.try_lock().expect("its own"));
    assert!(mutex.is_owned_by_current_thread() && refused());
    drop(first);
    assert!(refused());
    drop(second);
    assert!(!mutex.is_owned_by_current_thread() && !refused());
}

#[test]
fn live_threads_have_different_identities() {
    const THREADS: usize = 20;
    within(Duration::from_secs(60), || {
        let identity = || RawThreadId.nonzero_thread_id();
        let barrier = std::sync::Barrier::new(THREADS);
        let seen = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        let mine = identity();
                        barrier.wait();
                        assert_eq!(identity(), mine);
                        mine
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<HashSet<_>>()
        });
        assert_eq!(seen.len(), THREADS);
    });
}

/// Locks the mutex twice as its thread ends, and sends the thread's identity.
struct AtTheEnd(mpsc::Sender<NonZeroUsize>);

static SHARED: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let (outer, inner) = (SHARED.lock(), SHARED.lock());
        outer.set(inner.get() + 1);
        // The test has ended if the receiver is gone.
        let _ = self.0.send(RawThreadId.nonzero_thread_id());
    }
}

#[test]
fn a_thread_that_ends_can_still_lock_it_twice() {
    within(Duration::from_secs(60), || {
        thread_local! {
            static END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
        }
        let (sender, receiver) = mpsc::channel();
        let alive = std::thread::spawn(move || {
            // Registered before the thread's number is, so it is dropped after that is given back.
            END.with(|end| *end.borrow_mut() = Some(AtTheEnd(sender)));
            drop(SHARED.lock());
            RawThreadId.nonzero_thread_id()
        });
        let ending = receiver.recv().unwrap();
        assert_eq!(alive.join().unwrap(), ending);
        assert_eq!(SHARED.lock().get(), 1);
    });
}

#[test]
fn a_panic_releases_it_and_a_forgotten_guard_does_not() {
    let mutex = ReentrantMutex::new(RefCell::new(1));
    let panics = AssertUnwindSafe(|| {
        let _outer = mutex.lock();
        let _inner = mutex.lock();
        panic!("in the section");
    });
    assert!(catch_unwind(panics).is_err());
    assert!(!mutex.is_locked());
    std::mem::forget(mutex.lock());
    // Its own thread may still lock it; another thread never gets it.
    *mutex.lock().borrow_mut() += 1;
    assert!(mutex.is_locked());
    let timeout = Duration::from_millis(1);
    std::thread::scope(|scope| {
        assert!(scope.spawn(|| mutex.try_lock_for(timeout).is_none()).join().unwrap());
    });
}
