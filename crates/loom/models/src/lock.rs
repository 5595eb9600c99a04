//! The simplest lock there is: the models are about the code that uses it.

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::wait::{Spin, WaitPolicy, retry_until, wait_until};

/// A test-and-set lock. A waiter loads the word before each try.
pub struct Lock(AtomicBool);

// SAFETY: a thread that turns the word from false to true has the lock, and only that thread turns
// it back. Acquire and Release make the sections visible.
unsafe impl RawMutex for Lock {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        retry_until(
            || {
                wait_until(&self.0, Ordering::Relaxed, |locked| !locked, &mut Spin::start());
                self.try_lock()
            },
            &mut Spin::start(),
        )
    }

    fn try_lock(&self) -> Option<GuardSend> {
        // Acquire: pairs with the Release of the thread that had the lock before.
        let taken = self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(GuardSend::new)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        // Release: pairs with the Acquire of the thread that has the lock next.
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
