//! Locks that are broken on purpose, one for each property that the harness claims to check.
//!
//! | lock | broken how | must be caught as |
//! | --- | --- | --- |
//! | [`RawBusted`] | test-and-set with a separate test and set | two holders at once |
//! | [`RawBustedUnlock`] | unlocks with `Relaxed` | a data race, by ThreadSanitizer (x86 hides it) |
//! | [`RawBustedWake`] | now and then forgets to unlock | no progress |
//! | [`RawBustedFair`] | serves one thread and no other | a starved thread |

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use lock_api::{GuardSend, RawMutex};

/// Test-and-set in two steps: between the test and the set another thread may pass the test too.
#[derive(Debug)]
pub struct RawBusted(AtomicBool);

// SAFETY: none, and that is its purpose: it does not exclude. Nothing in this package hangs a reference on it.
unsafe impl RawMutex for RawBusted {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::hint::spin_loop, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        // Acquire and Release as a right lock has them: only the gap between the two is wrong.
        if self.0.load(Ordering::Acquire) {
            return None;
        }
        // Widens the gap from a nanosecond to about a microsecond, so that a second of torture is sure to hit it.
        for _ in 0..32 {
            std::hint::spin_loop();
        }
        self.0.store(true, Ordering::Release);
        Some(GuardSend::new())
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.0.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.0.store(false, Ordering::Release);
    }
}

/// Test-and-set that releases with `Relaxed`: what the holder wrote need not be seen by the next.
#[derive(Debug)]
pub struct RawBustedUnlock(AtomicBool);

// SAFETY: one holder at a time, but no synchronization between two of them; only ThreadSanitizer's run uses it.
unsafe impl RawMutex for RawBustedUnlock {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::hint::spin_loop, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        take(&self.0)
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.0.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        // Relaxed is the bug.
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Loses one release in 10,000: whoever waits then waits for ever.
#[derive(Debug)]
pub struct RawBustedWake {
    locked: AtomicBool,
    releases: AtomicU32,
}

// SAFETY: it excludes, too well: the compare-exchange below admits one holder.
unsafe impl RawMutex for RawBustedWake {
    const INIT: Self = Self { locked: AtomicBool::new(false), releases: AtomicU32::new(0) };
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::thread::yield_now, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        take(&self.locked)
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.locked.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        // Relaxed: a count that only the holder touches.
        if self.releases.fetch_add(1, Ordering::Relaxed) % 10_000 != 9_999 {
            self.locked.store(false, Ordering::Release);
        }
    }
}

/// Serves its favourite, the first thread that ever asked, and nobody else.
#[derive(Debug)]
pub struct RawBustedFair {
    locked: AtomicBool,
    favourite: AtomicUsize,
}

// SAFETY: it excludes; it is not fair, which `RawMutex` does not promise.
unsafe impl RawMutex for RawBustedFair {
    const INIT: Self = Self { locked: AtomicBool::new(false), favourite: AtomicUsize::new(0) };
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::thread::yield_now, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        let me = this_thread();
        // Relaxed: which thread is the favourite publishes nothing; the lock itself is in `take`.
        let first = self.favourite.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() || first == Err(me) { take(&self.locked) } else { None }
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.locked.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.locked.store(false, Ordering::Release);
    }
}

/// What the right half of these locks is: one holder at a time.
fn take(locked: &AtomicBool) -> Option<GuardSend> {
    // Relaxed on failure: nothing was taken, nothing is read.
    let got = locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
    got.ok().map(|_| GuardSend::new())
}

fn until(pause: fn(), attempt: impl Fn() -> Option<GuardSend>) -> GuardSend {
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
        pause();
    }
}

/// A number that differs between threads alive at the same time: the address of a thread-local.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
