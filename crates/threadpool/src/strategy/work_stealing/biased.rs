//! The biased lock: its owner enters with two plain stores, a thief by interrupting the owner's
//! processor.
//!
//! It protects a queue that one worker uses for every task, and thieves now and then. Why not Chase
//! and Lev's deque: its owner needs a fence for each pop, thieves take one task at a time, and its
//! slots are read while they are overwritten. Why not a lock that both take: two locked
//! instructions for each task.
//!
//! | `owner` | `thief` | inside is |
//! | --- | --- | --- |
//! | outside | none | no thread |
//! | inside | none | the owner |
//! | inside | there | the owner, if it saw no thief when it came; else it is about to go outside |
//! | outside | there | the thief, once it has seen the owner outside after [`heavy`] |
//!
//! In the third state the thief waits a moment, then gives up. In the fourth the owner waits for
//! the thief.
//!
//! # Invariants
//!
//! 1. The owner is inside only after it has stored so and has seen no thief since. A thief is
//!    inside only after it has stored so and has seen the owner outside since. So one of the two
//!    sees the other: [`light`] and [`heavy`] are between each one's store and its look. The fence
//!    must reach the owner's thread.
//! 2. There is one thief at a time: it exchanged `none` for `there`.
//!
//! # Orderings
//!
//! Going out is a Release store, looking for the other an Acquire load. So a thread that comes in
//! sees what the last one did inside. The store before coming in is Relaxed: [`light`] and
//! [`heavy`] order it.
//!
//! Source: biased locking, Kawachiya, Koseki and Onodera 2002, with the barrier on the revoker's
//! side only. Own queues with requests are Acar, Charguéraud and Rainey's (2013). Their owners must
//! look for requests, here they need not.
//!
//! [`light`]: stanchion_machine::handshake::Handshake::light
//! [`heavy`]: stanchion_machine::handshake::Handshake::heavy

use core::fmt;

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::wait::{self, Patient, WaitPolicy};

/// The owner that comes in against a thief that does.
const ENTRY: Handshake = Handshake::new("BiasedLock::owner", "BiasedLock::thief", Reach::OneThread);

const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;

const NONE: u32 = 0;
const THERE: u32 = 1;

/// The time for which a thief waits for an owner that is inside, in transfers of a line. Sections
/// are a few instructions, unless their owner has lost its processor.
const THIEF_WAIT_TRANSFERS: u64 = 5;

/// A value with an owner and thieves.
pub struct BiasedLock<T> {
    /// [`INSIDE`] while the owner is inside. Written by the owner.
    owner: AtomicU32,
    /// [`THERE`] while a thief is there. Written by thieves.
    thief: AtomicU32,
    /// Touched by the thread that is inside.
    value: UnsafeCell<T>,
}

// SAFETY: one thread is inside at a time (Invariant 1), and it alone touches the value.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    /// Creates a lock with no thread inside.
    pub fn new(value: T) -> Self {
        Self {
            owner: AtomicU32::fresh(OUTSIDE),
            thief: AtomicU32::fresh(NONE),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `section` with the value, for the owner. Waits while a thief is inside. `section` must
    /// not unwind.
    ///
    /// # Safety
    ///
    /// There is one owner at a time, and it is not inside already.
    #[inline]
    pub unsafe fn with_owner<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        // Relaxed: ordered by `light`, which pairs with the thief's `heavy`.
        self.owner.store(INSIDE, Ordering::Relaxed);
        ENTRY.light();
        // Acquire: pairs with the Release of a thief that went out.
        if self.thief.load(Ordering::Acquire) != NONE {
            self.make_way();
        }
        // SAFETY: Invariant 1.
        let result = self.value.with_mut(|value| section(unsafe { &mut *value }));
        // Release: pairs with the Acquire of the next thief.
        self.owner.store(OUTSIDE, Ordering::Release);
        result
    }

    /// Lets the thief go first that the owner has seen.
    #[cold]
    #[inline(never)]
    fn make_way(&self) {
        let mut waiting = <Patient>::start();
        loop {
            // Release: as in `with_owner`. Nothing was done inside, but a thief may see this store
            // and not the last one.
            self.owner.store(OUTSIDE, Ordering::Release);
            // Relaxed: the look below, of the same word, acquires.
            wait::wait_until(&self.thief, Ordering::Relaxed, |thief| thief == NONE, &mut waiting);
            // Relaxed: as in `with_owner`.
            self.owner.store(INSIDE, Ordering::Relaxed);
            ENTRY.light();
            // Acquire: as in `with_owner`.
            if self.thief.load(Ordering::Acquire) == NONE {
                return;
            }
        }
    }

    /// Returns whether the owner is inside. A hint.
    pub fn is_owned(&self) -> bool {
        // Relaxed: out of date when it is returned.
        self.owner.load(Ordering::Relaxed) == INSIDE
    }

    /// Runs `section` with the value, for a thread that is not the owner. Returns `None` if another
    /// thief is there, or if the owner is inside and does not come out. `section` must not unwind.
    ///
    /// Interrupts the owner's processor, if it runs, which takes some microseconds. `cargo run
    /// --release -p stanchion-machine --example costs` prints how many (`asymmetric::heavy`).
    pub fn try_with_thief<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        // Relaxed: a hint.
        if self.thief.load(Ordering::Relaxed) != NONE {
            return None;
        }
        // Acquire: pairs with the Release of the last thief. The owner sees this through `heavy`.
        let came = self.thief.compare_exchange(NONE, THERE, Ordering::Acquire, Ordering::Relaxed);
        if came.is_err() {
            return None;
        }
        ENTRY.heavy();
        let patience = wait::transfers(THIEF_WAIT_TRANSFERS);
        // Acquire: pairs with the owner's Release.
        let outside =
            wait::spin_for(&self.owner, Ordering::Acquire, |owner| owner == OUTSIDE, patience);
        // SAFETY: Invariants 1 and 2.
        let result = outside.map(|_| self.value.with_mut(|value| section(unsafe { &mut *value })));
        // Release: pairs with the Acquire of the owner and of the next thief.
        self.thief.store(NONE, Ordering::Release);
        result
    }
}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedLock").finish_non_exhaustive()
    }
}
