//! Rotation: the next slot's turn comes.
//!
//! | who | when |
//! | --- | --- |
//! | the clock | the quantum is over; of an open turn, a quantum after a member was found to be kept from its seat |
//! | a member that looks at the round | it sees that the quantum is over, before the clock does |
//! | a member that takes part no longer | it finds that nobody of the slot does: blocked, ended, or waiting for another gang |
//! | a member that takes part again | it finds a slot on of which nobody does |
//!
//! Turning is one exchange of the round. Whoever succeeds wakes those of the new slot whose seats
//! nobody holds; the others are woken by who leaves.
//!
//! ```text
//! who retires                        who takes part again
//! -----------                        --------------------
//! (1) active = 0                     (4) active = 1
//! (2) fence                          (5) fence
//! (3) is the slot that is on idle?   (6) is the slot that is on idle?
//!     is another not? turns to it        turns to one that is not
//! ```
//!
//! If (3) does not see (4), (6) sees (1): one of the two turns.
//!
//! # Orderings
//!
//! `active`: Relaxed, between the fences above. The exchange of the round, Release: those who see
//! it see the table. What it replaces has been loaded with Acquire.

use machine::atomic::{AtomicU64, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::control;

use super::dispatch::{HOME, SlotScheduler, encoded};
use super::turn::{self, Turn};
use core::time::Duration;

/// What the gate counts.
pub(crate) struct Counters {
    pub(crate) rotations_by_quantum: Counter,
    pub(crate) rotations_by_idle: Counter,
    pub(crate) switches: Counter,
    pub(crate) overstays: Counter,
    /// Interruptions that could not be sent, because the program has taken the signal.
    pub(crate) refused_interruptions: Counter,
    /// Seats by time, in nanoseconds, of turns that had an end, and the part of it in which nobody
    /// had the seat.
    pub(crate) processor_time_ns: Counter,
    pub(crate) lost_ns: Counter,
}

/// A number that any thread counts.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn new() -> Self {
        Self(AtomicU64::fresh(0))
    }

    pub(crate) fn add(&self, more: u64) {
        // Relaxed: statistics.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn clear(&self) {
        // Relaxed: statistics.
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: statistics.
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            rotations_by_quantum: Counter::new(),
            rotations_by_idle: Counter::new(),
            switches: Counter::new(),
            overstays: Counter::new(),
            refused_interruptions: Counter::new(),
            processor_time_ns: Counter::new(),
            lost_ns: Counter::new(),
        }
    }
}

/// Why a slot's turn ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Quantum,
    Idle,
}

impl SlotScheduler {
    /// Whether nobody whose own slot this is takes part.
    fn is_slot_idle(&self, slot: usize) -> bool {
        (0..self.processors()).all(|processor| match self.scheduled(slot, processor) {
            // Relaxed: see the head of the file.
            Some((entity, true)) => self.entities[entity].active.load(Ordering::Relaxed) == 0,
            _ => true,
        })
    }

    /// The slot after that one in which somebody takes part, itself last.
    fn next_active_slot(&self, slot: usize) -> Option<usize> {
        // Relaxed: a hint; who makes it larger looks himself afterwards.
        let last = self.slots_in_use.load(Ordering::Relaxed) as usize;
        (slot + 1..last).chain(0..last.min(slot + 1)).find(|&next| !self.is_slot_idle(next))
    }

    /// When a turn of `slot` that begins now ends: never, if no other slot wants one.
    fn end_of_turn(&self, slot: usize) -> u64 {
        match self.next_active_slot(slot) {
            Some(other) if other != slot => Turn::after(self.time(), self.quantum_ns),
            _ => 0,
        }
    }

    /// The time of `turn` is over.
    pub fn end_quantum(&self, turn: Turn) {
        match self.next_active_slot(turn.slot()) {
            Some(next) if next != turn.slot() => {
                let _ = self.rotate(turn, next, Cause::Quantum);
            }
            _ => {
                let open = turn.next(turn.slot(), 0);
                let _ = self.replace_turn(turn, open);
            }
        }
    }

    fn replace_turn(&self, from: Turn, to: Turn) -> Result<(), Turn> {
        // Release: see the head of the file. Relaxed on failure: who lost looks again.
        self.turn
            .compare_exchange(from.bits(), to.bits(), Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(|_| self.turn())
    }

    /// Turns from `turn` to `slot`, unless somebody was faster: then to what.
    fn rotate(&self, turn: Turn, slot: usize, cause: Cause) -> Result<(), Turn> {
        self.replace_turn(turn, turn.next(slot, self.end_of_turn(slot)))?;
        self.account(turn);
        match cause {
            Cause::Quantum => self.counters.rotations_by_quantum.add(1),
            Cause::Idle => self.counters.rotations_by_idle.add(1),
        }
        self.dispatch(slot);
        Ok(())
    }

    /// Adds up the seat-time of a turn that is over.
    fn account(&self, turn: Turn) {
        if turn.is_open() {
            return;
        }
        let lasted = turn.elapsed_ns(self.time(), self.quantum_ns);
        let empty = (0..self.processors())
            .filter(|&processor| self.scheduled(turn.slot(), processor).is_none());
        self.counters.lost_ns.add(lasted * empty.count() as u64);
        self.counters.processor_time_ns.add(lasted * self.processors() as u64);
    }

    /// Wakes those of `slot` whose seats are free, and hurries those who have the others.
    fn dispatch(&self, slot: usize) {
        // With the fences of `leave` and `wait_for_turn`.
        fence(Ordering::SeqCst);
        for processor in 0..self.processors() {
            let next = self.scheduled(slot, processor).map(|(entity, _)| entity);
            match (self.holder(processor), next) {
                (None, Some(entity)) => self.entities[entity].parker.unpark(),
                (Some(holder), next) if Some(holder) != next => self.preempt(holder),
                _ => {}
            }
        }
    }

    /// If nobody of the slot that is on takes part, it is another's turn.
    fn rotate_if_idle(&self) {
        fence(Ordering::SeqCst);
        let mut turn = self.turn();
        while self.is_slot_idle(turn.slot()) {
            let Some(next) = self.next_active_slot(turn.slot()) else { return };
            match self.rotate(turn, next, Cause::Idle) {
                Ok(()) => return,
                Err(now) => turn = now,
            }
        }
    }

    /// The berth takes no part from here on, and leaves its seat. Called by its own thread.
    pub fn deactivate(&self, entity: usize) {
        let _deferred = control::defer();
        self.record_return(entity);
        // Relaxed: see the head of the file.
        self.entities[entity].active.store(0, Ordering::Relaxed);
        self.release(entity);
        self.rotate_if_idle();
    }

    /// The berth takes part again: to be followed by [`wait_for_turn`](Self::wait_for_turn).
    pub fn activate(&self, entity: usize) {
        let _deferred = control::defer();
        // Relaxed: see the head of the file.
        self.entities[entity].active.store(1, Ordering::Relaxed);
        self.rotate_if_idle();
        self.timer.unpark();
    }

    /// Makes a berth ready for a new member. Called under the executor's lock, for a berth that is
    /// not in the table.
    pub fn assign(&self, entity: usize, processor: usize) {
        let mine = &self.entities[entity];
        // Relaxed: the table publishes it.
        mine.processor.store(processor as u32, Ordering::Relaxed);
        mine.active.store(1, Ordering::Relaxed);
        mine.overstaying_since.store(0, Ordering::Relaxed);
        mine.overstay_count.clear();
        mine.overstay_ns.clear();
    }

    /// Gives a berth another seat. Called under the executor's lock, which then publishes the
    /// table.
    pub fn migrate(&self, entity: usize, processor: usize) {
        // Relaxed: the table publishes it.
        self.entities[entity].processor.store(processor as u32, Ordering::Relaxed);
    }

    /// Writes who sits where into the table: `rows` has an entry for each seat of the slots from 0
    /// on, and beyond it there is nobody. Called under the executor's lock.
    pub fn publish(&self, rows: &[Option<(usize, bool)>]) {
        let entry = |sits: &Option<(usize, bool)>| {
            sits.map_or(0, |(entity, home)| encoded(entity) | if home { HOME } else { 0 })
        };
        let slots = rows.len() / self.processors();
        // Relaxed: under the lock.
        let before = self.slots_in_use.load(Ordering::Relaxed) as usize;
        let end = slots.max(before) * self.processors();
        for (at, word) in self.table[..end].iter().enumerate() {
            // Relaxed: the round publishes it.
            word.store(rows.get(at).map_or(0, entry), Ordering::Relaxed);
        }
        self.slots_in_use.store(slots as u32, Ordering::Relaxed);
        // Whoever is on looks again: it may have lost its seat.
        let mut turn = self.turn();
        while let Err(now) = self.replace_turn(turn, turn.next(turn.slot(), turn.end_bits())) {
            turn = now;
        }
        self.dispatch(turn.slot());
        self.rotate_if_idle();
        if slots > 1 || self.has_overstayer(self.turn()) {
            self.timer.unpark();
        }
    }

    /// Who holds a seat on which it is not on.
    fn overstayer(&self, turn: Turn, processor: usize) -> Option<usize> {
        self.holder(processor).filter(|&holder| {
            !self.is_scheduled(turn, holder) || self.processor_of(holder) != processor
        })
    }

    /// Whether somebody has another's seat. In an open turn that is so if gangs were moved: one
    /// that has lost its seat to another of its own slot is taken off by no other slot's turn. The
    /// seats are as who published that has seen them in `call`, or newer: he has rung for the
    /// clock.
    fn has_overstayer(&self, turn: Turn) -> bool {
        (0..self.processors()).any(|processor| {
            self.overstayer(turn, processor).is_some()
                && self.scheduled(turn.slot(), processor).is_some()
        })
    }

    /// What the clock has to do now, and when it is to come again. `checked` is the clock's own:
    /// the turn for which it has looked for those who overstay, which it does `grace` nanoseconds
    /// after the turn has begun.
    pub fn tick(&self, grace: u64, checked: &mut Turn) -> Deadline {
        loop {
            let turn = self.turn();
            if turn.is_open() {
                let mut end = self.end_of_turn(turn.slot());
                if end == 0 {
                    if !self.has_overstayer(turn) {
                        return Deadline::NEVER;
                    }
                    end = Turn::after(self.time(), self.quantum_ns);
                }
                let _ = self.replace_turn(turn, turn.with_end(end));
                continue;
            }
            let time = self.time();
            if turn.is_over(time) {
                self.end_quantum(turn);
                continue;
            }
            if !checked.is_same_turn(turn) {
                let left = turn.ns_until_elapsed(time, self.quantum_ns, grace);
                if left > 0 {
                    return Deadline::after(Duration::from_nanos(left));
                }
                *checked = turn;
                self.evict_overstayers(turn);
                continue;
            }
            return Deadline::after(Duration::from_nanos(turn.remaining_ns(time)));
        }
    }

    /// Puts those out of their seats who have not left them.
    pub fn evict_overstayers(&self, turn: Turn) {
        for processor in 0..self.processors() {
            let Some(holder) = self.overstayer(turn, processor) else { continue };
            // Relaxed: its own thread reads it, and who prints it.
            let began = self.time();
            let _ = self.entities[holder].overstaying_since.compare_exchange(
                0,
                began,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            // Relaxed: what it did on the seat is not ordered before what the next does. What the
            // one before it did is, for this exchange is one of a chain that began when that one
            // left.
            let out = self.holders[processor].compare_exchange(
                encoded(holder),
                0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if out.is_ok() {
                self.counters.overstays.add(1);
                self.entities[holder].overstay_count.add(1);
                self.wake_next(processor);
            } else {
                self.record_return(holder);
            }
        }
    }

    /// A member that may have overstayed is here.
    pub(super) fn record_return(&self, entity: usize) {
        let overstays = &self.entities[entity].overstaying_since;
        // Relaxed: statistics.
        if overstays.load(Ordering::Relaxed) != 0 {
            let since = overstays.swap(0, Ordering::Relaxed);
            self.entities[entity].overstay_ns.add(self.nanos_since(since));
        }
    }

    fn nanos_since(&self, since: u64) -> u64 {
        self.time().saturating_sub(since) * turn::UNIT_NS
    }

    /// How often a berth has overstayed, if it has, for how long in all, and whether it does now.
    pub fn overstay_record(&self, entity: usize) -> Option<(u64, Duration, bool)> {
        let mine = &self.entities[entity];
        let overstay_count = mine.overstay_count.get();
        // Relaxed: statistics.
        let since = mine.overstaying_since.load(Ordering::Relaxed);
        let now = if since == 0 { 0 } else { self.nanos_since(since) };
        let lasted = Duration::from_nanos(mine.overstay_ns.get() + now);
        (overstay_count > 0).then_some((overstay_count, lasted, since != 0))
    }

    /// Whether the member at this berth takes part.
    pub fn is_active(&self, entity: usize) -> bool {
        // Relaxed: a hint.
        self.entities[entity].active.load(Ordering::Relaxed) != 0
    }
}
