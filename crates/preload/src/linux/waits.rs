//! A wait for one of the C library's mutexes, measured.
//!
//! The C library does the waiting, as it always would. Seen from outside:
//!
//! | | is taken to be |
//! | --- | --- |
//! | contended | an attempt failed |
//! | blocked | the thread left its processor of its own will meanwhile (`ru_nvcsw`) |
//! | the length | until the last release before the thread came back with the mutex; for a wait that did not block, until it had the mutex |
//! | wake latency | from that release on |
//!
//! What is not seen: which of several releases woke the thread, so of those that came while it was on its way the last counts; and the way back into a mutex from
//! `pthread_cond_wait`, which is within the C library.
//!
//! The first wait for a lock begins only when the lock has its name: what was needed to find it is not counted.

use core::ffi::c_int;
use core::mem;

use machine::atomic::Ordering;
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
    let (others, releases) = lock.map_or((0, 0), |lock| {
        let others = lock.waiting.fetch_add(1, Ordering::Relaxed);
        (others, lock.releases.load(Ordering::Relaxed))
    });
    let switches = voluntary_switches();
    let since = now();
    let result = block();
    let until = now();
    let blocked = voluntary_switches() != switches;
    let mut wait =
        Observation { length_ns: until - since, blocked, others, ..Observation::default() };
    if let Some(lock) = lock {
        lock.waiting.fetch_sub(1, Ordering::Relaxed);
        let seen = lock.releases.load(Ordering::Relaxed).wrapping_sub(releases);
        // The last one is that by which it came to this thread.
        wait.holder_changes = seen.saturating_sub(1);
        let released = lock.released_at.load(Ordering::Relaxed);
        if blocked && (since..=until).contains(&released) {
            wait.length_ns = released - since;
            wait.wake_latency_ns = Some(until - released);
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
        && lock.waiting.load(Ordering::Relaxed) != 0
    {
        lock.released_at.store(now(), Ordering::Relaxed);
        lock.releases.fetch_add(1, Ordering::Relaxed);
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
