//! Locks that are broken on purpose: one for each property that the harness checks.
//!
//! | lock | how it is broken | what the harness must report |
//! | --- | --- | --- |
//! | [`RawBusted`] | test-and-set with a separate test and set | two holders at once |
//! | [`RawBustedUnlock`] | unlocks with `Relaxed` | a data race, by ThreadSanitizer |
//! | [`RawBustedWake`] | forgets to unlock now and then | no progress |
//! | [`RawBustedFair`] | serves one thread and no other | a starved thread |
//!
//! x86 hides the data race of [`RawBustedUnlock`], so only ThreadSanitizer can report it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use lock_api::{GuardSend, RawMutex};

/// A test-and-set lock in two steps: between the test and the set another thread may pass the test
/// too.
#[derive(Debug)]
pub struct RawBusted(AtomicBool);

// SAFETY: none, on purpose: it does not exclude. No code of this package relies on it.
unsafe impl RawMutex for RawBusted {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::hint::spin_loop, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        // Acquire and Release as in a correct lock: only the gap between the two is wrong.
        if self.0.load(Ordering::Acquire) {
            return None;
        }
        // Widens the gap from a nanosecond to about a microsecond, so that a second of torture is
        // sure to hit it.
        for _ in 0..32 {
            std::hint::spin_loop();
        }
        // Release, as above.
        self.0.store(true, Ordering::Release);
        Some(GuardSend::new())
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.0.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        // Release: pairs with the Acquire of `try_lock`.
        self.0.store(false, Ordering::Release);
    }
}

/// A test-and-set lock that releases with `Relaxed`: the next holder need not see the last holder's
/// writes.
#[derive(Debug)]
pub struct RawBustedUnlock(AtomicBool);

// SAFETY: there is one holder at a time, but no synchronization between two holders. Only
// ThreadSanitizer's run uses it.
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
        // Relaxed: this is the bug.
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A lock that loses one release in 10,000. All later waiters wait for ever.
#[derive(Debug)]
pub struct RawBustedWake {
    /// Held or free. The holder frees it, except when a release is lost.
    locked: AtomicBool,
    /// The number of releases. The holder writes it.
    releases: AtomicU32,
}

// SAFETY: it excludes: the compare-exchange below admits one holder.
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
        // Relaxed: only the holder touches the count.
        if self.releases.fetch_add(1, Ordering::Relaxed) % 10_000 != 9_999 {
            // Release: pairs with the Acquire of `take`.
            self.locked.store(false, Ordering::Release);
        }
    }
}

/// A lock that serves only its favourite: the first thread that asked.
#[derive(Debug)]
pub struct RawBustedFair {
    /// Held or free. Only the favourite writes it.
    locked: AtomicBool,
    /// The number of the favourite, or 0 before the first attempt. The first thread writes it.
    favourite: AtomicUsize,
}

// SAFETY: it excludes. It is not fair, but `RawMutex` does not promise fairness.
unsafe impl RawMutex for RawBustedFair {
    const INIT: Self = Self { locked: AtomicBool::new(false), favourite: AtomicUsize::new(0) };
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        until(std::thread::yield_now, || self.try_lock())
    }

    fn try_lock(&self) -> Option<GuardSend> {
        let me = this_thread();
        // Relaxed: the choice of the favourite publishes nothing. `take` orders the critical
        // sections.
        let first = self.favourite.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() || first == Err(me) { take(&self.locked) } else { None }
    }

    fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that is stale at once.
        self.locked.load(Ordering::Relaxed)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        // Release: pairs with the Acquire of `take`.
        self.locked.store(false, Ordering::Release);
    }
}

/// Takes the lock correctly: one holder at a time.
fn take(locked: &AtomicBool) -> Option<GuardSend> {
    // Relaxed on failure: nothing was taken, and nothing is read.
    let got = locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
    got.ok().map(|_| GuardSend::new())
}

/// Repeats an attempt until it succeeds, with a pause after each failure.
fn until(pause: fn(), attempt: impl Fn() -> Option<GuardSend>) -> GuardSend {
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
        pause();
    }
}

/// Returns a number that differs between threads alive at the same time: the address of a
/// thread-local.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
