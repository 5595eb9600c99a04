//! Locks that are broken on purpose. A property that one of them survives tests nothing.

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A lock that looks and then takes: two threads may look before either takes.
#[derive(Debug)]
pub(crate) struct Racy(AtomicBool);

// SAFETY: none, on purpose. Tests expect this lock to fail, and use payloads that survive a race.
unsafe impl RawMutex for Racy {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            stanchion_machine::thread::yield_now();
        }
    }

    fn try_lock(&self) -> Option<GuardSend> {
        if self.0.load(Ordering::Acquire) {
            return None;
        }
        stanchion_machine::thread::yield_now();
        self.0.store(true, Ordering::Relaxed);
        Some(GuardSend::new())
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A lock that stores its own address while it is held. So it counts as free when it is moved.
#[derive(Debug)]
pub(crate) struct Addressed(AtomicPtr<Addressed>);

impl Addressed {
    fn here(&self) -> *mut Self {
        core::ptr::from_ref(self).cast_mut()
    }
}

// SAFETY: as sound as test-and-set until it is moved while held. The test does that.
unsafe impl RawMutex for Addressed {
    const INIT: Self = Self(AtomicPtr::new(core::ptr::null_mut()));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            stanchion_machine::thread::yield_now();
        }
    }

    fn try_lock(&self) -> Option<GuardSend> {
        let seen = self.0.load(Ordering::Relaxed);
        if seen == self.here() {
            return None;
        }
        self.0
            .compare_exchange(seen, self.here(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(GuardSend::new)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.0.store(core::ptr::null_mut(), Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) == self.here()
    }
}
