//! An MCS lock that passes over waiters that do not run.
//!
//! Why not plain MCS: when threads outnumber processors, the next waiter in its queue is most often
//! waiting for a processor. All waiters behind it wait too.
//!
//! Here waiters publish the time of their last look, or that they are about to yield or sleep. If a
//! releaser finds a stale time, it takes the waiter for preempted. It strikes the waiter from the
//! queue and looks at the next one. A struck waiter finds out when it runs again, and queues anew.
//!
//! | a node's `state` | meaning | stored by |
//! | --- | --- | --- |
//! | `WAITING` | in the queue | its owner, before each enqueue |
//! | `GRANTED` | its owner holds the lock | a releaser |
//! | `STRUCK` | passed over and out of the queue | a releaser |
//!
//! ```text
//! tail = null   free
//! tail = HELD   held, no waiter               HELD is a constant, never the lock's own address:
//! tail = node   held, that node waits last    a mutex may be moved after its guard was forgotten
//!
//! next ──► node of 1st waiter ──► … ──► node of last ◄── tail       (the holder has no node)
//! ```
//!
//! Unlike [`Mcs`](crate::Mcs), the releaser hands the lock over. A waiter that does not run cannot
//! find that out itself, so a running thread must. The node is on the waiter's stack and leaves the
//! queue before `lock` returns. A release needs only the successor, which moves into `next`.
//!
//! # Invariants
//!
//! 1. A thread holds the lock from its grant (or from finding `tail` null) until it stores a grant
//!    or puts null into `tail`.
//! 2. A node is in the queue from the swap that makes it the tail. Its owner takes it out when it
//!    holds the lock: it moves its link into `next`, and makes sure that no other thread will touch
//!    the node. Either `tail` no longer names the node, or the one arrival that found it there has
//!    linked itself behind it. A struck node is taken out by the releaser.
//! 3. `next` is null whenever `tail` is null. While `tail` is `HELD`, only the arrival that
//!    replaces `HELD` writes `next`. At all other times only the holder does.
//! 4. Only a releaser stores into a waiting node's `state`. There is one releaser at a time, and it
//!    stores once. After the store the node may vanish or be enqueued anew. So before it, the
//!    releaser has read the node's link, and `tail` does not name the node.
//! 5. A waiter that has been struck `STRIKES` times publishes a time that is never stale. It is
//!    then granted the lock in its turn, running or not. So a waiter is overtaken by at most the
//!    arrivals of `STRIKES` queueings.
//!
//! # Orderings
//!
//! - Enqueue, a swap of `tail`: AcqRel. Release publishes the node to the next arrival's Acquire.
//!   That arrival links itself to the node. Acquire also pairs with a release that left null.
//! - Link, a store to a predecessor's or the lock's `next`: Release. It pairs with the holder's
//!   Acquire load, which comes before the holder touches the node.
//! - Grant or strike, a store to `state`: Release. It pairs with the waiter's Acquire load.
//! - Release without a successor, an exchange of `HELD` or the last stale node for null: Release.
//!   It pairs with the next holder's Acquire exchange or swap.
//! - Leave the queue, an exchange of the node for `HELD`: Release. It pairs with the Acquire swap
//!   of the arrival that finds `HELD`. So that arrival writes `next` after the holder's null.
//! - The published time: Relaxed. It has no partner: with any ordering it is a guess about the
//!   past.
//!
//! Source: He, Scherer and Scott 2005, "Preemption adaptivity in time-published queue-based spin
//! locks" (MCS-TP). Moving the successor into the lock is a variant by Auslander, Edelsohn,
//! Krieger, Rosenburg and Wisniewski for the K42 system.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use lock_api::{GuardSend, RawMutex};
use stanchion_machine::atomic::{AtomicPtr, AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};

use crate::bomb;

/// A time-published MCS lock. `W` is the waiting policy. A waiter is passed over at most `STRIKES`
/// times in a row.
///
/// | | |
/// | --- | --- |
/// | bypass bound | running waiters: first come, first served; others: `STRIKES` queueings |
/// | cache misses to acquire | 1 uncontended; else 4 or 5, and 1 for each waiter passed over |
/// | size | 2 pointers; a waiter's node is on its stack |
/// | more threads than processors | keeps working: preempted waiters are passed over |
/// | deadline | no: see [`Clh`](crate::Clh) |
///
/// A waiter counts as not running also when its policy has begun to yield or sleep. If a waiter is
/// preempted after it has entered the queue and before it has linked itself, it cannot be passed
/// over: the release waits for it.
///
/// ```
/// use stanchion_spin::TimePublishedMcsMutex;
///
/// let jobs = TimePublishedMcsMutex::new(vec![1, 2]);
/// assert_eq!(jobs.lock().pop(), Some(2));
/// ```
pub struct TimePublishedMcs<W = Patient, const STRIKES: u32 = 64> {
    /// Null, `HELD`, or the node of the last waiter. Arrivals and the holder exchange it.
    tail: AtomicPtr<Node>,
    /// The node of the first waiter, or null until that is known. Invariant 3 says which thread
    /// writes it.
    next: AtomicPtr<Node>,
    /// The waiting policy: `W` is a type parameter only, no value is stored.
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    TimePublishedMcs: TimePublishedMcsMutex, TimePublishedMcsMutexGuard;
    TimePublishedMcs<W, STRIKES>: PolicyTimePublishedMcsMutex, PolicyTimePublishedMcsMutexGuard, [W, const STRIKES: u32 = 64];
}

/// A waiter. The node has its cache lines for itself, wherever the stack is. Other data on them
/// would move between processors with each look.
#[repr(align(128))]
struct Node {
    /// The node of the next waiter. That waiter writes it when it links itself.
    next: AtomicPtr<Node>,
    /// `WAITING`, `GRANTED` or `STRUCK`. The owner writes the first, a releaser the others.
    state: AtomicU32,
    /// The time of the owner's last look, in ticks. The owner writes it.
    seen: AtomicU64,
}

/// The state of a node in the queue.
const WAITING: u32 = 0;
/// The state of a node after the releaser has handed its owner the lock.
const GRANTED: u32 = 1;
/// The state of a node that was passed over and is no longer in the queue.
const STRUCK: u32 = 2;

/// A published time that is never stale.
const NEVER_STALE: u64 = u64::MAX;

/// A published time that is stale at once: the owner of the node is giving its processor away.
const AWAY: u64 = 0;

/// The tail of a lock that is held and has no queue.
const HELD: *mut Node = ptr::without_provenance_mut(1);

impl Node {
    /// Returns whether the owner has not looked lately.
    #[inline]
    fn is_stale(&self, now: Ticks) -> bool {
        // Relaxed: see "Orderings" in the module.
        let seen = self.seen.load(Ordering::Relaxed);
        // In a model no time passes, so the model chooses whether a time is stale.
        seen != NEVER_STALE
            && (now.nanos_since(Ticks::from_bits(seen)) > STALE_NS || stanchion_machine::choice())
    }
}

impl<W, const STRIKES: u32> TimePublishedMcs<W, STRIKES> {
    /// The age in nanoseconds above which a published time is stale: its waiter is taken for
    /// preempted. It is well above the gap between two looks of a waiter that pauses, and well
    /// below a time slice. A waiter that is about to yield or sleep publishes that, and is taken
    /// for gone at once.
    pub const STALE_NS: u64 = STALE_NS;
}

/// The value of [`TimePublishedMcs::STALE_NS`], for code that has no type parameters.
const STALE_NS: u64 = 10_000;

impl TimePublishedMcs {
    /// Returns a free lock with the default waiting policy and at most 64 strikes.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy, const STRIKES: u32> TimePublishedMcs<W, STRIKES> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `TimePublishedMcs::<Spin>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self {
            tail: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            waiting: PhantomData,
        }
    }

    /// Acquires the lock if it is free. It has no waiter then.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Queues until this thread holds the lock.
    #[cold]
    fn lock_contended(&self) {
        let node = Node {
            next: AtomicPtr::fresh(ptr::null_mut()),
            state: AtomicU32::fresh(WAITING),
            seen: AtomicU64::fresh(clock::now().to_bits()),
        };
        let bomb = bomb::armed();
        // One policy for all queueings: a struck waiter has waited already and need not begin by
        // spinning.
        let mut policy = Publishing { policy: W::start(), seen: Some(&node.seen) };
        let mut strikes = 0;
        while !self.queue(&node, &mut policy) {
            // The lock may be free: a releaser leaves it free if it finds no running waiter.
            if self.try_acquire() {
                break;
            }
            // Out of the queue, the node belongs to this thread alone again. Relaxed: the next
            // enqueue publishes all three stores.
            node.next.store(ptr::null_mut(), Ordering::Relaxed);
            node.state.store(WAITING, Ordering::Relaxed);
            strikes += 1;
            if strikes < STRIKES {
                node.seen.store(clock::now().to_bits(), Ordering::Relaxed);
            } else {
                node.seen.store(NEVER_STALE, Ordering::Relaxed);
                policy.seen = None;
            }
        }
        // Drop the policy before the bomb is defused: its destructor is a user's code too and may
        // panic.
        drop(policy);
        bomb.defuse();
    }

    /// Queues once. Returns `false` if the node was struck.
    fn queue(&self, node: &Node, policy: &mut Publishing<'_, W>) -> bool {
        let me = ptr::from_ref(node).cast_mut();
        // Release: publishes the node to the next arrival. Acquire: pairs with the last arrival's
        // Release, because this thread links itself to that node. If the swap returns null, it
        // pairs with the Release exchange of `unlock`.
        let last = self.tail.swap(me, Ordering::AcqRel);
        if !last.is_null() {
            // Release: publishes the node to the holder, which loads the link with Acquire.
            self.link_after(last).store(me, Ordering::Release);
            // Acquire: pairs with the Release store of a grant or a strike.
            let state =
                wait_until(&node.state, Ordering::Acquire, |state| state != WAITING, policy);
            if state == STRUCK {
                return false;
            }
        }
        self.leave_queue(node);
        true
    }

    /// Returns the word in which the arrival after `last` stores its link.
    #[inline]
    fn link_after(&self, last: *mut Node) -> &AtomicPtr<Node> {
        if ptr::eq(last, HELD) {
            return &self.next;
        }
        // SAFETY: `last` was the tail until this thread's swap. By Invariants 2 and 4 it stays
        // until this thread's link has been read.
        unsafe { &(*last).next }
    }

    /// Takes the holder's node out of the queue. Its successor, if any, moves into the lock.
    #[inline]
    fn leave_queue(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        if let Some(successor) = self.successor_or(me, &node.next, HELD) {
            // Relaxed: only the holder reads it, and the next holder gets the lock from this
            // thread.
            self.next.store(successor, Ordering::Relaxed);
        }
    }

    /// Returns the link behind `place`. If an arrival is about to store that link, waits for it. If
    /// there is no successor, changes `tail` from `place` to `instead` and returns `None`.
    #[inline]
    fn successor_or(
        &self,
        place: *mut Node,
        link: &AtomicPtr<Node>,
        instead: *mut Node,
    ) -> Option<*mut Node> {
        // Acquire: pairs with the link's Release.
        let successor = link.load(Ordering::Acquire);
        if !successor.is_null() {
            return Some(successor);
        }
        if !ptr::eq(place, HELD) {
            // Invariant 3: null before the exchange that lets other threads write it. Relaxed: the
            // exchange publishes it.
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of the next holder if `instead` is null. Otherwise it
        // pairs with the Acquire of the arrival that finds `HELD`.
        if self.tail.compare_exchange(place, instead, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return None;
        }
        // A release must not end half-way, nor must leaving the queue.
        let bomb = bomb::armed();
        // Acquire: pairs with the link's Release.
        let successor =
            wait_until(link, Ordering::Acquire, |next| !next.is_null(), &mut W::start());
        bomb.defuse();
        Some(successor)
    }
}

/// A policy that publishes the time of each look, and that the waiter is about to yield or sleep.
struct Publishing<'node, W> {
    /// The waiter's own policy.
    policy: W,
    /// The word in which the waiter publishes. `None` once its published time is never stale.
    seen: Option<&'node AtomicU64>,
}

impl<W: WaitPolicy> WaitPolicy for Publishing<'_, W> {
    fn start() -> Self {
        Self { policy: W::start(), seen: None }
    }

    #[inline]
    fn pause(&mut self) {
        let Some(seen) = self.seen else { return self.policy.pause() };
        // Relaxed, both stores: see "Orderings" in the module.
        if self.policy.leaves() {
            seen.store(AWAY, Ordering::Relaxed);
        }
        self.policy.pause();
        seen.store(clock::now().to_bits(), Ordering::Relaxed);
    }

    #[inline]
    fn leaves(&self) -> bool {
        self.policy.leaves()
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<W: WaitPolicy, const STRIKES: u32> RawMutex for TimePublishedMcs<W, STRIKES> {
    const INIT: Self = Self::with_policy();

    /// `Send`: all that a release needs is in the lock.
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
        let Some(mut waiter) = self.successor_or(HELD, &self.next, ptr::null_mut()) else { return };
        let now = clock::now();
        loop {
            // SAFETY: a waiting node stays until its state is stored, and only this thread does
            // that (Invariant 4).
            let node = unsafe { &*waiter };
            if !node.is_stale(now) {
                // Release: pairs with the waiter's Acquire load. The node is not touched after it.
                node.state.store(GRANTED, Ordering::Release);
                return;
            }
            // Before the strike, the node's link is read or the tail moved off the node (Invariant
            // 4).
            let successor = self.successor_or(waiter, &node.next, ptr::null_mut());
            // Release: pairs with the waiter's Acquire load.
            node.state.store(STRUCK, Ordering::Release);
            match successor {
                Some(next) => waiter = next,
                // All waiters were stale: the lock is free for any running thread.
                None => return,
            }
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}

stateless_04!(
    TimePublishedMcs<W, STRIKES>, GuardSend, [W: WaitPolicy, const STRIKES: u32]
);

impl<W: WaitPolicy, const STRIKES: u32> Default for TimePublishedMcs<W, STRIKES> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy, const STRIKES: u32> fmt::Debug for TimePublishedMcs<W, STRIKES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimePublishedMcs").field("locked", &self.is_locked()).finish()
    }
}
