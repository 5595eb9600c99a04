//! Code that the models share.
//!
//! The lock is the simplest there is: the models are about the code that uses it.

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::wait::{Spin, WaitPolicy, retry_until, wait_until};

/// Checks `body`, and prints the number of executions.
pub(crate) fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A test-and-set lock. A waiter loads the word before each try.
pub(crate) struct Lock(AtomicBool);

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
        self.0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(GuardSend::new)
    }

    unsafe fn unlock(&self, _guard: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
