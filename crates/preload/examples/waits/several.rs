//! Waits for several words at once, by `futex_waitv`. It needs version 5.16 of the kernel.

use std::io::Error;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::{REST, TIMES, number_of_thread, sleeps};

/// A word that is waited for, as the kernel has it.
#[repr(C)]
struct Waiter {
    /// The value that the word must have.
    value: u64,
    /// The address of the word.
    word: u64,
    /// The size of the word, and whether it is private.
    flags: u32,
    /// Zero.
    reserved: u32,
}

/// The flags of a private word of 32 bits.
const PRIVATE_32: u32 = 2 | 128;

/// The words.
static WORDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// Waits until one of the words is woken, if they have that value. Returns the result and the
/// error.
#[inline(never)]
fn wait_for_several(value: u64, limit: Option<Duration>) -> (i64, Option<i32>) {
    let waiter = |word: &AtomicU32| Waiter {
        value,
        word: word.as_ptr().addr() as u64,
        flags: PRIVATE_32,
        reserved: 0,
    };
    let waiters = WORDS.each_ref().map(waiter);
    raw(waiters.as_ptr(), WORDS.len(), 0, limit)
}

/// Makes the call.
fn raw(
    waiters: *const Waiter,
    number: usize,
    flags: usize,
    limit: Option<Duration>,
) -> (i64, Option<i32>) {
    let until = limit.map(|limit| super::linux_time(libc::CLOCK_MONOTONIC, limit));
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let clock = libc::CLOCK_MONOTONIC;
    // SAFETY: the words live as long as the program; the kernel checks the list's address.
    let result =
        unsafe { libc::syscall(libc::SYS_futex_waitv, waiters, number, flags, until, clock) };
    (result, (result < 0).then(|| Error::last_os_error().raw_os_error()).flatten())
}

/// Waits for several words [`TIMES`] times until the second is woken, and as often for a time.
/// Makes calls that do not wait, and checks all results.
pub(super) fn several() {
    if raw(std::ptr::null(), 0, 0, None).1 == Some(libc::ENOSYS) {
        return;
    }
    for _ in 0..TIMES {
        static WAITER: AtomicI32 = AtomicI32::new(0);
        WAITER.store(0, Ordering::SeqCst);
        let waiter = thread::spawn(|| {
            WAITER.store(number_of_thread(), Ordering::SeqCst);
            wait_for_several(0, None)
        });
        while !matches!(WAITER.load(Ordering::SeqCst), waiter if waiter != 0 && sleeps(waiter)) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(REST);
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word stays.
        let woken = unsafe { libc::syscall(libc::SYS_futex, WORDS[1].as_ptr(), wake, 1) };
        assert_eq!(woken, 1);
        assert_eq!(waiter.join().unwrap(), (1, None), "the number of the woken word");
        assert_eq!(wait_for_several(0, Some(REST)), (-1, Some(libc::ETIMEDOUT)));
    }
    assert_eq!(wait_for_several(1, None), (-1, Some(libc::EAGAIN)), "another value");
    assert_eq!(raw(std::ptr::null(), 0, 0, None), (-1, Some(libc::EINVAL)), "no word");
    assert_eq!(raw(std::ptr::null(), 1, 7, None), (-1, Some(libc::EINVAL)), "unknown flags");
    let nowhere = std::ptr::without_provenance(4096);
    assert_eq!(raw(nowhere, 1, 0, None), (-1, Some(libc::EFAULT)), "a list that is nowhere");
}
