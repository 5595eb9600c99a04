//! An MCS lock that passes over waiters who are not running.
//!
//! Why not plain MCS: when threads outnumber processors, the next in its queue is more often than not waiting for a processor, and
//! everyone behind it waits too. Here waiters publish the time of their last look, or that they are about to yield or sleep; a releaser
//! that finds a stale time takes the waiter for preempted, strikes it from the queue and looks at the next. A struck waiter finds out when it runs
//! again, and queues anew.
//!
//! | a node's `state` | meaning | stored by |
//! | --- | --- | --- |
//! | `WAITING` | in the queue | its owner, before each enqueue |
//! | `GRANTED` | its owner holds the lock | a releaser |
//! | `STRUCK` | passed over and out of the queue | a releaser |
//!
//! ```text
//! tail = null   free
//! tail = HELD   held, nobody waits            HELD is a constant, never the lock's own address:
//! tail = node   held, that node waits last    a mutex may be moved after its guard was forgotten
//!
//! next ──► node of 1st waiter ──► … ──► node of last ◄── tail       (the holder has no node)
//! ```
//!
//! The releaser hands the lock over, unlike [`Mcs`](crate::Mcs)'s, because somebody who runs must find out that the first does not. The node
//! lives on the waiter's stack and leaves the queue before `lock` returns; what a release needs, the successor, moves into `next`.
//!
//! # Invariants
//!
//! 1. A thread holds the lock from its grant (or from finding `tail` null) until it stores a grant or puts null into `tail`.
//! 2. A node is in the queue from the swap that makes it the tail until its owner, by then the holder, has moved its link into `next` and
//!    knows that no other thread will touch it: either `tail` no longer names it, or the one arrival that found it there has linked
//!    itself behind it. A struck node leaves by the releaser's hand.
//! 3. `next` is null whenever `tail` is null. While `tail` is `HELD`, only the arrival that replaces `HELD` writes `next`; at all other
//!    times only the holder does.
//! 4. Only a releaser, of whom there is one at a time, stores into a waiting node's `state`, and it does so once: after that the node
//!    may vanish or be enqueued anew, so the releaser has read its link before, and `tail` does not name it.
//! 5. A waiter that has been struck `STRIKES` times publishes a time that is never stale: it is granted in its turn, running or not.
//!    So a waiter is overtaken by at most the arrivals of `STRIKES` queueings.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | enqueue: swap `tail` | AcqRel | Release publishes the node to the next arrival's Acquire, which links itself to it; Acquire also pairs with a release that left null |
//! | link: store a predecessor's or the lock's `next` | Release | the holder's Acquire load, before it touches the node |
//! | grant or strike: store `state` | Release | the waiter's Acquire look |
//! | release to nobody: exchange `HELD`, or the last stale node, for null | Release | the next holder's Acquire exchange or swap |
//! | leave the queue: exchange node for `HELD` | Release | the Acquire swap of the arrival that finds `HELD`: it writes `next` after the holder's null |
//! | the published time | Relaxed | nobody: it is a guess about the past whatever its ordering |
//!
//! Source: He, Scherer and Scott 2005, "Preemption adaptivity in time-published queue-based spin locks" (MCS-TP);
//! moving the successor into the lock is Auslander, Edelsohn, Krieger, Rosenburg and Wisniewski's variant for the K42 system.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use lock_api::{GuardSend, RawMutex};
use machine::atomic::{AtomicPtr, AtomicU32, AtomicU64, Fresh, Ordering};
use machine::clock::{self, Ticks};
use machine::wait::{Patient, WaitPolicy, wait_until};

use crate::bomb;

/// A time-published MCS lock whose waiters pass the time as `W` says, and are passed over at most `STRIKES` times in a row.
///
/// | | |
/// | --- | --- |
/// | bypass bound | first come, first served among waiters that run; `STRIKES` queueings for one that does not, or whose policy has begun to yield or sleep |
/// | cache misses to acquire | 1 uncontended, 4 or 5 contended, one more for each waiter passed over |
/// | size | 2 pointers; a waiter's node is on its stack |
/// | more threads than processors | keeps working: preempted waiters are passed over |
/// | deadline | no: see [`Clh`](crate::Clh) |
///
/// A waiter that is preempted after it has entered the queue and before it has linked itself cannot be passed over: the release waits for it.
///
/// ```
/// use stanchion_spin::TimePublishedMcsMutex;
///
/// let jobs = TimePublishedMcsMutex::new(vec![1, 2]);
/// assert_eq!(jobs.lock().pop(), Some(2));
/// ```
pub struct TimePublishedMcs<W = Patient, const STRIKES: u32 = 64> {
    tail: AtomicPtr<Node>,
    next: AtomicPtr<Node>,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    TimePublishedMcs: TimePublishedMcsMutex, TimePublishedMcsMutexGuard;
    TimePublishedMcs<W, STRIKES>: PolicyTimePublishedMcsMutex, PolicyTimePublishedMcsMutexGuard, [W, const STRIKES: u32 = 64];
}

/// A waiter. Alone on its cache lines, wherever the stack lies: what else is on them would move with each look.
#[repr(align(128))]
struct Node {
    next: AtomicPtr<Node>,
    state: AtomicU32,
    /// When the owner last looked, in ticks.
    seen: AtomicU64,
}

/// In the queue.
const WAITING: u32 = 0;
/// Holds the lock.
const GRANTED: u32 = 1;
/// Passed over; no longer in the queue.
const STRUCK: u32 = 2;

/// A published time that is never stale.
const NEVER_STALE: u64 = u64::MAX;

/// A published time that is stale at once: its owner is giving its processor away.
const AWAY: u64 = 0;

/// The tail of a lock that is held and has no queue.
const HELD: *mut Node = ptr::without_provenance_mut(1);

impl Node {
    /// Whether the owner has not looked lately.
    #[inline]
    fn is_stale(&self, now: Ticks) -> bool {
        // Relaxed: see the header.
        let seen = self.seen.load(Ordering::Relaxed);
        // In a model no time passes, so staleness is a choice there.
        seen != NEVER_STALE
            && (now.nanos_since(Ticks::from_bits(seen)) > STALE_NS || machine::choice())
    }
}

impl<W, const STRIKES: u32> TimePublishedMcs<W, STRIKES> {
    /// A waiter that has not looked for this many nanoseconds is taken for preempted: well above the gap between two looks of a waiter
    /// that pauses, well below a time slice. One whose policy yields or sleeps says so, and is taken for gone at once.
    pub const STALE_NS: u64 = STALE_NS;
}

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
        let node = Node {
            next: AtomicPtr::fresh(ptr::null_mut()),
            state: AtomicU32::fresh(WAITING),
            seen: AtomicU64::fresh(clock::now().to_bits()),
        };
        let bomb = bomb::armed();
        // One policy for all queueings: who was struck has waited already, and need not begin by spinning.
        let mut policy = Publishing { policy: W::start(), seen: Some(&node.seen) };
        let mut strikes = 0;
        while !self.queue(&node, &mut policy) {
            // It may well be free: a releaser that found nobody running left it so.
            if self.try_acquire() {
                break;
            }
            // Out of the queue, the node is ours alone again. Relaxed: the next enqueue publishes all three.
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
        // Dropped before the bomb: the policy's destructor is a stranger's too.
        drop(policy);
        bomb.defuse();
    }

    /// Queues once; `false` if struck.
    fn queue(&self, node: &Node, policy: &mut Publishing<'_, W>) -> bool {
        let me = ptr::from_ref(node).cast_mut();
        // Release: publishes the node to the next arrival. Acquire: pairs with the last arrival's Release, whose node we link to, and with
        // the Release exchange of `unlock` if that left null.
        let last = self.tail.swap(me, Ordering::AcqRel);
        if !last.is_null() {
            // Release: publishes the node to the holder, who loads the link with Acquire.
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

    /// Where the arrival after `last` has to link itself.
    #[inline]
    fn link_after(&self, last: *mut Node) -> &AtomicPtr<Node> {
        if ptr::eq(last, HELD) {
            return &self.next;
        }
        // SAFETY: `last` was the tail until our swap, so by Invariants 2 and 4 it stays until our link has been read.
        unsafe { &(*last).next }
    }

    /// The holder's node leaves the queue: its successor, if any, moves into the lock.
    #[inline]
    fn leave_queue(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        if let Some(successor) = self.successor_or(me, &node.next, HELD) {
            // Relaxed: only the holder reads it, and a holder that is another thread got the lock from this one.
            self.next.store(successor, Ordering::Relaxed);
        }
    }

    /// The link behind `place`, waiting for it if an arrival is about to make it; or `None` once `tail` has gone from `place` to `instead`.
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
            // Invariant 3, before the exchange that lets others at it. Relaxed: the exchange publishes it.
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of the next holder if it becomes null, of the arrival that finds `HELD` otherwise.
        if self.tail.compare_exchange(place, instead, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return None;
        }
        // A release, or a queue, must not end half-way.
        let bomb = bomb::armed();
        // Acquire: pairs with the link's Release.
        let successor =
            wait_until(link, Ordering::Acquire, |next| !next.is_null(), &mut W::start());
        bomb.defuse();
        Some(successor)
    }
}

/// A policy whose waiter publishes when it looks, and that it is about not to.
struct Publishing<'node, W> {
    policy: W,
    seen: Option<&'node AtomicU64>,
}

impl<W: WaitPolicy> WaitPolicy for Publishing<'_, W> {
    fn start() -> Self {
        Self { policy: W::start(), seen: None }
    }

    #[inline]
    fn pause(&mut self) {
        let Some(seen) = self.seen else { return self.policy.pause() };
        // Relaxed, both: see the header.
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

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to
// the next.
unsafe impl<W: WaitPolicy, const STRIKES: u32> RawMutex for TimePublishedMcs<W, STRIKES> {
    const INIT: Self = Self::with_policy();

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
        let Some(mut waiter) = self.successor_or(HELD, &self.next, ptr::null_mut()) else { return };
        let now = clock::now();
        loop {
            // SAFETY: a waiting node stays until its state is stored, which only we do (Invariant 4).
            let node = unsafe { &*waiter };
            if !node.is_stale(now) {
                // Release: pairs with the waiter's Acquire look. The node is not touched after it.
                node.state.store(GRANTED, Ordering::Release);
                return;
            }
            // Its link is read, or the tail moved off it, before it is struck (Invariant 4).
            let successor = self.successor_or(waiter, &node.next, ptr::null_mut());
            // Release: pairs with the waiter's Acquire look.
            node.state.store(STRUCK, Ordering::Release);
            match successor {
                Some(next) => waiter = next,
                // All were stale: the lock is free for whoever runs.
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
