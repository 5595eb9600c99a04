//! The CLH queue lock. A free lock needs no node, and waiters can give up.
//!
//! Why not MCS: a CLH waiter watches its *predecessor's* node. A release is one store and need not
//! know the successor. A waiter that gives up stores one pointer: the node that its successor has
//! to watch instead.
//!
//! Why not the textbook form: that needs a node for every lock and a node for every acquisition.
//! Here a free lock has no node and an uncontended acquisition uses none. Each thread keeps one
//! node for its next wait.
//!
//! ```text
//! tail = null   free
//! tail = HELD   held by a thread without a node; its release shows in `gate`
//! tail = node   the last arrival's: it holds, waits, or has given up (then the lock may be free)
//!
//!   gate ◄─watches─ node A ◄─watches─ node B ◄── tail
//! ```
//!
//! | a node's word | meaning | stored by |
//! | --- | --- | --- |
//! | null | its thread holds the lock or waits | its owner, before the enqueue |
//! | `RELEASED` | its thread has released the lock | its thread |
//! | anything else | its thread gave up and was watching this node or `HELD` | its thread |
//!
//! # Invariants
//!
//! 1. A thread holds the lock from the load that finds `RELEASED` (or a null `tail`) until it
//!    stores `RELEASED` or puts null into `tail`.
//! 2. A node belongs to its thread until that thread stores a value other than null into its word.
//!    From then on it belongs to the one thread that watches it. If no thread ever does, it belongs
//!    to the lock, which frees it when it is dropped.
//! 3. `tail` names a node only until another thread swaps in its own mark. Until the owner of a
//!    node has stored into its word, no other thread can enqueue a node of the same address. So an
//!    exchange of a thread's own node for null cannot succeed on another thread's node.
//! 4. `gate` is null, with one exception: a holder without a node has released to a waiter that has
//!    not looked yet. That waiter puts null back.
//! 5. Waiters skip abandoned nodes and free them. So at most one node is left for each thread that
//!    waited at the same time.
//!
//! # Orderings
//!
//! - Enqueue, a swap of `tail`: AcqRel. Release publishes the node's word to the next arrival.
//!   Acquire pairs with that Release, and with the release that left null.
//! - Release or give up, a store to the word: Release. It pairs with the Acquire load of the thread
//!   that watches the word.
//! - Release without a successor, an exchange of the holder's mark for null: Release. It pairs with
//!   the next holder's Acquire exchange or swap.
//!
//! Source: Craig 1993; Magnusson, Landin and Hagersten 1994. Giving up is from Scott and Scherer
//! 2001 (CLH-try). There too the successor adopts the predecessor of a waiter that gave up.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use alloc::boxed::Box;

use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use crate::bomb;

/// A CLH lock. `W` is the waiting policy.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0 without deadlines: first come, first served |
/// | cache misses to acquire | 1 uncontended, 2 or 3 contended, however many wait |
/// | size | 2 pointers; each thread that ever waited keeps one node of a pointer |
/// | more threads than processors | slow ([measured](crate#measured)) |
/// | deadline | yes; a waiter that gives up loses its turn |
///
/// If threads outnumber processors, every hand-off to a preempted waiter costs a trip through the
/// scheduler. A `try_lock` that meets a queue joins it and gives up at once.
///
/// A thread's first wait allocates its node. So may `try_lock` and `is_locked`, which can briefly
/// take the lock to find out. Do not guard an allocator with this lock.
/// `stanchion_machine::warm_up` does not help, because each thread has a node of its own. No wait
/// opens a file.
///
/// ```
/// use core::time::Duration;
/// use stanchion_spin::ClhMutex;
///
/// let mutex = ClhMutex::new(1);
/// let held = mutex.lock();
/// assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert_eq!(*mutex.lock(), 1);
/// ```
pub struct Clh<W = Patient> {
    /// The last arrival's mark: null, `HELD`, or its node. Arrivals swap in theirs; a holder
    /// without a successor puts null back.
    tail: AtomicPtr<Node>,
    /// The word that the successor of a holder without a node watches. The holder stores
    /// `RELEASED`, and the successor puts null back.
    gate: AtomicPtr<Node>,
    /// The waiting policy: `W` is a type parameter only, no value is stored.
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Clh: ClhMutex, ClhMutexGuard;
    Clh<W>: PolicyClhMutex, PolicyClhMutexGuard, [W];
}

/// A waiter or holder in the queue.
struct Node {
    /// The state of the node, as in the table of the module. The thread that owns the node writes
    /// it.
    word: AtomicPtr<Node>,
}

/// The value of `tail` while the lock is held by a thread without a node and has no queue.
const HELD: *mut Node = ptr::without_provenance_mut(1);

/// The word of a node after its thread has released the lock.
const RELEASED: *mut Node = ptr::without_provenance_mut(2);

/// The mark of one acquisition in the queue, carried by the guard of a [`Clh`].
#[derive(Debug)]
pub struct Held(*mut Node);

// SAFETY: the node is on the heap. Any thread may do the release, and any thread may keep the node.
unsafe impl Send for Held {}
// SAFETY: nothing can be done with a shared reference to it.
unsafe impl Sync for Held {}

impl Held {
    /// The mark of a holder that has no node.
    const WITHOUT_NODE: Self = Self(HELD);
}

impl Clh {
    /// Returns a free lock with the default waiting policy.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy()
    }
}

impl<W: WaitPolicy> Clh<W> {
    /// Returns a free lock with the parameters that the caller names, as in
    /// `Clh::<Spin>::with_policy()`.
    #[must_use]
    pub const fn with_policy() -> Self {
        Self {
            tail: AtomicPtr::new(ptr::null_mut()),
            gate: AtomicPtr::new(ptr::null_mut()),
            waiting: PhantomData,
        }
    }

    /// Acquires the lock if it is free and has no queue. The holder has no node then.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Joins the queue and waits for the lock. Returns `None` if `deadline` came first.
    #[cold]
    fn lock_until(&self, deadline: Deadline) -> Option<Held> {
        let me = node::take();
        let bomb = bomb::armed();
        let mut policy = W::start();

        // Release: publishes the null in this node's word to the next arrival. Acquire: pairs with
        // the Release of the last arrival, because its word is watched here. If the swap returns
        // null, it pairs with the Release exchange of `unlock`.
        let mut watched = self.tail.swap(me, Ordering::AcqRel);
        let acquired = loop {
            // The tail was null: the lock was free.
            if watched.is_null() {
                break true;
            }
            // Acquire: pairs with the Release store to the word, by a release or by a thread that
            // gives up.
            let word = self.word_of(watched);
            let seen = wait_until_deadline(
                word,
                Ordering::Acquire,
                |word| !word.is_null(),
                &mut policy,
                deadline,
            );
            match seen {
                // The deadline has passed.
                None => break false,
                // The holder without a node has released the lock.
                Some(RELEASED) if ptr::eq(watched, HELD) => {
                    // Relaxed: the next thread that watches the gate gets the lock from this
                    // thread, and with it this store (Invariant 4).
                    self.gate.store(ptr::null_mut(), Ordering::Relaxed);
                    break true;
                }
                // The predecessor has released the lock. By Invariant 2 its node belongs to this
                // thread now.
                Some(RELEASED) => {
                    node::keep(watched);
                    break true;
                }
                // The predecessor gave up: watch what it was watching.
                Some(adopted) => {
                    node::keep(watched);
                    watched = adopted;
                }
            }
        };
        // Drop the policy before the bomb is defused: its destructor is a user's code too and may
        // panic.
        drop(policy);
        bomb.defuse();
        if acquired {
            return Some(Held(me));
        }
        // SAFETY: the node belongs to this thread until the store, and is not touched after it
        // (Invariant 2).
        let word = unsafe { &(*me).word };
        // Release: the successor adopts `watched`, which this thread's Acquire loads let it see.
        word.store(watched, Ordering::Release);
        None
    }

    /// Returns the word that shows the release of `place`.
    #[inline]
    fn word_of(&self, place: *mut Node) -> &AtomicPtr<Node> {
        if ptr::eq(place, HELD) {
            return &self.gate;
        }
        // SAFETY: `place` was the tail until this thread's swap, or was watched by a thread that
        // gave up. It is kept until this thread has seen its word set (Invariant 2).
        unsafe { &(*place).word }
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once. The orderings make one holder's
// writes visible to the next holder.
unsafe impl<W: WaitPolicy> RawMutex for Clh<W> {
    const INIT: Self = Self::with_policy();

    type Guard = Held;

    #[inline]
    fn lock(&self) -> Held {
        if self.try_acquire() {
            return Held::WITHOUT_NODE;
        }
        match self.lock_until(Deadline::NEVER) {
            Some(held) => held,
            // Not reached: without a deadline a wait ends only with the lock.
            None => self.lock(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Held> {
        if self.try_acquire() {
            return Some(Held::WITHOUT_NODE);
        }
        // Relaxed: a hint. A holder without a node is the last arrival, so the lock is not free.
        if ptr::eq(self.tail.load(Ordering::Relaxed), HELD) {
            return None;
        }
        // The tail is a node. The lock may still be free: the node can be abandoned behind a
        // released one. To find out, the thread has to join the queue.
        self.lock_until(Deadline::PAST)
    }

    #[inline]
    unsafe fn unlock(&self, Held(place): Held) {
        // Relaxed: if another thread has arrived since, the exchange would fail and take the cache
        // line away from the next arrival. Otherwise the exchange decides. Release: pairs with the
        // Acquire exchange or swap of the next holder.
        if ptr::eq(self.tail.load(Ordering::Relaxed), place)
            && self
                .tail
                .compare_exchange(place, ptr::null_mut(), Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            // No thread watches the node, and none can any more (Invariant 3).
            if !ptr::eq(place, HELD) {
                node::keep(place);
            }
            return;
        }
        // Release: pairs with the Acquire load of the successor. A node belongs to the successor
        // from here on (Invariant 2).
        self.word_of(place).store(RELEASED, Ordering::Release);
    }

    /// Returns whether a thread holds the lock. If the queue ends in a node, finding out takes a
    /// `try_lock`.
    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        if self.tail.load(Ordering::Relaxed).is_null() {
            return false;
        }
        match self.try_lock() {
            None => true,
            Some(held) => {
                // SAFETY: just acquired.
                unsafe { self.unlock(held) };
                false
            }
        }
    }
}

always_fair!(Clh<W>, [W: WaitPolicy]);
timed!(Clh<W>, [W: WaitPolicy]);

impl<W> Drop for Clh<W> {
    /// Frees the nodes that waiters left behind when they gave up. If a guard was forgotten, frees
    /// the node of that holder too.
    fn drop(&mut self) {
        // Relaxed, here and below: this thread owns the lock alone, so all other accesses happened
        // before. No thread can be queued, because waiting borrows the lock.
        let mut place = self.tail.load(Ordering::Relaxed);
        while !place.is_null() && !ptr::eq(place, HELD) && !ptr::eq(place, RELEASED) {
            // SAFETY: by Invariant 2 a node that is still linked belongs to the lock now.
            let node = unsafe { Box::from_raw(place) };
            place = node.word.load(Ordering::Relaxed);
        }
    }
}

impl<W: WaitPolicy> Default for Clh<W> {
    fn default() -> Self {
        Self::with_policy()
    }
}

impl<W> fmt::Debug for Clh<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a hint. `is_locked` might join the queue to be sure.
        let queued = !self.tail.load(Ordering::Relaxed).is_null();
        f.debug_struct("Clh").field("tail_taken", &queued).finish()
    }
}

/// The nodes between two uses. Every thread keeps one, as each processor does in the paper.
mod node {
    use super::{AtomicPtr, Box, Fresh, Node, Ordering, ptr};

    /// Returns a node with a null word: the kept one, or a new one.
    #[inline]
    pub(super) fn take() -> *mut Node {
        let kept = spare::swap(ptr::null_mut());
        if kept.is_null() {
            return Box::into_raw(Box::new(Node { word: AtomicPtr::fresh(ptr::null_mut()) }));
        }
        // SAFETY: a kept node belongs to this thread.
        let word = unsafe { &(*kept).word };
        // Relaxed: the enqueue publishes it.
        word.store(ptr::null_mut(), Ordering::Relaxed);
        kept
    }

    /// Keeps `node`, which must belong to this thread, for the next wait. Frees the node that was
    /// kept before.
    #[inline]
    pub(super) fn keep(node: *mut Node) {
        free(spare::swap(node));
    }

    /// Frees `node`, unless it is null. No thread may use it any more.
    fn free(node: *mut Node) {
        if !node.is_null() {
            // SAFETY: `take` made it with `Box::into_raw`. The caller says that no other thread
            // uses it.
            drop(unsafe { Box::from_raw(node) });
        }
    }

    #[cfg(feature = "std")]
    mod spare {
        use core::cell::Cell;

        use super::Node;

        /// The spare node of a thread. It is freed when the thread ends.
        struct Spare(Cell<*mut Node>);

        impl Drop for Spare {
            fn drop(&mut self) {
                super::free(self.0.get());
            }
        }

        stanchion_machine::thread_local! {
            static SPARE: Spare = Spare(Cell::new(core::ptr::null_mut()));
        }

        /// Stores `node` as the thread's spare and returns the former spare. Once the thread's
        /// storage is destroyed, it returns `node` itself.
        #[inline]
        pub(super) fn swap(node: *mut Node) -> *mut Node {
            SPARE.try_with(|spare| spare.0.replace(node)).unwrap_or(node)
        }
    }

    #[cfg(not(feature = "std"))]
    mod spare {
        use super::Node;

        /// Returns `node`, because there are no thread-locals: every node goes back to the
        /// allocator.
        #[inline]
        pub(super) fn swap(node: *mut Node) -> *mut Node {
            node
        }
    }
}
