//! The CLH queue lock, with a free path that needs no node and waiters that can give up.
//!
//! Why not MCS: a CLH waiter watches its *predecessor's* node, so a release is one store that needs to know nobody, and a waiter that
//! gives up only has to say whom to watch instead of it. Why not the textbook form: that needs a node for every lock and a node for every
//! acquisition. Here a free lock has none, an uncontended acquisition uses none, and a thread keeps one node for the next time.
//!
//! ```text
//! tail = null   free
//! tail = HELD   held by a thread without a node; its release shows in `gate`
//! tail = node   the last to arrive: holding, waiting, or gone (`ABANDONED`, or released after an arrival that gave up)
//!
//!   gate ◄─watches─ node A ◄─watches─ node B ◄── tail
//! ```
//!
//! | a node's word | meaning | stored by |
//! | --- | --- | --- |
//! | null | its thread holds the lock or waits | its owner, before the enqueue |
//! | `RELEASED` | its thread has released the lock | its thread |
//! | anything else | its thread gave up; this is whom it was watching | its thread |
//!
//! # Invariants
//!
//! 1. A thread holds the lock from the look that finds `RELEASED` (or a null `tail`) until it stores `RELEASED` or puts null into `tail`.
//! 2. A node belongs to its thread until that stores into its word; from then on to the one thread that watches it, or, if none
//!    ever does, to the lock, which frees it when it is dropped.
//! 3. `tail` names a node only until another thread swaps itself in: so an exchange of one's own node for null cannot succeed on
//!    a node of the same address that somebody else has enqueued since.
//! 4. `gate` is null unless the thread in the `HELD` mode has released to a waiter that has not looked yet; that waiter puts null back.
//! 5. Waiters skip abandoned nodes and free them, so at most one is left for each thread that waited at the same time.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | enqueue: swap `tail` | AcqRel | Release publishes the node's word to the next arrival; Acquire pairs with that, and with the release that left null |
//! | release or give up: store the word | Release | the watcher's Acquire look |
//! | release to nobody: exchange own mark for null | Release | the next holder's Acquire exchange or swap |
//!
//! Source: Craig 1993; Magnusson, Landin and Hagersten 1994; giving up is Scott and Scherer 2001 (CLH-try), where too the successor
//! adopts the predecessor.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use alloc::boxed::Box;

use lock_api::RawMutex;
use machine::atomic::{AtomicPtr, Fresh, Ordering};
use machine::clock::Deadline;
use machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use crate::bomb;

/// A CLH lock whose waiters pass the time as `W` says.
///
/// | | |
/// | --- | --- |
/// | bypass bound | 0 without deadlines: first come, first served. A waiter that gives up loses its place |
/// | cache misses to acquire | 1 uncontended, 2 or 3 contended, however many wait |
/// | size | 2 pointers; each thread that ever waited keeps one node of a pointer |
/// | more threads than processors | slow: every hand-off to a preempted waiter costs a trip through the scheduler ([measured](crate#measured)) |
/// | deadline | yes. A `try_lock` that meets a queue joins it and gives up at once |
///
/// A thread's first wait allocates its node; so may `try_lock` and `is_locked`, which can briefly take the lock to find out. Do not guard an
/// allocator with it. `machine::warm_up` does not help: the nodes are each thread's own. No wait opens a file.
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
    tail: AtomicPtr<Node>,
    /// The word that the successor of a holder without a node watches.
    gate: AtomicPtr<Node>,
    waiting: PhantomData<fn() -> W>,
}

mutex_aliases! {
    Clh: ClhMutex, ClhMutexGuard;
    Clh<W>: PolicyClhMutex, PolicyClhMutexGuard, [W];
}

/// A place in the queue.
struct Node {
    word: AtomicPtr<Node>,
}

/// The tail of a lock whose holder has no node.
const HELD: *mut Node = ptr::without_provenance_mut(1);

/// The word of a place whose thread has released the lock.
const RELEASED: *mut Node = ptr::without_provenance_mut(2);

/// The place in the queue of one acquisition: what [`Clh`]'s guard carries.
#[derive(Debug)]
pub struct Held(*mut Node);

// SAFETY: the node is on the heap, and a release may be done, and a node kept, by any thread.
unsafe impl Send for Held {}
// SAFETY: nothing can be done with a shared reference to it.
unsafe impl Sync for Held {}

impl Held {
    /// The holder has no node.
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

    /// `free -> held without a node`.
    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the Release exchange of `unlock`.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Joins the queue; gives up at `deadline`.
    #[cold]
    fn lock_until(&self, deadline: Deadline) -> Option<Held> {
        let me = node::take();
        let bomb = bomb::armed();
        let mut policy = W::start();

        // Release: publishes our null word to the next arrival. Acquire: pairs with the last arrival's Release, whose word we watch,
        // and with the Release exchange of `unlock` if that left null.
        let mut watched = self.tail.swap(me, Ordering::AcqRel);
        let acquired = loop {
            if watched.is_null() {
                break true;
            }
            // Acquire: pairs with the Release store of the word, by a release or by giving up.
            let word = self.word_of(watched);
            let seen = wait_until_deadline(
                word,
                Ordering::Acquire,
                |word| !word.is_null(),
                &mut policy,
                deadline,
            );
            match seen {
                None => break false,
                Some(RELEASED) if ptr::eq(watched, HELD) => {
                    // Relaxed: whoever watches the gate next got the lock, and with it this store, from us (Invariant 4).
                    self.gate.store(ptr::null_mut(), Ordering::Relaxed);
                    break true;
                }
                // By Invariant 2 a node that says so is ours now.
                Some(RELEASED) => {
                    node::keep(watched);
                    break true;
                }
                Some(adopted) => {
                    node::keep(watched);
                    watched = adopted;
                }
            }
        };
        // Dropped before the bomb: the policy's destructor is a stranger's too.
        drop(policy);
        bomb.defuse();
        if acquired {
            return Some(Held(me));
        }
        // SAFETY: ours until the store, and not touched after it (Invariant 2).
        let word = unsafe { &(*me).word };
        // Release: the successor adopts what we were watching, which Acquire loads let us see.
        word.store(watched, Ordering::Release);
        None
    }

    /// The word that shows the release of `place`.
    #[inline]
    fn word_of(&self, place: *mut Node) -> &AtomicPtr<Node> {
        if ptr::eq(place, HELD) {
            return &self.gate;
        }
        // SAFETY: `place` was the tail until our swap, or was watched by one that was: it is kept until we have seen its word set
        // (Invariant 2).
        unsafe { &(*place).word }
    }
}

// SAFETY: by Invariant 1 two threads never hold the lock at once, and the orderings make one holder's writes visible to the next.
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
            // Without a deadline the wait ends only with the lock.
            None => self.lock(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Held> {
        if self.try_acquire() {
            return Some(Held::WITHOUT_NODE);
        }
        // Relaxed: a hint. Without a node the holder is the last arrival, so the lock is not free.
        if ptr::eq(self.tail.load(Ordering::Relaxed), HELD) {
            return None;
        }
        // A tail that is a node may be free all the same: abandoned behind a released one. Only a place in the queue can tell.
        self.lock_until(Deadline::PAST)
    }

    #[inline]
    unsafe fn unlock(&self, Held(place): Held) {
        // Relaxed: if somebody has come since, the exchange would fail, and take the line away from whoever comes next. Otherwise it decides;
        // Release: pairs with the Acquire exchange or swap of the next holder.
        if ptr::eq(self.tail.load(Ordering::Relaxed), place)
            && self
                .tail
                .compare_exchange(place, ptr::null_mut(), Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            // Nobody watches it and nobody can any more (Invariant 3).
            if !ptr::eq(place, HELD) {
                node::keep(place);
            }
            return;
        }
        // Release: pairs with the watcher's Acquire look. A node is the watcher's from here on (Invariant 2).
        self.word_of(place).store(RELEASED, Ordering::Release);
    }

    /// Whether a thread holds the lock. If its queue ends in a waiter that gave up, the answer takes a `try_lock`.
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
    /// Frees what waiters that gave up have left behind, and the node of a holder whose guard was forgotten.
    fn drop(&mut self) {
        // Relaxed, here and below: the lock is ours alone, so whatever was done with it was done before. Nobody can be queued: waiting
        // borrows the lock.
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
        // Relaxed: a hint. `is_locked` would join the queue to be sure.
        let queued = !self.tail.load(Ordering::Relaxed).is_null();
        f.debug_struct("Clh").field("tail_taken", &queued).finish()
    }
}

/// Nodes between two uses: every thread keeps one, as the paper's processors keep one stack.
mod node {
    use super::{AtomicPtr, Box, Fresh, Node, Ordering, ptr};

    /// A node whose word is null.
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

    /// Keeps `node`, which must belong to this thread, for the next time, and frees the one kept before.
    #[inline]
    pub(super) fn keep(node: *mut Node) {
        free(spare::swap(node));
    }

    fn free(node: *mut Node) {
        if !node.is_null() {
            // SAFETY: made by `take` with `Box::into_raw`, and by the caller's word nobody else's.
            drop(unsafe { Box::from_raw(node) });
        }
    }

    #[cfg(feature = "std")]
    mod spare {
        use core::cell::Cell;

        use super::Node;

        /// Frees its node with the thread.
        struct Spare(Cell<*mut Node>);

        impl Drop for Spare {
            fn drop(&mut self) {
                super::free(self.0.get());
            }
        }

        machine::thread_local! {
            static SPARE: Spare = Spare(Cell::new(core::ptr::null_mut()));
        }

        /// Puts `node` in the thread's place for a spare one, takes out what was there; once the thread ends, there is no place.
        #[inline]
        pub(super) fn swap(node: *mut Node) -> *mut Node {
            SPARE.try_with(|spare| spare.0.replace(node)).unwrap_or(node)
        }
    }

    #[cfg(not(feature = "std"))]
    mod spare {
        use super::Node;

        /// There are no thread-locals here: every node goes back to the allocator.
        #[inline]
        pub(super) fn swap(node: *mut Node) -> *mut Node {
            node
        }
    }
}
