//! Guards that outlive most of their thread: kept in a thread-local that is destroyed after all
//! others. The lock knows its holder by the thread's number, so no other thread may get the number
//! before the guard is gone.

use crate::common;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stanchion_competitive::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};

/// Far more than any of this takes: what a timed try waits for comes earlier, or the test fails.
const LONG: Duration = Duration::from_secs(60);

/// A guard that is kept until the test lets it go, in the destructor of a thread-local.
struct Kept<G> {
    /// The guard that the ending thread keeps.
    guard: Option<G>,
    /// Sent to while the thread ends.
    ending: Sender<()>,
    /// Received from before the guard is dropped.
    go_on: Receiver<()>,
}

impl<G> Drop for Kept<G> {
    fn drop(&mut self) {
        // A panic here would end the process; a test that has failed has dropped the other ends.
        let _ = self.ending.send(());
        let _ = self.go_on.recv_timeout(LONG);
        drop(self.guard.take());
    }
}

/// Starts a thread that keeps the guard that `lock` yields in `LOCAL`, and ends. Returns when the
/// thread destroys its last thread-local, with a way to let it go on.
macro_rules! thread_that_ends_with {
    ($guard:ty, $lock:expr) => {{
        thread_local! {
            static LOCAL: RefCell<Option<Kept<$guard>>> = const { RefCell::new(None) };
        }
        let ((ending, is_ending), (go, go_on)) = (channel(), channel());
        let holder = thread::spawn(move || {
            // Used before the lock numbers the thread, so that it is destroyed after whatever the
            // numbering registers.
            LOCAL.set(None);
            LOCAL.set(Some(Kept { guard: Some($lock), ending, go_on }));
        });
        is_ending.recv().unwrap();
        (holder, go)
    }};
}

/// As many threads at once as there may be numbers free below the holder's.
const NEW_THREADS: usize = 8;

/// Starts new threads that call `first` and then `then`. Returns when all have called `first`.
fn new_threads<R: Send + 'static>(first: fn(), then: fn() -> R) -> Vec<JoinHandle<R>> {
    let (called, has_called) = channel();
    let threads = (0..NEW_THREADS)
        .map(|_| {
            let called = called.clone();
            thread::spawn(move || {
                first();
                called.send(()).unwrap();
                then()
            })
        })
        .collect();
    has_called.iter().take(NEW_THREADS).for_each(drop);
    threads
}

#[test]
fn no_new_thread_is_taken_for_a_holder_that_is_ending() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    common::within(LONG, || {
        let (holder, go) = thread_that_ends_with!(MutexGuard<'static, u32>, LOCK.lock());
        let newcomers = new_threads(
            || {
                assert!(LOCK.try_lock().is_none());
                assert!(LOCK.try_lock_for(Duration::from_micros(50)).is_none());
            },
            || {
                // A thread that is taken for the holder panics here.
                *LOCK.lock() += 1;
            },
        );
        go.send(()).unwrap();
        for newcomer in newcomers {
            newcomer.join().expect("no panic");
        }
        holder.join().unwrap();
        assert_eq!(*LOCK.lock(), NEW_THREADS as u32);
    });
}

#[test]
fn a_timed_try_of_a_new_thread_succeeds_once_an_ending_holder_has_released() {
    static LOCK: Mutex<u32> = Mutex::new(0);
    common::within(LONG, || {
        let (holder, go) = thread_that_ends_with!(MutexGuard<'static, u32>, LOCK.lock());
        let newcomers = new_threads(
            || {
                assert!(LOCK.try_lock().is_none());
            },
            || LOCK.try_lock_for(LONG / 2).map(|mut count| *count += 1),
        );
        go.send(()).unwrap();
        for newcomer in newcomers {
            assert!(newcomer.join().unwrap().is_some(), "the lock is free, and the time is not up");
        }
        holder.join().unwrap();
    });
}

#[test]
fn a_writer_that_is_ending_keeps_new_threads_out() {
    static LOCK: RwLock<u32> = RwLock::new(0);
    common::within(LONG, || {
        let (holder, go) = thread_that_ends_with!(RwLockWriteGuard<'static, u32>, LOCK.write());
        let newcomers = new_threads(
            || {
                assert!(LOCK.try_write().is_none() && LOCK.try_read().is_none());
            },
            || {
                *LOCK.write() += 1;
            },
        );
        go.send(()).unwrap();
        for newcomer in newcomers {
            newcomer.join().expect("no panic");
        }
        holder.join().unwrap();
        assert_eq!(*LOCK.read(), NEW_THREADS as u32);
    });
}
