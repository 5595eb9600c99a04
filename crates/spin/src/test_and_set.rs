//! The test-and-set lock: one byte. The thread that exchanges it first holds the lock.
//!
//! Why not always this one: it is unfair, and all its waiters watch the one word that the holder
//! must write.
//!
//! Why it is the default all the same: it is the smallest, and no lock is cheaper without
//! contention. It lets a running thread overtake a preempted one (*barging*). So it is the spin
//! lock that suffers least when threads outnumber processors.
//!
//! | `locked` | meaning | left by |
//! | --- | --- | --- |
//! | `false` | free | any thread, by exchanging in `true` |
//! | `true` | held | the holder, by storing `false` |
//!
//! # Invariants
//!
//! 1. A thread holds the lock if its exchange found `false`. It holds the lock until it stores
//!    `false`. No other thread holds it.
//!
//! # Orderings
//!
//! `unlock` stores with Release. The exchange that finds that `false` has Acquire. Loads in between
//! are Relaxed hints.
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 4.2 to 4.4. The ways of waiting are in
//! [`contention`](crate::contention).

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{Patient, WaitPolicy};

use crate::bomb;
use crate::contention::{Contention, Ethernet, try_acquire};

/// A test-and-set lock. `C` is the way to contend, `W` the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | none: a waiter may be overtaken for ever |
/// | cache misses to acquire | 1 uncontended; else 2 or more, for each waiter at each release |
/// | size | 1 byte |
/// | more threads than processors | keeps working: a running thread overtakes a preempted one |
/// | deadline | yes |
///
/// ```
/// use stanchion_spin::TestAndSetMutex;
///
/// static HITS: TestAndSetMutex<u32> = TestAndSetMutex::new(0);
/// *HITS.lock() += 1;
/// assert_eq!(*HITS.lock(), 1);
/// ```
///
/// Another way of waiting, and a deadline:
///
/// ```
/// use core::time::Duration;
/// use stanchion_spin::{PolicyTestAndSetMutex, contention::Read};
///
/// let mutex = PolicyTestAndSetMutex::<_, Read>::new(1);
/// let held = mutex.lock();
/// assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
/// # drop(held);
/// ```
pub struct TestAndSet<C = Ethernet, W = Patient> {
    /// Held or free. The thread that takes the lock writes true, and the holder writes false.
    locked: AtomicBool,
    /// The parameters `C` and `W` are type parameters only, no value is stored.
    waiting: PhantomData<fn() -> (C, W)>,
}

mutex_aliases! {
    TestAndSet: TestAndSetMutex, TestAndSetMutexGuard;
    TestAndSet<C, W>: PolicyTestAndSetMutex, PolicyTestAndSetMutexGuard, [C, W = Patient];
}

impl TestAndSet {
    /// Returns a free lock with the default ways to contend and to wait.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<C: Contention, W: WaitPolicy> TestAndSet<C, W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `TestAndSet::<Read>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self { locked: AtomicBool::new(false), waiting: PhantomData }
    }

    /// Waits for the lock after a try that failed. Returns `None` if `deadline` came first.
    #[cold]
    fn lock_contended(&self, deadline: Deadline) -> Option<GuardSend> {
        // A policy must not unwind out of here: the thread might have just taken the lock.
        let bomb = bomb::armed();
        let acquired = C::acquire::<W>(&self.locked, try_acquire, deadline);
        bomb.defuse();
        acquired.then(GuardSend::new)
    }

    /// Acquires the lock after a try that failed. Returns `None` if `deadline` came first.
    #[cfg(feature = "std")]
    fn lock_until(&self, deadline: Deadline) -> Option<GuardSend> {
        self.lock_contended(deadline)
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<C: Contention, W: WaitPolicy> RawMutex for TestAndSet<C, W> {
    const INIT: Self = Self::with_policy();

    /// `Send`: a release is a plain store, and any thread may do it.
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        if try_acquire(&self.locked) {
            return GuardSend::new();
        }
        loop {
            // Without a deadline the wait ends only with the lock.
            if let Some(guard) = self.lock_contended(Deadline::NEVER) {
                return guard;
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        try_acquire(&self.locked).then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardSend) {
        // Release: pairs with the Acquire exchange of the next holder.
        self.locked.store(false, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.locked.load(Ordering::Relaxed)
    }
}

timed!(TestAndSet<C, W>, [C: Contention, W: WaitPolicy]);
stateless_04!(TestAndSet<C, W>, GuardSend, [C: Contention, W: WaitPolicy]);

impl<C: Contention, W: WaitPolicy> Default for TestAndSet<C, W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<C: Contention, W: WaitPolicy> fmt::Debug for TestAndSet<C, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAndSet").field("locked", &self.is_locked()).finish()
    }
}
