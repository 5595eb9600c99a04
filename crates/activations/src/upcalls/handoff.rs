//! Taking the slot of a worker that is stuck in the kernel, and giving it to one that can use it.
//!
//! Whoever looks at a slot sees with a few loads whether its owner is on a processor. If it is
//! blocked, in the middle of a thread, and has been for as long as the runtime's
//! [delay](crate::delay) lasts, and something is ready that it keeps from running, and fewer
//! workers can run than there are processors, then its slot goes to the worker that has wanted
//! one longest, else to a spare, else to a new one.
//!
//! Why not at once: a page fault that finds its page, or a short sleep, is over sooner than another
//! kernel thread has woken up, and then two share the processor. Why only if something is ready: a
//! slot is of no use to who has nothing to do. Why only if a processor would be idle: where
//! workers of the overcommit run (`overcommit.rs`), one that blocks leaves its processor to one of them.
//!
//! ```text
//!              Blocked, first seen          delay ends, something ready, confirmed
//! owner runs ────────────────────► noted ───────────────────────────────────────────► taken (ownership: USER to LOST)
//!      ▲                              │                                                     │ wanting, spare or new worker
//!      └──────── runs again ──────────┘                                                     ▼
//!                                                    its old owner comes back: LOST, so it rests or wants a slot
//! ```
//!
//! A stop, by a debugger or SIGSTOP, reads as a block of every worker; so what the records say is
//! confirmed by the kernel's own state of the thread before a slot is taken
//! ([`presence::examine`]).
//!
//! # Invariants
//!
//! 1. Who has taken a slot gives it to a worker, or leaves it vacant for the next that rests
//!    (`idle_workers.rs`). No slot is lost.
//!
//! Since when it has been blocked, and that this was told, is noted with the worker (`note.rs`).

use std::sync::Arc;

use machine::clock;
use machine::presence::{self, Presence};
use machine::stack::half_of_address_space_is_used;

use crate::processors::worker_record::WorkerRecord;
use crate::detection::observed::{Observation, Observed};
use crate::detection::handoff_delay::LEAST_NS;
use crate::runtime::state::RuntimeState;
use crate::stats::upcalls::Upcall;

/// When one that is off its processor, and not blocked, is looked at again.
const AGAIN_NS: u64 = 1_000_000;

/// Who looks at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// A worker, at a scheduling point.
    Passing,
    /// The monitor, whom a switch has woken, or its clock.
    Woken,
    /// The monitor, where the kernel does not record switches.
    Blindly,
}

/// What a look at a slot has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing to be done.
    Fine,
    /// Its owner is blocked, and nothing is ready that it keeps from running.
    Unneeded,
    /// Its owner is blocked, and its slot will be taken if it still is after so many nanoseconds.
    Blocked(u64),
    /// Its slot was taken.
    Taken,
}

impl RuntimeState {
    /// Looks where the owner of a slot is, and takes the slot if that is stuck.
    #[inline]
    pub(crate) fn look_at(self: &Arc<Self>, slot: usize, looks: Looks) -> Found {
        let owner = self.slot(slot).owner();
        let noted = self.worker(owner).note().read();
        match Observed::of(self.worker(owner).presence()) {
            Observed::Runs => self.runs(slot, owner, noted),
            seen => self.look_closely(slot, owner, (noted, seen), looks),
        }
    }

    /// The same where the kernel does not record switches: some microseconds.
    pub(crate) fn examine(self: &Arc<Self>, slot: usize) -> Found {
        let owner = self.slot(slot).owner();
        let noted = self.worker(owner).note().read();
        if self.worker(owner).presence_index().map(presence::examine) == Some(Presence::Blocked) {
            return self.look_closely(slot, owner, (noted, Observed::Blocked), Looks::Blindly);
        }
        self.runs(slot, owner, noted)
    }

    /// The owner of that slot runs, of whom that was noted.
    #[inline]
    fn runs(&self, slot: usize, owner: usize, noted: Observation) -> Found {
        if noted.seen() != Observed::Runs {
            self.is_seen(slot, owner, (noted, Observed::Runs));
        }
        Found::Fine
    }

    /// The calling worker runs, on its slot or having lost that.
    #[inline]
    pub(crate) fn runs_here(&self, worker: usize) {
        self.runs(self.worker(worker).slot(), worker, self.worker(worker).note().read());
    }

    /// The owner of that slot is not any more as was noted: whoever finds that first tells what it
    /// means.
    #[cold]
    fn is_seen(&self, slot: usize, owner: usize, (noted, seen): (Observation, Observed)) {
        let worker = self.worker(owner);
        let at = worker.switched_at();
        // If that is still the last switch.
        let at = at.filter(|_| Observed::of(worker.presence()) == seen);
        if !worker.note().see(noted, seen, clock::now()) {
            return;
        }
        if noted.seen() == Observed::Blocked {
            worker.ends_unreplaced_block();
        }
        for &upcall in noted.tells(seen) {
            // One that has been preempted since it was back was switched in before that.
            let known = upcall != Upcall::Unblocked || seen == Observed::Runs;
            let at = at.filter(|_| known);
            self.told(upcall, slot, at.map(|at| clock::monotonic().saturating_sub(at)));
        }
        if noted.seen() == Observed::Blocked && self.slot(slot).owner() == owner {
            self.stop_lost_time(slot);
        }
    }

    #[cold]
    fn look_closely(
        self: &Arc<Self>,
        slot: usize,
        owner: usize,
        (noted, seen): (Observation, Observed),
        looks: Looks,
    ) -> Found {
        let worker = self.worker(owner);
        if !worker.ownership().is_in_thread() {
            return Found::Fine;
        }
        if noted.seen() != seen {
            self.is_seen(slot, owner, (noted, seen));
        }
        let idles = || looks == Looks::Blindly || self.leaves_processor_idle(slot);
        let is_needed = self.has_work();
        if seen == Observed::Preempted || !is_needed || !idles() {
            self.stop_lost_time(slot);
            let unneeded = seen == Observed::Blocked && !is_needed;
            return if unneeded { Found::Unneeded } else { Found::Fine };
        }
        self.start_lost_time(slot);
        let noted = worker.note().read();
        if noted.seen() != seen {
            // It is back.
            return Found::Fine;
        }
        let waited = clock::now().nanos_since(noted.since());
        let delay = match looks {
            // The block has lasted for as long as it took to wake the monitor.
            Looks::Woken => self.delay().nanos(),
            Looks::Passing | Looks::Blindly => self.delay().nanos().max(LEAST_NS),
        };
        if waited < delay {
            return Found::Blocked(delay - waited);
        }
        // Asked again a while later, not at each look.
        if !self.can_replace() {
            if worker.begins_unreplaced_block() {
                self.counters().unreplaced.raise();
            }
            worker.note().see(noted, Observed::Blocked, clock::now());
            return Found::Fine;
        }
        let state = worker.presence_index().map(presence::examine);
        if state != Some(Presence::Blocked) {
            // On its way back, or stopped.
            worker.note().see(noted, Observed::Blocked, clock::now());
            return Found::Blocked(AGAIN_NS);
        }
        worker.kind().has_blocked();
        self.overcommit().allow(usize::MAX);
        if self.take_slot(slot, owner) { Found::Taken } else { Found::Fine }
    }

    /// Whether a processor would be idle because the owner of that slot is blocked.
    fn leaves_processor_idle(&self, slot: usize) -> bool {
        // Without more slots than processors each that is blocked leaves one.
        let its_own = slot < self.limit().allowed() && !self.overcommit().is_open();
        its_own || self.lacks_runners()
    }

    /// Whether a processor would be idle for want of a worker that can run: those that have been
    /// given a slot are about to.
    pub(crate) fn lacks_runners(&self) -> bool {
        let runs = |worker: &WorkerRecord| {
            worker.presence() != Presence::Blocked || !worker.ownership().is_in_thread()
        };
        self.count_carriers(runs) < self.limit().allowed()
    }

    /// Whether a processor is idle, as far as this runtime goes.
    pub(crate) fn has_idle_processor(&self) -> bool {
        self.count_carriers(|worker| worker.presence() != Presence::Blocked)
            < self.limit().allowed()
    }

    /// How many of those that have slots.
    pub(crate) fn count_carriers(&self, which: impl Fn(&WorkerRecord) -> bool) -> usize {
        self.slots_in_use().filter(|&slot| which(self.worker(self.slot(slot).owner()))).count()
    }

    /// Takes this slot of a worker that runs a thread there, and gives it to another; whether it
    /// was there to be taken.
    pub(crate) fn take_slot(self: &Arc<Self>, slot: usize, owner: usize) -> bool {
        let worker = self.worker(owner);
        // Before the exchange: one that is back at once asks when it was.
        worker.note_lost_slot(clock::now());
        if !worker.ownership().take(slot) {
            return false;
        }
        self.slot(slot).set_turns(self.slot(slot).turns().saturating_add(1));
        self.counters().handovers.raise();
        if self.has_work() {
            // Also one that has said beforehand that it will block.
            self.start_lost_time(slot);
        }
        self.give_to_another(slot);
        true
    }

    /// Gives a slot that the caller has taken to whoever can use it.
    pub(crate) fn give_to_another(self: &Arc<Self>, slot: usize) {
        if self.idle_workers().give(true, |to| self.assign_slot(slot, to)) {
            return;
        }
        // A new one; nobody else knows it yet.
        match self.start_carrier() {
            Ok(Some(to)) => self.assign_slot(slot, to),
            Ok(None) | Err(_) => match self.idle_workers().vacate(slot) {
                Some(to) => self.assign_slot(slot, to),
                None => self.counters().unreplaced.raise(),
            },
        }
    }

    /// A worker without a slot and without bound_threads, which is the caller's to slot; a new one, if
    /// all others have either.
    pub(crate) fn free_carrier(self: &Arc<Self>) -> Option<usize> {
        self.idle_workers().take_free().or_else(|| {
            // Where address space is short it is for stacks, and for the program. If the system
            // refuses a kernel thread, those that are there have to do.
            let start_lost_time = self.is_full() || half_of_address_space_is_used();
            if start_lost_time { None } else { self.start_carrier().ok().flatten() }
        })
    }

    /// Gives a slot to a worker that has none.
    pub(crate) fn assign_slot(&self, slot: usize, to: usize) {
        self.slot(slot).set_owner(to);
        self.note_assigned(slot);
        self.worker(to).take_slot(slot);
    }

    /// Opens what is allowed and closed.
    #[cold]
    pub(crate) fn open_slots(self: &Arc<Self>) {
        while let Some(slot) = self.idle_workers().open(self.limit().allowed()) {
            self.limit().closed(false);
            self.give_to_another(slot);
        }
    }

    /// Whether something is ready that another worker than the one that it is ready at could run,
    /// or a time has come for which somebody waits.
    pub(crate) fn has_work(&self) -> bool {
        self.idle_workers().waiting() > 0
            || self.ready_queue().len() > 0
            || self.prioritized().any()
            || self.is_time()
    }
}
