//! The parking lot: the static table, hashed by the address of a mutex, in which threads sleep that
//! wait for it.
//!
//! Why not the kernel's futex on the mutex's own word: a release would have to learn from that word
//! whether a thread sleeps. That takes a second locked instruction. The futex also cannot report
//! when the release happened, nor which thread the lock goes to. Here a release stores to the word
//! and then looks at the table. It does not touch the mutex again: its memory may be gone by then.
//!
//! A bucket has a queue of sleepers for each mutex, first come first ([`Queues`]). Each sleeper is
//! a [`Node`] on its own thread's stack. Releases look at one word of the bucket: `attention`. It
//! counts the mutexes with a first sleeper that has not been woken yet, and the threads that are
//! about to sleep.
//!
//! | of all sleepers on one mutex | `state` | |
//! | --- | --- | --- |
//! | the first | asleep | counted in `attention`: the next release wakes it |
//! | or: the first, on its way | woken | not counted: releases do nothing for now |
//! | or: the first, with the mutex | given | not counted: it has yet to see that |
//! | the others | asleep | not counted |
//!
//! While a woken sleeper is on its way, releases do nothing until it has the mutex or sleeps again.
//!
//! A thread can therefore take and release the mutex a hundred times while a woken sleeper gets
//! going, and makes one system call, not a hundred.
//!
//! # What a release costs
//!
//! If `attention` is 0, a load. If it is not, a spin lock and a look at the heads of the mutexes in
//! this bucket that threads sleep on. Their number does not depend on how many threads sleep on one
//! mutex. The table has [`park::BUCKETS`] buckets, so it is small as long as fewer mutexes than
//! that have sleepers.
//!
//! # Several copies of this crate
//!
//! A program and a plug-in may each link a copy of this crate. Each copy has a table of its own. A
//! mutex that both use loses wake-ups: the release looks into one table, the sleeper is in the
//! other. Pass a function of the owner's to the other side, not the mutex.
//!
//! # Invariants
//!
//! 1. The queues of a bucket, and the state of its nodes in them (`entry`, `pause`), are touched
//!    under the bucket's lock only.
//! 2. A node's `release` is written by its waker, under the bucket's lock, before the waker stores
//!    `WOKEN` or `GIVEN`. From then on it is the sleeper's own.
//! 3. A node is in its queue from the first [`Waiter::sleep`] that did not refuse until its
//!    [`Waiter`] is dropped. So the mutex that it names is alive.
//! 4. `attention` = first sleepers asleep + threads between announcing themselves and being either
//!    queued or refused.
//! 5. A thread sleeps only after it has announced itself, passed the heavy fence of [`RELEASE`],
//!    and found the mutex held. A release that does not see the announcement has happened before
//!    that look. So another release is yet to come.
//! 6. A thread announces itself only in a bucket that this process has adopted: in the child of a
//!    fork, the first thread to use a bucket empties it ([`ForkLock`]).
//!
//! # Orderings
//!
//! `attention` is Relaxed everywhere: the announcement and the release are the two sides of
//! [`RELEASE`], a [`Handshake`]. [`hand_over`] needs no side of it: it stores to the mutex's word
//! under the bucket's lock, and an announced thread looks at the word under that lock. `state` is
//! stored with Release by the waker and loaded with Acquire by the sleeper, which then reads
//! `release`. The rest is ordered by the bucket's lock.
//!
//! Source: the table is that of WebKit's ParkingLot (Pizlo 2016) and of Linux's futex. That only
//! the first sleeper is woken refines the "one waker" of Mesa monitors.

use core::ops::Range;

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::park;

use crate::bucket;
use crate::cost::{Mode, WakeUp};
use crate::list::{Link, Linked};
use crate::owner::Owner;
use crate::queues::{Entry, Queued};

/// A release against a thread that is about to sleep: the release sees the announcement, or the
/// thread finds the mutex free. Any thread may release a mutex of the bucket.
const RELEASE: Handshake =
    Handshake::new("the mutex's word", "Bucket::attention", Reach::AllThreads);

/// Asleep, or about to be.
const ASLEEP: u32 = 0;
/// Woken: the mutex was released.
const WOKEN: u32 = 1;
/// Handed the mutex, and woken if it was asleep.
const GIVEN: u32 = 2;

/// A sleeper that has waited for so long is handed the mutex. A reader that has is admitted to its
/// lock, a writer that has keeps the gate of its lock, and the first in line for permits that has
/// claims them.
pub(crate) const PATIENCE_NS: u64 = 10_000_000;
/// No mutex with sleepers is handed over more often than this: each hand-over costs a switch
/// to the sleeper, during which the mutex is of no use.
const BETWEEN_HAND_OVERS_NS: u64 = 5_000_000;

type Queues = crate::queues::Queues<Node>;

/// Four of them share a pair of cache lines: padding would make the table four times as large, and
/// two contended mutexes meet in a line as rarely as in a bucket of a smaller table.
#[repr(align(32))]
struct Bucket {
    /// Releases look at it (Invariant 4).
    attention: AtomicU32,
    /// The queues of the sleepers, under the bucket's lock.
    sleepers: bucket::Bucket<Node>,
}

stanchion_machine::global! {
    static TABLE: [Bucket; park::BUCKETS] = [const { Bucket::new() }; park::BUCKETS];
}

impl Bucket {
    const fn new() -> Self {
        Self { attention: AtomicU32::new(0), sleepers: bucket::Bucket::new() }
    }

    /// Returns the bucket of the mutex with its word at this address.
    #[inline]
    fn of(word: *const AtomicU32) -> &'static Self {
        &TABLE[bucket::index(word, park::BUCKETS)]
    }

    fn with<R>(&self, body: impl FnOnce(&mut Queues) -> R) -> R {
        self.sleepers.with(|| self.forget(), body)
    }

    /// Makes the bucket this process's (Invariant 6).
    fn adopt(&self) {
        self.sleepers.adopt(|| self.forget());
    }

    /// Forgets the announcements of the parent's threads.
    fn forget(&self) {
        // Relaxed: a thread of this process announces itself only after it has adopted the bucket.
        self.attention.store(0, Ordering::Relaxed);
    }
}

/// An entry of a queue. It lies on the stack of the thread that waits, alone on its cache lines.
#[repr(align(128))]
pub(crate) struct Node {
    /// The mutex's word. A release may have freed it, once the node has left its queue.
    word: *const AtomicU32,
    /// The thread that waits.
    owner: Owner,
    /// The first table of the header. The waiting thread stores `ASLEEP`, wakers the rest.
    state: AtomicU32,
    /// The time when its thread came to the mutex.
    arrived: Ticks,
    /// Its links in the queue (Invariant 1).
    entry: Entry<Self>,
    /// While it is the first of its mutex: when no sleeper is handed the mutex. A moment before the
    /// beginning is after the end as well: the clock has begun anew (a suspended machine).
    pause: UnsafeCell<Option<Range<Ticks>>>,
    /// The release that woke it (Invariant 2).
    release: UnsafeCell<WakeUp>,
}

// SAFETY: its own link, which only the queues use.
unsafe impl Linked for Node {
    fn link(&self) -> &Link<Self> {
        self.entry.link()
    }
}

// SAFETY: its own entry, which only the queues use.
unsafe impl Queued for Node {
    fn entry(&self) -> &Entry<Self> {
        &self.entry
    }
}

impl Node {
    /// Creates a node of `owner`, which came to the mutex with that word at `arrived`.
    pub(crate) fn new(word: &AtomicU32, owner: Owner, arrived: Ticks) -> Self {
        Self {
            word,
            owner,
            state: AtomicU32::fresh(ASLEEP),
            arrived,
            entry: Entry::new(word),
            pause: UnsafeCell::new(None),
            release: UnsafeCell::new(WakeUp::NONE),
        }
    }

    /// Reads or changes the pause between hand-overs.
    ///
    /// # Safety
    ///
    /// The bucket must be locked (Invariant 1).
    unsafe fn pause<R>(&self, body: impl FnOnce(&mut Option<Range<Ticks>>) -> R) -> R {
        // SAFETY: the caller's promise.
        self.pause.with_mut(|pause| body(unsafe { &mut *pause }))
    }
}

/// The end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// Not at all: the mutex was free, or had been handed over.
    Refused,
    /// The mutex was released at that moment. If this thread had really gone to sleep, the mode
    /// says where it runs now, if the system tells.
    Woken { at: Ticks, mode: Option<Mode> },
    /// The deadline has passed, and no release has woken this thread.
    TimedOut,
}

/// A thread's wait for a mutex, in so far as it sleeps.
pub(crate) struct Waiter<'n> {
    /// The node of the thread.
    node: &'n Node,
    /// The bucket of the mutex.
    bucket: &'static Bucket,
    /// Set while the node is in its queue (Invariant 3). Written by the thread itself.
    queued: bool,
}

impl<'n> Waiter<'n> {
    pub(crate) fn new(node: &'n Node) -> Self {
        Self { node, bucket: Bucket::of(node.word), queued: false }
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the caller of `Node::new` waits for that mutex, and borrows it meanwhile.
        unsafe { &*self.node.word }
    }

    /// Sleeps until the mutex has been released, unless it is free.
    pub(crate) fn sleep(&mut self, deadline: Deadline) -> Slept {
        let (node, bucket) = (self.node, self.bucket);
        // Invariant 6.
        bucket.adopt();
        // Relaxed: ordered by `RELEASE` (Invariant 5).
        bucket.attention.fetch_add(1, Ordering::Relaxed);
        RELEASE.heavy();
        let refused = bucket.with(|queues| {
            // Relaxed: a release that this look misses comes later and sees the announcement.
            let holder = self.word().load(Ordering::Relaxed);
            if holder == Owner::NOBODY || node.owner.is(holder) {
                bucket.attention.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            let first = if self.queued {
                // Woken in vain: it keeps its position.
                queues.is_head(node)
            } else {
                // SAFETY: in no queue until now, and its thread does not go on before it has left
                // this one (Invariant 3).
                unsafe { queues.push(node) }
            };
            if !first {
                // The first sleeper is counted for all of this mutex.
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
        let asleep = self.bucket.with(|queues| {
            // Relaxed: wakers store under the lock that is held here.
            let asleep = self.node.state.load(Ordering::Relaxed) == ASLEEP;
            if asleep {
                // SAFETY: the bucket is locked, and this thread, which is queued, has not left.
                unsafe { leave(self.bucket, queues, self.node) };
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
        // SAFETY: Invariant 2: written before the state that this thread has seen, and not again
        // until it sleeps again.
        let release = self.node.release.with(|release| unsafe { *release });
        Slept::Woken { at: release.at, mode: slept.then(|| release.mode()).flatten() }
    }

    /// Ends the wait of a thread that has the mutex.
    pub(crate) fn acquired(mut self) {
        self.leave();
    }

    /// Ends the wait. Returns whether the mutex was handed to this thread, which no thread can do
    /// any more once it is out of the queue.
    pub(crate) fn give_up(mut self) -> bool {
        self.leave();
        self.was_given_the_lock()
    }

    /// Returns whether the mutex was handed to this wait.
    ///
    /// That the mutex's word names the thread does not tell: the policy may have taken the mutex
    /// when it was asked.
    pub(crate) fn was_given_the_lock(&self) -> bool {
        // Relaxed: the caller has seen the thread's number in the word, which is stored later, or
        // has left the queue.
        self.node.state.load(Ordering::Relaxed) == GIVEN
            // Acquire: pairs with the Release of the last holder, which may be another thread than
            // the one that handed the mutex over.
            && self.node.owner.is(self.word().load(Ordering::Acquire))
    }

    fn leave(&mut self) {
        if !self.queued {
            return;
        }
        self.queued = false;
        let on_its_way = self.bucket.with(|queues| {
            // This thread may have used up a wake-up. If it does not hold the mutex, and so will
            // not release it, the next sleeper must look for itself.
            // Relaxed: only this thread, or the holder of the bucket, stores its number.
            let holds = self.node.owner.is(self.word().load(Ordering::Relaxed));
            // SAFETY: the bucket is locked, and the thread was queued.
            let next = unsafe { leave(self.bucket, queues, self.node) }?;
            (!holds).then(|| wake(self.bucket, next, clock::now(), WOKEN))
        });
        if let Some(state) = on_its_way {
            park::wake_at(state, 1);
        }
    }
}

impl Drop for Waiter<'_> {
    /// Does something only if a policy panicked: no thread must wait for one that has gone, neither
    /// in the queue nor for the mutex.
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

/// Takes `node` out of its queue. Returns the node that became the first of it, if `node` was.
///
/// # Safety
///
/// The bucket must be locked, and `node` be in its queue.
unsafe fn leave<'q>(bucket: &Bucket, queues: &'q mut Queues, node: &Node) -> Option<&'q Node> {
    let was_head = queues.is_head(node);
    // SAFETY: the caller's promise.
    let next = unsafe { queues.remove(node) };
    if !was_head {
        return None;
    }
    // Relaxed: stored under the lock that is held here.
    let counted = node.state.load(Ordering::Relaxed) == ASLEEP;
    if let Some(next) = next {
        // SAFETY: the bucket is locked.
        let pause = unsafe { node.pause(Option::take) };
        // SAFETY: as above.
        unsafe { next.pause(|its| *its = pause) };
    }
    // The count passes from one sleeper to the next in one step, which is none: a release that
    // found it lower in between would wake no thread.
    match (counted, next.is_some()) {
        // Relaxed: the release that must see this is the calling thread's own, or the caller wakes
        // `next` itself.
        (false, true) => _ = bucket.attention.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = bucket.attention.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
    next
}

/// Marks a first sleeper that is asleep as woken or given. Returns the word that its thread sleeps
/// on.
///
/// The bucket is locked.
fn wake(bucket: &Bucket, sleeper: &Node, released_at: Ticks, state: u32) -> *const AtomicU32 {
    bucket.attention.fetch_sub(1, Ordering::Relaxed);
    let release = WakeUp::since(released_at);
    // SAFETY: Invariant 2: the bucket is locked, and the sleeper has not been woken yet.
    sleeper.release.with_mut(|slot| unsafe { *slot = release });
    // Release: pairs with the sleeper's Acquire. The node may be gone as soon as the bucket is
    // unlocked.
    sleeper.state.store(state, Ordering::Release);
    &raw const sleeper.state
}

/// Wakes the first sleeper on the mutex with that word, which was set free, if it has one.
#[inline]
pub(crate) fn released(word: *const AtomicU32) {
    RELEASE.light();
    let bucket = Bucket::of(word);
    // Relaxed: ordered by `RELEASE`.
    if bucket.attention.load(Ordering::Relaxed) != 0 {
        wake_first(bucket, word);
    }
}

#[cold]
#[inline(never)]
fn wake_first(bucket: &Bucket, word: *const AtomicU32) {
    let asleep = bucket.with(|queues| {
        // Sleepers on other mutexes are no affair of this release.
        let node = sleeping_head(queues, word)?;
        let (now, arrived) = (clock::now(), node.arrived);
        // SAFETY: the bucket is locked.
        let pauses =
            unsafe { node.pause(|pause| pause.as_ref().is_some_and(|p| p.contains(&now))) };
        // In a model no time passes: there a sleeper's patience ends by choice. It also ends when
        // the clock has begun anew.
        let starving = stanchion_machine::choice()
            || (now < arrived || now.nanos_since(arrived) >= PATIENCE_NS) && !pauses;
        let handed_over = starving && !node.owner.is_anonymous() && {
            // Use the sleeper's pointer. The caller's mutex may have been freed, and its address
            // have been used again.
            // SAFETY: a sleeper waits for this mutex, so it is alive (Invariant 3).
            let lock = unsafe { &*node.word };
            // Relaxed: it goes on with the release sequence of the store that set the mutex free,
            // which the new owner's Acquire pairs with. If another thread has taken the mutex
            // meanwhile, the sleeper's turn comes with the next release.
            lock.compare_exchange(
                Owner::NOBODY,
                node.owner.to_bits(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
        };
        if handed_over {
            let until = now.plus_nanos(BETWEEN_HAND_OVERS_NS);
            // SAFETY: the bucket is locked.
            unsafe { node.pause(|pause| *pause = Some(now..until)) };
        }
        Some(wake(bucket, node, now, if handed_over { GIVEN } else { WOKEN }))
    });
    if let Some(state) = asleep {
        park::wake_at(state, 1);
    }
}

/// Hands the mutex with that word, which the caller holds, to the thread that has slept on it
/// longest. Sets it free if there is none.
#[cold]
pub(crate) fn hand_over(word: &AtomicU32) {
    let bucket = Bucket::of(word);
    let asleep = bucket.with(|queues| {
        let first = queues.head(word);
        // A thread without a number cannot be given anything: it tries for itself. One that is on
        // its way finds that the mutex is its own.
        let heir = first.filter(|node| !node.owner.is_anonymous());
        // Relaxed: stored under the lock that is held here.
        let asleep = first.filter(|node| node.state.load(Ordering::Relaxed) == ASLEEP);
        if let (Some(heir), None) = (heir, asleep) {
            // Release: pairs with the Acquire of a sleeper that has not yet seen that it was woken,
            // and then reads `release`. This comes before the store to the word: a thread that sees
            // its number there sees this.
            heir.state.store(GIVEN, Ordering::Release);
        }
        // Release: pairs with the next holder's Acquire. A thread that has announced itself looks
        // at the word once the bucket is free again.
        word.store(heir.map_or(Owner::NOBODY, |node| node.owner.to_bits()), Ordering::Release);
        let state = if heir.is_some() { GIVEN } else { WOKEN };
        asleep.map(|node| wake(bucket, node, clock::now(), state))
    });
    if let Some(state) = asleep {
        park::wake_at(state, 1);
    }
}

/// Returns whether the mutexes with these words share a bucket.
pub(crate) fn share_bucket(one: &AtomicU32, other: &AtomicU32) -> bool {
    core::ptr::eq(Bucket::of(one), Bucket::of(other))
}

/// Returns the first sleeper on the mutex with that word, if it is asleep.
fn sleeping_head(queues: &Queues, word: *const AtomicU32) -> Option<&Node> {
    // Relaxed: stored under the bucket's lock, which the caller holds.
    queues.head(word).filter(|node| node.state.load(Ordering::Relaxed) == ASLEEP)
}
