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
