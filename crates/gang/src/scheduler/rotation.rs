//! Rotation: when a turn ends, and which slot is next.
//!
//! Four kinds of threads end turns:
//!
//! - The timer, when the quantum is over. It ends an open turn a quantum after a member was found
//!   to be kept from its processor.
//! - A member that checks the turn and finds the quantum over before the timer does.
//! - A member that becomes inactive and finds that no member of the slot is active: all are
//!   blocked, have ended, or wait for another gang.
//! - A member that becomes active and finds a slot on of which no member is active.
//!
//! To end a turn is one exchange of the turn's word. The thread that succeeds wakes the members of
//! the new slot, if their processors have no holder. The members that leave wake the others.
//!
//! ```text
//! deactivate                         activate
//! ----------                         --------
//! (1) active = 0                     (4) active = 1
//! (2) fence                          (5) fence
//! (3) is the slot that is on idle?   (6) is the slot that is on idle?
//!     is another not? turns to it        turns to one that is not
//! ```
//!
//! If (3) does not see (4), then (6) sees (1). So one of the two threads ends the turn. The thread
//! that has ended a turn looks again: the new slot may have become idle meanwhile.
//!
//! # Orderings
//!
//! `active`: Relaxed; the fences above are a [`Handshake`]. The exchange of the turn is Release: a
//! thread that sees the turn sees the table. The turn that it replaces was loaded with Acquire.

use core::time::Duration;

use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::Deadline;
use stanchion_machine::control;
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};

use super::counters::Counter;
use super::dispatch::{HOME, SlotScheduler, TURN_CHANGE, encoded};
use super::turn::{self, Turn};

/// A member that becomes inactive against one that becomes active: at least one of the two sees the
/// other's `active`, and ends the turn. Members of any slot may do either, about equally often.
const ROTATION: Handshake<Symmetric> =
    Handshake::symmetric("active", "active of another entity", Reach::AllThreads);

impl SlotScheduler {
    /// Returns whether no member with this home slot takes part.
    fn is_slot_idle(&self, slot: usize) -> bool {
        (0..self.processors()).all(|processor| match self.scheduled(slot, processor) {
            // Relaxed: see the head of the file.
            Some((entity, true)) => self.entities[entity].active.load(Ordering::Relaxed) == 0,
            // No member, or one of another slot, for which this one is not kept on.
            _ => true,
        })
    }

    /// Returns the next slot after `slot` with an active member; `slot` itself comes last.
    fn next_active_slot(&self, slot: usize) -> Option<usize> {
        // Relaxed: a hint. The thread that makes it larger looks itself afterwards.
        let last = self.slots_in_use.load(Ordering::Relaxed) as usize;
        (slot + 1..last).chain(0..last.min(slot + 1)).find(|&next| !self.is_slot_idle(next))
    }

    /// Returns the end of a turn of `slot` that begins now: 0, for none, if no other slot wants
    /// one.
    fn end_of_turn(&self, slot: usize) -> u64 {
        match self.next_active_slot(slot) {
            Some(other) if other != slot => Turn::after(self.time(), self.quantum_ns),
            _ => 0,
        }
    }

    /// Ends `turn`. Its time is over.
    pub fn end_quantum(&self, turn: Turn) {
        match self.next_active_slot(turn.slot()) {
            Some(next) if next != turn.slot() => {
                let _ = self.rotate(turn, next, &self.counters.rotations_by_quantum);
            }
            // No other slot wants a turn: this one goes on without an end.
            _ => {
                let open = turn.next(turn.slot(), 0);
                let _ = self.replace_turn(turn, open);
            }
        }
    }

    /// Replaces the turn `from`, or returns the turn that another thread has put in its place.
    fn replace_turn(&self, from: Turn, to: Turn) -> Result<(), Turn> {
        // Release: see the head of the file. Relaxed on failure: the turn is read again.
        self.turn
            .compare_exchange(from.bits(), to.bits(), Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(|_| self.turn())
    }

    /// Ends `turn`, begins one of `slot`, and counts that in `counter`. Returns the turn that
    /// another thread has begun, if that was faster.
    fn rotate(&self, turn: Turn, slot: usize, counter: &Counter) -> Result<(), Turn> {
        self.replace_turn(turn, turn.next(slot, self.end_of_turn(slot)))?;
        self.account(turn);
        counter.add(1);
        self.dispatch(slot);
        Ok(())
    }

    /// Adds the processor time of `turn`, which is over, to the statistics.
    fn account(&self, turn: Turn) {
        // An open turn is not counted: no other slot waited for it.
        if turn.is_open() {
            return;
        }
        let lasted = turn.elapsed_ns(self.time(), self.quantum_ns);
        let empty = (0..self.processors())
            .filter(|&processor| self.scheduled(turn.slot(), processor).is_none());
        self.counters.lost_ns.add(lasted * empty.count() as u64);
        self.counters.processor_time_ns.add(lasted * self.processors() as u64);
    }

    /// Wakes the members of `slot` if their processors are free, and makes the holders of the other
    /// processors leave.
    fn dispatch(&self, slot: usize) {
        // The other side is in `wake_next` and in `wait_for_turn`.
        TURN_CHANGE.fence();
        for processor in 0..self.processors() {
            let next = self.scheduled(slot, processor).map(|(entity, _)| entity);
            match (self.holder(processor), next) {
                // Free: wake its member.
                (None, Some(entity)) => self.entities[entity].parker.unpark(),
                // Held by a member that is off: it wakes the next one when it leaves.
                (Some(holder), next) if Some(holder) != next => self.preempt(holder),
                // Held by its member, or wanted by none.
                _ => {}
            }
        }
    }

    /// Ends the turn if no member of its slot is active and another slot has one that is.
    fn rotate_if_idle(&self) {
        // The other side is this call in another thread: see the head of the file.
        ROTATION.fence();
        let mut turn = self.turn();
        while self.is_slot_idle(turn.slot()) {
            let Some(next) = self.next_active_slot(turn.slot()) else { return };
            match self.rotate(turn, next, &self.counters.rotations_by_idle) {
                // The new slot may have become idle before the exchange. Its last member did not
                // see the turn there, so this thread looks again, after the fence of `dispatch`.
                Ok(()) => turn = self.turn(),
                // Another thread was faster.
                Err(now) => turn = now,
            }
        }
    }

    /// Takes `entity` out of the rotation and releases its processor. Called by its own thread.
    pub fn deactivate(&self, entity: usize) {
        let _deferred = control::defer();
        self.record_return(entity);
        // Relaxed: see the head of the file.
        self.entities[entity].active.store(0, Ordering::Relaxed);
        self.release(entity);
        self.rotate_if_idle();
    }

    /// Takes `entity` into the rotation again. Its thread then calls
    /// [`wait_for_turn`](Self::wait_for_turn).
    pub fn activate(&self, entity: usize) {
        let _deferred = control::defer();
        // Relaxed: see the head of the file.
        self.entities[entity].active.store(1, Ordering::Relaxed);
        self.rotate_if_idle();
        // An open turn may need an end now.
        self.timer.unpark();
    }

    /// Makes `entity` ready for a new member. Called under the executor's lock, while the entity is
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

    /// Gives `entity` another processor. Called under the executor's lock. Its owner then
    /// publishes the table.
    pub fn migrate(&self, entity: usize, processor: usize) {
        // Relaxed: the table publishes it.
        self.entities[entity].processor.store(processor as u32, Ordering::Relaxed);
    }

    /// Writes the table: `rows` has an entry for each processor of the slots from 0 on, and the
    /// slots behind it are empty. Called under the executor's lock.
    pub fn publish(&self, rows: &[Option<(usize, bool)>]) {
        let entry = |scheduled: &Option<(usize, bool)>| {
            scheduled.map_or(0, |(entity, home)| encoded(entity) | if home { HOME } else { 0 })
        };
        let slots = rows.len() / self.processors();
        // Relaxed: under the lock.
        let before = self.slots_in_use.load(Ordering::Relaxed) as usize;
        let end = slots.max(before) * self.processors();
        for (at, word) in self.table[..end].iter().enumerate() {
            // Relaxed: the turn publishes it.
            word.store(rows.get(at).map_or(0, entry), Ordering::Relaxed);
        }
        self.slots_in_use.store(slots as u32, Ordering::Relaxed);
        // Members that are on check again: they may have lost their processors.
        let mut turn = self.turn();
        while let Err(now) = self.replace_turn(turn, turn.next(turn.slot(), turn.end_bits())) {
            turn = now;
        }
        self.dispatch(turn.slot());
        self.rotate_if_idle();
        // Slots take turns, or a member is kept from its processor: the timer has to end the turn.
        if slots > 1 || self.has_overstayer(self.turn()) {
            self.timer.unpark();
        }
    }

    /// Returns the holder of `processor` if it is not on there.
    fn overstayer(&self, turn: Turn, processor: usize) -> Option<usize> {
        self.holder(processor).filter(|&holder| {
            !self.is_scheduled(turn, holder) || self.processor_of(holder) != processor
        })
    }

    /// Returns whether a member is kept from its processor by another.
    ///
    /// In an open turn that happens when gangs were moved. A member that has lost its processor to
    /// another member of its own slot is taken off by no other slot's turn. The holders are those
    /// that the publisher of the table has seen in `dispatch`, or newer. The publisher has unparked
    /// the timer.
    fn has_overstayer(&self, turn: Turn) -> bool {
        (0..self.processors()).any(|processor| {
            self.overstayer(turn, processor).is_some()
                && self.scheduled(turn.slot(), processor).is_some()
        })
    }

    /// Does what is due of the timer's work, and returns when it has to be called again. `checked`
    /// is the timer's own: the turn in which it has evicted members that overstay. It does that
    /// `grace` nanoseconds after the beginning of a turn.
    pub(crate) fn tick(&self, grace: u64, checked: &mut Turn) -> Deadline {
        loop {
            let turn = self.turn();
            if turn.is_open() {
                let mut end = self.end_of_turn(turn.slot());
                if end == 0 {
                    // No other slot wants a turn, and no member is kept from its processor: sleep.
                    if !self.has_overstayer(turn) {
                        return Deadline::NEVER;
                    }
                    end = Turn::after(self.time(), self.quantum_ns);
                }
                // The turn needs an end.
                let _ = self.replace_turn(turn, turn.with_end(end));
                continue;
            }
            let time = self.time();
            // The quantum is over.
            if turn.is_over(time) {
                self.end_quantum(turn);
                continue;
            }
            if !checked.is_same_turn(turn) {
                let left = turn.ns_until_elapsed(time, self.quantum_ns, grace);
                // The grace lasts: come back at its end.
                if left > 0 {
                    return Deadline::after(Duration::from_nanos(left));
                }
                // The grace is over.
                *checked = turn;
                self.evict_overstayers(turn);
                continue;
            }
            // Nothing is left to do in this turn: come back at its end.
            return Deadline::after(Duration::from_nanos(turn.remaining_ns(time)));
        }
    }

    /// Evicts the members that hold a processor on which they are not on.
    pub fn evict_overstayers(&self, turn: Turn) {
        for processor in 0..self.processors() {
            let Some(holder) = self.overstayer(turn, processor) else { continue };
            let began = self.time();
            // Relaxed: read by its own thread, and for statistics.
            let _ = self.entities[holder].overstaying_since.compare_exchange(
                0,
                began,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if self.evict(processor, holder) {
                self.counters.overstays.add(1);
                self.entities[holder].overstay_count.add(1);
                self.wake_next(processor);
            } else {
                // It has left just now.
                self.record_return(holder);
            }
        }
    }

    /// Ends the overstay of `entity`, if it overstays, and adds its time to the statistics.
    pub(super) fn record_return(&self, entity: usize) {
        let overstaying = &self.entities[entity].overstaying_since;
        // Relaxed: statistics.
        if overstaying.load(Ordering::Relaxed) != 0 {
            let since = overstaying.swap(0, Ordering::Relaxed);
            self.entities[entity].overstay_ns.add(self.nanos_since(since));
        }
    }

    fn nanos_since(&self, since: u64) -> u64 {
        self.time().saturating_sub(since) * turn::UNIT_NS
    }

    /// Returns how often `entity` was evicted, for how long it has overstayed in all, and whether
    /// it does so now; `None` if it never was.
    pub(crate) fn overstay_record(&self, entity: usize) -> Option<(u64, Duration, bool)> {
        let mine = &self.entities[entity];
        let count = mine.overstay_count.get();
        // Relaxed: statistics.
        let since = mine.overstaying_since.load(Ordering::Relaxed);
        let now = if since == 0 { 0 } else { self.nanos_since(since) };
        let lasted = Duration::from_nanos(mine.overstay_ns.get() + now);
        (count > 0).then_some((count, lasted, since != 0))
    }

    /// Returns whether the member of `entity` takes part in the rotation.
    pub(super) fn is_active(&self, entity: usize) -> bool {
        // Relaxed: a hint.
        self.entities[entity].active.load(Ordering::Relaxed) != 0
    }
}
