//! The traits of condition variables: their waits release a checked mutex and take it again.

use lock_api::{RawCondvar, RawCondvarTimed, RawMutex, RawMutexTimed};
use stanchion_order::Mode::Exclusive;

use crate::checked::Checked;

/// The guard of a condition variable's mutex.
type Guard<C> = <<C as RawCondvar>::RawMutex as RawMutex>::Guard;

// SAFETY: each call is one of the wrapped condition variable, with its mutex.
unsafe impl<C: RawCondvar> RawCondvar for Checked<C> {
    const INIT: Self = Self::constant(C::INIT);

    type RawMutex = Checked<C::RawMutex>;

    #[track_caller]
    unsafe fn wait(&self, mutex: &Self::RawMutex, guard: &mut Guard<C>) {
        // SAFETY: the caller passes the guard of an acquisition of this mutex.
        let wait = || unsafe { self.raw.wait(&mutex.raw, guard) };
        mutex.identity.reacquiring(Exclusive, wait);
    }

    fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }
}

// SAFETY: as above.
unsafe impl<C: RawCondvarTimed> RawCondvarTimed for Checked<C>
where
    C::RawMutex: RawMutexTimed,
{
    fn checked_duration_to_instant(
        timeout: &<C::RawMutex as RawMutexTimed>::Duration,
    ) -> Option<<C::RawMutex as RawMutexTimed>::Instant> {
        C::checked_duration_to_instant(timeout)
    }

    #[track_caller]
    unsafe fn wait_until(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut Guard<C>,
        timeout: &<C::RawMutex as RawMutexTimed>::Instant,
    ) -> bool {
        // SAFETY: the caller passes the guard of an acquisition of this mutex.
        let wait = || unsafe { self.raw.wait_until(&mutex.raw, guard, timeout) };
        mutex.identity.reacquiring(Exclusive, wait)
    }
}
