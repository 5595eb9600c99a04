//! The ticket lock: take a number, wait until it is served.
//!
//! Why not test-and-set: first come, first served, by two words and one addition. Why not always: all waiters watch the one word, and
//! first come, first served means that a preempted waiter holds up everyone behind it.
//!
//! ```text
//! next     the ticket that the next arrival will draw
//! serving  the ticket that may hold the lock; serving == next: free
//! ```
//!
//! # Invariants
//!
//! 1. `serving` is written by the holder only, and only counts up, wrapping.
//! 2. `next - serving` (wrapping) is the number of threads that hold or wait. It is below 2^32: there are not that many threads.
//! 3. The thread that drew the ticket equal to `serving` holds the lock, until it stores the next number.
//!
//! # Orderings
//!
//! `unlock` stores `serving` with Release; the waiter's look that finds its own number has Acquire. Drawing a ticket is Relaxed: it
//! orders the threads, it publishes nothing.
//!
//! Source: Mellor-Crummey and Scott 1991, section 2.2, with their proportional backoff; the lock is older (Reed and Kanodia 1979).

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardSend, RawMutex};
use machine::atomic::{AtomicU32, Ordering};
use machine::wait::{Patient, WaitPolicy, wait_for_turn};

use crate::bomb;

/// A ticket lock whose waiters pass the time as `W` says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0: first come, first served |
/// | cache misses to acquire | 1 uncontended; contended one at each release while waiting, less by proportional backoff |
/// | size | 8 bytes |
/// | more threads than processors | slow: every hand-off to a preempted waiter costs a trip through the scheduler ([measured](crate#measured)) |
/// | deadline | no: a drawn ticket cannot be given back |
///
/// ```
/// use stanchion_spin::TicketMutex;
///
/// let queue = TicketMutex::new(vec![]);
/// queue.lock().push(1);
/// assert_eq!(queue.lock().len(), 1);
/// ```
///
/// At most 2^32 - 1 threads may hold and wait, and a thread must not sleep inside `try_lock` for exactly 2^32 acquisitions.
pub struct Ticket<W = Patient> {
    next: AtomicU32,
    serving: AtomicU32,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Ticket: TicketMutex, TicketMutexGuard;
    Ticket<W>: PolicyTicketMutex, PolicyTicketMutexGuard, [W];
}

impl Ticket {
    /// Returns a free lock with the default waiting policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> Ticket<W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `Ticket::<Spin>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self::with_first_ticket(0)
    }

    /// Returns a free lock whose next ticket is `ticket`.
    ///
    /// Tests of the wrap-around start close to it.
    #[must_use]
    pub const fn with_first_ticket(ticket: u32) -> Self {
        Self { next: AtomicU32::new(ticket), serving: AtomicU32::new(ticket), waiting: PhantomData }
    }

    /// How many threads hold the lock or wait for it: a hint, out of date when it is returned.
    #[must_use]
    pub fn holders_and_waiters(&self) -> u32 {
        // Acquire: pairs with the Release store of `unlock`, before which the ticket now served was drawn: so `next` is not behind, and the
        // difference errs on the high side.
        let serving = self.serving.load(Ordering::Acquire);
        // Relaxed: a hint.
        self.next.load(Ordering::Relaxed).wrapping_sub(serving)
    }

    #[cold]
    fn lock_contended(&self, ticket: u32) {
        // A ticket that is drawn must be served: unwinding would lose it, and with it the lock.
        let bomb = bomb::armed();
        // Acquire: pairs with the Release store of `unlock`.
        wait_for_turn::<_, W>(&self.serving, Ordering::Acquire, |serving| {
            ticket.wrapping_sub(serving)
        });
        bomb.defuse();
    }
}

// SAFETY: by Invariant 3 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
unsafe impl<W: WaitPolicy> RawMutex for Ticket<W> {
    const INIT: Self = Self::with_policy();

    /// `Send`: the next number is read from the lock, not from the thread.
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        // Relaxed: the draw only orders the arrivals.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the Release store of `unlock`.
        if self.serving.load(Ordering::Acquire) != ticket {
            self.lock_contended(ticket);
        }
        GuardSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        // Acquire: pairs with the Release store of `unlock`; if the draw below succeeds, this was the last of them.
        let serving = self.serving.load(Ordering::Acquire);
        // Relaxed: as in `lock`. It succeeds only if nobody has drawn `serving`, which by Invariant 2 means that the lock is free.
        self.next
            .compare_exchange(
                serving,
                serving.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
            .then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardSend) {
        // Relaxed: nobody else writes it (Invariant 1).
        let served = self.serving.load(Ordering::Relaxed);
        // Release: pairs with the Acquire look of the waiter whose number this is.
        self.serving.store(served.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.holders_and_waiters() != 0
    }
}

always_fair!(Ticket<W>, [W: WaitPolicy]);
stateless_04!(Ticket<W>, GuardSend, [W: WaitPolicy]);

impl<W: WaitPolicy> Default for Ticket<W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> fmt::Debug for Ticket<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("locked", &self.is_locked()).finish()
    }
}
