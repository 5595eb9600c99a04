//! The parkers of slots: where workers sleep that own a slot and find nothing to do, and how they
//! are woken when there is something.
//!
//! ```text
//! a worker that goes to sleep              a thread that makes work ready
//!   parker word = ASLEEP, bit set            publishes the work
//!   fence                                    fence
//!   looks once more for work                 looks at the bits: clears one, wakes that slot
//! ```
//!
//! At least one of the two sees the other, by the handshake `SLEEP`.
//!
//! # Timed parks
//!
//! A worker that must not steal for a while (`worker/steal_throttle.rs`) parks with a deadline. It
//! comes back by itself, and need not be woken for threads that it would have to steal. So a worker
//! that makes a thread ready on its own slot wakes no slot with a timed park. For all other work,
//! timed parks are woken like the others.
//!
//! # Invariants
//!
//! 1. Only the sleeper sets its slot's bit. The thread that clears the bit, and no other, makes the
//!    parker's word `AWAKE`.
//! 2. A timed park has a deadline. So a worker that was not woken for a thread sees it afterwards:
//!    in its next look, or in the one before it parks without a deadline.
//! 3. A slot's `epoch` goes up before its bit is set. So if a bit is found set twice with the same
//!    epoch, the slot has slept in between.
//!
//! # Orderings
//!
//! `SLEEP` orders the bits against the ready work. The bits of timed parks are Relaxed. The
//! waker's fence also makes a Release of the store after it, which pairs with the sleeper's
//! Acquire.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};
use stanchion_machine::park::{self, Woken};

/// Ready work against a slot that goes to sleep: the waker sees the slot's bit, or the slot's
/// worker sees the work when it looks once more. Any thread may make work ready. Both sides run
/// about equally often, so both pay for the same fence, which the waker's store needs as well.
const SLEEP: Handshake<Symmetric> =
    Handshake::symmetric("ready work", "ParkedSlots::bits", Reach::AllThreads);

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The slots of one word of bits.
const BITS: usize = 64;

/// The parkers of a runtime's slots.
pub struct ParkedSlots {
    /// A bit for each slot that sleeps. Set by its worker, cleared by that or by a waker.
    bits: Box<[CachePadded<AtomicU64>]>,
    /// A bit for each slot with a timed park. It means nothing while the slot does not sleep.
    /// Written by the slot's worker.
    timed: Box<[CachePadded<AtomicU64>]>,
    /// A parker for each slot.
    parkers: Box<[CachePadded<Parker>]>,
}

/// The place where the worker of a slot sleeps.
struct Parker {
    /// `ASLEEP` from the announcement until the wake-up (Invariant 1).
    word: AtomicU32,
    /// The number of times that the worker has gone to sleep. Raised by the slot's worker.
    epoch: AtomicU64,
}

impl ParkedSlots {
    /// Returns the parkers of so many slots, all of which are awake.
    pub fn new(slots: usize) -> Self {
        let bits = || (0..slots.div_ceil(BITS)).map(|_| CachePadded::new(AtomicU64::fresh(0)));
        let parker = || Parker { word: AtomicU32::fresh(AWAKE), epoch: AtomicU64::fresh(0) };
        let parkers = (0..slots).map(|_| CachePadded::new(parker()));
        Self { bits: bits().collect(), timed: bits().collect(), parkers: parkers.collect() }
    }

    /// Says that the slot's worker is going to sleep. It looks once more for work after this.
    pub fn announce(&self, slot: usize, is_timed: bool) {
        self.set_timed(slot, is_timed);
        let parker = &self.parkers[slot];
        // Relaxed: a thread that reads it has seen the bit.
        parker.epoch.fetch_add(1, Ordering::Relaxed);
        // Relaxed: no thread reads the word before the bit is cleared.
        parker.word.store(ASLEEP, Ordering::Relaxed);
        // Release: the thread that clears the bit makes the word `AWAKE` after this. It also pairs
        // with the Acquire of `count`.
        self.bits[slot / BITS].fetch_or(1 << (slot % BITS), Ordering::Release);
        SLEEP.fence();
    }

    fn set_timed(&self, slot: usize, is_timed: bool) {
        let (timed, bit) = (&self.timed[slot / BITS], 1 << (slot % BITS));
        // Relaxed: only this slot's worker changes its bit. The fence of `announce` follows.
        if (timed.load(Ordering::Relaxed) & bit != 0) != is_timed {
            // Relaxed: as above.
            timed.fetch_xor(bit, Ordering::Relaxed);
        }
    }

    /// Takes the announcement back: the slot's worker does not sleep after all.
    pub fn retract(&self, slot: usize) {
        if !self.clear(slot) {
            // A thread is waking it.
            self.sleep(slot, Deadline::NEVER);
        }
    }

    /// Sleeps until the slot is woken or the deadline passes.
    pub fn sleep(&self, slot: usize, deadline: Deadline) {
        let word = &self.parkers[slot].word;
        let mut deadline = deadline;
        // Acquire: pairs with the store of `wake_parker`, and the fence before that.
        while word.load(Ordering::Acquire) == ASLEEP {
            if park::wait(word, ASLEEP, deadline) == Woken::TimedOut {
                if self.clear(slot) {
                    return;
                }
                // A thread is waking it.
                deadline = Deadline::NEVER;
            }
        }
    }

    /// Clears the slot's bit. Returns whether it was set.
    fn clear(&self, slot: usize) -> bool {
        let bit = 1 << (slot % BITS);
        // Acquire: pairs with the Release of `announce`, and with that of `count`.
        self.bits[slot / BITS].fetch_and(!bit, Ordering::Acquire) & bit != 0
    }

    /// Returns whether any slot sleeps or is about to, as far as is known.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: after the caller's fence. A worker that goes to sleep at the same time looks
        // itself at what the caller has made.
        self.bits.iter().any(|bits| bits.load(Ordering::Relaxed) != 0)
    }

    /// Returns the number of slots that sleep or are about to.
    pub(crate) fn count(&self) -> usize {
        // An exchange, though it changes nothing: a load may return an old value. Acquire: pairs
        // with the Release of `announce`: what a sleeper did before it slept. Release: pairs with
        // the Acquire of `clear`: nothing the caller has read so far was written by a worker that
        // this exchange lets continue.
        let count = |bits: &AtomicU64| bits.fetch_or(0, Ordering::AcqRel).count_ones() as usize;
        self.bits.iter().map(|bits| count(bits)).sum()
    }

    /// Returns the number of times that any slot has gone to sleep (Invariant 3).
    pub(crate) fn epochs(&self) -> u64 {
        // Relaxed: `count`, before or after it, orders it.
        self.parkers.iter().map(|parker| parker.epoch.load(Ordering::Relaxed)).sum()
    }

    fn wake_parker(&self, slot: usize) -> bool {
        let is_cleared = self.clear(slot);
        if is_cleared {
            // Relaxed: after the waker's fence, which makes it a Release. Pairs with the Acquire of
            // `sleep`.
            self.parkers[slot].word.store(AWAKE, Ordering::Relaxed);
            park::wake_one(&self.parkers[slot].word);
        }
        is_cleared
    }

    /// Wakes up to `count` sleeping slots, for work that was made ready. If the work `is_local`, it
    /// lies on the caller's slot, and timed parks are left alone. Returns the number of slots that
    /// were woken.
    pub fn wake(&self, count: usize, is_local: bool) -> usize {
        SLEEP.fence();
        let mut woken = 0;
        for (group, bits) in self.bits.iter().enumerate() {
            // Relaxed: after the fence.
            let mut seen = bits.load(Ordering::Relaxed);
            if seen != 0 && is_local {
                // Relaxed: after the fence.
                seen &= !self.timed[group].load(Ordering::Relaxed);
            }
            while seen != 0 && woken < count {
                let bit = seen.trailing_zeros() as usize;
                seen &= seen - 1;
                woken += usize::from(self.wake_parker(group * BITS + bit));
            }
        }
        woken
    }

    /// Wakes this slot if it sleeps, for work that only its worker can do.
    pub fn wake_slot(&self, slot: usize) {
        SLEEP.fence();
        // Relaxed: after the fence.
        if self.bits[slot / BITS].load(Ordering::Relaxed) & 1 << (slot % BITS) != 0 {
            self.wake_parker(slot);
        }
    }
}
