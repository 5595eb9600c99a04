//! Other crates' mutexes as raw locks of `lock_api` 0.5, so that an application can run on them.
//!
//! A raw lock of `lock_api` 0.5 returns a state of its own with each acquisition. Here that state
//! is the other crate's guard, and unlocking drops it. So the lock is used as its authors intended,
//! through its public interface only.
//!
//! # Invariants
//!
//! 1. A guard kept as `'static` is dropped before the mutex it borrows from. `lock_api` keeps the
//!    state in a guard that borrows the `lock_api::Mutex`, so the mutex can neither move nor be
//!    dropped while the state exists. A forgotten state is never dropped at all.

use lock_api::RawMutex;

/// A mutex of another crate that guards `()`.
///
/// # Safety
///
/// At most one guard exists at a time. Dropping it releases the lock, on whichever thread holds the
/// guard.
pub unsafe trait Guarded: Send + Sync + 'static {
    /// The mutex in its unlocked state.
    const UNLOCKED: Self;
    /// The mutex's guard.
    type Guard<'a>;

    /// Waits until the mutex is free and takes it.
    fn lock(&self) -> Self::Guard<'_>;
    /// Takes the mutex if it is free.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Extends the lifetime of `guard` to `'static`.
    ///
    /// # Safety
    ///
    /// If the result is dropped, that is before the mutex is moved or dropped.
    unsafe fn outlive(guard: Self::Guard<'_>) -> Self::Guard<'static>;
}

/// A raw lock made of a [`Guarded`] mutex.
pub struct FromGuard<G>(G);

// SAFETY: a state is the mutex's own guard, and at most one guard exists at a time by `Guarded`'s
// contract.
unsafe impl<G: Guarded> RawMutex for FromGuard<G> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(G::UNLOCKED);

    type Guard = G::Guard<'static>;

    #[inline]
    fn lock(&self) -> Self::Guard {
        // SAFETY: by invariant 1.
        unsafe { G::outlive(self.0.lock()) }
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        // SAFETY: by invariant 1.
        self.0.try_lock().map(|guard| unsafe { G::outlive(guard) })
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        drop(guard);
    }

    fn is_locked(&self) -> bool {
        self.0.try_lock().is_none()
    }
}

macro_rules! guarded {
    (
        $(#[$about:meta])* $name:ident, $mutex:ty, $($guard:ident)::+,
        |$inner:ident| $lock:expr, $try_lock:expr
    ) => {
        $(#[$about])*
        pub struct $name($mutex);

        // SAFETY: it is a mutex, and its data are reached only through its guard. No guard requires
        // that the locking thread drops it.
        unsafe impl Guarded for $name {
            #[allow(clippy::declare_interior_mutable_const)]
            const UNLOCKED: Self = Self(<$mutex>::new(()));
            type Guard<'a> = $($guard)::+<'a, ()>;

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                let $inner = &self.0;
                $lock
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard<'_>> {
                let $inner = &self.0;
                $try_lock
            }

            #[inline]
            unsafe fn outlive(guard: Self::Guard<'_>) -> Self::Guard<'static> {
                // SAFETY: only the lifetime changes, and the caller guarantees that the guard does
                // not outlive its mutex.
                unsafe { std::mem::transmute::<Self::Guard<'_>, Self::Guard<'static>>(guard) }
            }
        }
    };
}

guarded!(
    /// The standard library's mutex. No thread panics while it holds the lock here, so poison does
    /// not matter.
    Std, std::sync::Mutex<()>, std::sync::MutexGuard,
    |mutex| mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner), mutex.try_lock().ok()
);
guarded!(
    /// The `spin` crate's test-and-set lock.
    Spin, peer_spin::mutex::SpinMutex<()>, peer_spin::mutex::SpinMutexGuard,
    |mutex| mutex.lock(), mutex.try_lock()
);
guarded!(
    /// The `spin` crate's ticket lock.
    SpinTicket, peer_spin::mutex::TicketMutex<()>, peer_spin::mutex::TicketMutexGuard,
    |mutex| mutex.lock(), mutex.try_lock()
);
guarded!(
    /// `mcslock`'s MCS lock behind a flag.
    McsBarging, mcslock::barging::spins::Mutex<()>, mcslock::barging::spins::MutexGuard,
    |mutex| mutex.lock(), mutex.try_lock()
);

#[cfg(test)]
mod tests {
    use super::*;

    fn excludes<G: Guarded>() {
        let lock = FromGuard::<G>::INIT;
        assert!(!lock.is_locked());
        let state = lock.lock();
        assert!(lock.is_locked());
        assert!(lock.try_lock().is_none());
        // SAFETY: the state of the acquisition above.
        unsafe { lock.unlock(state) };
        let state = lock.try_lock().expect("it is free");
        // SAFETY: the state of the acquisition above.
        unsafe { lock.unlock(state) };
        assert!(!lock.is_locked());
    }

    #[test]
    fn all_exclude() {
        excludes::<Std>();
        excludes::<Spin>();
        excludes::<SpinTicket>();
        excludes::<McsBarging>();
    }
}
