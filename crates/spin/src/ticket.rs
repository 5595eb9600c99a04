//! The ticket lock: a thread draws a number and waits until that number is served.
//!
//! Why not test-and-set: the ticket lock is first come, first served, with two words and one
//! addition.
//!
//! Why not always this one: all waiters watch one word. First come, first served also means that a
//! preempted waiter delays all waiters behind it.
//!
//! ```text
//! next     the ticket that the next arrival will draw
//! serving  the ticket that may hold the lock; serving == next: free
//! ```
//!
//! # Invariants
//!
//! 1. Only the holder writes `serving`. The value only counts up, and wraps.
//! 2. `next - serving` (wrapping) is the number of threads that hold or wait. It is below 2^32,
//!    because there are not that many threads.
//! 3. The thread that drew the ticket equal to `serving` holds the lock, until it stores the next
//!    number.
//!
//! # Orderings
//!
//! `unlock` stores `serving` with Release. The waiter's load that finds its own number has Acquire.
//! Drawing a ticket is Relaxed: it orders the threads and publishes nothing.
//!
//! Source: Mellor-Crummey and Scott 1991, section 2.2, with their proportional backoff. The lock is
//! older (Reed and Kanodia 1979).

use core::fmt;
use core::marker::PhantomData;

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_for_turn};

use crate::bomb;

/// A ticket lock. `W` is the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0: first come, first served |
/// | cache misses to acquire | 1 uncontended; else 1 at each release, less by backoff |
/// | size | 8 bytes |
/// | more threads than processors | slow ([measured](crate#measured)) |
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
/// The backoff of its waiters is proportional to the number of threads ahead. If threads outnumber
/// processors, every hand-off to a preempted waiter costs a trip through the scheduler.
///
/// At most 2^32 - 1 threads may hold and wait. A thread must not sleep inside `try_lock` for
/// exactly 2^32 acquisitions.
pub struct Ticket<W = Patient> {
    /// The ticket that the next arrival draws. Every arrival adds one.
    next: AtomicU32,
    /// The ticket that may hold the lock. The holder writes it.
    serving: AtomicU32,
    /// The waiting policy: `W` is a type parameter only, no value is stored.
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

    /// Returns a free lock that gives the ticket `ticket` to the first arrival.
    ///
    /// With it, tests start close to the wrap-around.
    #[must_use]
    pub const fn with_first_ticket(ticket: u32) -> Self {
        Self { next: AtomicU32::new(ticket), serving: AtomicU32::new(ticket), waiting: PhantomData }
    }

    /// Returns the number of threads that hold the lock or wait for it. It is a hint, out of date
    /// when it is returned.
    #[must_use]
    pub fn holders_and_waiters(&self) -> u32 {
        // Acquire: pairs with the Release store of `unlock`. The ticket now served was drawn before
        // that store, so `next` is not behind `serving`. The difference errs on the high side.
        let serving = self.serving.load(Ordering::Acquire);
        // Relaxed: a hint.
        self.next.load(Ordering::Relaxed).wrapping_sub(serving)
    }

    /// Waits until `ticket` is served.
    #[cold]
    fn lock_contended(&self, ticket: u32) {
        // Each drawn ticket must be served. Unwinding would lose this ticket, and with it the lock.
        let bomb = bomb::armed();
        // Acquire: pairs with the Release store of `unlock`.
        wait_for_turn::<_, W>(&self.serving, Ordering::Acquire, |serving| {
            ticket.wrapping_sub(serving)
        });
        bomb.defuse();
    }
}

// SAFETY: by Invariant 3 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
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
        // Acquire: pairs with the Release store of `unlock`. If the exchange below succeeds, that
        // was the last release.
        let serving = self.serving.load(Ordering::Acquire);
        // Relaxed: as in `lock`. The exchange succeeds only if no thread has drawn `serving`. By
        // Invariant 2 the lock is free then.
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
        // Relaxed: no other thread writes it (Invariant 1).
        let served = self.serving.load(Ordering::Relaxed);
        // Release: pairs with the Acquire load of the waiter that has this number.
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
