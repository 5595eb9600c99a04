//! The slot scheduler's tables, and how a member gets and gives up its virtual processor.
//!
//! A member has a scheduling entity here: its number in the tables. One word, the turn, says which
//! slot is on. A member checks it where it waits and where its program says so. If the turn has
//! changed and the member's gang is not on any more, the member releases its processor, wakes the
//! member that is next there, and sleeps on a parker of its own until its slot is on again.
//!
//! Why the leaving member wakes the next one, and not the thread that changes the turn: a member
//! that is woken earlier competes for the CPU with the member that is still there. Why a table that
//! says which entity may run where, and not a list in each slot: a check is then one load, whatever
//! the table is like. The table can also be rewritten entry by entry while members read it, because
//! it only says which entity *may* run. The holders themselves guarantee that two members never
//! hold the same processor.
//!
//! ```text
//! turn       its end (40 bits, 0: open) | epoch (16) | slot (8)
//! table      by slot and processor: none, or an entity, and whether this is its gang's home slot
//! holders    by processor: none, or an entity
//! entities   a member's parker, its processor, whether it takes part in the rotation (active)
//!
//! a member leaves           a thread changes the turn     a member comes
//! (release)                 (rotate)                      (wait_for_turn)
//! --------------------      ------------------------      --------------------------
//! (1) holder = none         (4) turn = next               (7) may run: holder = me,
//! (2) fence                 (5) fence                         fence, same turn? runs
//! (3) which entity is       (6) each processor without    (8) else: parker = asleep
//!     next here, by the         a holder: unparks the     (9) can it run now? goes to
//!     turn? unparks it          next entity                   (7); else it sleeps
//! ```
//!
//! If (3) does not see (4), then (6) sees (1). So one of the two unparks the next member. To unpark
//! is to exchange the parker's word, which the coming member has exchanged in (8). Either the
//! unpark finds it asleep and wakes it, or (9) sees what the waker did before.
//!
//! The paper has a bit mask that says of each processor whether it takes part in gang scheduling in
//! the current slot. Here that is the `active` of each entity. A bit in a mask of a slot would have
//! to move when a gang moves to another slot, while its member is about to change it.
//!
//! # Invariants
//!
//! 1. A processor has at most one holder. A member that holds no processor does not run, apart from
//!    members that overstay: the timer has evicted those.
//! 2. The `last_processor` of an entity is written only by its own thread, or by a signal handler
//!    on that thread.
//! 3. A change of the turn, of the table, or of a holder can make it possible for an entity to run.
//!    That thread unparks the entity if the processor is free. Else its holder does when it leaves.
//! 4. Nothing here allocates, locks or prints: a signal handler may call all of it.
//!
//! # Orderings
//!
//! Holders against the turn: the fences above are a [`Handshake`]. The turn is stored with Release
//! and loaded with Acquire, so a thread that sees a turn sees the table as it was written before.
//! `unpark` exchanges with Release, `prepare` with Acquire. `active` against the turn: fences
//! (`rotation.rs`).
//!
//! Source: Feitelson and Rudolph 1992, section 3.2.

use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::{Deadline, Ticks, now};
use stanchion_machine::control::{self, Place};
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};
use stanchion_machine::topology::CachePadded;

use super::counters::{Counter, Counters};
use super::parker::Parker;
use super::preemption::Preemption;
use super::turn::{self, Turn};

/// The bit of a table entry that says: this slot is the home slot of the entity's gang.
pub(super) const HOME: u32 = 1 << 31;

/// The change of the turn against a member that takes or releases a processor. The thread that
/// changes the turn sees the holder that was written, or the member sees the new turn. Any thread
/// may change the turn, and any member may take or release a processor. Both happen about equally
/// often, and some of them in signal handlers, so both sides pay for the same fence.
pub(super) const TURN_CHANGE: Handshake<Symmetric> =
    Handshake::symmetric("turn", "holders", Reach::AllThreads);

/// Encodes an entity for a table of atomics, in which 0 is none.
pub(super) fn encoded(entity: usize) -> u32 {
    u32::try_from(entity + 1).expect("there are fewer entities than 2^31")
}

/// A member as the scheduler knows it.
pub(super) struct Entity {
    /// The member sleeps on it while its gang is off.
    pub(super) parker: Parker,
    /// Through it other threads interrupt the member, or change its priority.
    pub(super) control: Place,
    /// The member's processor. Written under the executor's lock.
    pub(super) processor: AtomicU32,
    /// The processor that the member took last (Invariant 2).
    pub(super) last_processor: AtomicU32,
    /// 1 if the member takes part in the rotation. It does not while it is blocked or waits for
    /// another gang, nor when it has ended. Written by the member, and at its start by the spawner.
    pub(super) active: AtomicU32,
    /// The time since which the member has overstayed; 0 if it does not. Written by the timer and
    /// by the member.
    pub(super) overstaying_since: AtomicU64,
    /// The number of times that the timer has evicted the member.
    pub(super) overstay_count: Counter,
    /// The nanoseconds for which the member has overstayed in all.
    pub(super) overstay_ns: Counter,
}

/// The slot scheduler. See the head of its file.
pub struct SlotScheduler {
    /// The current [`Turn`]. Any thread changes it.
    pub(super) turn: CachePadded<AtomicU64>,
    /// The entity that holds each processor, [encoded]. Members enter and remove themselves; the
    /// timer removes members that overstay.
    pub(super) holders: Box<[CachePadded<AtomicU32>]>,
    /// The entity that may run, by slot and processor: [encoded], with [`HOME`]. Written under the
    /// executor's lock.
    pub(super) table: Box<[AtomicU32]>,
    /// The members.
    pub(super) entities: Box<[CachePadded<Entity>]>,
    /// One more than the last slot that is used. Written under the executor's lock.
    pub(super) slots_in_use: AtomicU32,
    /// The timer thread sleeps on it.
    pub(crate) timer: CachePadded<Parker>,
    /// The means of enforcement.
    pub(super) preemption: Preemption,
    /// Statistics.
    pub(crate) counters: Counters,
    /// The moment from which times are counted.
    pub(super) started: Ticks,
    /// The length of a turn.
    pub(super) quantum_ns: u64,
}

impl SlotScheduler {
    /// Creates a scheduler without members.
    pub fn new(processors: usize, slots: usize, quantum_ns: u64) -> Self {
        let entity = |_| {
            CachePadded::new(Entity {
                parker: Parker::default(),
                control: Place::new(),
                processor: AtomicU32::fresh(0),
                last_processor: AtomicU32::fresh(0),
                active: AtomicU32::fresh(0),
                overstaying_since: AtomicU64::fresh(0),
                overstay_count: Counter::default(),
                overstay_ns: Counter::default(),
            })
        };
        Self {
            turn: CachePadded::new(AtomicU64::fresh(Turn::FIRST.bits())),
            holders: (0..processors).map(|_| CachePadded::new(AtomicU32::fresh(0))).collect(),
            table: (0..processors * slots).map(|_| AtomicU32::fresh(0)).collect(),
            entities: (0..processors * slots).map(entity).collect(),
            slots_in_use: AtomicU32::fresh(0),
            timer: CachePadded::new(Parker::default()),
            preemption: Preemption::None,
            counters: Counters::default(),
            started: now(),
            quantum_ns,
        }
    }

    /// Returns the number of virtual processors.
    pub fn processors(&self) -> usize {
        self.holders.len()
    }

    /// Returns the number of entities.
    pub fn entities(&self) -> usize {
        self.entities.len()
    }

    /// Returns the scheduler's time, in units of [`turn::UNIT_NS`].
    pub(super) fn time(&self) -> u64 {
        turn::time(now().nanos_since(self.started))
    }

    /// Returns the current turn.
    pub fn turn(&self) -> Turn {
        // Acquire: pairs with the Release of `replace_turn`: the table is as it was written before
        // that, or newer.
        Turn::from_bits(self.turn.load(Ordering::Acquire))
    }

    /// Returns the entity that may run on `processor` while `slot` is on, and whether this is its
    /// home slot.
    pub(super) fn scheduled(&self, slot: usize, processor: usize) -> Option<(usize, bool)> {
        // Relaxed: a hint. The turn orders what must be seen.
        let entry = self.table[slot * self.processors() + processor].load(Ordering::Relaxed);
        ((entry & !HOME) as usize).checked_sub(1).map(|entity| (entity, entry & HOME != 0))
    }

    /// Returns the entity that holds `processor`.
    pub fn holder(&self, processor: usize) -> Option<usize> {
        // Relaxed: the fences order it. See the head of the file.
        (self.holders[processor].load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Returns the processor of `entity`.
    pub fn processor_of(&self, entity: usize) -> usize {
        // Relaxed: a member that is given another processor learns it by the turn.
        self.entities[entity].processor.load(Ordering::Relaxed) as usize
    }

    /// Returns whether `entity` may run in `turn`.
    pub(super) fn is_scheduled(&self, turn: Turn, entity: usize) -> bool {
        let scheduled = self.scheduled(turn.slot(), self.processor_of(entity));
        scheduled.is_some_and(|(scheduled, _)| scheduled == entity)
    }

    /// Returns whether a member that has waited for the turn `seen` need not do so again. Costs one
    /// load, and a look at the clock while there are several slots.
    #[inline]
    pub(crate) fn is_current(&self, seen: Turn) -> bool {
        // Relaxed: if it has changed, `wait_for_turn` reads it again.
        let same = self.turn.load(Ordering::Relaxed) == seen.bits();
        same && (seen.is_open() || !seen.is_over(self.time()))
    }

    /// Returns for how many nanoseconds a member that has waited for the turn `seen` may run on if
    /// nothing happens; 0 if it must wait for its turn again.
    pub(crate) fn remaining_ns(&self, seen: Turn) -> u64 {
        // Relaxed: as above.
        if self.turn.load(Ordering::Relaxed) != seen.bits() {
            return 0;
        }
        if seen.is_open() { self.quantum_ns } else { seen.remaining_ns(self.time()) }
    }

    /// Sleeps until `entity` holds its processor and its gang is on, and returns the turn in which
    /// that is so. Ends the current turn if its time is over.
    pub fn wait_for_turn(&self, entity: usize) -> Turn {
        let _deferred = control::defer();
        let mine = &self.entities[entity];
        let mut slept = false;
        loop {
            let turn = self.turn();
            // The quantum is over: end the turn before the timer does.
            if !turn.is_open() && turn.is_over(self.time()) {
                self.end_quantum(turn);
                continue;
            }
            if self.is_scheduled(turn, entity) {
                let processor = self.processor_of(entity);
                // The gang was moved: give up the old processor first.
                if self.last_processor(entity) != processor {
                    self.release(entity);
                }
                if self.try_take(entity, processor) {
                    self.raise_priority();
                    // If this member does not see the new turn, the thread that has changed it sees
                    // the holder, and leaves it to the holder to go (`dispatch`).
                    TURN_CHANGE.fence();
                    // The turn is still the same: the member is on.
                    if self.turn().is_same_turn(turn) {
                        if slept {
                            self.counters.switches.add(1);
                        }
                        self.record_return(entity);
                        return turn;
                    }
                    // It has changed meanwhile: look again.
                    continue;
                }
                // Another member still holds the processor, and wakes this one when it leaves.
            } else {
                // The gang is off.
                self.release(entity);
            }
            mine.parker.prepare();
            // It has become possible in between.
            if self.can_run(entity) {
                mine.parker.cancel();
                continue;
            }
            self.record_return(entity);
            slept = true;
            mine.parker.park(Deadline::NEVER);
        }
    }

    fn last_processor(&self, entity: usize) -> usize {
        // Relaxed: written by its own thread (Invariant 2).
        self.entities[entity].last_processor.load(Ordering::Relaxed) as usize
    }

    /// Takes `processor` for `entity`; returns whether the entity holds it now.
    fn try_take(&self, entity: usize, processor: usize) -> bool {
        let me = encoded(entity);
        // Relaxed: the fence in `wait_for_turn` acquires what the last holder has released. So what
        // happens on a processor happens one after the other.
        let taken =
            self.holders[processor].compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        let holds = taken.is_ok() || taken == Err(me);
        if holds {
            self.entities[entity].last_processor.store(processor as u32, Ordering::Relaxed);
        }
        holds
    }

    /// Returns whether `entity` could take its processor now.
    fn can_run(&self, entity: usize) -> bool {
        let turn = self.turn();
        let holder = self.holder(self.processor_of(entity));
        self.is_scheduled(turn, entity) && holder.is_none_or(|holder| holder == entity)
    }

    /// Releases the processor that `entity` holds, if it holds one, and wakes the next member
    /// there.
    pub(super) fn release(&self, entity: usize) {
        let processor = self.last_processor(entity);
        // Release: pairs with the fence of the next holder. Relaxed on failure: the timer has
        // evicted the member, and there is nothing to be done.
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

    /// Takes `processor` from `entity`, another thread's. Returns false if it has just left.
    pub(super) fn evict(&self, processor: usize, entity: usize) -> bool {
        // Relaxed: what the evicted member did on the processor is not ordered before what the next
        // holder does. What the holder before it did is ordered: this exchange continues the
        // release sequence that began when that holder left.
        self.holders[processor]
            .compare_exchange(encoded(entity), 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Wakes the member that is next on `processor`, which has just become free.
    pub(super) fn wake_next(&self, processor: usize) {
        // This thread sees the new turn, or the thread that has changed it sees the free processor.
        TURN_CHANGE.fence();
        if let Some((next, _)) = self.scheduled(self.turn().slot(), processor) {
            self.entities[next].parker.unpark();
        }
    }
}
