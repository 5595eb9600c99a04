//! Where threads sleep that wait for a lock: a static table of queues, hashed by the lock's address.
//!
//! Why not the kernel's futex on the lock's own word: a release would have to know from that word whether anybody sleeps, which takes a
//! second locked instruction to find out, and it could not say when it happened, nor to whom the lock goes. Here the word is stored to, the
//! table is looked at, and the lock itself is not touched again: its memory may be gone by then.
//!
//! A bucket has a queue of sleepers, first come first, each a [`Node`] on its own thread's stack, and one word that releases look at:
//! `attention`, how many locks of the bucket have a first sleeper that nobody has woken yet, and how many threads are about to
//! become one.
//!
//! | of all sleepers on one lock | `state` | `delegate` | |
//! | --- | --- | --- | --- |
//! | the delegate | asleep | yes | counted in `attention`: the next release wakes it |
//! | or: the delegate, on its way | woken | yes | not counted: releases have nothing to do until it has the lock or sleeps again |
//! | or: the delegate, with the lock | given | yes | not counted: it was handed the lock, and has yet to see that |
//! | the others | asleep | no | not counted |
//!
//! So a thread that takes and releases the lock a hundred times while a woken one gets to its feet makes one system call, not a hundred.
//!
//! # Invariants
//!
//! 1. A queue, and what its nodes say of their place in it (`link`, `delegate`), are touched under the bucket's lock only.
//! 2. A node's `release` is written by its waker, under the bucket's lock, before it stores `WOKEN` or `GIVEN`; then it is its own thread's.
//! 3. A node is in the queue from the first [`Waiter::sleep`] that did not refuse until [`Waiter`] is dropped; so the lock that it names is alive.
//! 4. Of the nodes of one lock exactly one is the delegate, if there are any.
//! 5. `attention` = delegates asleep + threads between announcing themselves and being either queued or refused.
//! 6. A thread sleeps only after it has announced itself, passed [`heavy`], and found the lock held: so a release that does not see the
//!    announcement has happened before that look, and there is one yet to come.
//!
//! # Orderings
//!
//! `attention` is Relaxed everywhere: the announcement and the release are Dekker's pattern, ordered by [`heavy`] here and [`light`] there.
//! `state` is stored with Release by the waker and loaded with Acquire by the sleeper, which then reads `released_at`. The rest is the
//! bucket lock's.
//!
//! Source: the table is that of WebKit's ParkingLot (Pizlo 2016) and of Linux's futex; the delegate is a refinement of Mesa monitors'
//! "one waker"; the asymmetric look is [`machine::asymmetric`].
//!
//! [`heavy`]: machine::asymmetric::heavy
//! [`light`]: machine::asymmetric::light

use core::ops::Range;
use core::ptr;

use crossbeam_utils::CachePadded;
use lock_api::RawMutex as _;
use machine::asymmetric;
use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::{self, Deadline, Ticks};
use machine::{park, topology};
use stanchion_spin::TestAndSet;

use crate::cost::Mode;
use crate::list::{Link, Linked, List};
use crate::owner::Owner;

/// Asleep, or about to be.
const ASLEEP: u32 = 0;
/// Woken: the lock was released.
const WOKEN: u32 = 1;
/// Handed the lock, and woken if it was asleep.
const GIVEN: u32 = 2;

/// A sleeper that has waited for so long is handed the lock…
const PATIENCE_NS: u64 = 10_000_000;
/// …but not more often than this in any one bucket: each hand-over costs a switch to the sleeper while the lock stands still.
const BETWEEN_HAND_OVERS_NS: u64 = 5_000_000;

struct Bucket {
    attention: AtomicU32,
    lock: TestAndSet,
    queue: UnsafeCell<Queue>,
}

struct Queue {
    nodes: List<Node>,
    /// When no sleeper is handed its lock out of turn. A moment before its beginning is one after it, too: the clock has begun anew (a suspended
    /// machine).
    no_hand_over: Option<Range<Ticks>>,
}

machine::global! {
    static TABLE: [CachePadded<Bucket>; park::BUCKETS] = [const { CachePadded::new(Bucket::new()) }; park::BUCKETS];
}

// SAFETY: the queue is touched under the lock only (Invariant 1), and its pointers are to nodes that live as long as they are in it.
unsafe impl Sync for Bucket {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Bucket {}

impl Bucket {
    const fn new() -> Self {
        Self {
            attention: AtomicU32::new(0),
            lock: TestAndSet::new(),
            queue: UnsafeCell::new(Queue { nodes: List::new(), no_hand_over: None }),
        }
    }

    /// Of the lock whose word is there.
    #[inline]
    fn of(word: *const AtomicU32) -> &'static Self {
        let address = park::place_of(word);
        // Words are aligned to 4, locks mostly to 8; the upper bits tell apart what lies a power of two apart.
        #[allow(clippy::modulo_one, reason = "a model has one bucket")]
        let place = ((address >> 3) ^ (address >> 13)) % park::BUCKETS;
        &TABLE[place]
    }

    fn with<R>(&self, body: impl FnOnce(&mut Queue) -> R) -> R {
        let guard = self.lock.lock();
        // SAFETY: Invariant 1. `body` is ours and does not unwind: it neither calls out nor indexes.
        let result = self.queue.with_mut(|queue| body(unsafe { &mut *queue }));
        // SAFETY: locked above, released once.
        unsafe { self.lock.unlock(guard) };
        result
    }
}

/// A place in a queue. It lies on the stack of the thread that waits, alone on its cache lines.
#[repr(align(128))]
pub(crate) struct Node {
    word: *const AtomicU32,
    owner: Owner,
    state: AtomicU32,
    /// When its thread came to the lock.
    arrived: Ticks,
    link: Link<Self>,
    delegate: UnsafeCell<bool>,
    release: UnsafeCell<Release>,
}

// SAFETY: its own link, which only the list uses.
unsafe impl Linked for Node {
    fn link(&self) -> &Link<Self> {
        &self.link
    }
}

/// The release that woke a node.
#[derive(Clone, Copy)]
struct Release {
    at: Ticks,
    /// The processor, if the system tells.
    on: Option<usize>,
}

impl Node {
    /// A node of `owner`'s, who came to the lock with that word at `arrived`.
    pub(crate) fn new(word: &AtomicU32, owner: Owner, arrived: Ticks) -> Self {
        Self {
            word,
            owner,
            state: AtomicU32::fresh(ASLEEP),
            arrived,
            link: Link::new(),
            delegate: UnsafeCell::new(false),
            release: UnsafeCell::new(Release { at: arrived, on: None }),
        }
    }

    /// # Safety
    ///
    /// The bucket must be locked (Invariant 1).
    unsafe fn is_delegate(&self) -> bool {
        // SAFETY: the caller's promise.
        self.delegate.with(|delegate| unsafe { *delegate })
    }

    /// # Safety
    ///
    /// The bucket must be locked (Invariant 1).
    unsafe fn set_delegate(&self, is: bool) {
        // SAFETY: the caller's promise.
        self.delegate.with_mut(|delegate| unsafe { *delegate = is });
    }
}

impl Queue {
    /// The nodes that wait for the lock with that word.
    fn of(&self, word: *const AtomicU32) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| ptr::eq(node.word, word))
    }

    fn delegate(&self, word: *const AtomicU32) -> Option<&Node> {
        // SAFETY: the bucket is locked.
        self.of(word).find(|node| unsafe { node.is_delegate() })
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// Not at all: the lock was free, or had been handed over.
    Refused,
    /// The lock was released at that moment. The mode says where this thread, which had really gone to sleep, runs now, if the system tells.
    Woken { at: Ticks, mode: Option<Mode> },
    /// The deadline has passed, and nobody has woken this thread.
    TimedOut,
}

/// A thread's wait for a lock, in so far as it sleeps.
pub(crate) struct Waiter<'n> {
    node: &'n Node,
    bucket: &'static Bucket,
    queued: bool,
}

impl<'n> Waiter<'n> {
    pub(crate) fn new(node: &'n Node) -> Self {
        Self { node, bucket: Bucket::of(node.word), queued: false }
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the caller of `Node::new` waits for that lock, and borrows it meanwhile.
        unsafe { &*self.node.word }
    }

    /// Sleeps until the lock has been released, unless it is free.
    pub(crate) fn sleep(&mut self, deadline: Deadline) -> Slept {
        let (node, bucket) = (self.node, self.bucket);
        // Relaxed: Invariant 6; `heavy` pairs with the `light` of a release.
        bucket.attention.fetch_add(1, Ordering::Relaxed);
        asymmetric::heavy();
        let refused = bucket.with(|queue| {
            // Relaxed: a release that this look misses comes later and sees the announcement (Invariant 6).
            let holder = self.word().load(Ordering::Relaxed);
            if holder == Owner::NOBODY || node.owner.is(holder) {
                bucket.attention.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            let delegate = if self.queued {
                // Woken in vain: what it held before, it holds again.
                // SAFETY: the bucket is locked.
                unsafe { node.is_delegate() }
            } else {
                let first = queue.delegate(node.word).is_none();
                // SAFETY: the bucket is locked.
                unsafe { node.set_delegate(first) };
                // SAFETY: not queued until now, and the thread does not go on before it has left (Invariant 3).
                unsafe { queue.nodes.push(node) };
                first
            };
            if !delegate {
                // Another one speaks for all of this lock (Invariant 4).
                bucket.attention.fetch_sub(1, Ordering::Relaxed);
            }
            // Relaxed: its own thread's word, until the bucket is unlocked.
            node.state.store(ASLEEP, Ordering::Relaxed);
            false
        });
        if refused {
            return Slept::Refused;
        }
        self.queued = true;
        let mut slept = false;
        // Acquire: pairs with the waker's Release.
        while node.state.load(Ordering::Acquire) == ASLEEP {
            match park::wait(&node.state, ASLEEP, deadline) {
                park::Woken::Woken => slept = true,
                park::Woken::Changed => {}
                park::Woken::TimedOut => return self.timed_out(),
            }
        }
        self.woken(slept)
    }

    #[cold]
    fn timed_out(&mut self) -> Slept {
        let asleep = self.bucket.with(|queue| {
            // Relaxed: wakers store under the lock that is held here.
            let asleep = self.node.state.load(Ordering::Relaxed) == ASLEEP;
            if asleep {
                // SAFETY: the bucket is locked, and this thread, which is queued, has not left.
                unsafe { leave(self.bucket, queue, self.node) };
            }
            asleep
        });
        if asleep {
            self.queued = false;
            return Slept::TimedOut;
        }
        self.woken(false)
    }

    fn woken(&self, slept: bool) -> Slept {
        // SAFETY: Invariant 2: written before the state that this thread has seen, and not again until it sleeps again.
        let Release { at, on } = self.node.release.with(|release| unsafe { *release });
        let mode = |here| if on == Some(here) { Mode::Busy } else { Mode::Idle };
        Slept::Woken { at, mode: on.filter(|_| slept).and_then(|_| topology::current()).map(mode) }
    }

    /// The thread has got the lock and waits no more.
    pub(crate) fn acquired(mut self) {
        self.leave();
    }

    /// Whether the lock was handed to this thread. Once it is out of the queue nobody can do so any more.
    pub(crate) fn give_up(mut self) -> bool {
        self.leave();
        self.was_given_the_lock()
    }

    /// Whether the lock was handed to this wait. That its word names the thread does not tell: its policy may have taken the lock when it was asked.
    pub(crate) fn was_given_the_lock(&self) -> bool {
        // Relaxed: asked by who has seen the thread's number in the word, which is stored later, or has left the queue.
        self.node.state.load(Ordering::Relaxed) == GIVEN
            // Acquire: pairs with the Release of the last holder, who need not be the one that handed the lock over.
            && self.node.owner.is(self.word().load(Ordering::Acquire))
    }

    fn leave(&mut self) {
        if !self.queued {
            return;
        }
        self.queued = false;
        let on_its_way = self.bucket.with(|queue| {
            // A wake-up that this thread may have used up: who comes next must look for itself, unless it is this thread that holds the lock now
            // and will release it.
            // Relaxed: nobody but this thread, or who holds the bucket, makes it the owner.
            let holds = self.node.owner.is(self.word().load(Ordering::Relaxed));
            // SAFETY: the bucket is locked, and the thread was queued.
            let next = unsafe { leave(self.bucket, queue, self.node) }?;
            (!holds).then(|| wake(self.bucket, next, clock::now(), WOKEN))
        });
        if let Some(state) = on_its_way {
            park::wake_at(state, 1);
        }
    }
}

impl Drop for Waiter<'_> {
    /// Has anything to do only if a policy panicked: nobody else must wait for a thread that has gone, neither in the queue nor with the lock.
    fn drop(&mut self) {
        if !self.queued {
            return;
        }
        self.leave();
        if self.was_given_the_lock() {
            let word = self.node.word;
            // Release: pairs with the Acquire of the next holder.
            self.word().store(Owner::NOBODY, Ordering::Release);
            released(word);
        }
    }
}

/// Takes `node` out of its queue; says who speaks for the lock now, if that has changed.
///
/// # Safety
///
/// The bucket must be locked, and `node` be in its queue.
unsafe fn leave<'q>(bucket: &Bucket, queue: &'q mut Queue, node: &Node) -> Option<&'q Node> {
    // SAFETY: the caller's promise; so below.
    unsafe { queue.nodes.remove(node) };
    // SAFETY: as above.
    if !unsafe { node.is_delegate() } {
        return None;
    }
    // Relaxed: stored under the lock that is held here.
    let counted = node.state.load(Ordering::Relaxed) == ASLEEP;
    let next = queue.of(node.word).next();
    if let Some(next) = next {
        // SAFETY: as above.
        unsafe { next.set_delegate(true) };
    }
    // From one sleeper to the next the count passes in one step, which is none: a release that found it lower in between would wake nobody.
    match (counted, next.is_some()) {
        // Relaxed: the release that must see this is the calling thread's own, or the caller wakes `next` itself.
        (false, true) => _ = bucket.attention.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = bucket.attention.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
    next
}

/// Marks a delegate that is asleep as woken or given; says which word its thread sleeps on.
fn wake(bucket: &Bucket, delegate: &Node, released_at: Ticks, state: u32) -> *const AtomicU32 {
    bucket.attention.fetch_sub(1, Ordering::Relaxed);
    let release = Release { at: released_at, on: topology::current() };
    // SAFETY: Invariant 2: the bucket is locked, by who calls, and the sleeper has not been told yet.
    delegate.release.with_mut(|place| unsafe { *place = release });
    // Release: pairs with the sleeper's Acquire. From here on the node may be gone as soon as the bucket is unlocked.
    delegate.state.store(state, Ordering::Release);
    &raw const delegate.state
}

/// After the lock with that word was set free: has anybody to be woken?
#[inline]
pub(crate) fn released(word: *const AtomicU32) {
    asymmetric::light();
    let bucket = Bucket::of(word);
    // Relaxed: ordered by `light`, which pairs with the `heavy` of `Waiter::sleep`.
    if bucket.attention.load(Ordering::Relaxed) != 0 {
        wake_delegate(bucket, word);
    }
}

#[cold]
#[inline(never)]
fn wake_delegate(bucket: &Bucket, word: *const AtomicU32) {
    let now = clock::now();
    let asleep = bucket.with(|queue| {
        let node = sleeping_delegate(queue, word)?;
        let arrived = node.arrived;
        // In a model no time passes: there a sleeper's patience ends by choice. It also ends when the clock has begun anew.
        let starving = machine::choice()
            || (now < arrived || now.nanos_since(arrived) >= PATIENCE_NS)
                && queue.no_hand_over.as_ref().is_none_or(|pause| !pause.contains(&now));
        let handed_over = starving && !node.owner.is_anonymous() && {
            // The sleeper's pointer, not the caller's: that one's lock may be gone, and another one be where it was.
            // SAFETY: a sleeper waits for this lock, so it is alive (Invariant 3).
            let lock = unsafe { &*node.word };
            // Relaxed: it goes on with the release sequence of the store that set the lock free, which the new owner's Acquire pairs with. The lock
            // may have been taken by another thread meanwhile; then the sleeper's turn comes with the next release.
            lock.compare_exchange(
                Owner::NOBODY,
                node.owner.to_bits(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
        };
        let state = wake(bucket, node, now, if handed_over { GIVEN } else { WOKEN });
        if handed_over {
            queue.no_hand_over = Some(now..now.plus_nanos(BETWEEN_HAND_OVERS_NS));
        }
        Some(state)
    });
    if let Some(state) = asleep {
        park::wake_at(state, 1);
    }
}

/// Hands the lock with that word, which the caller holds, to who has slept on it longest; sets it free if there is nobody.
#[cold]
pub(crate) fn hand_over(word: &AtomicU32) {
    let bucket = Bucket::of(word);
    let asleep = bucket.with(|queue| {
        let delegate = queue.delegate(word);
        // A thread without a number cannot be given anything: it tries for itself. One that is on its way finds that the lock is its own.
        let heir = delegate.filter(|node| !node.owner.is_anonymous());
        // Relaxed: stored under the lock that is held here.
        let asleep = delegate.filter(|node| node.state.load(Ordering::Relaxed) == ASLEEP);
        if let (Some(heir), None) = (heir, asleep) {
            // Release: pairs with the Acquire of a sleeper that has not yet seen that it was woken, and will look who did it. Before the word is
            // stored: who sees its number there sees this.
            heir.state.store(GIVEN, Ordering::Release);
        }
        // Release: pairs with the next holder's Acquire. Who has announced itself looks at the word once the bucket is free again.
        word.store(heir.map_or(Owner::NOBODY, |node| node.owner.to_bits()), Ordering::Release);
        let state = if heir.is_some() { GIVEN } else { WOKEN };
        asleep.map(|node| wake(bucket, node, clock::now(), state))
    });
    if let Some(state) = asleep {
        park::wake_at(state, 1);
    }
}

fn sleeping_delegate(queue: &Queue, word: *const AtomicU32) -> Option<&Node> {
    // Relaxed: stored under the bucket's lock, which the caller holds.
    queue.delegate(word).filter(|node| node.state.load(Ordering::Relaxed) == ASLEEP)
}

/// Forgets all threads that sleep on locks: for the child of a fork, in which they are not.
///
/// A program that forks and goes on to use locks in the child without `exec` calls this there first, as from a handler of `pthread_atfork`. A lock
/// that another thread held stays held for ever, as with any mutex. A condition variable or event count on which threads slept as the process forked
/// has them in its queue in the child as well, on stacks that are used again: it must not be used there.
///
/// # Safety
///
/// To be called by the only thread of a child that has just been forked, before it uses any lock of this crate. It must not be called from within
/// one: a [`Policy`](crate::Policy) may not fork.
pub unsafe fn after_fork() {
    for bucket in TABLE.iter() {
        if bucket.lock.is_locked() {
            // SAFETY: who held it is not in this process, and nobody else is.
            unsafe { bucket.lock.unlock(lock_api::GuardSend::new()) };
        }
        bucket.with(|queue| {
            queue.nodes = List::new();
            queue.no_hand_over = None;
        });
        // Relaxed: no other thread is there to see it.
        bucket.attention.store(0, Ordering::Relaxed);
    }
}
