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

use super::dispatch::{Gate, HOME, named};
use super::turn::{self, Round};
use core::time::Duration;

/// What the gate counts.
pub(crate) struct Counts {
    pub(crate) by_quantum: Count,
    pub(crate) by_idle: Count,
    pub(crate) switches: Count,
    pub(crate) overstays: Count,
    /// Interruptions that could not be sent, because the program has taken the signal.
    pub(crate) refused: Count,
    /// Seats by time, in nanoseconds, of turns that had an end, and the part of it in which nobody
    /// had the seat.
    pub(crate) seat_time: Count,
    pub(crate) lost: Count,
}

/// A number that any thread counts.
pub(crate) struct Count(AtomicU64);

impl Count {
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

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            by_quantum: Count::new(),
            by_idle: Count::new(),
            switches: Count::new(),
            overstays: Count::new(),
            refused: Count::new(),
            seat_time: Count::new(),
            lost: Count::new(),
        }
    }
}

/// Why a slot's turn ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Quantum,
    Idle,
}

impl Gate {
    /// Whether nobody whose own slot this is takes part.
    fn is_idle(&self, slot: usize) -> bool {
        (0..self.seats()).all(|seat| match self.sitting(slot, seat) {
            // Relaxed: see the head of the file.
            Some((berth, true)) => self.berths[berth].active.load(Ordering::Relaxed) == 0,
            _ => true,
        })
    }

    /// The slot after that one in which somebody takes part, itself last.
    fn next_awake(&self, slot: usize) -> Option<usize> {
        // Relaxed: a hint; who makes it larger looks himself afterwards.
        let last = self.last.load(Ordering::Relaxed) as usize;
        (slot + 1..last).chain(0..last.min(slot + 1)).find(|&next| !self.is_idle(next))
    }

    /// When a turn of `slot` that begins now ends: never, if no other slot wants one.
    fn end_of(&self, slot: usize) -> u64 {
        match self.next_awake(slot) {
            Some(other) if other != slot => Round::after(self.time(), self.quantum),
            _ => 0,
        }
    }

    /// The time of `round` is over.
    pub fn turn_over(&self, round: Round) {
        match self.next_awake(round.slot()) {
            Some(next) if next != round.slot() => {
                let _ = self.turn(round, next, Why::Quantum);
            }
            _ => {
                let open = round.next(round.slot(), 0);
                let _ = self.exchange(round, open);
            }
        }
    }

    fn exchange(&self, from: Round, to: Round) -> Result<(), Round> {
        // Release: see the head of the file. Relaxed on failure: who lost looks again.
        self.round
            .compare_exchange(from.bits(), to.bits(), Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(|_| self.round())
    }

    /// Turns from `round` to `slot`, unless somebody was faster: then to what.
    fn turn(&self, round: Round, slot: usize, why: Why) -> Result<(), Round> {
        self.exchange(round, round.next(slot, self.end_of(slot)))?;
        self.account(round);
        match why {
            Why::Quantum => self.counts.by_quantum.add(1),
            Why::Idle => self.counts.by_idle.add(1),
        }
        self.call(slot);
        Ok(())
    }

    /// Adds up the seat-time of a turn that is over.
    fn account(&self, round: Round) {
        if round.is_open() {
            return;
        }
        let lasted = round.lasted(self.time(), self.quantum);
        let empty = (0..self.seats()).filter(|&seat| self.sitting(round.slot(), seat).is_none());
        self.counts.lost.add(lasted * empty.count() as u64);
        self.counts.seat_time.add(lasted * self.seats() as u64);
    }

    /// Wakes those of `slot` whose seats are free, and hurries those who have the others.
    fn call(&self, slot: usize) {
        // With the fences of `leave` and `pass`.
        fence(Ordering::SeqCst);
        for seat in 0..self.seats() {
            let next = self.sitting(slot, seat).map(|(berth, _)| berth);
            match (self.holder(seat), next) {
                (None, Some(berth)) => self.berths[berth].bell.ring(),
                (Some(holder), next) if Some(holder) != next => self.hurry(holder),
                _ => {}
            }
        }
    }

    /// If nobody of the slot that is on takes part, it is another's turn.
    fn turn_if_idle(&self) {
        fence(Ordering::SeqCst);
        let mut round = self.round();
        while self.is_idle(round.slot()) {
            let Some(next) = self.next_awake(round.slot()) else { return };
            match self.turn(round, next, Why::Idle) {
                Ok(()) => return,
                Err(now) => round = now,
            }
        }
    }

    /// The berth takes no part from here on, and leaves its seat. Called by its own thread.
    pub fn retire(&self, berth: usize) {
        let _deferred = control::defer();
        self.note_return(berth);
        // Relaxed: see the head of the file.
        self.berths[berth].active.store(0, Ordering::Relaxed);
        self.leave(berth);
        self.turn_if_idle();
    }

    /// The berth takes part again: to be followed by [`pass`](Self::pass).
    pub fn resume(&self, berth: usize) {
        let _deferred = control::defer();
        // Relaxed: see the head of the file.
        self.berths[berth].active.store(1, Ordering::Relaxed);
        self.turn_if_idle();
        self.clock.ring();
    }

    /// Makes a berth ready for a new member. Called under the executor's lock, for a berth that is
    /// not in the table.
    pub fn assign(&self, berth: usize, seat: usize) {
        let mine = &self.berths[berth];
        // Relaxed: the table publishes it.
        mine.seat.store(seat as u32, Ordering::Relaxed);
        mine.active.store(1, Ordering::Relaxed);
        mine.overstays.store(0, Ordering::Relaxed);
        mine.times.clear();
        mine.lasted.clear();
    }

    /// Gives a berth another seat. Called under the executor's lock, which then publishes the
    /// table.
    pub fn move_to(&self, berth: usize, seat: usize) {
        // Relaxed: the table publishes it.
        self.berths[berth].seat.store(seat as u32, Ordering::Relaxed);
    }

    /// Writes who sits where into the table: `rows` has an entry for each seat of the slots from 0
    /// on, and beyond it there is nobody. Called under the executor's lock.
    pub fn publish(&self, rows: &[Option<(usize, bool)>]) {
        let entry = |sits: &Option<(usize, bool)>| {
            sits.map_or(0, |(berth, home)| named(berth) | if home { HOME } else { 0 })
        };
        let slots = rows.len() / self.seats();
        // Relaxed: under the lock.
        let before = self.last.load(Ordering::Relaxed) as usize;
        let end = slots.max(before) * self.seats();
        for (at, word) in self.sitting[..end].iter().enumerate() {
            // Relaxed: the round publishes it.
            word.store(rows.get(at).map_or(0, entry), Ordering::Relaxed);
        }
        self.last.store(slots as u32, Ordering::Relaxed);
        // Whoever is on looks again: it may have lost its seat.
        let mut round = self.round();
        while let Err(now) = self.exchange(round, round.next(round.slot(), round.end_bits())) {
            round = now;
        }
        self.call(round.slot());
        self.turn_if_idle();
        if slots > 1 || self.is_blocked(self.round()) {
            self.clock.ring();
        }
    }

    /// Who holds a seat on which it is not on.
    fn intruder(&self, round: Round, seat: usize) -> Option<usize> {
        self.holder(seat).filter(|&holder| !self.is_on(round, holder) || self.seat(holder) != seat)
    }

    /// Whether somebody has another's seat. In an open turn that is so if gangs were moved: one
    /// that has lost its seat to another of its own slot is taken off by no other slot's turn. The
    /// seats are as who published that has seen them in `call`, or newer: he has rung for the
    /// clock.
    fn is_blocked(&self, round: Round) -> bool {
        (0..self.seats()).any(|seat| {
            self.intruder(round, seat).is_some() && self.sitting(round.slot(), seat).is_some()
        })
    }

    /// What the clock has to do now, and when it is to come again. `checked` is the clock's own:
    /// the turn for which it has looked for those who overstay, which it does `grace` nanoseconds
    /// after the turn has begun.
    pub fn tick(&self, grace: u64, checked: &mut Round) -> Deadline {
        loop {
            let round = self.round();
            if round.is_open() {
                let mut end = self.end_of(round.slot());
                if end == 0 {
                    if !self.is_blocked(round) {
                        return Deadline::NEVER;
                    }
                    end = Round::after(self.time(), self.quantum);
                }
                let _ = self.exchange(round, round.ending(end));
                continue;
            }
            let time = self.time();
            if round.is_over(time) {
                self.turn_over(round);
                continue;
            }
            if !checked.is_same_turn(round) {
                let left = round.until(time, self.quantum, grace);
                if left > 0 {
                    return Deadline::after(Duration::from_nanos(left));
                }
                *checked = round;
                self.put_out(round);
                continue;
            }
            return Deadline::after(Duration::from_nanos(round.left(time)));
        }
    }

    /// Puts those out of their seats who have not left them.
    pub fn put_out(&self, round: Round) {
        for seat in 0..self.seats() {
            let Some(holder) = self.intruder(round, seat) else { continue };
            // Relaxed: its own thread reads it, and who prints it.
            let began = self.time();
            let _ = self.berths[holder].overstays.compare_exchange(
                0,
                began,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            // Relaxed: what it did on the seat is not ordered before what the next does. What the
            // one before it did is, for this exchange is one of a chain that began when that one
            // left.
            let out = self.holders[seat].compare_exchange(
                named(holder),
                0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if out.is_ok() {
                self.counts.overstays.add(1);
                self.berths[holder].times.add(1);
                self.call_next(seat);
            } else {
                self.note_return(holder);
            }
        }
    }

    /// A member that may have overstayed is here.
    pub(super) fn note_return(&self, berth: usize) {
        let overstays = &self.berths[berth].overstays;
        // Relaxed: statistics.
        if overstays.load(Ordering::Relaxed) != 0 {
            let since = overstays.swap(0, Ordering::Relaxed);
            self.berths[berth].lasted.add(self.nanos_since(since));
        }
    }

    fn nanos_since(&self, since: u64) -> u64 {
        self.time().saturating_sub(since) * turn::UNIT_NS
    }

    /// How often a berth has overstayed, if it has, for how long in all, and whether it does now.
    pub fn overstays(&self, berth: usize) -> Option<(u64, Duration, bool)> {
        let mine = &self.berths[berth];
        let times = mine.times.get();
        // Relaxed: statistics.
        let since = mine.overstays.load(Ordering::Relaxed);
        let now = if since == 0 { 0 } else { self.nanos_since(since) };
        let lasted = Duration::from_nanos(mine.lasted.get() + now);
        (times > 0).then_some((times, lasted, since != 0))
    }

    /// Whether the member at this berth takes part.
    pub fn is_active(&self, berth: usize) -> bool {
        // Relaxed: a hint.
        self.berths[berth].active.load(Ordering::Relaxed) != 0
    }
}
