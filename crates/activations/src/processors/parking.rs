//! Where carriers sleep that have a seat and find nothing to do, and how they are told that there is something.
//!
//! ```text
//! who goes to sleep                       who makes something ready
//!   asleep[seat] = ASLEEP, bit set          publishes it
//!   fence                                   fence
//!   looks once more                         looks at the bits: clears one, wakes that seat
//! ```
//!
//! One of the two sees the other: the fences are what Dekker's protocol needs.
//!
//! # Dozing
//!
//! A carrier that leaves others' threads alone for a while (`thrift.rs`) *dozes*: it comes back by itself, and need not be woken for those. So who
//! makes one ready that lies at its own seat wakes nobody who dozes. For all else, dozers are woken like the others.
//!
//! # Invariants
//!
//! 1. A seat's bit is set only by its sleeper; whoever clears it, and nobody else, makes its word `AWAKE`.
//! 2. Who dozes has a deadline. So what it was not woken for it sees afterwards: in its next look, or in the one before it sleeps otherwise.
//! 3. A seat's `naps` goes up before its bit is set. So a seat whose bit is there twice, with the same number, has slept in between.
//!
//! # Orderings
//!
//! The two fences pair with each other; the bits of dozers are Relaxed. The fence of who tells also makes a Release of the wake-up after it, which pairs with the
//! sleeper's Acquire.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::park::{self, Woken};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Seats a word of bits.
const BITS: usize = 64;

/// The seats of a runtime, as far as they sleep.
pub(crate) struct Sleeping {
    bits: Box<[CachePadded<AtomicU64>]>,
    /// Those of them who doze. A seat's bit means nothing while it does not sleep.
    dozers: Box<[CachePadded<AtomicU64>]>,
    beds: Box<[CachePadded<Bed>]>,
}

/// Where the carrier of a seat sleeps.
struct Bed {
    word: AtomicU32,
    /// How often it has lain down.
    naps: AtomicU64,
}

impl Sleeping {
    pub(crate) fn new(seats: usize) -> Self {
        let bits = || (0..seats.div_ceil(BITS)).map(|_| CachePadded::new(AtomicU64::fresh(0)));
        let bed = || Bed { word: AtomicU32::fresh(AWAKE), naps: AtomicU64::fresh(0) };
        let beds = (0..seats).map(|_| CachePadded::new(bed()));
        Self { bits: bits().collect(), dozers: bits().collect(), beds: beds.collect() }
    }

    /// The seat's carrier is going to sleep, or to doze, and looks once more after this.
    pub(crate) fn announce(&self, seat: usize, dozes: bool) {
        self.note(seat, dozes);
        let bed = &self.beds[seat];
        // Relaxed: who reads it has seen the bit.
        bed.naps.fetch_add(1, Ordering::Relaxed);
        // Relaxed: nobody reads the word before the bit is cleared.
        bed.word.store(ASLEEP, Ordering::Relaxed);
        // Release: who clears the bit makes the word `AWAKE` after this; and pairs with the Acquire of `count`.
        self.bits[seat / BITS].fetch_or(1 << (seat % BITS), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn note(&self, seat: usize, dozes: bool) {
        let (dozers, bit) = (&self.dozers[seat / BITS], 1 << (seat % BITS));
        // Relaxed: this seat's bit is changed here only; so below, where the fence of `announce` follows.
        if (dozers.load(Ordering::Relaxed) & bit != 0) != dozes {
            dozers.fetch_xor(bit, Ordering::Relaxed);
        }
    }

    /// It does not sleep after all.
    pub(crate) fn retract(&self, seat: usize) {
        if !self.clear(seat) {
            // Somebody is waking it.
            self.sleep(seat, Deadline::NEVER);
        }
    }

    /// Sleeps until it is told, or until the deadline.
    pub(crate) fn sleep(&self, seat: usize, deadline: Deadline) {
        let word = &self.beds[seat].word;
        let mut deadline = deadline;
        // Acquire: pairs with the store of `wake`, and the fence before that.
        while word.load(Ordering::Acquire) == ASLEEP {
            if park::wait(word, ASLEEP, deadline) == Woken::TimedOut {
                if self.clear(seat) {
                    return;
                }
                // Somebody is waking it.
                deadline = Deadline::NEVER;
            }
        }
    }

    /// Takes the seat's bit away; whether it was there.
    fn clear(&self, seat: usize) -> bool {
        let bit = 1 << (seat % BITS);
        // Acquire: pairs with the Release of `announce`, and that of `count`.
        self.bits[seat / BITS].fetch_and(!bit, Ordering::Acquire) & bit != 0
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
    pub(crate) fn naps(&self) -> u64 {
        // Relaxed: `count`, before or after it, orders it.
        self.beds.iter().map(|bed| bed.naps.load(Ordering::Relaxed)).sum()
    }

    fn wake(&self, seat: usize) -> bool {
        let cleared = self.clear(seat);
        if cleared {
            // Relaxed: after the fence of who tells, which makes it a Release. Pairs with the Acquire of `sleep`.
            self.beds[seat].word.store(AWAKE, Ordering::Relaxed);
            park::wake_one(&self.beds[seat].word);
        }
        cleared
    }

    /// Something has been made ready that up to `count` seats could do: wakes those of them that sleep. Returns how many that were. Not those who
    /// doze, if it is `own`: it lies at the caller's seat.
    pub(crate) fn tell(&self, count: usize, own: bool) -> usize {
        fence(Ordering::SeqCst);
        let mut woken = 0;
        for (group, bits) in self.bits.iter().enumerate() {
            // Relaxed: after the fence; so below.
            let mut seen = bits.load(Ordering::Relaxed);
            if seen != 0 && own {
                seen &= !self.dozers[group].load(Ordering::Relaxed);
            }
            while seen != 0 && woken < count {
                let bit = seen.trailing_zeros() as usize;
                seen &= seen - 1;
                woken += usize::from(self.wake(group * BITS + bit));
            }
        }
        woken
    }

    /// Something has been made ready that only this seat can do: wakes it if it sleeps.
    pub(crate) fn tell_seat(&self, seat: usize) {
        fence(Ordering::SeqCst);
        // Relaxed: after the fence.
        if self.bits[seat / BITS].load(Ordering::Relaxed) & 1 << (seat % BITS) != 0 {
            self.wake(seat);
        }
    }
}
