//! A test-and-set lock. Its holder asks not to be preempted.
//!
//! If threads can be stopped at any point, a spin lock costs most when its holder is stopped. All
//! other threads wait for whole time slices, and a thread that polls burns a processor meanwhile.
//! Here a thread asks the scheduler for a little more time *before* it tries for the lock. It takes
//! the request back *after* it has released the lock, or when the try has failed. So a thread that
//! only waits has no request.
//!
//! Why not a queue lock: there the next waiter must not be preempted either, and it waits for long.
//! A test-and-set lock is taken in any order, so only the holder matters.
//!
//! Why not a wrapper around any lock: the request has to surround each try, and the tries are
//! inside the lock.
//!
//! - A try that succeeds: the request is made before the exchange and stays.
//! - A try that fails: the request is made before the exchange and taken back after it. If the
//!   scheduler lent the thread time, the thread gives way at that point.
//! - A release: the request is taken back after the store. A thread that gives way then holds
//!   nothing.
//!
//! [`stanchion_machine::preemption`] says which schedulers honour the request. With any other
//! scheduler this lock is [`TestAndSet`](crate::TestAndSet) with a count.
//!
//! # Invariants
//!
//! 1. A thread holds the lock if its exchange found `false`. It holds the lock until it stores
//!    `false`. No other thread holds it.
//! 2. A thread has one request for each lock of this kind that it holds. A wait adds none. The
//!    guard stays with its thread, because the request does.
//!
//! # Orderings
//!
//! As [`TestAndSet`](crate::TestAndSet): `unlock` stores with Release, and the exchange that finds
//! that `false` has Acquire.
//!
//! Source: Edler, Lipkis and Schonberg 1988, and the preemption-safe locks of Michael and Scott
//! 1997, section 2.

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardNoSend, RawMutex};
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::preemption;
use stanchion_machine::wait::{Patient, WaitPolicy};

use crate::bomb;
use crate::contention::{Contention, Polling, try_acquire};

/// A test-and-set lock with a holder that asks not to be preempted. `C` is the way to contend, `W`
/// the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | none: a waiter may be overtaken for ever |
/// | cache misses to acquire | as [`TestAndSet`](crate::TestAndSet): the request is thread-local |
/// | size | 1 byte |
/// | more threads than processors | keeps working |
/// | deadline | yes |
///
/// If the scheduler honours requests, a waiter hardly ever waits for a holder that does not run.
///
/// The lock in the figures of the 1997 paper is `PreemptionSafe<Polling<100, 30_000>, Spin>`:
/// test-and-test-and-set with exponential backoff of at most 30 µs. The ordinary lock of that paper
/// is `TestAndSet<Polling<100, 30_000>, Spin>`, the same without the request.
///
/// Its waits allocate nothing and open no file. On a kernel with the slice extension (Linux 7.0)
/// the first acquisition of each thread switches the extension on. For that it looks up a name in
/// the C library and takes the loader's lock for a moment.
///
/// Critical sections should be shorter than the time that the scheduler lends: some 5 µs by the
/// kernel, 1 ms by the pseudo-scheduler. A holder that stays longer is preempted all the same. A
/// forgotten guard leaves its thread with a request for good. Each time slice of that thread may
/// then end that much later.
///
/// ```
/// use stanchion_spin::PreemptionSafeMutex;
///
/// static HITS: PreemptionSafeMutex<u32> = PreemptionSafeMutex::new(0);
/// *HITS.lock() += 1;
/// assert_eq!(*HITS.lock(), 1);
/// ```
///
/// The guard stays with the thread that asked:
///
/// ```compile_fail,E0277
/// use stanchion_spin::PreemptionSafeMutex;
///
/// static HITS: PreemptionSafeMutex<u32> = PreemptionSafeMutex::new(0);
/// let guard = HITS.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct PreemptionSafe<C = Polling, W = Patient> {
    /// Held or free. The thread that takes the lock writes true, and the holder writes false.
    locked: AtomicBool,
    /// The parameters `C` and `W` are type parameters only, no value is stored.
    waiting: PhantomData<fn() -> (C, W)>,
}

mutex_aliases! {
    PreemptionSafe: PreemptionSafeMutex, PreemptionSafeMutexGuard;
    PreemptionSafe<C, W>: PolicyPreemptionSafeMutex, PolicyPreemptionSafeMutexGuard, [C, W = Patient];
}

/// Tries once, with a request not to be preempted. The request stays if the try succeeds.
#[inline]
fn try_asking(locked: &AtomicBool) -> bool {
    preemption::keep();
    let acquired = try_acquire(locked);
    if !acquired {
        preemption::thank();
    }
    acquired
}

impl PreemptionSafe {
    /// Returns a free lock with the default ways to contend and to wait.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<C: Contention, W: WaitPolicy> PreemptionSafe<C, W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `PreemptionSafe::<Read>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self { locked: AtomicBool::new(false), waiting: PhantomData }
    }

    /// Waits for the lock after a try that failed. Returns `None` if `deadline` came first.
    #[cold]
    fn lock_until(&self, deadline: Deadline) -> Option<GuardNoSend> {
        // A policy must not unwind out of here: the thread might have just taken the lock.
        let bomb = bomb::armed();
        let acquired = C::acquire::<W>(&self.locked, try_asking, deadline);
        bomb.defuse();
        acquired.then(GuardNoSend::new)
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<C: Contention, W: WaitPolicy> RawMutex for PreemptionSafe<C, W> {
    const INIT: Self = Self::with_policy();

    /// Not `Send`: Invariant 2.
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        if try_asking(&self.locked) {
            return GuardNoSend::new();
        }
        loop {
            // Without a deadline the wait ends only with the lock.
            if let Some(guard) = self.lock_until(Deadline::NEVER) {
                return guard;
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        try_asking(&self.locked).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // Release: pairs with the Acquire exchange of the next holder.
        self.locked.store(false, Ordering::Release);
        // Last: a thread that gives way here holds no lock that others wait for.
        preemption::thank();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.locked.load(Ordering::Relaxed)
    }
}

timed!(PreemptionSafe<C, W>, [C: Contention, W: WaitPolicy]);
stateless_04!(PreemptionSafe<C, W>, GuardNoSend, [C: Contention, W: WaitPolicy]);

impl<C: Contention, W: WaitPolicy> Default for PreemptionSafe<C, W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<C: Contention, W: WaitPolicy> fmt::Debug for PreemptionSafe<C, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreemptionSafe").field("locked", &self.is_locked()).finish()
    }
}
