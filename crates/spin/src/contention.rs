//! Four ways to wait for a held test-and-set lock, from section 4 of Anderson, Lazowska and Levy
//! 1989.
//!
//! - [`Exchange`] exchanges until it finds the lock free (section 4.2). Every try takes the cache
//!   line away from the holder.
//! - [`Read`] reads its cached copy and exchanges when it reads free (4.3). Every release causes a
//!   stampede.
//! - [`Ethernet`] sees a release, delays by the number of past failures, looks again, and then
//!   tries (4.4). It costs the holder one read for each waiter at a release.
//! - [`Polling`] delays whenever it reads busy (4.4, the variation on persistence). It costs the
//!   holder one read for each waiter and delay.
//!
//! Each is a type parameter of [`TestAndSet`](crate::TestAndSet). [`Ethernet`] is the default, as
//! in the paper's own thread package.

use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{self, WaitPolicy};

use crate::backoff::Backoff;

/// A way to acquire a held test-and-set lock.
///
/// Sealed: a new way belongs in this crate, so that it is modelled and measured with the others.
pub trait Contention: sealed::Sealed {
    /// Acquires `locked`, which was held at the last look, by calls of `attempt`. A failed
    /// `attempt` changes nothing. Returns `false` if the deadline came first.
    #[doc(hidden)]
    fn acquire<W: WaitPolicy>(
        locked: &AtomicBool,
        attempt: impl Fn(&AtomicBool) -> bool,
        deadline: Deadline,
    ) -> bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Exchange {}
    impl Sealed for super::Read {}
    impl<const SLOT_NS: u64> Sealed for super::Ethernet<SLOT_NS> {}
    impl<const SLOT_NS: u64, const CAP_NS: u64> Sealed for super::Polling<SLOT_NS, CAP_NS> {}
}

/// Tries once to take the lock.
#[inline]
pub(crate) fn try_acquire(locked: &AtomicBool) -> bool {
    // Acquire: pairs with the Release store of `TestAndSet::unlock`.
    locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Waits until `locked` reads free, then tries, and repeats this until a try succeeds or the
/// deadline comes. With `collisions`, a waiter that has lost a race delays when the lock comes
/// free, and looks again before it tries.
#[inline]
fn try_when_free(
    locked: &AtomicBool,
    attempt: impl Fn(&AtomicBool) -> bool,
    deadline: Deadline,
    mut policy: impl WaitPolicy,
    mut collisions: Option<Backoff>,
) -> bool {
    loop {
        // Relaxed: only a hint to try. The try synchronizes.
        let free = wait::wait_until_deadline(
            locked,
            Ordering::Relaxed,
            |locked| !locked,
            &mut policy,
            deadline,
        );
        if free.is_none() {
            return false;
        }
        if let Some(backoff) = collisions.as_mut().filter(|backoff| backoff.failures() > 0) {
            // Earlier tries have failed: stay away for a while.
            backoff.delay_again();
            // Relaxed: only a hint whether to try.
            if locked.load(Ordering::Relaxed) {
                continue;
            }
        }
        if attempt(locked) {
            return true;
        }
        if let Some(backoff) = &mut collisions {
            backoff.fail();
        }
        // The lock read free at every look, and every try was lost. The wait above then returns
        // without a look at the clock.
        if deadline.passed() {
            return false;
        }
    }
}

/// Spins on the exchange instruction. It is the fastest for two processors and a short section, and
/// the worst for many processors.
///
/// The instruction is a compare-and-exchange. On x86 a failed one takes the cache line for writing,
/// as the paper's `xchgb` does. Elsewhere it may cost the holder less.
#[derive(Clone, Copy, Debug)]
pub struct Exchange;

impl Contention for Exchange {
    #[inline]
    fn acquire<W: WaitPolicy>(
        locked: &AtomicBool,
        attempt: impl Fn(&AtomicBool) -> bool,
        deadline: Deadline,
    ) -> bool {
        let exchange = || attempt(locked).then_some(());
        wait::retry_until_deadline(exchange, &mut W::start(), deadline).is_some()
    }
}

/// Spins on reads of the cached copy, and exchanges when it reads free.
#[derive(Clone, Copy, Debug)]
pub struct Read;

impl Contention for Read {
    #[inline]
    fn acquire<W: WaitPolicy>(
        locked: &AtomicBool,
        attempt: impl Fn(&AtomicBool) -> bool,
        deadline: Deadline,
    ) -> bool {
        try_when_free(locked, attempt, deadline, W::start(), None)
    }
}

/// Ethernet-style backoff: the more collisions a waiter had, the longer it stays away after a
/// release.
///
/// It is unfair by nature: a thread that has just arrived is likelier to win than a thread that has
/// failed often.
///
/// `SLOT_NS` is the unit of the delays in nanoseconds. It should be about one hand-off of the lock
/// between two processors. With [`MEASURED`], the default, it is four
/// [transfers](stanchion_machine::wait::transfers) of a cache line on this machine.
///
/// ```
/// use stanchion_spin::{PolicyTestAndSetMutex, contention::Ethernet};
///
/// let mutex = PolicyTestAndSetMutex::<_, Ethernet<500>>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<const SLOT_NS: u64 = MEASURED>;

/// The parameter of [`Ethernet`] and [`Polling`] for a time that is measured on this machine.
pub const MEASURED: u64 = 0;

/// Returns a backoff with that slot, or with the measured one.
fn backoff(slot_ns: u64) -> Backoff {
    if slot_ns == MEASURED { Backoff::new() } else { Backoff::new().with_slot(slot_ns) }
}

impl<const SLOT_NS: u64> Contention for Ethernet<SLOT_NS> {
    #[inline]
    fn acquire<W: WaitPolicy>(
        locked: &AtomicBool,
        attempt: impl Fn(&AtomicBool) -> bool,
        deadline: Deadline,
    ) -> bool {
        try_when_free(locked, attempt, deadline, W::start(), Some(backoff(SLOT_NS)))
    }
}

/// Backoff by polling: stays away whenever the lock reads busy, and tries at once when it reads
/// free. It is known as test-and-test-and-set with bounded exponential backoff.
///
/// `SLOT_NS` is the unit of the delays in nanoseconds, and `CAP_NS` is the longest. With
/// [`MEASURED`], the default, they are those of [`Backoff::new`].
///
/// It is for machines without coherent caches, where watching a word costs the other processors.
/// Elsewhere it is slow to notice a release.
#[derive(Clone, Copy, Debug)]
pub struct Polling<const SLOT_NS: u64 = MEASURED, const CAP_NS: u64 = MEASURED>;

impl<const SLOT_NS: u64, const CAP_NS: u64> Contention for Polling<SLOT_NS, CAP_NS> {
    #[inline]
    fn acquire<W: WaitPolicy>(
        locked: &AtomicBool,
        attempt: impl Fn(&AtomicBool) -> bool,
        deadline: Deadline,
    ) -> bool {
        let backoff = backoff(SLOT_NS);
        let backoff = if CAP_NS == MEASURED { backoff } else { backoff.with_cap(CAP_NS) };
        let policy = Delayed { policy: W::start(), backoff };
        try_when_free(locked, attempt, deadline, policy, None)
    }
}

/// A policy that delays for a growing time before each pause of another policy.
pub(crate) struct Delayed<W> {
    /// The other policy, which pauses after the delay.
    policy: W,
    /// The delays so far of this wait.
    backoff: Backoff,
}

impl<W: WaitPolicy> WaitPolicy for Delayed<W> {
    fn start() -> Self {
        Self { policy: W::start(), backoff: Backoff::new() }
    }

    #[inline]
    fn pause(&mut self) {
        self.backoff.spin();
        self.policy.pause();
    }

    #[inline]
    fn leaves(&self) -> bool {
        self.policy.leaves()
    }
}
