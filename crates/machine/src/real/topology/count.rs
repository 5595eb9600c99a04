//! The number of processors that this process may use. Waiters ask for it, so it needs neither
//! memory nor files.
//!
//! Why not `sysconf`: it counts the processors of the machine, and opens a file for it. A process
//! that was started under `taskset` or in a cpuset may use fewer. Why not the calling thread's
//! mask: a program that pins every worker to a processor of its own has several processors
//! all the same.
//!
//! The process's mask is that of its first thread, which it inherited when it was started. If the
//! first thread has pinned itself to one processor, that says nothing of the others. So where its
//! mask has one processor, the calling thread's mask is added. If that is the same processor, the
//! answer is 1 for now. A later waiter on another processor may know better, so it is counted
//! again.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The number of processors; 0 before it is known. 1 is not final. Relaxed: a number by itself.
static USABLE: AtomicUsize = AtomicUsize::new(0);

/// Returns how many processors this process may use, at least 1.
#[inline]
pub(crate) fn usable() -> usize {
    match USABLE.load(Ordering::Relaxed) {
        known @ (0 | 1) => usable_by_now(known),
        several => several,
    }
}

/// After an answer of 1, one question in this many counts again: two system calls.
const ANSWERS: u32 = 16;

#[cold]
fn usable_by_now(known: usize) -> usize {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if known == 1 && !ASKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(ANSWERS) {
        return 1;
    }
    let count = count();
    // Another thread may have found more meanwhile: that stays.
    USABLE.fetch_max(count, Ordering::Relaxed).max(count)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn count() -> usize {
    use super::affinity::Fixed;

    // SAFETY: a question without pointers. It is the number of the first thread too.
    let process = unsafe { libc::getpid() };
    // Refused, as a filter may do: taken for several, as almost every machine has.
    let Some(first) = Fixed::of(process) else { return 2 };
    match first.count() {
        0 | 1 => Fixed::of(0).map_or(1, |mine| first.united(&mine).count()).max(1),
        several => several,
    }
}

/// No other system has a mask of the process that the standard library does not ask for.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
