//! Measures waits for mutexes of the C library, and waits in calls of `futex`.
//!
//! The C library does the waiting, as it does without the shim. From outside, a wait is measured
//! like this:
//!
//! - It is contended if an attempt failed.
//! - It blocked if the thread left its processor of its own will meanwhile (`ru_nvcsw`), or if that
//!   is not known.
//! - If it blocked, its length ends with the release that woke it. Otherwise it ends when the
//!   thread has the mutex.
//! - The wake latency is the time from that release on. It is recorded only if there is no doubt
//!   which release that was.
//! - The release that woke a thread that blocked once: each other thread that waited before it
//!   takes one release, and the next release is its own. For a thread that blocked more often, it
//!   is the last release.
//!
//! Why not always the last release: while a woken thread gets to run, other threads take and
//! release the mutex many times. The last of these releases would be taken for its waker. The C
//! library wakes one thread at the first release, and no more until that thread has looked.
//!
//! The way back into a mutex from `pthread_cond_wait` is within the C library. It counts as a part
//! of the wait for the condition.
//!
//! The first wait for a lock begins only when the lock has its name. The time to find the name is
//! not counted.
//!
//! A wait in `futex` is one call. It begins before its path of calls is found, because the thread
//! would wait in that time too. If the word changes meanwhile, the call ends at once and does not
//! count: waits that are shorter than it takes to find the path are not seen. Several threads may
//! wake others by one word at once, so the time of the release that ended a wait is known only if
//! there was one release.
//!
//! # The waker
//!
//! A release has the number of its thread, which is the waker of the thread that it woke. It is
//! noted only while a thread waits. Of several releases during a wait, the one that woke the waiter
//! is chosen by its turn, as above. So a waker can be wrong if waiters overtake each other, or if
//! one release wakes several of them. A release outside of the wait is never taken for its end.
//!
//! At a barrier, the last thread that arrives wakes the others. A thread that is joined wakes the
//! other one by its end. Wakers in other processes are not known.

use core::ffi::{c_int, c_long};
use core::mem;

use stanchion_competitive::waits::current::Kind;
use stanchion_competitive::waits::shared::Shared;
use stanchion_competitive::waits::{Loss, Observation};

pub(super) use super::current::now;
use super::current::{self, Place};
use super::locks::Release;
use super::{Mutex, Site, errno, filter, locks, table};

/// Calls `block` to wait for the mutex, after an attempt failed. If the wait ended with the mutex,
/// counts it. `again` attempts once more.
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
    let name = lock.and_then(locks::Lock::name);
    let place = Place { kind: Kind::Mutex, address: mutex.addr(), name, since };
    let result = current::during(table, &place, block);
    let until = now();
    let blocks = switches_since(switches);
    // An attempt failed, and the C library's locks block then.
    let blocked = blocks != Some(0);
    let mut wait =
        Observation { length_ns: until - since, blocked, others, ..Observation::default() };
    let mut waker = 0;
    if let Some(lock) = lock {
        lock.waiting.leave();
        let seen = lock.releases().wrapping_sub(before);
        // The last release is the one that gave this thread the mutex.
        wait.holder_changes = seen.saturating_sub(1);
        let turn = if blocks == Some(1) { others } else { u32::MAX };
        if let Some(release) = end_of(lock, before, turn, since, until) {
            waker = release.by;
            if blocked {
                wait.length_ns = release.at - since;
                // If the thread waited alone and was woken once, it is certain which release woke
                // it. Otherwise it is not.
                wait.wake_latency_ns =
                    (blocks == Some(1) && others == 0).then_some(until - release.at);
            }
        }
    }
    if !blocked {
        wait.spun_ns = wait.length_ns;
    }
    // A mutex with a dead owner is acquired too.
    if result == 0 || result == libc::EOWNERDEAD {
        current::count(table, name, &wait, since, waker);
    }
    result
}

/// The address of a wait for several words.
pub(super) const SEVERAL: usize = 0;

/// Returns the release that ended a wait from `since` to `until`: number `turn` of those that came
/// after the first `before`, or the last one if there are fewer.
fn end_of(lock: &locks::Lock, before: u32, turn: u32, since: u64, until: u64) -> Option<Release> {
    let seen = lock.releases().wrapping_sub(before);
    let last = seen.checked_sub(1)?;
    let release = lock.released(before.wrapping_add(turn.min(last)))?;
    (since..=until).contains(&release.at).then_some(release)
}

/// Calls `block` to wait for the word at `address`, or for [`SEVERAL`]. If that was a wait, counts
/// it as one that began at `since`.
#[cold]
#[inline(never)]
pub(super) fn futex(
    table: &Shared,
    address: usize,
    since: u64,
    name: Option<u32>,
    block: impl FnOnce() -> c_long,
) -> c_long {
    let word = if address == SEVERAL { None } else { locks::word(address) };
    let (others, before) = word.map_or((0, 0), |word| (word.waiting.enter(), word.releases()));
    let place = Place { kind: Kind::Futex, address, name, since };
    let result = current::during(table, &place, block);
    let until = now();
    // A wait that ends with its time or with a signal is one. If the word had another value, the
    // wait never began. A wait for several words returns the number of the word that ended it.
    let waited = result >= 0 || matches!(errno::last(), libc::ETIMEDOUT | libc::EINTR);
    let mut wait = Observation {
        length_ns: until.saturating_sub(since),
        blocked: true,
        // Threads that wait for the same lock may wait for words of their own.
        others: Observation::UNKNOWN,
        ..Observation::default()
    };
    let mut waker = 0;
    if let Some(word) = word {
        word.waiting.leave();
        if result == 0
            && let Some(release) = end_of(word, before, others, since, until)
        {
            waker = release.by;
            if word.releases().wrapping_sub(before) == 1 {
                wait.length_ns = release.at - since;
                wait.wake_latency_ns = Some(until - release.at);
            }
        }
    }
    if waited {
        current::count(table, name, &wait, since, waker);
    }
    result
}

/// A call that takes at least so many nanoseconds is a wait if the thread's switches are not known.
const LEAST_NS: u64 = 20_000;

/// The thread that ends a wait in another function of the C library.
#[derive(Clone, Copy)]
pub(super) enum Waker {
    /// None is known.
    Unknown,
    /// The thread of that number.
    Thread(u32),
    /// The thread that wakes the waiter by the address of the place, when its turn comes.
    InTurn,
    /// The same. If the waiter was overtaken and slept again, the last of these threads.
    Overtakable,
    /// The last thread that wakes the waiters by the address of the place.
    Last,
}

/// Calls `block` to wait in another function of the C library. If the thread left its processor,
/// counts a wait at that place.
#[cold]
#[inline(never)]
pub(super) fn call(
    table: &Shared,
    place: &Place,
    waker: Waker,
    block: impl FnOnce() -> c_int,
) -> c_int {
    let is_woken = !matches!(waker, Waker::Unknown | Waker::Thread(_));
    let word = if is_woken { locks::word(place.address) } else { None };
    let (ahead, before) = word.map_or((0, 0), |word| (word.waiting.enter(), word.releases()));
    let switches = voluntary_switches();
    let result = current::during(table, place, block);
    let until = now();
    if let Some(word) = word {
        word.waiting.leave();
    }
    let length_ns = until.saturating_sub(place.since);
    let blocks = switches_since(switches);
    if blocks.map_or(length_ns >= LEAST_NS, |blocks| blocks > 0) {
        let others = Observation::UNKNOWN;
        let wait = Observation { length_ns, blocked: true, others, ..Observation::default() };
        let waker = match (waker, word) {
            (Waker::Thread(thread), _) if result == 0 => thread,
            (_, Some(word)) if result != libc::ETIMEDOUT => {
                let turn = match waker {
                    Waker::InTurn => ahead,
                    Waker::Overtakable if blocks == Some(1) => ahead,
                    _ => u32::MAX,
                };
                end_of(word, before, turn, place.since, until).map_or(0, |release| release.by)
            }
            _ => 0,
        };
        current::count(table, place.name, &wait, place.since, waker);
    }
    result
}

/// Records a wake-up by the word at `address`, which is about to happen.
#[inline]
pub(super) fn wakes(address: usize) {
    if let Some(word) = locks::known_word(address)
        && word.waiting.is_any()
    {
        word.release(release());
    }
}

/// Records a release of the mutex, which is about to happen.
#[inline]
pub(super) fn releases(mutex: Mutex) {
    if let Some(lock) = locks::find(mutex.addr())
        && lock.waiting.is_any()
    {
        lock.release(release());
    }
}

/// Returns a release by this thread, now.
#[cold]
fn release() -> Release {
    let (by, at) = current::waker();
    Release { at, by }
}

/// Returns how often this thread has left its processor to wait, if the kernel tells it.
fn voluntary_switches() -> Option<libc::c_long> {
    let _permit = filter::permit()?;
    // SAFETY: plain numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: writes to `usage`.
    let result = errno::kept(|| unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) });
    if result != 0 {
        table::lose(Loss::Switches);
        return None;
    }
    Some(usage.ru_nvcsw)
}

/// Returns how often this thread has left its processor since it had done so `before` times.
fn switches_since(before: Option<libc::c_long>) -> Option<libc::c_long> {
    Some(voluntary_switches()?.saturating_sub(before?))
}
