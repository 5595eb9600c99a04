//! Tests with threads that are cancelled.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use libc::{EBUSY, c_int};

use super::STATIC_LOCK;
use super::objects::{Cond, Mutex};

/// The condition on which the cancelled thread waits.
static CANCELLED: Cond = Cond::new();

extern "C" fn waits_for_ever(_: *mut libc::c_void) -> *mut libc::c_void {
    assert_eq!(STATIC_LOCK.lock(), 0);
    loop {
        CANCELLED.wait(&STATIC_LOCK);
    }
}

unsafe extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_testcancel();
}

/// Mutexes that are waited for once each, so that each wait is the first for its lock.
static FIRST_WAITS: [Mutex; 8] = [const { Mutex::new() }; 8];
/// The number of these mutexes that the thread that is to be cancelled has begun to lock.
static COMING: AtomicUsize = AtomicUsize::new(0);
/// The number of these mutexes that it has locked.
static LOCKED: AtomicUsize = AtomicUsize::new(0);
/// True once the cancellation of the thread has been requested.
static CANCEL_IS_DUE: AtomicBool = AtomicBool::new(false);

extern "C" fn locks_before_it_is_cancelled(_: *mut libc::c_void) -> *mut libc::c_void {
    while !CANCEL_IS_DUE.load(Ordering::Acquire) {
        std::hint::spin_loop();
    }
    for mutex in &FIRST_WAITS {
        COMING.fetch_add(1, Ordering::Release);
        // The raw calls: a cancelled thread must not unwind through this program.
        // SAFETY: a mutex.
        if unsafe { libc::pthread_mutex_lock(mutex.0.get()) } == 0 {
            LOCKED.fetch_add(1, Ordering::Release);
            // SAFETY: locked above.
            unsafe { libc::pthread_mutex_unlock(mutex.0.get()) };
        }
    }
    // SAFETY: nothing on this stack has a destructor.
    unsafe { pthread_testcancel() };
    ptr::null_mut()
}

/// Cancels a thread while it locks. A lock is no cancellation point, with the shim or without.
pub(super) fn after_locks() {
    FIRST_WAITS.iter().for_each(|mutex| assert_eq!(mutex.lock(), 0));
    let mut thread = 0;
    let start = locks_before_it_is_cancelled;
    // SAFETY: the function needs nothing.
    let made = unsafe { libc::pthread_create(&mut thread, ptr::null(), start, ptr::null_mut()) };
    assert_eq!(made, 0);
    // SAFETY: made above, and not joined yet.
    assert_eq!(unsafe { pthread_cancel(thread) }, 0);
    CANCEL_IS_DUE.store(true, Ordering::Release);
    for (nth, mutex) in FIRST_WAITS.iter().enumerate() {
        // Until it comes, or until it has been cancelled at a lock, which would be wrong.
        let began = std::time::Instant::now();
        while COMING.load(Ordering::Acquire) <= nth && began.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(mutex.unlock(), 0);
    }
    let mut result = ptr::null_mut();
    // SAFETY: made above, and not joined yet.
    assert_eq!(unsafe { libc::pthread_join(thread, &mut result) }, 0);
    assert_eq!(result.addr(), usize::MAX, "PTHREAD_CANCELED");
    assert_eq!(LOCKED.load(Ordering::Acquire), FIRST_WAITS.len(), "locks before it ended");
}

/// Cancels a thread that waits for a condition. The thread ends and holds the mutex then.
pub(super) fn within_a_wait() {
    let mut thread = 0;
    // SAFETY: the function needs nothing.
    let made =
        unsafe { libc::pthread_create(&mut thread, ptr::null(), waits_for_ever, ptr::null_mut()) };
    assert_eq!(made, 0);
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: made above, and not joined yet.
    assert_eq!(unsafe { pthread_cancel(thread) }, 0);
    let mut result = ptr::null_mut();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::pthread_join(thread, &mut result) }, 0);
    assert_eq!(result.addr(), usize::MAX, "PTHREAD_CANCELED");
    assert_eq!(STATIC_LOCK.try_lock(), EBUSY);
}
