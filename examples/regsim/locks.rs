//! The locks a run can have: one line each.

use lock_api::RawMutex;
use stanchion_applications::regsim::{self, Netlist, Options, Run};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock by name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Netlist, &Options) -> Run,
}

macro_rules! locks {
    ($($name:literal: $lock:ty, $about:literal;)+) => {
        /// Every lock.
        pub(crate) const LOCKS: &[Entry] = &[
            $(Entry { name: $name, about: $about, run: regsim::run::<$lock> }),+
        ];
    };
}

locks! {
    "test-and-set": stanchion_spin::TestAndSet, "ours: a bit, Ethernet-style backoff; unfair, 1 byte";
    "ticket": stanchion_spin::Ticket, "ours: first come, first served, proportional backoff";
    "anderson": stanchion_spin::Anderson<16>, "ours: array lock, a slot per waiter";
    "clh": stanchion_spin::Clh, "ours: queue lock, waits on its predecessor's node";
    "mcs": stanchion_spin::Mcs, "ours: queue lock, waits on its own node";
    "time-published-mcs": stanchion_spin::TimePublishedMcs, "ours: queue lock that passes over preempted waiters";
    "parking_lot": parking_lot::RawMutex, "peer: a byte, spins a little, then parks";
    "std": Std, "peer: std::sync::Mutex, spins a little, then parks";
}

/// The lock of a run that names none.
pub(crate) const DEFAULT: &str = "mcs";

/// The lock called `name`, which the parser of the arguments has let through.
pub(crate) fn find(name: &str) -> &'static Entry {
    LOCKS.iter().find(|lock| lock.name == name).expect("clap lets only names of the table through")
}

/// `std::sync::Mutex` in the shape of `lock_api`: the state of an acquisition is std's own guard.
pub(crate) struct Std(Mutex<()>);

impl Std {
    /// Lets a guard outlive the borrow it came from.
    fn keep(guard: MutexGuard<'_, ()>) -> MutexGuard<'static, ()> {
        // SAFETY: only the lifetime changes. lock_api keeps the guard inside its own, which borrows the lock
        // for as long as it lives; a guard that is forgotten is never used again.
        unsafe { core::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) }
    }
}

// SAFETY: exclusion, acquire and release are those of `std::sync::Mutex`.
unsafe impl RawMutex for Std {
    const INIT: Self = Self(Mutex::new(()));
    type Guard = MutexGuard<'static, ()>;

    fn lock(&self) -> Self::Guard {
        // There is no data to be poisoned: `lock_api` locks do not know poison.
        Self::keep(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        match self.0.try_lock() {
            Ok(guard) => Some(Self::keep(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Self::keep(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    unsafe fn unlock(&self, guard: Self::Guard) {
        drop(guard);
    }

    fn is_locked(&self) -> bool {
        matches!(self.0.try_lock(), Err(TryLockError::WouldBlock))
    }
}
