//! The MCS queue lock, in a form whose node never outlives `lock` and whose release is one store.
//!
//! Why not the textbook form: there the holder's node must stay put until the release, so it has to be handed in by the caller or live in
//! a thread-local, a forgotten guard leaves a dangling link, and a release must exchange the tail to learn that nobody waits.
//! Here the queue is for waiters only: its first waits for the word `locked`, takes it, and leaves the queue to the next before `lock`
//! returns. A free lock with no queue is taken without a node.
//!
//! ```text
//! locked ◄─watches─ first waiter ──► second ──► last ◄── tail          (tail = null: no queue)
//!                                       └─watches its own node
//! ```
//!
//! Why not keep the holder in the queue behind a constant tag (the K42 variant): that costs an exchange at every release, twice the price
//! uncontended. Nothing here knows the lock's address, so a mutex may be moved after its guard was forgotten.
//!
//! # Invariants
//!
//! 1. Only the thread whose exchange found `locked` false holds the lock, until it stores false.
//! 2. A node is in the queue from the swap that makes it the tail until its owner, which by then holds the lock, knows that no other thread
//!    will touch it: either it has put null into a tail that still named it, or the one arrival that found it there has linked itself
//!    behind it.
//! 3. Only the first waiter, and arrivals that found no queue, try to take `locked`. An arrival tries once and then queues; so it passes
//!    a waiter only if it began before that waiter had enqueued.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | take: exchange `locked` | Acquire | the Release store of `unlock` |
//! | enqueue: swap `tail` | AcqRel | Release publishes the node to the next arrival's Acquire, which links itself to it |
//! | leave: exchange `tail` for null | Relaxed | nobody: who finds null touches nothing of the one that left |
//! | link: store the predecessor's `next` | Release | the predecessor's Acquire load, before it touches the node |
//! | first: store the successor's `first` | Relaxed | nobody: the storing thread holds the lock, and the node's owner takes it before the node goes |
//!
//! Source: Mellor-Crummey and Scott 1991, section 2.4; a queue in front of a test-and-set word is how Linux has used it since 2014
//! (`kernel/locking/qspinlock.c`).

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use lock_api::{GuardSend, RawMutex};
use machine::atomic::{AtomicBool, AtomicPtr, Fresh, Ordering};
use machine::wait::{Patient, WaitPolicy, wait_until};

use crate::bomb;

/// An MCS lock whose waiters pass the time as `W` says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 1 for each thread that was in its first try when the waiter enqueued; 0 for all that came later |
/// | cache misses to acquire | 1 uncontended, 4 or 5 contended, however many wait |
/// | size | a pointer and a byte; a waiter's node is on its stack |
/// | more threads than processors | slow: every hand-off to a preempted waiter costs a trip through the scheduler ([measured](crate#measured)) |
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
    locked: AtomicBool,
    tail: AtomicPtr<Node>,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Mcs: McsMutex, McsMutexGuard;
    Mcs<W>: PolicyMcsMutex, PolicyMcsMutexGuard, [W];
}

/// A waiter. Alone on its cache lines, wherever the stack lies: what else is on them would move with each look.
#[repr(align(128))]
struct Node {
    next: AtomicPtr<Node>,
    /// Whether everyone that came before has left the queue.
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

    /// Takes the lock if it is free and nobody waits.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Relaxed: decides only who goes first (Invariant 3).
        self.tail.load(Ordering::Relaxed).is_null() && self.take()
    }

    /// Takes the lock if it is free.
    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the Release store of `unlock`.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let node =
            Node { next: AtomicPtr::fresh(ptr::null_mut()), first: AtomicBool::fresh(false) };
        let me = ptr::from_ref(&node).cast_mut();
        let bomb = bomb::armed();

        // Release: publishes the node to the next arrival. Acquire: pairs with the last arrival's Release; we link to its node.
        let last = self.tail.swap(me, Ordering::AcqRel);
        let mut policy = W::start();
        if !last.is_null() {
            // SAFETY: `last` was the tail until our swap, so by Invariant 2 its owner waits for our link before it leaves.
            let link = unsafe { &(*last).next };
            // Release: publishes the node to its predecessor, which loads the link with Acquire.
            link.store(me, Ordering::Release);
            // Relaxed: the node's end must come after the store in `leave_queue`, and it does: whoever stores holds the lock then, and we
            // take our node away only when we have taken the lock after him.
            wait_until(&node.first, Ordering::Relaxed, |first| first, &mut policy);
        }
        loop {
            // Relaxed: only a hint to try; the try synchronizes.
            wait_until(&self.locked, Ordering::Relaxed, |locked| !locked, &mut policy);
            if self.take() {
                break;
            }
        }
        self.leave_queue(&node);
        // Dropped before the bomb: the policy's destructor is a stranger's too.
        drop(policy);
        bomb.defuse();
    }

    /// Makes the next waiter the first.
    #[inline]
    fn leave_queue(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        // Acquire: pairs with the successor's Release link.
        let mut successor = node.next.load(Ordering::Acquire);
        if successor.is_null() {
            // Relaxed: who finds null touches nothing of ours; the lock's own word orders everything else.
            let gone = self.tail.compare_exchange(
                me,
                ptr::null_mut(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if gone.is_ok() {
                return;
            }
            // Acquire: as above. The arrival has swapped itself in and is about to link.
            successor =
                wait_until(&node.next, Ordering::Acquire, |next| !next.is_null(), &mut W::start());
        }
        // SAFETY: a waiter's node stays until it is first (Invariant 2). Nothing of it is touched after the store.
        let first = unsafe { &(*successor).first };
        // Relaxed: we hold the lock, and our release of it comes before the successor's node goes away.
        first.store(true, Ordering::Relaxed);
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
unsafe impl<W: WaitPolicy> RawMutex for Mcs<W> {
    const INIT: Self = Self::with_policy();

    /// `Send`: a release is a plain store, whichever thread does it.
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        if !self.try_acquire() {
            self.lock_contended();
        }
        GuardSend::new()
    }

    /// Fails also when the lock is free but somebody waits: a try does not jump the queue.
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
