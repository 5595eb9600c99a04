//! The MCS queue lock. Its nodes never outlive `lock`, and its release is one store.
//!
//! Why not the textbook form: there the holder's node must stay in place until the release. So the
//! caller has to hand it in, or it has to be in a thread-local, and a forgotten guard leaves a
//! dangling link. A release must also exchange the tail to learn that no thread waits.
//!
//! Here the queue is for waiters only. Its first waiter waits for the word `locked`, takes it, and
//! makes the next waiter the first before `lock` returns. A free lock without a queue is taken
//! without a node.
//!
//! ```text
//! locked ◄─watches─ first waiter ──► second ──► last ◄── tail          (tail = null: no queue)
//!                                       └─watches its own node
//! ```
//!
//! Why not keep the holder in the queue behind a constant tag (the K42 variant): that costs an
//! exchange at every release, twice the price without contention. Nothing here knows the lock's
//! address, so a mutex may be moved after its guard was forgotten.
//!
//! # Invariants
//!
//! 1. A thread holds the lock if its exchange found `locked` false. It holds the lock until it
//!    stores false. No other thread holds it.
//! 2. A node is in the queue from the swap that makes it the tail until its owner knows that no
//!    other thread will touch it. The owner holds the lock by then. It knows this in one of two
//!    ways: it has put null into a tail that still named its node, or the one arrival that found
//!    its node there has linked itself behind it.
//! 3. Only the first waiter, and arrivals that found no queue, try to take `locked`. An arrival
//!    tries once and then queues. So an arrival overtakes a waiter only if its try began before
//!    that waiter had enqueued.
//!
//! # Orderings
//!
//! - Take, an exchange of `locked`: Acquire. It pairs with the Release store of `unlock`.
//! - Enqueue, a swap of `tail`: AcqRel. Release publishes the node to the next arrival's Acquire.
//!   That arrival links itself to the node.
//! - Leave, an exchange of `tail` for null: Relaxed. It has no partner: an arrival that finds null
//!   touches nothing of the node that left.
//! - Link, a store to the predecessor's `next`: Release. It pairs with the predecessor's Acquire
//!   load, which comes before the predecessor touches the node.
//! - First, a store to the successor's `first`: Relaxed. It has no partner: the storing thread
//!   holds the lock, and the node's owner takes the lock before the node goes away.
//!
//! Source: Mellor-Crummey and Scott 1991, section 2.4. Linux has used a queue in front of a
//! test-and-set word since 2014 (`kernel/locking/qspinlock.c`).

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicBool, AtomicPtr, Fresh, Ordering};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};

use crate::bomb;

/// An MCS lock. `W` is the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 1 for each thread in its first try when the waiter enqueued; 0 for the others |
/// | cache misses to acquire | 1 uncontended, 4 or 5 contended, however many wait |
/// | size | a pointer and a byte; a waiter's node is on its stack |
/// | more threads than processors | slow ([measured](crate#measured)) |
/// | deadline | no: see [`Clh`](crate::Clh) |
///
/// If threads outnumber processors, every hand-off to a preempted waiter costs a trip through the
/// scheduler.
///
/// ```
/// use stanchion_spin::McsMutex;
///
/// static LOG: McsMutex<Vec<&str>> = McsMutex::new(Vec::new());
/// LOG.lock().push("started");
/// assert_eq!(LOG.lock().len(), 1);
/// ```
pub struct Mcs<W = Patient> {
    /// Held or free. The thread that takes the lock writes true, and the holder writes false.
    locked: AtomicBool,
    /// The node of the last waiter, or null without a queue. Arrivals swap in theirs. A holder that
    /// leaves no waiter behind puts null back.
    tail: AtomicPtr<Node>,
    /// The waiting policy: `W` is a type parameter only, no value is stored.
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Mcs: McsMutex, McsMutexGuard;
    Mcs<W>: PolicyMcsMutex, PolicyMcsMutexGuard, [W];
}

/// A waiter. The node has its cache lines for itself, wherever the stack is. Other data on them
/// would move between processors with each look.
#[repr(align(128))]
struct Node {
    /// The node of the next waiter. That waiter writes it when it links itself.
    next: AtomicPtr<Node>,
    /// True once all earlier waiters have left the queue. The predecessor writes it.
    first: AtomicBool,
}

impl Mcs {
    /// Returns a free lock with the default waiting policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> Mcs<W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `Mcs::<Spin>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self {
            locked: AtomicBool::new(false),
            tail: AtomicPtr::new(ptr::null_mut()),
            waiting: PhantomData,
        }
    }

    /// Takes the lock if it is free and no thread waits.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Relaxed: it only decides which thread goes first (Invariant 3).
        self.tail.load(Ordering::Relaxed).is_null() && self.take()
    }

    /// Takes the lock if it is free.
    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the Release store of `unlock`.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Joins the queue and waits until this thread holds the lock.
    #[cold]
    fn lock_contended(&self) {
        let node =
            Node { next: AtomicPtr::fresh(ptr::null_mut()), first: AtomicBool::fresh(false) };
        let me = ptr::from_ref(&node).cast_mut();
        let bomb = bomb::armed();

        // Release: publishes the node to the next arrival. Acquire: pairs with the last arrival's
        // Release, because this thread links itself to that node.
        let last = self.tail.swap(me, Ordering::AcqRel);
        let mut policy = W::start();
        if !last.is_null() {
            // SAFETY: `last` was the tail until this thread's swap. By Invariant 2 its owner waits
            // for this thread's link before it leaves.
            let link = unsafe { &(*last).next };
            // Release: publishes the node to its predecessor, which loads the link with Acquire.
            link.store(me, Ordering::Release);
            // Relaxed: the node must not go away before the store in `leave_queue`. The thread that
            // stores holds the lock at that time. This thread takes the lock after it, and removes
            // the node only then.
            wait_until(&node.first, Ordering::Relaxed, |first| first, &mut policy);
        }
        loop {
            // Relaxed: only a hint to try. The try synchronizes.
            wait_until(&self.locked, Ordering::Relaxed, |locked| !locked, &mut policy);
            if self.take() {
                break;
            }
        }
        self.leave_queue(&node);
        // Drop the policy before the bomb is defused: its destructor is a user's code too and may
        // panic.
        drop(policy);
        bomb.defuse();
    }

    /// Takes the holder's node out of the queue and makes the next waiter the first.
    #[inline]
    fn leave_queue(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        // Acquire: pairs with the successor's Release link.
        let mut successor = node.next.load(Ordering::Acquire);
        if successor.is_null() {
            // Relaxed: an arrival that finds null touches nothing of this node. The word `locked`
            // orders everything else.
            let gone = self.tail.compare_exchange(
                me,
                ptr::null_mut(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if gone.is_ok() {
                return;
            }
            // Acquire: as above. An arrival has swapped itself in and is about to link itself.
            successor =
                wait_until(&node.next, Ordering::Acquire, |next| !next.is_null(), &mut W::start());
        }
        // SAFETY: a waiter's node stays until the waiter is the first (Invariant 2). The node is
        // not touched after the store.
        let first = unsafe { &(*successor).first };
        // Relaxed: this thread holds the lock, and its release comes before the successor's node
        // goes away.
        first.store(true, Ordering::Relaxed);
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<W: WaitPolicy> RawMutex for Mcs<W> {
    const INIT: Self = Self::with_policy();

    /// `Send`: a release is a plain store, and any thread may do it.
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        if !self.try_acquire() {
            self.lock_contended();
        }
        GuardSend::new()
    }

    /// Tries to take the lock. Fails also if the lock is free but a thread waits: a try does not
    /// jump the queue.
    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        self.try_acquire().then(GuardSend::new)
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

always_fair!(Mcs<W>, [W: WaitPolicy]);
stateless_04!(Mcs<W>, GuardSend, [W: WaitPolicy]);

impl<W: WaitPolicy> Default for Mcs<W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> fmt::Debug for Mcs<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcs").field("locked", &self.is_locked()).finish()
    }
}
