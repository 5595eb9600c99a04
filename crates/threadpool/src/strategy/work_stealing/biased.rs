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
//! | outside | none, left | no thread |
//! | inside | none, left | the owner |
//! | inside | there | the owner, if it saw no thief when it came; else it is about to go outside |
//! | outside | there | the thief, once it has seen the owner outside after its fence |
//!
//! In the third state the thief waits a moment, then gives up. In the fourth the owner waits for
//! the thief.
//!
//! # Bias
//!
//! An interrupt takes both processors some microseconds, and tens of them on a virtual machine. If
//! thieves come often, a fence in each entry of the owner is cheaper. So a thief ends the bias: it
//! leaves a mark, and interrupts only if there is none yet. From its next entry on the owner
//! fences. After [`BIASED_AFTER`] entries without a thief the lock is biased again. Those fences
//! cost about as much as the interrupt that they may have saved. So the lock costs about twice as
//! much as the better of the two ways, or less (Karlin, Manasse, McGeoch and Owicki, 1994).
//!
//! The owner alone writes whether the lock is biased.
//!
//! # Invariants
//!
//! 1. The owner is inside only after it has stored so and has seen no thief since. A thief is
//!    inside only after it has stored so and has seen the owner outside since. Between each one's
//!    store and its look is a fence, so one of the two sees the other.
//! 2. There is one thief at a time: it exchanged `none` or `left` for `there`.
//! 3. Of a thief that does not interrupt the owner, and an entry of the owner without a fence, one
//!    sees the other: the owner sees the thief, or its mark, and then fences in `make_way`; or the
//!    thief sees what the owner did in that entry.
//!
//! Proof of 3. Let E be that entry. In E the owner read in `calm` that the lock is biased. The
//! thief, T, has stored `there` and fenced.
//!
//! - *T found no mark, and then read in `calm` that the lock is not biased.* The lock was biased
//!   from the start, or the owner had last stored that in an earlier entry, and fenced after it. If
//!   that fence comes after T's, the owner sees T in E, or T's mark. Else T has read a later value
//!   of `calm`: the 0 that the owner stored when it ended the bias after E, or a count that it
//!   stored still later. The 0 is a Release, and between it and a count is the fence of `make_way`.
//!   So T sees what the owner did in E.
//! - *T found the mark of another thief, T1.* The owner has not taken that mark away, so it has
//!   seen neither T1 nor the mark in E. By this invariant, or because T1 interrupted it, T1 saw
//!   what the owner did in E. T acquires what T1 saw.
//!
//! # Orderings
//!
//! Going out is a Release store. A thread that comes in looks for the other with an Acquire load,
//! so it sees what that one did inside. The owner that sees no mark has seen all thieves before.
//! The store before coming in is Relaxed: the fences order it. The exchange of `left` for `none` is
//! Relaxed: as a read-modify-write it hands on what the thief released.
//!
//! Source: biased locking, Kawachiya, Koseki and Onodera 2002, with the barrier on the revoker's
//! side only. Own queues with requests are Acar, Charguéraud and Rainey's (2013). Their owners must
//! look for requests, here they need not.

use core::fmt;

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};
use stanchion_machine::wait::{self, Patient, WaitPolicy};

/// The owner that comes in against a thief that does, while the lock is biased.
const ENTRY: Handshake = Handshake::new("BiasedLock::owner", "BiasedLock::thief", Reach::OneThread);

/// The same while it is not, and the owner that makes it so against a thief.
const FENCED_ENTRY: Handshake<Symmetric> =
    Handshake::symmetric("BiasedLock::owner, calm", "BiasedLock::thief", Reach::OneThread);

const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;

const NONE: u32 = 0;
const THERE: u32 = 1;
/// A thief has been there since the owner last looked.
const LEFT: u32 = 2;

/// Entries of the owner without a thief after which the lock is biased. Their fences take
/// microseconds. One in a model: each entry multiplies what there is to explore.
const BIASED_AFTER: u32 = if cfg!(stanchion_loom) { 1 } else { 1_024 };

/// The time for which a thief waits for an owner that is inside, in transfers of a line. Sections
/// are a few instructions, unless their owner has lost its processor.
const THIEF_WAIT_TRANSFERS: u64 = 5;

/// The fences of a biased lock. Models have their own: loom's fences hide a missing interrupt.
///
/// # Safety
///
/// Of an owner that stores, calls [`light`](Self::light) and looks, and a thief that stores, calls
/// [`heavy`](Self::heavy) and looks, at least one sees the other's store.
pub unsafe trait Barrier {
    /// Orders the owner's store before its look.
    fn light(&self);
    /// Orders the thief's store before its look, and interrupts the owner.
    fn heavy(&self);
    /// Runs `wait`, in which the owner waits for a thief. Models take interrupts meanwhile.
    fn interruptible(&self, wait: impl FnOnce()) {
        wait();
    }
}

/// The kernel's barrier.
#[derive(Debug)]
pub struct Membarrier;

// SAFETY: a handshake promises that.
unsafe impl Barrier for Membarrier {
    #[inline]
    fn light(&self) {
        ENTRY.light();
    }

    fn heavy(&self) {
        ENTRY.heavy();
    }
}

/// A value with an owner and thieves.
pub struct BiasedLock<T, B = Membarrier> {
    /// [`INSIDE`] while the owner is inside. Written by the owner.
    owner: AtomicU32,
    /// The owner's fenced entries since it last saw a thief, up to [`BIASED_AFTER`]. Then the lock
    /// is biased. Written by the owner.
    calm: AtomicU32,
    /// [`THERE`] while a thief is there, [`LEFT`] when it has left. Written by thieves, and by the
    /// owner that takes the mark away.
    thief: AtomicU32,
    /// The fences while the lock is biased.
    barrier: B,
    /// Touched by the thread that is inside.
    value: UnsafeCell<T>,
}

// SAFETY: one thread is inside at a time (Invariant 1, by what `Barrier` promises), and it alone
// touches the value.
unsafe impl<T: Send, B: Sync> Sync for BiasedLock<T, B> {}

impl<T> BiasedLock<T> {
    /// Creates a biased lock with no thread inside.
    pub fn new(value: T) -> Self {
        Self::with_barrier(value, Membarrier, true)
    }
}

impl<T, B: Barrier> BiasedLock<T, B> {
    /// Creates a lock with these fences, biased or not.
    pub fn with_barrier(value: T, barrier: B, biased: bool) -> Self {
        Self {
            owner: AtomicU32::fresh(OUTSIDE),
            calm: AtomicU32::fresh(if biased { BIASED_AFTER } else { 0 }),
            thief: AtomicU32::fresh(NONE),
            barrier,
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the fences.
    #[cfg(stanchion_loom)]
    #[allow(dead_code, reason = "only models use it")]
    pub fn barrier(&self) -> &B {
        &self.barrier
    }

    /// Runs `section` with the value, for the owner. Waits while a thief is inside. `section` must
    /// not unwind.
    ///
    /// # Safety
    ///
    /// There is one owner at a time, and it is not inside already.
    #[inline]
    pub unsafe fn with_owner<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        // Relaxed: ordered by the fence, which pairs with the thief's.
        self.owner.store(INSIDE, Ordering::Relaxed);
        // Relaxed: the owner's own.
        let calm = self.calm.load(Ordering::Relaxed);
        if calm >= BIASED_AFTER {
            self.barrier.light();
        } else {
            // Relaxed: ordered by the fence before the owner's next look (Invariant 3).
            self.calm.store(calm + 1, Ordering::Relaxed);
            FENCED_ENTRY.fence();
        }
        // Relaxed: the owner itself has stored `NONE`, after it saw what the last thief did.
        if self.thief.load(Ordering::Relaxed) != NONE {
            self.make_way();
        }
        // SAFETY: Invariant 1.
        let result = self.value.with_mut(|value| section(unsafe { &mut *value }));
        // Release: pairs with the Acquire of the next thief.
        self.owner.store(OUTSIDE, Ordering::Release);
        result
    }

    /// Lets a thief go first, if it is still there. Ends the bias. The owner has seen the thief, or
    /// its mark.
    #[cold]
    #[inline(never)]
    fn make_way(&self) {
        let mut waiting = <Patient>::start();
        loop {
            // Release: as in `with_owner`. Nothing was done inside, but a thief may see this store
            // and not the last one.
            self.owner.store(OUTSIDE, Ordering::Release);
            self.barrier.interruptible(|| {
                let has_left = |thief| thief != THERE;
                // Relaxed: the look below, of the same word, acquires.
                wait::wait_until(&self.thief, Ordering::Relaxed, has_left, &mut waiting);
            });
            // Release: pairs with the Acquire of a thief (Invariant 3).
            self.calm.store(0, Ordering::Release);
            // Relaxed: see the head of the file. Another thief may have come instead.
            let _ = self.thief.compare_exchange(LEFT, NONE, Ordering::Relaxed, Ordering::Relaxed);
            // Relaxed: as in `with_owner`.
            self.owner.store(INSIDE, Ordering::Relaxed);
            FENCED_ENTRY.fence();
            // Acquire: pairs with the Release of the thief that went out. The mark of a thief that
            // has come and left meanwhile stays for the next entry.
            if self.thief.load(Ordering::Acquire) != THERE {
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
    /// thief is there, if the owner is inside and does not come out, or if it takes a mark away at
    /// this moment. `section` must not unwind.
    ///
    /// Interrupts the owner's processor if the lock is biased, no thief has left a mark and the
    /// owner runs. That takes some microseconds. `cargo run --release -p stanchion-machine
    /// --example costs` prints how many (`asymmetric::heavy`).
    pub fn try_with_thief<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        // Relaxed: a hint.
        let last = self.thief.load(Ordering::Relaxed);
        if last == THERE {
            return None;
        }
        // Acquire: pairs with the Release of the last thief. The owner sees this by the fences.
        let came = self.thief.compare_exchange(last, THERE, Ordering::Acquire, Ordering::Relaxed);
        if came.is_err() {
            return None;
        }
        FENCED_ENTRY.fence();
        // Acquire: pairs with the Release of `make_way` (Invariant 3).
        if last == NONE && self.calm.load(Ordering::Acquire) >= BIASED_AFTER {
            self.barrier.heavy();
        }
        let patience = wait::transfers(THIEF_WAIT_TRANSFERS);
        // Acquire: pairs with the owner's Release.
        let outside =
            wait::spin_for(&self.owner, Ordering::Acquire, |owner| owner == OUTSIDE, patience);
        // SAFETY: Invariants 1 and 2.
        let result = outside.map(|_| self.value.with_mut(|value| section(unsafe { &mut *value })));
        // Release: pairs with the Acquire of the owner and of the next thief.
        self.thief.store(LEFT, Ordering::Release);
        result
    }
}

impl<T, B> fmt::Debug for BiasedLock<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedLock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the interrupts.
    struct Interrupts(AtomicU32);

    // SAFETY: as for `Membarrier`.
    unsafe impl Barrier for Interrupts {
        fn light(&self) {
            Membarrier.light();
        }

        fn heavy(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            Membarrier.heavy();
        }
    }

    #[test]
    fn thieves_interrupt_the_owner_only_after_many_entries_without_one() {
        let lock = BiasedLock::with_barrier(0_u32, Interrupts(AtomicU32::fresh(0)), true);
        let mut expected = 0;
        let mut steal = |interrupts| {
            assert_eq!(lock.try_with_thief(|value| *value += 1), Some(()));
            expected += 1;
            assert_eq!(lock.barrier.0.load(Ordering::Relaxed), interrupts);
        };
        // SAFETY: this thread is the owner, and never inside when it enters.
        let own = || unsafe { lock.with_owner(|value| *value) };
        // The mark of the first is there for the second.
        steal(1);
        steal(1);
        for _ in 0..3 {
            // The first of these entries sees the thief, and does not count.
            (0..BIASED_AFTER).for_each(|_| _ = own());
            steal(1);
        }
        (0..=BIASED_AFTER).for_each(|_| _ = own());
        steal(2);
        assert_eq!(own(), expected);
    }
}
