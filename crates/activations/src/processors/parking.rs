//! Where workers sleep that have a slot and find nothing to do, and how they are told that there is something.
//!
//! ```text
//! who goes to sleep                       who makes something ready
//!   asleep[slot] = ASLEEP, bit set          publishes it
//!   fence                                   fence
//!   looks once more                         looks at the bits: clears one, wakes that slot
//! ```
//!
//! One of the two sees the other: the fences are what Dekker's protocol needs.
//!
//! # Dozing
//!
//! A worker that leaves others' threads alone for a while (`steal_throttle.rs`) *is_timed*: it comes back by itself, and need not be woken for those. So who
//! makes one ready that lies at its own slot wakes nobody who is_timed. For all else, timed are woken like the others.
//!
//! # Invariants
//!
//! 1. A slot's bit is set only by its sleeper; whoever clears it, and nobody else, makes its word `AWAKE`.
//! 2. Who is_timed has a deadline. So what it was not woken for it sees afterwards: in its next look, or in the one before it sleeps otherwise.
//! 3. A slot's `epochs` goes up before its bit is set. So a slot whose bit is there twice, with the same number, has slept in between.
//!
//! # Orderings
//!
//! The two fences pair with each other; the bits of timed are Relaxed. The fence of who tells also makes a Release of the wake-up after it, which pairs with the
//! sleeper's Acquire.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::park::{self, Woken};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Seats a word of bits.
const BITS: usize = 64;

/// The slots of a runtime, as far as they sleep.
pub(crate) struct ParkedSlots {
    bits: Box<[CachePadded<AtomicU64>]>,
    /// Those of them who doze. A slot's bit means nothing while it does not sleep.
    timed: Box<[CachePadded<AtomicU64>]>,
    parkers: Box<[CachePadded<Parker>]>,
}

/// Where the worker of a slot sleeps.
struct Parker {
    word: AtomicU32,
    /// How often it has lain down.
    epochs: AtomicU64,
}

impl ParkedSlots {
    pub(crate) fn new(slots: usize) -> Self {
        let bits = || (0..slots.div_ceil(BITS)).map(|_| CachePadded::new(AtomicU64::fresh(0)));
        let parker = || Parker { word: AtomicU32::fresh(AWAKE), epochs: AtomicU64::fresh(0) };
        let parkers = (0..slots).map(|_| CachePadded::new(parker()));
        Self { bits: bits().collect(), timed: bits().collect(), parkers: parkers.collect() }
    }

    /// The slot's worker is going to sleep, or to doze, and looks once more after this.
    pub(crate) fn announce(&self, slot: usize, is_timed: bool) {
        self.note(slot, is_timed);
        let parker = &self.parkers[slot];
        // Relaxed: who reads it has seen the bit.
        parker.epochs.fetch_add(1, Ordering::Relaxed);
        // Relaxed: nobody reads the word before the bit is cleared.
        parker.word.store(ASLEEP, Ordering::Relaxed);
        // Release: who clears the bit makes the word `AWAKE` after this; and pairs with the Acquire of `count`.
        self.bits[slot / BITS].fetch_or(1 << (slot % BITS), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn note(&self, slot: usize, is_timed: bool) {
        let (timed, bit) = (&self.timed[slot / BITS], 1 << (slot % BITS));
        // Relaxed: this slot's bit is changed here only; so below, where the fence of `announce` follows.
        if (timed.load(Ordering::Relaxed) & bit != 0) != is_timed {
            timed.fetch_xor(bit, Ordering::Relaxed);
        }
    }

    /// It does not sleep after all.
    pub(crate) fn retract(&self, slot: usize) {
        if !self.clear(slot) {
            // Somebody is waking it.
            self.sleep(slot, Deadline::NEVER);
        }
    }

    /// Sleeps until it is told, or until the deadline.
    pub(crate) fn sleep(&self, slot: usize, deadline: Deadline) {
        let word = &self.parkers[slot].word;
        let mut deadline = deadline;
        // Acquire: pairs with the store of `wake`, and the fence before that.
        while word.load(Ordering::Acquire) == ASLEEP {
            if park::wait(word, ASLEEP, deadline) == Woken::TimedOut {
                if self.clear(slot) {
                    return;
                }
                // Somebody is waking it.
                deadline = Deadline::NEVER;
            }
        }
    }

    /// Takes the slot's bit away; whether it was there.
    fn clear(&self, slot: usize) -> bool {
        let bit = 1 << (slot % BITS);
        // Acquire: pairs with the Release of `announce`, and that of `count`.
        self.bits[slot / BITS].fetch_and(!bit, Ordering::Acquire) & bit != 0
    }

    /// Whether any sleeps, or is about to, as far as is known.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: after the caller's fence; who goes to sleep beside it looks itself at what the caller has made.
        self.bits.iter().any(|bits| bits.load(Ordering::Relaxed) != 0)
    }

    /// How many sleep, or are about to.
    pub(crate) fn count(&self) -> usize {
        // An exchange, though it changes nothing: a load may be of a word that is long past. Acquire: pairs with the Release of `announce`: what a sleeper did
        // before it slept. Release: pairs with the Acquire of `clear`: what the caller has read until now is not of somebody whom that lets go on.
        let count = |bits: &AtomicU64| bits.fetch_or(0, Ordering::AcqRel).count_ones() as usize;
        self.bits.iter().map(|bits| count(bits)).sum()
    }

    /// How often any has gone to sleep (Invariant 3).
    pub(crate) fn epochs(&self) -> u64 {
        // Relaxed: `count`, before or after it, orders it.
        self.parkers.iter().map(|parker| parker.epochs.load(Ordering::Relaxed)).sum()
    }

    fn wake(&self, slot: usize) -> bool {
        let cleared = self.clear(slot);
        if cleared {
            // Relaxed: after the fence of who tells, which makes it a Release. Pairs with the Acquire of `sleep`.
            self.parkers[slot].word.store(AWAKE, Ordering::Relaxed);
            park::wake_one(&self.parkers[slot].word);
        }
        cleared
    }

    /// Something has been made ready that up to `count` slots could do: wakes those of them that sleep. Returns how many that were. Not those who
    /// doze, if it is `own`: it lies at the caller's slot.
    pub(crate) fn wake(&self, count: usize, own: bool) -> usize {
        fence(Ordering::SeqCst);
        let mut woken = 0;
        for (group, bits) in self.bits.iter().enumerate() {
            // Relaxed: after the fence; so below.
            let mut seen = bits.load(Ordering::Relaxed);
            if seen != 0 && own {
                seen &= !self.timed[group].load(Ordering::Relaxed);
            }
            while seen != 0 && woken < count {
                let bit = seen.trailing_zeros() as usize;
                seen &= seen - 1;
                woken += usize::from(self.wake(group * BITS + bit));
            }
        }
        woken
    }

    /// Something has been made ready that only this slot can do: wakes it if it sleeps.
    pub(crate) fn wake_slot(&self, slot: usize) {
        fence(Ordering::SeqCst);
        // Relaxed: after the fence.
        if self.bits[slot / BITS].load(Ordering::Relaxed) & 1 << (slot % BITS) != 0 {
            self.wake(slot);
        }
    }
}
