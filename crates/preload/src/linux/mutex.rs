//! A mutex of the shim in the memory of the C library's mutex.
//!
//! # Invariants
//!
//! 1. Bytes 0 to 15 of a replaced mutex are a [`RawPolicyMutex`]. Zeros are a free one, except for
//!    its policy.
//! 2. Only waiters look at the policy. Each waiter first makes sure that the policy has begun
//!    ([`begin`]).
//!
//! Two waiters may begin the policy at once, and one of them late. Then the policy forgets what it
//! had learnt. A waiter does not wait for the other, because in the child of a fork that could last
//! for ever.

use core::ffi::c_int;
use core::mem::{self, ManuallyDrop};
use core::ptr;
use core::time::Duration;

use lock_api::{GuardNoSend, RawMutex as _, RawMutexTimed as _};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Contention, Policy, Wait};
use stanchion_competitive::waits::Observation;
use stanchion_competitive::waits::current::Kind;
use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::atomic::{AtomicU32, Ordering};

use super::current::{self, Place};
use super::deadline::Moment;
use super::layout::word;
use super::until::Until;
use super::{Mutex, Site, errno, locks, table};

/// The offset of the word that says whether the policy has begun.
const BEGUN: usize = 24;

/// The functions for mutexes of one policy.
pub(super) struct Operations {
    /// Tries to lock. Returns whether it succeeded.
    try_lock: unsafe fn(Mutex) -> bool,
    /// Locks.
    // A policy or the mutex itself may panic, and no caller expects that. `extern "C"` makes a
    // panic end the process, here and in the next function.
    lock: unsafe extern "C" fn(Mutex),
    /// Locks within a time. Returns whether it succeeded.
    lock_for: unsafe extern "C" fn(Mutex, &Duration) -> bool,
    /// Unlocks.
    unlock: unsafe fn(Mutex),
    /// Returns whether the mutex is held.
    is_locked: unsafe fn(Mutex) -> bool,
    /// Drops the policy, if it has begun.
    end: unsafe fn(Mutex),
}

impl Operations {
    pub(super) const fn of<P: Policy>() -> Self {
        assert!(mem::size_of::<RawPolicyMutex<Told<P>>>() <= 16);
        assert!(mem::align_of::<RawPolicyMutex<Told<P>>>() <= 8);
        assert!(mem::size_of::<P>().is_multiple_of(4));
        Self {
            try_lock: |mutex| {
                // SAFETY: Invariant 1.
                unsafe { raw::<P>(mutex) }.try_lock().is_some()
            },
            lock: lock_waiting::<P>,
            lock_for: lock_for::<P>,
            unlock: |mutex| {
                // SAFETY: Invariant 1.
                let raw = unsafe { raw::<P>(mutex) };
                // SAFETY: the program's promise that it holds the lock.
                unsafe { raw.unlock(GuardNoSend::new()) };
            },
            is_locked: |mutex| {
                // SAFETY: Invariant 1.
                unsafe { raw::<P>(mutex) }.is_locked()
            },
            end: |mutex| {
                // Acquire: pairs with the Release of `begin`.
                // SAFETY: a mutex.
                if unsafe { word(mutex, BEGUN) }.swap(0, Ordering::Acquire) != 0 {
                    let policy = policy::<P>(mutex);
                    // SAFETY: the policy has begun. The program destroys the mutex, so no other
                    // thread uses it.
                    unsafe { ptr::drop_in_place(policy) };
                }
            },
        }
    }
}

/// Locks a mutex that was held at the last try.
unsafe extern "C" fn lock_waiting<P: Policy>(mutex: Mutex) {
    // SAFETY: the caller's promise.
    unsafe { begin::<P>(mutex) };
    // SAFETY: Invariant 1. Released by `unlock`.
    let _ = unsafe { raw::<P>(mutex) }.lock();
}

/// Locks a mutex that was held at the last try, within a time.
unsafe extern "C" fn lock_for<P: Policy>(mutex: Mutex, time: &Duration) -> bool {
    // SAFETY: the caller's promise.
    unsafe { begin::<P>(mutex) };
    // SAFETY: Invariant 1.
    unsafe { raw::<P>(mutex) }.try_lock_for(*time).is_some()
}

/// Returns the mutex in the memory of the program's mutex.
///
/// # Safety
///
/// The mutex must be replaced, and outlive `'a`.
unsafe fn raw<'a, P: Policy>(mutex: Mutex) -> &'a RawPolicyMutex<Told<P>> {
    // SAFETY: Invariant 1; large enough and aligned, as asserted in `of`.
    unsafe { &*mutex.cast() }
}

/// Returns the offset of the policy in the mutex.
fn offset<P: Policy>() -> usize {
    let sample = ManuallyDrop::new(RawPolicyMutex::<Told<P>>::INIT);
    ptr::from_ref(sample.policy()).addr() - (&raw const sample).addr()
}

/// Returns the policy of a mutex.
fn policy<P: Policy>(mutex: Mutex) -> *mut Told<P> {
    mutex.cast::<u8>().wrapping_add(offset::<P>()).cast()
}

/// Writes the policy's first value, if that has not been done (Invariant 2).
unsafe fn begin<P: Policy>(mutex: Mutex) {
    // SAFETY: the caller's promise.
    let begun = unsafe { word(mutex, BEGUN) };
    // Acquire: pairs with the Release below.
    if mem::size_of::<P>() == 0 || begun.load(Ordering::Acquire) != 0 {
        return;
    }
    let first = ManuallyDrop::new(Told::<P>::INIT);
    let from = (&raw const first).cast::<u32>();
    for index in 0..mem::size_of::<P>() / 4 {
        // SAFETY: a policy consists of atomic 32-bit integers, so all of its bytes are initialized.
        let value = unsafe { from.wrapping_add(index).read() };
        // SAFETY: within the mutex.
        let place = unsafe { word(mutex, offset::<P>() + index * 4) };
        place.store(value, Ordering::Relaxed);
    }
    // Release: pairs with the Acquire above.
    begun.store(1, Ordering::Release);
}

/// A policy that records its waits in the shared table.
struct Told<P>(P);

impl<P: Policy> Policy for Told<P> {
    const INIT: Self = Self(P::INIT);

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        self.0.threshold(contention)
    }

    #[inline]
    fn keep_spinning(&self, contention: &Contention) -> bool {
        self.0.keep_spinning(contention)
    }

    fn adjust(&self, wait: &Wait) {
        self.0.adjust(wait);
        if let Some(table) = table::recorded() {
            let mutex = ptr::from_ref(self).addr().wrapping_sub(offset::<P>());
            let name = locks::find(mutex).and_then(locks::Lock::name);
            let wait = Observation::from(wait);
            let length_ns = wait.length_ns.saturating_add(wait.wake_latency_ns.unwrap_or(0));
            let since = current::now().saturating_sub(length_ns);
            current::count(table, name, &wait, since, 0);
        }
    }
}

/// Locks a replaced mutex.
pub(super) unsafe fn lock(
    operations: &Operations,
    table: &Shared,
    mutex: Mutex,
    site: Site,
    until: Until,
) -> c_int {
    // SAFETY: the caller's promise.
    let attempt = || unsafe { (operations.try_lock)(mutex) };
    if attempt() {
        return 0;
    }
    let mut lock = locks::find(mutex.addr());
    if lock.is_none() {
        lock = locks::enter(mutex.addr(), site, table);
        if attempt() {
            return 0;
        }
    }
    let place = Place {
        kind: Kind::Mutex,
        address: mutex.addr(),
        name: lock.and_then(locks::Lock::name),
        since: current::now(),
    };
    let moment = match until {
        Until::Ever => {
            // SAFETY: the caller's promise.
            let block = || unsafe { (operations.lock)(mutex) };
            errno::kept(|| current::during(table, &place, block));
            return 0;
        }
        // SAFETY: the caller's promise.
        Until::Time(until) => unsafe { Moment::new(libc::CLOCK_REALTIME, until) },
        // SAFETY: the caller's promise.
        Until::Clock(clock, until) => unsafe { Moment::new(clock, until) },
    };
    let moment = match moment {
        Ok(moment) => moment,
        Err(wrong) => return wrong,
    };
    while let Some(left) = moment.remaining() {
        // SAFETY: the caller's promise.
        let block = || unsafe { (operations.lock_for)(mutex, &left) };
        if errno::kept(|| current::during(table, &place, block)) {
            return 0;
        }
    }
    libc::ETIMEDOUT
}

/// Tries to lock a replaced mutex.
pub(super) unsafe fn try_lock(operations: &Operations, mutex: Mutex) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { (operations.try_lock)(mutex) } { 0 } else { libc::EBUSY }
}

/// Unlocks a replaced mutex.
pub(super) unsafe fn unlock(operations: &Operations, mutex: Mutex) -> c_int {
    // SAFETY: the caller's promise.
    errno::kept(|| unsafe { (operations.unlock)(mutex) });
    0
}

/// Ends a replaced mutex, unless it is held.
pub(super) unsafe fn destroy(operations: &Operations, mutex: Mutex) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { (operations.is_locked)(mutex) } {
        return libc::EBUSY;
    }
    // SAFETY: the caller's promise.
    unsafe { (operations.end)(mutex) };
    // As the C library made it: the program may use the memory as a new mutex without an
    // initialization.
    for offset in (0..16).step_by(mem::size_of::<AtomicU32>()) {
        // SAFETY: within the mutex.
        unsafe { word(mutex, offset) }.store(0, Ordering::Relaxed);
    }
    0
}
