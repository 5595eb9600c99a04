//! Anderson's array lock: a ticket lock in which each waiter watches a word of its own.
//!
//! Why not the ticket lock: there, all waiters watch the one word that every release writes. Here a
//! release writes one slot. As long as waiters do not outnumber slots, one waiter watches that
//! slot.
//!
//! Why not always this one: a queue lock takes less space. Here each lock has an array with as many
//! slots as it is likely to need.
//!
//! ```text
//! next = 6          slots, N = 4, each on a line of its own
//!                   [ 4 ] [ 1 ] [ 2 ] [ 3 ]
//!                     ^ ticket 4 holds; ticket 5 watches slot 1 until it reads 5
//! ```
//!
//! A slot holds the ticket that it served last, not a flag. Two waiters that share a slot hold the
//! tickets `t` and `t + N`, so they wait for different numbers. More waiters than slots therefore
//! make the lock slower, not wrong.
//!
//! # Invariants
//!
//! 1. Slot `i` holds only numbers congruent to `i` modulo N. They count up and wrap.
//! 2. A thread holds the lock if its slot holds its ticket. It holds the lock until it writes the
//!    next ticket into the next slot.
//! 3. `N` is a power of two. So slots follow tickets across the wrap-around.
//!
//! # Orderings
//!
//! `unlock` writes the next slot with Release. The waiter's load that finds its own ticket has
//! Acquire. Drawing a ticket is Relaxed.
//!
//! Source: T. E. Anderson 1990, section 4.2, with the ticket in the slot.

use core::fmt;
use core::marker::PhantomData;
use core::mem;

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_for_turn};

use crate::bomb;

/// An array lock with `N` slots, `N` a power of two. `W` is the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0: first come, first served |
/// | cache misses to acquire | 1 uncontended, 2 or 3 contended with at most `N` threads |
/// | size | `N` + 1 padded lines, 128 bytes each on most machines |
/// | more threads than processors | slow ([measured](crate#measured)) |
/// | more waiters than slots | correct; waiters that share a slot slow each other |
/// | deadline | no: a drawn ticket cannot be given back |
///
/// ```
/// use stanchion_spin::PolicyAndersonMutex;
///
/// static TABLE: PolicyAndersonMutex<[u8; 4], 8> = PolicyAndersonMutex::new([0; 4]);
/// TABLE.lock()[2] = 7;
/// assert_eq!(*TABLE.lock(), [0, 0, 7, 0]);
/// ```
///
/// If threads outnumber processors, every hand-off to a preempted waiter costs a trip through the
/// scheduler.
///
/// At most 2^32 - 1 threads may hold and wait. A thread must not sleep inside `try_lock` for
/// exactly 2^32 acquisitions.
///
/// An `N` that is not a power of two does not compile:
///
/// ```compile_fail,E0080
/// let mutex = stanchion_spin::PolicyAndersonMutex::<u8, 6>::new(0);
/// ```
pub struct Anderson<const N: usize = 16, W = Patient> {
    /// The ticket that the next arrival draws. Every arrival adds one.
    next: CachePadded<AtomicU32>,
    /// The ticket that each slot served last. A holder writes the next slot when it unlocks.
    slots: [CachePadded<AtomicU32>; N],
    /// The waiting policy: `W` is a type parameter only, no value is stored.
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Anderson: AndersonMutex, AndersonMutexGuard;
    Anderson<N, W>: PolicyAndersonMutex, PolicyAndersonMutexGuard, [const N: usize, W = Patient];
}

/// The ticket of one acquisition, carried by the guard of an [`Anderson`].
///
/// `Send`: a release needs nothing but the ticket.
#[derive(Debug)]
pub struct Turn(u32);

impl Anderson {
    /// Returns a free lock with 16 slots and the default waiting policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<const N: usize, W: WaitPolicy> Anderson<N, W> {
    /// Invariant 3, checked when the type is used.
    const POWER_OF_TWO: () =
        assert!(N.is_power_of_two() && N <= 1 << 16, "N must be a power of two, at most 65,536");

    /// Returns a free lock with the parameters that the caller names, as in
    /// `Anderson::<8>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self::with_first_ticket(0)
    }

    /// Returns a free lock that gives the ticket `ticket` to the first arrival.
    ///
    /// With it, tests start close to the wrap-around.
    #[must_use]
    pub const fn with_first_ticket(ticket: u32) -> Self {
        let () = Self::POWER_OF_TWO;
        let mut slots = [const { CachePadded::new(AtomicU32::new(0)) }; N];
        let mut served = 0;
        // The slots of the first N tickets. The first slot says that `ticket` is served. Each other
        // slot holds the value that one round earlier would have left.
        while served < N {
            let due = ticket.wrapping_add(served as u32);
            let holds = if served == 0 { due } else { due.wrapping_sub(N as u32) };
            let slot = CachePadded::new(AtomicU32::new(holds));
            // Not by `=`: under loom an atomic has a destructor, and a constant expression runs
            // none.
            let _ = mem::ManuallyDrop::new(mem::replace(&mut slots[due as usize % N], slot));
            served += 1;
        }
        Self { next: CachePadded::new(AtomicU32::new(ticket)), slots, waiting: PhantomData }
    }

    #[inline]
    fn slot(&self, ticket: u32) -> &AtomicU32 {
        &self.slots[ticket as usize % N]
    }

    /// Waits until `ticket` is served.
    #[cold]
    fn lock_contended(&self, ticket: u32) {
        // Each drawn ticket must be served. Unwinding would lose this ticket, and with it the lock.
        let bomb = bomb::armed();
        // Acquire: pairs with the Release store of `unlock`.
        wait_for_turn::<_, W>(self.slot(ticket), Ordering::Acquire, |served| {
            // Returns at least how many threads are ahead. A slot shows only whole rounds of N
            // tickets. In the last round it shows just that at least one thread is ahead.
            let rounds = ticket.wrapping_sub(served) / N as u32;
            if rounds == 0 { 0 } else { (rounds - 1) * N as u32 + 1 }
        });
        bomb.defuse();
    }
}

// SAFETY: by Invariant 2 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<const N: usize, W: WaitPolicy> RawMutex for Anderson<N, W> {
    const INIT: Self = Self::with_policy();

    type Guard = Turn;

    #[inline]
    fn lock(&self) -> Turn {
        // Relaxed: the draw only orders the arrivals.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the Release store of `unlock`.
        if self.slot(ticket).load(Ordering::Acquire) != ticket {
            self.lock_contended(ticket);
        }
        Turn(ticket)
    }

    #[inline]
    fn try_lock(&self) -> Option<Turn> {
        // Relaxed: the exchange below checks that this ticket is still the next one.
        let ticket = self.next.load(Ordering::Relaxed);
        // Acquire: pairs with the Release store of `unlock`.
        if self.slot(ticket).load(Ordering::Acquire) != ticket {
            return None;
        }
        // Relaxed: as in `lock`. The exchange succeeds only if no thread has drawn the ticket that
        // is being served.
        self.next
            .compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
            .then_some(Turn(ticket))
    }

    #[inline]
    unsafe fn unlock(&self, Turn(ticket): Turn) {
        let due = ticket.wrapping_add(1);
        // Release: pairs with the Acquire load of the waiter that holds the ticket `due`.
        self.slot(due).store(due, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        let ticket = self.next.load(Ordering::Relaxed);
        self.slot(ticket).load(Ordering::Relaxed) != ticket
    }
}

always_fair!(Anderson<N, W>, [const N: usize, W: WaitPolicy]);

impl<const N: usize, W: WaitPolicy> Default for Anderson<N, W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<const N: usize, W: WaitPolicy> fmt::Debug for Anderson<N, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anderson").field("slots", &N).field("locked", &self.is_locked()).finish()
    }
}
