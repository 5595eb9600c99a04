//! A wait for one of the C library's mutexes, measured.
//!
//! The C library does the waiting, as it always would. Seen from outside:
//!
//! | | is taken to be |
//! | --- | --- |
//! | contended | an attempt failed |
//! | blocked | the thread left its processor of its own will meanwhile (`ru_nvcsw`) |
//! | the length | if it blocked, until the release that woke it; else until it had the mutex |
//! | wake latency | from that release on, if there is no doubt which it was |
//! | the release that woke it | if it blocked once: the first after it came, or the one after as many as there were others waiting; if it blocked more often, the last |
//!
//! Why not always the last release: while a woken thread gets to its feet others take and release the mutex many times, and the last of these would
//! come out as its waker. The C library wakes one thread at the first release, and no more until that one has looked.
//!
//! What is not seen: the way back into a mutex from `pthread_cond_wait`, which is within the C library.
//!
//! The first wait for a lock begins only when the lock has its name: what was needed to find it is not counted.

use core::ffi::c_int;
use core::mem;

use stanchion_competitive::waits::Observation;
use stanchion_competitive::waits::shared::Shared;

use super::{Mutex, Site, locks};

/// Has `block` wait for the mutex, after an attempt failed, and counts the wait if it ended with the mutex. `again` attempts once more.
#[cold]
#[inline(never)]
pub(super) fn wait(
    table: &Shared,
    mutex: Mutex,
    site: Site,
    again: impl FnOnce() -> c_int,
    block: impl FnOnce() -> c_int,
) -> c_int {
    let lock = match locks::find(mutex.addr()) {
        Some(lock) => Some(lock),
        None => {
            let lock = locks::enter(mutex.addr(), site, table);
            let result = again();
            if result != libc::EBUSY {
                return result;
            }
            lock
        }
    };
    let (others, before) = lock.map_or((0, 0), |lock| (lock.waiting.enter(), lock.releases()));
    let switches = voluntary_switches();
    let since = now();
    let result = block();
    let until = now();
    let blocks = voluntary_switches().saturating_sub(switches);
    let blocked = blocks > 0;
    let mut wait =
        Observation { length_ns: until - since, blocked, others, ..Observation::default() };
    if let Some(lock) = lock {
        lock.waiting.leave();
        let seen = lock.releases().wrapping_sub(before);
        // The last one is that by which it came to this thread.
        wait.holder_changes = seen.saturating_sub(1);
        let turn =
            if blocks == 1 { others.min(seen.saturating_sub(1)) } else { seen.saturating_sub(1) };
        if blocked
            && let Some(released) = lock.released_at(before.wrapping_add(turn))
            && (since..=until).contains(&released)
        {
            wait.length_ns = released - since;
            // Only of a thread that waited alone and was woken once is it certain which release woke it.
            wait.wake_latency_ns = (blocks == 1 && others == 0).then_some(until - released);
        }
    }
    if !blocked {
        wait.spun_ns = wait.length_ns;
    }
    // A mutex whose owner died is had all the same.
    if result == 0 || result == libc::EOWNERDEAD {
        table.add(lock.and_then(locks::Lock::name), &wait);
    }
    result
}

/// The mutex is about to be released.
#[inline]
pub(super) fn releases(mutex: Mutex) {
    if let Some(lock) = locks::find(mutex.addr())
        && lock.waiting.is_any()
    {
        lock.release(now());
    }
}

/// Nanoseconds on the monotonic clock. No system call, and nothing that would have to be set up.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often this thread has left its processor to wait for something.
fn voluntary_switches() -> libc::c_long {
    // SAFETY: plain numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: writes to `usage`.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw
}
