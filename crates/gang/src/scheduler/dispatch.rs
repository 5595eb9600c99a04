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
//! 2. A berth's `last_processor` is written by its own thread only, or by a handler of signals on that thread.
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

use super::preemption::Preemption;
use super::rotation::{Counter, Counters};
use super::turn::{self, Turn};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The bit of an entry of the table for a berth whose own slot it is.
pub(super) const HOME: u32 = 1 << 31;

/// A name in a table of atomics: 0 is nobody.
pub(super) fn encoded(entity: usize) -> u32 {
    u32::try_from(entity + 1).expect("there are fewer berths than 2^31")
}

/// A word to sleep on until somebody rings.
pub struct Parker(AtomicU32);

impl Parker {
    pub fn new() -> Self {
        Self(AtomicU32::fresh(AWAKE))
    }

    /// Wakes who sleeps here, or keeps it from going to sleep.
    pub fn unpark(&self) {
        // Release: what the ringer did before is seen by who listens after it. Pairs with `listen`.
        if self.0.swap(AWAKE, Ordering::Release) == ASLEEP {
            park::wake_one(&self.0);
        }
    }

    /// About to sleep: whoever rings from here on is heard. What there is to look at is to be looked at after this.
    pub fn prepare(&self) {
        // Acquire: pairs with the exchange of `ring`, if that came before.
        self.0.swap(ASLEEP, Ordering::Acquire);
    }

    /// Sleeps until somebody rings after [`prepare`](Self::prepare), or until then. May wake for nothing.
    pub fn park(&self, deadline: Deadline) {
        park::wait(&self.0, ASLEEP, deadline);
    }

    /// There is no need to sleep after all.
    pub fn cancel(&self) {
        // An exchange and no store: who has rung meanwhile does not ring again, and so the next `listen` still acquires what that ring released.
        // Relaxed: until then nothing is missed for good.
        self.0.swap(AWAKE, Ordering::Relaxed);
    }
}

/// A member's place in the gate.
pub(super) struct Entity {
    pub(super) parker: Parker,
    /// How its thread is reached.
    pub(super) control: Place,
    /// Where it sits. Written under the executor's lock.
    pub(super) processor: AtomicU32,
    /// The seat it took last (Invariant 2).
    pub(super) last_processor: AtomicU32,
    /// Whether it takes part in gang scheduling: not when it is blocked, waits for another gang, or has ended.
    pub(super) active: AtomicU32,
    /// Since when it has stayed where it should not be, in the gate's time; 0 if it has not.
    pub(super) overstaying_since: AtomicU64,
    /// How often it has, and for how long in all, in nanoseconds.
    pub(super) overstay_count: Counter,
    pub(super) overstay_ns: Counter,
}

/// See the [module](self).
pub struct SlotScheduler {
    pub(super) turn: CachePadded<AtomicU64>,
    pub(super) holders: Box<[CachePadded<AtomicU32>]>,
    pub(super) table: Box<[AtomicU32]>,
    pub(super) entities: Box<[CachePadded<Entity>]>,
    /// One more than the last slot that is used.
    pub(super) slots_in_use: AtomicU32,
    pub(crate) timer: CachePadded<Parker>,
    pub(super) preemption: Preemption,
    pub(crate) counters: Counters,
    pub(super) started: Ticks,
    pub(super) quantum_ns: u64,
}

impl SlotScheduler {
    /// A gate for so many seats and slots, whose slots last `quantum` nanoseconds.
    pub fn new(processors: usize, slots: usize, quantum_ns: u64) -> Self {
        let entity = |_| {
            CachePadded::new(Entity {
                parker: Parker::new(),
                control: Place::new(),
                processor: AtomicU32::fresh(0),
                last_processor: AtomicU32::fresh(0),
                active: AtomicU32::fresh(0),
                overstaying_since: AtomicU64::fresh(0),
                overstay_count: Counter::new(),
                overstay_ns: Counter::new(),
            })
        };
        Self {
            turn: CachePadded::new(AtomicU64::fresh(Turn::FIRST.bits())),
            holders: (0..processors).map(|_| CachePadded::new(AtomicU32::fresh(0))).collect(),
            table: (0..processors * slots).map(|_| AtomicU32::fresh(0)).collect(),
            entities: (0..processors * slots).map(entity).collect(),
            slots_in_use: AtomicU32::fresh(0),
            timer: CachePadded::new(Parker::new()),
            preemption: Preemption::None,
            counters: Counters::new(),
            started: now(),
            quantum_ns,
        }
    }

    pub fn processors(&self) -> usize {
        self.holders.len()
    }

    /// How many berths there are.
    pub fn entities(&self) -> usize {
        self.entities.len()
    }

    /// The gate's time, in units of [`turn::UNIT_NS`].
    pub(super) fn time(&self) -> u64 {
        turn::time(now().nanos_since(self.started))
    }

    pub fn turn(&self) -> Turn {
        // Acquire: pairs with the Release of those who turn the round: the table is as they have written it, or newer.
        Turn::from_bits(self.turn.load(Ordering::Acquire))
    }

    /// The berth that may sit there while that slot is on, and whether it is its own slot.
    pub(super) fn scheduled(&self, slot: usize, processor: usize) -> Option<(usize, bool)> {
        // Relaxed: a hint, and the round orders what must be seen.
        let entry = self.table[slot * self.processors() + processor].load(Ordering::Relaxed);
        ((entry & !HOME) as usize).checked_sub(1).map(|entity| (entity, entry & HOME != 0))
    }

    pub fn holder(&self, processor: usize) -> Option<usize> {
        // Relaxed: the fences order it; see the head of the file.
        (self.holders[processor].load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// The seat of a berth.
    pub fn processor_of(&self, entity: usize) -> usize {
        // Relaxed: who is given another seat is told by the round.
        self.entities[entity].processor.load(Ordering::Relaxed) as usize
    }

    pub(super) fn is_scheduled(&self, turn: Turn, entity: usize) -> bool {
        let sits = self.scheduled(turn.slot(), self.processor_of(entity));
        sits.is_some_and(|(sits, _)| sits == entity)
    }

    /// Whether a member who went through in `seen` need not do so again. One load, and while there are several slots a look at the clock.
    #[inline]
    pub fn is_current(&self, seen: Turn) -> bool {
        // Relaxed: if it has changed, `wait_for_turn` looks again.
        let same = self.turn.load(Ordering::Relaxed) == seen.bits();
        same && (seen.is_open() || !seen.is_over(self.time()))
    }

    /// For how many nanoseconds a member who went through in `seen` may stay, unless something else happens: 0 if it must go through again.
    pub fn remaining_ns(&self, seen: Turn) -> u64 {
        // Relaxed: as above.
        if self.turn.load(Ordering::Relaxed) != seen.bits() {
            return 0;
        }
        if seen.is_open() { self.quantum_ns } else { seen.remaining_ns(self.time()) }
    }

    /// Goes through the gate: returns when the berth holds its seat and its gang is on, and in which round. Ends the round if its time is over.
    pub fn wait_for_turn(&self, entity: usize) -> Turn {
        let _deferred = control::defer();
        let mine = &self.entities[entity];
        let mut slept = false;
        loop {
            let turn = self.turn();
            if !turn.is_open() && turn.is_over(self.time()) {
                self.end_quantum(turn);
                continue;
            }
            if self.is_scheduled(turn, entity) {
                let processor = self.processor_of(entity);
                if self.last_processor(entity) != processor {
                    self.release(entity);
                }
                if self.try_take(entity, processor) {
                    self.raise_priority();
                    // With the fence of `turn`: if this does not see the new round, that sees the holder, and leaves it to him to go.
                    fence(Ordering::SeqCst);
                    if self.turn().is_same_turn(turn) {
                        if slept {
                            self.counters.switches.add(1);
                        }
                        self.record_return(entity);
                        return turn;
                    }
                    continue;
                }
            } else {
                self.release(entity);
            }
            mine.parker.prepare();
            if self.can_run(entity) {
                mine.parker.cancel();
                continue;
            }
            self.record_return(entity);
            slept = true;
            mine.parker.park(Deadline::NEVER);
        }
    }

    pub(super) fn last_processor(&self, entity: usize) -> usize {
        // Relaxed: of its own thread (Invariant 2).
        self.entities[entity].last_processor.load(Ordering::Relaxed) as usize
    }

    /// Takes the seat, or has it already.
    pub(super) fn try_take(&self, entity: usize, processor: usize) -> bool {
        let me = encoded(entity);
        // Relaxed: the fence in `wait_for_turn` acquires what who left it has released, so that what happens on a seat happens one after the other.
        let taken =
            self.holders[processor].compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        let sits = taken.is_ok() || taken == Err(me);
        if sits {
            self.entities[entity].last_processor.store(processor as u32, Ordering::Relaxed);
        }
        sits
    }

    /// Whether the berth could sit down now.
    fn can_run(&self, entity: usize) -> bool {
        let turn = self.turn();
        let holder = self.holder(self.processor_of(entity));
        self.is_scheduled(turn, entity) && holder.is_none_or(|holder| holder == entity)
    }

    /// Leaves the seat that the berth holds, if it does, to whoever is next there.
    pub(super) fn release(&self, entity: usize) {
        let processor = self.last_processor(entity);
        // Release: pairs with the fence of who sits down next. Relaxed on failure: the clock has put it out, and nothing is to be done.
        let left = self.holders[processor].compare_exchange(
            encoded(entity),
            0,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if left.is_ok() {
            self.wake_next(processor);
        }
    }

    /// The seat has just become free: wakes who is next there.
    pub(super) fn wake_next(&self, processor: usize) {
        // With the fence of `turn`: one of the two sees what the other did.
        fence(Ordering::SeqCst);
        if let Some((next, _)) = self.scheduled(self.turn().slot(), processor) {
            self.entities[next].parker.unpark();
        }
    }
}
