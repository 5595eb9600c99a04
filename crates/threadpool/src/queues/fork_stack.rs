//! The fork stack of a worker: the second halves of its forks, of which thieves take the oldest.
//!
//! A worker pushes the second half of each fork before it runs the first half, and pops it
//! afterwards. Almost every fork of a fine-grained program is popped again, so a push and a pop
//! have to be a few loads and stores. All the same, an idle worker can take each half at once,
//! because a first half may run for long, block, or wait for what the second half does.
//!
//! ```text
//! slots:   [ stolen ] [ stolen ] [ oldest ] [ ... ] [ newest ] [ free ... ]
//!                                 ^ top: thieves                ^ bottom: the owner
//! ```
//!
//! # The rule
//!
//! **If a worker is idle when a fork is made, or becomes idle while the first half runs, it can
//! take the second half within 10 µs, whether or not the first half forks again.** Three times are
//! not counted: its own wake-up, the time for which the machine runs something else in its place,
//! and older forks of the same worker, which it takes first.
//!
//! Proof. A fork is in its owner's stack from before the first half begins until the owner pops it
//! or a thief has it: `push` refuses nothing. An idle worker *I* searches or sleeps.
//!
//! 1. *I searches.* It looks at all stacks each two microseconds at least, and takes the oldest
//!    fork of the first stack that has one. A theft takes one system call ([`heavy`]) and no step
//!    of the owner. It fails if the owner has popped that fork, or if another thief is at this
//!    stack. In the second case that thief or the owner gets the fork, and *I* looks again.
//! 2. *I sleeps, and slept at the push.* The owner looks at the word of idle workers after its push
//!    (`Sleep::notify`, with its proof in `SLEEPING.md`). It wakes as many sleepers as it has
//!    forks, beyond the workers that search already.
//! 3. *I goes to sleep after the push.* Its last look comes after it has said so and after `heavy`.
//!    Either that look sees the fork, or the owner's look after the push sees *I*: case 2.
//!    Both looks count a fork that a thief claims. So *I* does not sleep while a stack has a fork,
//!    claimed or not.
//!
//! The models in `crates/loom/threadpool/tests/together/forks.rs` check the stack, and those of
//! `sleeping.rs` the words of idle workers.
//!
//! # The owner of a fork
//!
//! | `top` | meaning | left by |
//! | --- | --- | --- |
//! | (*n*, 0) | forks below *n* are stolen | a thief that claims *n*, or the owner |
//! | (*n* + 1, *id*) | the thief *id* claims fork *n* | that thief, or the owner that pops *n* |
//!
//! The owner takes stolen positions back. A thief ends its claim by (*n* + 1, 0), or by (*n*, 0) if
//! it gives up. The owner that pops *n* replaces the claim by (*n*, 0).
//!
//! The owner pops *n*: it stores `bottom = n` and then looks at `top`. If the first part of `top`
//! is *n* or less, the fork is its own. The thief claims *n* and then looks at `bottom`. If
//! `bottom` is *n* or less, it takes the claim back. So at least one of the two sees the other. If
//! the owner sees the claim, an exchange of `top` decides: the owner never waits for a thief. A
//! thief makes one claim at a time and writes its own number. So a thief that has lost its claim
//! cannot end another claim.
//!
//! Why not Chase and Lev's deque: its owner needs a fence in each pop, and an exchange for the last
//! fork, which in a loop of joins is each fork. Why not a lock for thieves (Frigo, Leiserson and
//! Randall's): a thief that loses its processor inside would keep the owner waiting. Why not
//! publish forks on demand: then what a worker does not publish cannot be taken, and a first half
//! that does not fork again publishes nothing.
//!
//! # Fenced stacks
//!
//! `push` and `pop` have to order a store before a load. [`light`] looks whether the kernel's
//! barrier is available, which costs a tenth of a fork each time. So a stack knows whether it
//! relies on the barrier. If it is *fenced*, `limit` is 0 and `top` has the bit [`FENCED`]. Then
//! both functions take their slow paths, which call `light`. A stack begins fenced. Its owner ends
//! that in a slow path, when the barrier is available.
//!
//! The process may do without the barrier later, because it is refused, or because barriers are too
//! many for a while. So a [`Reliance`] says on which period of barriers the owner relies. A thread
//! that has called [`heavy`] looks there. If that period is over, the thread fences the stack. An
//! owner that fences for long asks now and then whether barriers may be tried again.
//!
//! # Invariants
//!
//! 1. The forks from `top` to `bottom` lie on the owner's thread's stack, older below newer, and
//!    no thread runs them. A frame is left only after its fork is popped, or has been run by its
//!    thief.
//! 2. A stolen fork's older ones are stolen too.
//! 3. Buffers that were replaced live as long as the stack: a thief may still read one.
//!
//! # Orderings
//!
//! `bottom` is stored with Release and loaded by thieves with Acquire: a thief sees the frame and
//! the slot of each fork below it. That holds for the store of a pop as well, because a thief may
//! take an older fork that it sees through it. The exchange that ends a claim is AcqRel for the
//! same reason: it is the owner's Acquire load of `top` that lets it wait for the thief. The rest
//! is `light` and `heavy`.
//!
//! Source: the claim before the look is Dijkstra's, as in Frigo, Leiserson and Randall, "The
//! implementation of the Cilk-5 multithreaded language", 1998; the barrier on the thief's side
//! only, Dice, Huang and Yang 2001.
//!
//! [`light`]: stanchion_machine::asymmetric::light
//! [`heavy`]: stanchion_machine::asymmetric::heavy

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_machine::asymmetric;
use stanchion_machine::atomic::{AtomicPtr, AtomicUsize, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::reliance::Reliance;

use crate::sleep::IDLE;

/// The owner that pops a fork against a thief that claims it.
const THEFT: Handshake = Handshake::new("ForkStack::bottom", "Thieves::top", Reach::OneThread);

/// Bits of the claim in `top`, below the position.
const CLAIM_BITS: u32 = usize::BITS / 2;
const CLAIM: usize = (1 << CLAIM_BITS) - 1;
/// The stack does not rely on the kernel's barrier. The highest bit: the position looks too large.
const FENCED: usize = 1 << (usize::BITS - 1);

/// Slots of the first buffer. Few in a model, where each is an object.
const FIRST_SLOTS: usize = if cfg!(stanchion_loom) { 2 } else { 16 };

/// The number of slow pushes after which an owner asks whether barriers may be tried again.
const RECONSIDER: u32 = 4_096;

/// The most forks that a worker keeps. A thread's stack ends before that where words have 64 bits.
const MOST_FORKS: usize = (1 << (CLAIM_BITS - 1)) - 1;

/// The forks of one worker. `T` is the type of a fork.
#[repr(C)]
pub struct ForkStack<T> {
    /// The position after the newest fork. Written by the owner.
    bottom: AtomicUsize,
    /// Positions below it have a slot; 0 while the stack is fenced. Written by the owner, and by
    /// the thread that fences.
    limit: AtomicUsize,
    /// The slots of the last buffer. Written by the owner.
    slots: AtomicPtr<AtomicPtr<T>>,
    /// The part that only the owner uses.
    owned: UnsafeCell<Owned<T>>,
    /// The part that thieves write.
    thieves: CachePadded<Thieves>,
}

/// The part of a stack that only its owner uses.
struct Owned<T> {
    /// All buffers so far (Invariant 3).
    buffers: Vec<Box<[AtomicPtr<T>]>>,
    /// The number of pushes without a slot or onto a fenced stack.
    slow_pushes: u32,
}

/// The part of a stack that thieves write, on a line of its own.
struct Thieves {
    /// The position of the oldest fork that is not stolen, and the thief that claims it. Written by
    /// thieves, and by the owner that meets one.
    top: AtomicUsize,
    /// The period of barriers on which the owner relies.
    reliance: Reliance,
}

// SAFETY: `owned` is the owner's, and the rest is atomic. A fork that is stolen is sent to the
// thief's thread: the user of this type answers for that.
unsafe impl<T> Sync for ForkStack<T> {}
// SAFETY: as above.
unsafe impl<T> Send for ForkStack<T> {}

fn position(top: usize) -> usize {
    (top & !FENCED) >> CLAIM_BITS
}

fn is_claimed(top: usize) -> bool {
    top & CLAIM != 0
}

impl<T> ForkStack<T> {
    /// Creates an empty stack, fenced.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub fn new() -> Self {
        Self {
            bottom: AtomicUsize::fresh(0),
            limit: AtomicUsize::fresh(0),
            slots: AtomicPtr::fresh(core::ptr::null_mut()),
            owned: UnsafeCell::fresh(Owned { buffers: Vec::new(), slow_pushes: 0 }),
            thieves: CachePadded::new(Thieves {
                top: AtomicUsize::fresh(FENCED),
                reliance: Reliance::fresh(),
            }),
        }
    }

    /// Pushes a fork and returns its position. Afterwards the owner looks for idle workers.
    ///
    /// # Safety
    ///
    /// The caller is the owner. The fork is alive until [`pop`](Self::pop) says true for it, or its
    /// thief has run it, and it may be sent to the thief's thread.
    #[inline]
    pub unsafe fn push(&self, fork: *const T) -> usize {
        // Relaxed: the owner's own; the limit as well, or 0 (see the head of the file).
        let at = self.bottom.load(Ordering::Relaxed);
        if at >= self.limit.load(Ordering::Relaxed) {
            // SAFETY: the caller's promise.
            return unsafe { self.push_slowly(at, fork) };
        }
        // SAFETY: the position is below the limit; the slots are the owner's to replace.
        unsafe { self.put(at, fork) };
        IDLE.light_while_free();
        at
    }

    /// Writes the slot of a position that has one, and raises `bottom`.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push), and the position has a slot.
    #[inline]
    unsafe fn put(&self, at: usize, fork: *const T) {
        // Relaxed: the owner's own.
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: the caller's promise: inside the buffer.
        let slot = unsafe { slots.add(at) };
        // SAFETY: as above, and a buffer lives as long as the stack (Invariant 3).
        let slot = unsafe { &*slot };
        // Relaxed: `bottom` publishes it.
        slot.store(fork.cast_mut(), Ordering::Relaxed);
        // Release: pairs with the Acquire of a thief.
        self.bottom.store(at + 1, Ordering::Release);
    }

    /// Pushes where there is no slot yet, or onto a fenced stack.
    #[cold]
    #[inline(never)]
    unsafe fn push_slowly(&self, at: usize, fork: *const T) -> usize {
        // SAFETY: the caller is the owner.
        let (slots, pushes) = unsafe { self.grow_beyond(at) };
        if pushes.is_multiple_of(RECONSIDER) {
            asymmetric::reconsider();
        }
        if let Some(period) = asymmetric::period() {
            self.unfence(slots, period);
        }
        // SAFETY: the caller's promise, and there is a slot now.
        unsafe { self.put(at, fork) };
        IDLE.light();
        at
    }

    /// Makes room for the position. Returns how many slots there are, and the number of such calls.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn grow_beyond(&self, at: usize) -> (usize, u32) {
        self.owned.with_mut(|owned| {
            // SAFETY: the owner's (the caller's promise).
            let Owned { buffers, slow_pushes } = unsafe { &mut *owned };
            *slow_pushes = slow_pushes.wrapping_add(1);
            let old = buffers.last();
            let slots = old.map_or(0, |old| old.len());
            if at < slots {
                return (slots, *slow_pushes);
            }
            assert!(at < MOST_FORKS, "a worker keeps at most {MOST_FORKS} forks inside each other");
            let more = (2 * slots).max(FIRST_SLOTS);
            let copied = |position: usize| {
                // Relaxed: written by this thread.
                let fork = old.and_then(|old| Some(old.get(position)?.load(Ordering::Relaxed)));
                AtomicPtr::fresh(fork.unwrap_or(core::ptr::null_mut()))
            };
            let new: Box<[AtomicPtr<T>]> = (0..more).map(copied).collect();
            buffers.push(new);
            let first = buffers.last().map_or(core::ptr::null(), |new| new.as_ptr());
            // Release: pairs with the Acquire of a thief.
            self.slots.store(first.cast_mut(), Ordering::Release);
            (more, *slow_pushes)
        })
    }

    /// Lets the owner rely on the barrier from now on.
    fn unfence(&self, slots: usize, period: u32) {
        self.thieves.reliance.begins(period);
        // Relaxed, both: `confirms` has a fence.
        self.limit.store(slots, Ordering::Relaxed);
        self.thieves.top.fetch_and(!FENCED, Ordering::Relaxed);
        if !self.thieves.reliance.confirms(period, asymmetric::period) {
            self.fence();
        }
    }

    /// Lets the owner rely on the barrier from the first push on, in models, where a fence stands
    /// for it.
    #[cfg(stanchion_loom)]
    #[allow(dead_code)] // Only models of this stack use it.
    pub fn rely(&self) {
        // SAFETY: no other thread has the stack yet.
        let (slots, _) = unsafe { self.grow_beyond(0) };
        // Relaxed: as above.
        self.limit.store(slots, Ordering::Relaxed);
        self.thieves.top.store(0, Ordering::Relaxed);
    }

    /// Makes the owner fence in each push and pop.
    fn fence(&self) {
        // Relaxed, both: of the owner, or between the fences of `Reliance::end`. The limit comes
        // last: a late owner finds it 0 in its next push, and ends the fenced state again.
        self.thieves.top.fetch_or(FENCED, Ordering::Relaxed);
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Fences the stack if the caller's [`heavy`](asymmetric::heavy) may have been a fence only.
    fn check_barrier(&self) {
        let reliance = &self.thieves.reliance;
        if let Some(over) = reliance.outlived(asymmetric::period) {
            reliance.end(over, || self.fence(), asymmetric::wait_until_visible);
        }
    }

    /// Pops the newest fork, which [`push`](Self::push) put at this position. Returns whether the
    /// owner has it again. If not, a thief has it. The position is free all the same.
    ///
    /// # Safety
    ///
    /// The caller is the owner, and has popped what it pushed afterwards.
    #[inline]
    pub unsafe fn pop(&self, at: usize) -> bool {
        // Release: see the head of the file.
        self.bottom.store(at, Ordering::Release);
        THEFT.light_while_free();
        // Relaxed: what a thief did matters only in the slow path, which looks again.
        (self.thieves.top.load(Ordering::Relaxed) >> CLAIM_BITS) <= at || self.pop_slowly(at)
    }

    /// Pops where a thief is or was, or where the stack is fenced.
    #[cold]
    #[inline(never)]
    fn pop_slowly(&self, at: usize) -> bool {
        THEFT.light();
        // Relaxed: the exchange below looks again.
        let mut top = self.thieves.top.load(Ordering::Relaxed);
        loop {
            let next = position(top);
            if next <= at {
                // No thief claims it, or the stack is fenced.
                return true;
            }
            // The claim of this fork is replaced. The position of a stolen fork is free.
            let mine = next == at + 1 && is_claimed(top);
            let to = (top & FENCED) | (at << CLAIM_BITS);
            // AcqRel: pairs with the exchanges of thieves.
            match self.thieves.top.compare_exchange(top, to, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return mine,
                Err(now) => top = now,
            }
        }
    }

    /// Takes the oldest fork for the worker of this number, if there is one and no other thief is
    /// at this stack.
    ///
    /// Takes some microseconds: it interrupts the processors on which this process runs.
    pub fn steal(&self, thief: usize) -> Option<*const T> {
        // Relaxed: a hint.
        let top = self.thieves.top.load(Ordering::Relaxed);
        let at = position(top);
        // Relaxed: a hint.
        if is_claimed(top) || at >= self.bottom.load(Ordering::Relaxed) {
            return None;
        }
        let claim = (top & FENCED) | ((at + 1) << CLAIM_BITS) | (thief + 1);
        // Acquire: pairs with the exchange of the last thief, and the owner's.
        let claimed = self
            .thieves
            .top
            .compare_exchange(top, claim, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if !claimed {
            return None;
        }
        THEFT.heavy();
        self.check_barrier();
        // Acquire: pairs with the Release of `put`.
        if at >= self.bottom.load(Ordering::Acquire) {
            self.end(claim, at);
            return None;
        }
        // Acquire: pairs with the Release of `grow_beyond`.
        let slots = self.slots.load(Ordering::Acquire);
        // SAFETY: the slot was there when `bottom` was raised above it.
        let slot = unsafe { slots.add(at) };
        // SAFETY: as above, and a buffer lives as long as the stack (Invariant 3).
        let slot = unsafe { &*slot };
        // Relaxed: `bottom` has published it. It is this fork's if the claim still stands.
        let fork = slot.load(Ordering::Relaxed);
        self.end(claim, at + 1).then_some(fork.cast_const())
    }

    /// Ends a claim: forks below `to` are stolen. Returns whether the claim still stood.
    fn end(&self, claim: usize, to: usize) -> bool {
        // AcqRel: see the head of the file. The fenced state may have changed meanwhile.
        let ended = self.thieves.top.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |top| {
            ((top ^ claim) & !FENCED == 0).then_some((top & FENCED) | (to << CLAIM_BITS))
        });
        ended.is_ok()
    }

    /// Returns how many forks there are. A fork that a thief claims counts: the thief may come too
    /// late for it, and for the fork that the owner then pushed at the same position.
    pub fn ready(&self) -> usize {
        // Relaxed, both: hints. For the last look of a worker that goes to sleep they are exact.
        let top = self.thieves.top.load(Ordering::Relaxed);
        let oldest = position(top) - usize::from(is_claimed(top));
        self.bottom.load(Ordering::Relaxed).saturating_sub(oldest)
    }

    /// Returns [`ready`](Self::ready), for a caller that has called [`heavy`](asymmetric::heavy)
    /// since it said that it goes to sleep.
    pub fn ready_after_barrier(&self) -> usize {
        self.check_barrier();
        self.ready()
    }
}

impl<T> fmt::Debug for ForkStack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkStack").field("ready", &self.ready()).finish_non_exhaustive()
    }
}
