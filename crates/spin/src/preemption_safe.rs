//! The test-and-set lock whose holder asks not to be preempted.
//!
//! Where threads are stopped in the middle of everything, a spin lock costs most when its holder is stopped: all others wait for whole slices, and
//! whoever polls burns a processor over it. Here a thread asks the scheduler for a little more time *before* it tries for the lock, and takes that
//! back *after* it has released it, or when the try has failed. So a thread is not asked to be spared while it only waits.
//!
//! Why no queue lock: there the next in line must not be preempted either, and he waits for long. The takers of a test-and-set lock come in any
//! order, so only the holder matters. Why not any lock in a wrapper: the request has to surround each try, and tries are inside of the lock.
//!
//! | step | the lock | the request |
//! | --- | --- | --- |
//! | a try that succeeds | held | made before the exchange, stays |
//! | a try that fails | somebody else's | made before the exchange, taken back after it: a thread that was lent time gives way there |
//! | a release | free | taken back after the store: who gives way holds nothing |
//!
//! Whoever honours the request is [`machine::preemption`]'s business. Where nobody does, this is [`TestAndSet`](crate::TestAndSet) and a count.
//!
//! # Invariants
//!
//! 1. Only the thread whose exchange found `false` holds the lock, until it stores `false`.
//! 2. A thread has one request for each lock of this kind that it holds, and none besides when it waits. The guard stays with its thread, because its
//!    request does.
//!
//! # Orderings
//!
//! As [`TestAndSet`](crate::TestAndSet): `unlock` stores with Release; the exchange that finds that `false` has Acquire.
//!
//! Source: Edler, Lipkis and Schonberg 1988; the preemption-safe locks of Michael and Scott 1997, section 2.

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardNoSend, RawMutex};
use machine::atomic::{AtomicBool, Ordering};
use machine::clock::Deadline;
use machine::preemption;
use machine::wait::{Patient, WaitPolicy};

use crate::bomb;
use crate::contention::{Contention, Polling, try_acquire};

/// A test-and-set lock whose holder asks not to be preempted; waiters contend as `C` says and pass the time as `W` says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | none: a waiter may be overtaken for ever |
/// | cache misses to acquire | as [`TestAndSet`](crate::TestAndSet); the request is the thread's own |
/// | size | 1 byte |
/// | more threads than processors | keeps working; with somebody who honours requests, hardly ever waits for a holder that does not run |
/// | deadline | yes |
///
/// The lock of the 1997 paper's figures is `PreemptionSafe<Polling, Spin>`, test-and-test-and-set with exponential backoff of at most 30 µs; its
/// ordinary lock is `TestAndSet<Polling, Spin>`, the same without the request.
///
/// Its waits allocate nothing and open no file. On a kernel with the slice extension (Linux 7.0) the first acquisition of each thread switches the
/// extension on, for which it looks up a name in the C library and takes the loader's lock for a moment.
///
/// Critical sections should be shorter than what the scheduler lends: some 5 µs by the kernel, 1 ms by the pseudo-scheduler. A holder that stays
/// longer is preempted all the same. A guard that is forgotten leaves its thread with a request for good: then each slice of it may end that much
/// later.
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
/// static HITS: stanchion_spin::PreemptionSafeMutex<u32> = stanchion_spin::PreemptionSafeMutex::new(0);
/// let guard = HITS.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct PreemptionSafe<C = Polling, W = Patient> {
    locked: AtomicBool,
    waiting: PhantomData<fn() -> (C, W)>,
}

mutex_aliases! {
    PreemptionSafe: PreemptionSafeMutex, PreemptionSafeMutexGuard;
    PreemptionSafe<C, W>: PolicyPreemptionSafeMutex, PolicyPreemptionSafeMutexGuard, [C, W = Patient];
}

/// One try, as one who would not be preempted: the request stays if it succeeds.
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

    /// Acquires before `deadline`, after a try that failed.
    #[cold]
    fn lock_until(&self, deadline: Deadline) -> Option<GuardNoSend> {
        // A policy must not unwind out of here: it might do so with the lock just taken.
        let bomb = bomb::armed();
        let acquired = C::acquire::<W>(&self.locked, try_asking, deadline);
        bomb.defuse();
        acquired.then(GuardNoSend::new)
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
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
        // Last: a thread that gives way here holds nobody up.
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
