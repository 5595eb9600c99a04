//! The futex of Linux, private to the process.
//!
//! `FUTEX_WAIT_BITSET` rather than `FUTEX_WAIT`, because it takes an *absolute* time on the
//! monotonic clock: a wait that is interrupted and begun again does not start its timeout afresh.

use crate::clock::Deadline;
use crate::park::Woken;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    // The kernel would say the same, but it would also set up a timer. Relaxed: this look orders
    // nothing, as the kernel's does not.
    if word.load(Ordering::Relaxed) != expected {
        return Woken::Changed;
    }
    if deadline.passed() {
        return Woken::TimedOut;
    }
    let until = deadline.monotonic_nanos().and_then(timespec);
    // SAFETY: the word is live for the whole call, being borrowed, and `until` is null or points to
    // a timespec that outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until.as_ref().map_or(ptr::null(), ptr::from_ref),
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    if result == 0 {
        return Woken::Woken;
    }
    match last_error() {
        libc::EAGAIN => Woken::Changed,
        libc::ETIMEDOUT => Woken::TimedOut,
        // A signal arrived: the caller looks at the word and, if it must, comes again with the same
        // deadline.
        _ => Woken::Woken,
    }
}

pub(crate) fn wake(word: *const AtomicU32, count: usize) -> usize {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    // SAFETY: a private wake uses the address as a key and does not read it; an address that is not
    // mapped wakes no thread.
    let woken = unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count)
    };
    usize::try_from(woken).unwrap_or(0)
}

/// `None`, which is for ever, for a time beyond what the kernel can count.
fn timespec(nanos: u64) -> Option<libc::timespec> {
    // `as` on the remainder: below 10^9, it fits every width the field has.
    let tv_nsec = (nanos % 1_000_000_000) as libc::c_long;
    Some(libc::timespec { tv_sec: (nanos / 1_000_000_000).try_into().ok()?, tv_nsec })
}

fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
