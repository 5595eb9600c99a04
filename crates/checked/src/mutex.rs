//! The traits of mutexes.

use lock_api::{RawMutex, RawMutexFair, RawMutexTimed};
use stanchion_order::Mode::Exclusive;

use crate::checked::Checked;

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawMutex> RawMutex for Checked<R> {
    const INIT: Self = Self::constant(R::INIT);

    type Guard = R::Guard;

    #[inline]
    #[track_caller]
    fn lock(&self) -> R::Guard {
        self.take(Exclusive, R::try_lock, R::lock)
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<R::Guard> {
        self.attempt(Exclusive, self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, guard: R::Guard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Exclusive).unlock(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawMutexFair> RawMutexFair for Checked<R> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: R::Guard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Exclusive).unlock_fair(guard) };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump(&self, guard: &mut R::Guard) {
        // SAFETY: as above.
        self.identity.reacquiring(Exclusive, || unsafe { self.raw.bump(guard) });
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Checked<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<R::Guard> {
        self.try_take(Exclusive, |raw| raw.try_lock_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<R::Guard> {
        self.try_take(Exclusive, |raw| raw.try_lock_until(timeout))
    }
}
