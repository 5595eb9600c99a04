//! The gate: whether a member may run now, and how seats change hands.
//!
//! One word says whose turn it is. A member looks at it where it waits and where its program says so; when the word has moved on, and the member's gang
//! is not on any more, the member leaves its seat, wakes whoever sits there next, and sleeps on a word of its own until its slot returns.
//!
//! Why the one who leaves wakes the next, and not the one who turns the word: woken earlier, the next would compete for the processor with the one
//! who is still there. Why a table that says who sits where, and not a list in each slot: a look is then one load, whatever the table is like, and the
//! table can be rewritten entry by entry while members look at it, because it only says who *may* sit; that nobody sits on another's lap is seen to by
//! the seats themselves.
//!
//! ```text
//! round      when it ends (40 bits, 0: open) | epoch (16) | slot (8)
//! sitting    by slot and seat: nobody, or a berth, and whether it is the berth's own slot or an alternate's
//! seat       its holder: nobody, or a berth
//! berth      a member's place in this table: its bell, its seat, whether it is gang scheduling (active)
//!
//! who goes (leave)                    who turns (turn)                   who comes (pass)
//! ----------------                    ----------------                   ----------------
//! (1) seat = nobody                   (4) round = next                   (7) bell = asleep
//! (2) fence                           (5) fence                          (8) may it sit? then sits down
//! (3) who is next on this seat, by    (6) for each seat without a        (9) else sleeps on the bell
//!     the round? rings                    holder: who is next? rings
//! ```
//!
//! If (3) does not see (4), (6) sees (1): one of the two rings. To ring is to exchange the bell, which who comes has exchanged in (7): either the ring
//! finds it asleep and wakes it, or (8) sees what the ringer did before.
//!
//! The paper's bit mask, which says of each processor whether it takes part in gang scheduling in the current slot, is here the berths' `active`: a bit
//! in a mask of a slot would have to move when a gang moves to another slot, while its member is about to change it.
//!
//! # Invariants
//!
//! 1. A seat has one holder. Who does not hold its seat does not run, but for those who overstay, whom the clock has put out of the seat.
//! 2. A berth's `held` is written by its own thread only, or by a handler of signals on that thread.
//! 3. Whoever makes it possible for a berth to sit (by the round, the table, or the seat's holder) rings its bell afterwards.
//! 4. Nothing here allocates, locks or prints: a handler of signals may call all of it.
//!
//! # Orderings
//!
//! Seats and the round against each other: fences, as above. The round is stored with Release and loaded with Acquire: who sees a round sees the table
//! as it was written before. Who rings exchanges the bell with Release, who listens with Acquire. `active` against the round: fences (`rotation.rs`).
//!
//! Source: Feitelson and Rudolph 1992, section 3.2.

use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering, fence};
use machine::clock::{Deadline, Ticks, now};
use machine::control::{self, Place};
use machine::park;
use machine::topology::CachePadded;

use super::preemption::Force;
use super::rotation::{Count, Counts};
use super::turn::{self, Round};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The bit of an entry of the table for a berth whose own slot it is.
pub(super) const HOME: u32 = 1 << 31;

/// A name in a table of atomics: 0 is nobody.
pub(super) fn named(berth: usize) -> u32 {
    u32::try_from(berth + 1).expect("there are fewer berths than 2^31")
}

/// A word to sleep on until somebody rings.
pub struct Bell(AtomicU32);

impl Bell {
    pub fn new() -> Self {
        Self(AtomicU32::fresh(AWAKE))
    }

    /// Wakes who sleeps here, or keeps it from going to sleep.
    pub fn ring(&self) {
        // Release: what the ringer did before is seen by who listens after it. Pairs with `listen`.
        if self.0.swap(AWAKE, Ordering::Release) == ASLEEP {
            park::wake_one(&self.0);
        }
    }

    /// About to sleep: whoever rings from here on is heard. What there is to look at is to be looked at after this.
    pub fn listen(&self) {
        // Acquire: pairs with the exchange of `ring`, if that came before.
        self.0.swap(ASLEEP, Ordering::Acquire);
    }

    /// Sleeps until somebody rings after [`listen`](Self::listen), or until then. May wake for nothing.
    pub fn sleep(&self, deadline: Deadline) {
        park::wait(&self.0, ASLEEP, deadline);
    }

    /// There is no need to sleep after all.
    pub fn stay_awake(&self) {
        // An exchange and no store: who has rung meanwhile does not ring again, and so the next `listen` still acquires what that ring released.
        // Relaxed: until then nothing is missed for good.
        self.0.swap(AWAKE, Ordering::Relaxed);
    }
}

/// A member's place in the gate.
pub(super) struct Berth {
    pub(super) bell: Bell,
    /// How its thread is reached.
    pub(super) place: Place,
    /// Where it sits. Written under the executor's lock.
    pub(super) seat: AtomicU32,
    /// The seat it took last (Invariant 2).
    pub(super) held: AtomicU32,
    /// Whether it takes part in gang scheduling: not when it is blocked, waits for another gang, or has ended.
    pub(super) active: AtomicU32,
    /// Since when it has stayed where it should not be, in the gate's time; 0 if it has not.
    pub(super) overstays: AtomicU64,
    /// How often it has, and for how long in all, in nanoseconds.
    pub(super) times: Count,
    pub(super) lasted: Count,
}

/// See the [module](self).
pub struct Gate {
    pub(super) round: CachePadded<AtomicU64>,
    pub(super) holders: Box<[CachePadded<AtomicU32>]>,
    pub(super) sitting: Box<[AtomicU32]>,
    pub(super) berths: Box<[CachePadded<Berth>]>,
    /// One more than the last slot that is used.
    pub(super) last: AtomicU32,
    pub(crate) clock: CachePadded<Bell>,
    pub(super) force: Force,
    pub(crate) counts: Counts,
    pub(super) begin: Ticks,
    pub(super) quantum: u64,
}

impl Gate {
    /// A gate for so many seats and slots, whose slots last `quantum` nanoseconds.
    pub fn new(seats: usize, slots: usize, quantum: u64) -> Self {
        let berth = |_| {
            CachePadded::new(Berth {
                bell: Bell::new(),
                place: Place::new(),
                seat: AtomicU32::fresh(0),
                held: AtomicU32::fresh(0),
                active: AtomicU32::fresh(0),
                overstays: AtomicU64::fresh(0),
                times: Count::new(),
                lasted: Count::new(),
            })
        };
        Self {
            round: CachePadded::new(AtomicU64::fresh(Round::FIRST.bits())),
            holders: (0..seats).map(|_| CachePadded::new(AtomicU32::fresh(0))).collect(),
            sitting: (0..seats * slots).map(|_| AtomicU32::fresh(0)).collect(),
            berths: (0..seats * slots).map(berth).collect(),
            last: AtomicU32::fresh(0),
            clock: CachePadded::new(Bell::new()),
            force: Force::None,
            counts: Counts::new(),
            begin: now(),
            quantum,
        }
    }

    pub fn seats(&self) -> usize {
        self.holders.len()
    }

    /// How many berths there are.
    pub fn berths(&self) -> usize {
        self.berths.len()
    }

    /// The gate's time, in units of [`turn::UNIT_NS`].
    pub(super) fn time(&self) -> u64 {
        turn::time(now().nanos_since(self.begin))
    }

    pub fn round(&self) -> Round {
        // Acquire: pairs with the Release of those who turn the round: the table is as they have written it, or newer.
        Round::from_bits(self.round.load(Ordering::Acquire))
    }

    /// The berth that may sit there while that slot is on, and whether it is its own slot.
    pub(super) fn sitting(&self, slot: usize, seat: usize) -> Option<(usize, bool)> {
        // Relaxed: a hint, and the round orders what must be seen.
        let entry = self.sitting[slot * self.seats() + seat].load(Ordering::Relaxed);
        ((entry & !HOME) as usize).checked_sub(1).map(|berth| (berth, entry & HOME != 0))
    }

    pub fn holder(&self, seat: usize) -> Option<usize> {
        // Relaxed: the fences order it; see the head of the file.
        (self.holders[seat].load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// The seat of a berth.
    pub fn seat(&self, berth: usize) -> usize {
        // Relaxed: who is given another seat is told by the round.
        self.berths[berth].seat.load(Ordering::Relaxed) as usize
    }

    pub(super) fn is_on(&self, round: Round, berth: usize) -> bool {
        let sits = self.sitting(round.slot(), self.seat(berth));
        sits.is_some_and(|(sits, _)| sits == berth)
    }

    /// Whether a member who went through in `seen` need not do so again. One load, and while there are several slots a look at the clock.
    #[inline]
    pub fn is_current(&self, seen: Round) -> bool {
        // Relaxed: if it has changed, `pass` looks again.
        let same = self.round.load(Ordering::Relaxed) == seen.bits();
        same && (seen.is_open() || !seen.is_over(self.time()))
    }

    /// For how many nanoseconds a member who went through in `seen` may stay, unless something else happens: 0 if it must go through again.
    pub fn stays(&self, seen: Round) -> u64 {
        // Relaxed: as above.
        if self.round.load(Ordering::Relaxed) != seen.bits() {
            return 0;
        }
        if seen.is_open() { self.quantum } else { seen.left(self.time()) }
    }

    /// Goes through the gate: returns when the berth holds its seat and its gang is on, and in which round. Ends the round if its time is over.
    pub fn pass(&self, berth: usize) -> Round {
        let _deferred = control::defer();
        let mine = &self.berths[berth];
        let mut slept = false;
        loop {
            let round = self.round();
            if !round.is_open() && round.is_over(self.time()) {
                self.turn_over(round);
                continue;
            }
            if self.is_on(round, berth) {
                let seat = self.seat(berth);
                if self.held(berth) != seat {
                    self.leave(berth);
                }
                if self.sit(berth, seat) {
                    self.settle();
                    // With the fence of `turn`: if this does not see the new round, that sees the holder, and leaves it to him to go.
                    fence(Ordering::SeqCst);
                    if self.round().is_same_turn(round) {
                        if slept {
                            self.counts.switches.add(1);
                        }
                        self.note_return(berth);
                        return round;
                    }
                    continue;
                }
            } else {
                self.leave(berth);
            }
            mine.bell.listen();
            if self.may_sit(berth) {
                mine.bell.stay_awake();
                continue;
            }
            self.note_return(berth);
            slept = true;
            mine.bell.sleep(Deadline::NEVER);
        }
    }

    pub(super) fn held(&self, berth: usize) -> usize {
        // Relaxed: of its own thread (Invariant 2).
        self.berths[berth].held.load(Ordering::Relaxed) as usize
    }

    /// Takes the seat, or has it already.
    pub(super) fn sit(&self, berth: usize, seat: usize) -> bool {
        let me = named(berth);
        // Relaxed: the fence in `pass` acquires what who left it has released, so that what happens on a seat happens one after the other.
        let taken =
            self.holders[seat].compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        let sits = taken.is_ok() || taken == Err(me);
        if sits {
            self.berths[berth].held.store(seat as u32, Ordering::Relaxed);
        }
        sits
    }

    /// Whether the berth could sit down now.
    fn may_sit(&self, berth: usize) -> bool {
        let round = self.round();
        let holder = self.holder(self.seat(berth));
        self.is_on(round, berth) && holder.is_none_or(|holder| holder == berth)
    }

    /// Leaves the seat that the berth holds, if it does, to whoever is next there.
    pub(super) fn leave(&self, berth: usize) {
        let seat = self.held(berth);
        // Release: pairs with the fence of who sits down next. Relaxed on failure: the clock has put it out, and nothing is to be done.
        let left = self.holders[seat].compare_exchange(
            named(berth),
            0,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if left.is_ok() {
            self.call_next(seat);
        }
    }

    /// The seat has just become free: wakes who is next there.
    pub(super) fn call_next(&self, seat: usize) {
        // With the fence of `turn`: one of the two sees what the other did.
        fence(Ordering::SeqCst);
        if let Some((next, _)) = self.sitting(self.round().slot(), seat) {
            self.berths[next].bell.ring();
        }
    }
}
