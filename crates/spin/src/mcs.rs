//! The MCS queue lock, in the form whose node never outlives `lock`.
//!
//! Why not the textbook form: there the holder's node must stay put until the release, so it has to be handed in by the caller or
//! live in a thread-local, and a forgotten guard leaves a dangling link. Here the node lives on the waiter's stack and leaves the queue
//! before `lock` returns; what the lock still needs, its successor, moves into the lock itself.
//!
//! ```text
//! tail ─────────────────────────────┐          tail = null   free
//! next ──► node of 1st waiter ──► node of last  tail = HELD   held, nobody waits
//!          (holder has no node)                 tail = node   held, that node waits last
//! ```
//!
//! `HELD` is a constant, never the lock's own address: a mutex may be moved after its guard was forgotten.
//!
//! # Invariants
//!
//! 1. A thread holds the lock from its grant (or from finding `tail` null) until it stores a grant or puts null into `tail`.
//! 2. A node is in the queue from the swap that makes it the tail until its owner, by then the holder, has moved its link into `next`
//!    and knows that no other thread will touch it: either `tail` no longer names it, or the one thread that found it there
//!    has linked behind it.
//! 3. `next` is null whenever `tail` is null. While `tail` is `HELD`, only the arrival that replaces `HELD` writes `next`;
//!    at all other times only the holder does.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | enqueue: swap `tail` | AcqRel | Release publishes the node to the next arrival's swap (Acquire), which links to it; Acquire also pairs with a release that left null |
//! | link: store a predecessor's or the lock's `next` | Release | the holder's Acquire load before it grants |
//! | grant: store `granted` | Release | the waiter's Acquire look |
//! | release to nobody: exchange `HELD` for null | Release | the next holder's Acquire exchange or swap |
//! | leave the queue: exchange node for `HELD` | Release | the Acquire swap of the arrival that finds `HELD`: it then writes `next` after the holder's null |
//!
//! Source: Mellor-Crummey and Scott 1991, section 2.4; moving the successor into the lock is Auslander, Edelsohn, Krieger,
//! Rosenburg and Wisniewski's variant for the K42 operating system.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use lock_api::{GuardSend, RawMutex};
use machine::atomic::{AtomicBool, AtomicPtr, Fresh, Ordering};
use machine::wait::{Patient, WaitPolicy, wait_until};

use crate::bomb::AbortOnUnwind;

/// An MCS lock whose waiters pass the time as `W` says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0: first come, first served, from the swap on |
/// | cache misses to acquire | 1 uncontended, 3 or 4 contended, however many wait |
/// | size | 2 pointers; a waiter's node is on its stack |
/// | more threads than processors | slow: every hand-off to a preempted waiter costs a trip through the scheduler |
/// | deadline | no: see [`Clh`](crate::Clh) |
///
/// ```
/// use stanchion_spin::McsMutex;
///
/// static LOG: McsMutex<Vec<&str>> = McsMutex::new(Vec::new());
/// LOG.lock().push("started");
/// assert_eq!(LOG.lock().len(), 1);
/// ```
pub struct Mcs<W = Patient> {
    tail: AtomicPtr<Node>,
    next: AtomicPtr<Node>,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases!(Mcs<W>, McsMutex, McsMutexGuard, [W = Patient]);

/// A waiter.
struct Node {
    next: AtomicPtr<Node>,
    granted: AtomicBool,
}

/// The tail of a lock that is held and has no queue.
const HELD: *mut Node = ptr::without_provenance_mut(1);

impl<W: WaitPolicy> Mcs<W> {
    /// A free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tail: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            waiting: PhantomData,
        }
    }

    /// `free -> held, nobody waits`.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let node =
            Node { next: AtomicPtr::fresh(ptr::null_mut()), granted: AtomicBool::fresh(false) };
        let me = ptr::from_ref(&node).cast_mut();
        let bomb = AbortOnUnwind::armed();

        // Release: publishes the node to the next arrival. Acquire: pairs with the last arrival's Release, whose node we link to, and
        // with the Release exchange of `unlock` if that left null.
        let last = self.tail.swap(me, Ordering::AcqRel);
        if !last.is_null() {
            // Release: publishes the node to the holder, who loads the link with Acquire before it grants.
            self.link_after(last).store(me, Ordering::Release);
            // Acquire: pairs with the Release store in `unlock`.
            wait_until(&node.granted, Ordering::Acquire, |granted| granted, &mut W::start());
        }
        self.leave_queue(&node);
        bomb.defuse();
    }

    /// Where the arrival after `last` has to link itself.
    #[inline]
    fn link_after(&self, last: *mut Node) -> &AtomicPtr<Node> {
        if ptr::eq(last, HELD) {
            return &self.next;
        }
        // SAFETY: `last` was the tail until our swap, so by Invariant 2 its owner waits for our link before it leaves.
        unsafe { &(*last).next }
    }

    /// The holder's node leaves the queue: its successor, if any, moves into the lock.
    #[inline]
    fn leave_queue(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        // Acquire: pairs with the successor's Release link, handed on to `unlock` by the store below.
        let mut successor = node.next.load(Ordering::Acquire);
        if successor.is_null() {
            // Before the exchange, because the arrival that finds `HELD` may write `next` at once (Invariant 3). Relaxed: the
            // exchange publishes it.
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
            // Release: the arrival that finds `HELD` writes `next` after our null.
            if self.tail.compare_exchange(me, HELD, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            successor = wait_for_link::<W>(&node.next);
        }
        // Relaxed: only the holder reads it, and a holder that is another thread got the lock from this one.
        self.next.store(successor, Ordering::Relaxed);
    }
}

/// Waits for an arrival that has swapped itself in to link itself behind.
#[inline]
fn wait_for_link<W: WaitPolicy>(link: &AtomicPtr<Node>) -> *mut Node {
    // Acquire: pairs with the Release store of the link.
    wait_until(link, Ordering::Acquire, |next| !next.is_null(), &mut W::start())
}

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
unsafe impl<W: WaitPolicy> RawMutex for Mcs<W> {
    const INIT: Self = Self::new();

    /// `Send`: whatever a release needs is in the lock.
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        if !self.try_acquire() {
            self.lock_contended();
        }
        GuardSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        self.try_acquire().then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardSend) {
        // Acquire: pairs with the link's Release; the successor's node is touched below.
        let mut successor = self.next.load(Ordering::Acquire);
        if successor.is_null() {
            // Release: pairs with the Acquire exchange or swap of the next holder.
            if self
                .tail
                .compare_exchange(HELD, ptr::null_mut(), Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
            successor = wait_for_link::<W>(&self.next);
        }
        // SAFETY: the first waiter's node stays until it is granted (Invariant 2). Nothing of it is touched after the store.
        let granted = unsafe { &(*successor).granted };
        // Release: pairs with the waiter's Acquire look.
        granted.store(true, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}

always_fair!(Mcs<W>, [W: WaitPolicy]);
stateless_04!(Mcs<W>, [W: WaitPolicy]);

impl<W: WaitPolicy> Default for Mcs<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: WaitPolicy> fmt::Debug for Mcs<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcs").field("locked", &self.is_locked()).finish()
    }
}
