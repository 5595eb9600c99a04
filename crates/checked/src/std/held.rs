//! The part of a guard that reports, and results of `std` with another guard in them.

use std::mem;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use stanchion_order::{Identity, Mode};

/// An acquisition that ends when it is dropped. A guard has it before the guard of `std`, so that
/// it ends before the lock is free.
pub(super) struct Held<'a> {
    /// The lock's identity.
    identity: &'a Identity,
    /// The mode in which it is held.
    mode: Mode,
}

impl<'a> Held<'a> {
    /// Notes that the lock is held.
    #[inline]
    #[track_caller]
    pub(super) fn new(identity: &'a Identity, mode: Mode) -> Self {
        identity.acquired(mode);
        Self { identity, mode }
    }

    /// Runs the wait of a condition variable, which releases the lock and takes it again. If it
    /// panics, then `std` has released the lock.
    #[track_caller]
    pub(super) fn waiting<R>(self, wait: impl FnOnce() -> R) -> (Self, R) {
        let result = self.identity.reacquiring(self.mode, wait);
        (self, result)
    }

    /// Returns the identity of a lock that is held on.
    pub(super) fn into_identity(self) -> &'a Identity {
        let identity = self.identity;
        mem::forget(self);
        identity
    }

    /// Takes charge of an acquisition that was noted.
    pub(super) fn noted(identity: &'a Identity, mode: Mode) -> Self {
        Self { identity, mode }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.identity.released(self.mode);
    }
}

/// Takes a lock by `block`, after an attempt if that is recorded.
#[inline]
#[track_caller]
pub(super) fn take<G>(
    identity: &Identity,
    mode: Mode,
    attempt: impl FnOnce() -> TryLockResult<G>,
    block: impl FnOnce() -> LockResult<G>,
) -> (Held<'_>, LockResult<G>) {
    let attempt = || match attempt() {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    };
    let result = identity.acquire(mode, attempt, block);
    (Held::noted(identity, mode), result)
}

/// Replaces what is in a result, poisoned or not.
pub(super) fn map<T, U>(result: LockResult<T>, with: impl FnOnce(T) -> U) -> LockResult<U> {
    match result {
        Ok(value) => Ok(with(value)),
        Err(poisoned) => Err(PoisonError::new(with(poisoned.into_inner()))),
    }
}

/// Replaces what is in the result of an attempt, poisoned or not.
#[inline]
#[track_caller]
pub(super) fn attempt<'a, T, U>(
    result: TryLockResult<T>,
    identity: &'a Identity,
    mode: Mode,
    with: impl FnOnce(Held<'a>, T) -> U,
) -> TryLockResult<U> {
    match result {
        Ok(value) => Ok(with(Held::new(identity, mode), value)),
        Err(TryLockError::Poisoned(poisoned)) => Err(TryLockError::Poisoned(PoisonError::new(
            with(Held::new(identity, mode), poisoned.into_inner()),
        ))),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_wait_that_panics_leaves_the_lock_free() {
        stanchion_order::switch_on();
        let lock = Identity::new();
        let held = Held::new(&lock, Mode::Exclusive);
        let wait = || held.waiting(|| panic!("the mutex is another one"));
        assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
        lock.acquiring(Mode::Exclusive);
        let report = stanchion_order::report();
        assert_eq!((report.recursions.len(), report.losses.unseen_releases), (0, 0), "{report}");
    }
}
