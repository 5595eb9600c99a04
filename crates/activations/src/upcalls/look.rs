//! A look at the owner of a slot, and the decision to take the slot.
//!
//! A thread that looks at a slot sees with a few loads whether the slot's owner is on a processor.
//! The slot is taken if all of this holds:
//!
//! - The owner is blocked, in the middle of a thread, and has been for as long as the
//!   [hand-off delay](crate::detection::handoff_delay).
//! - A thread is ready that the owner keeps from running.
//! - Fewer workers can run than there are processors.
//! - There is a worker that can have the slot.
//!
//! Why not at once: a page fault that finds its page, or a short sleep, is over sooner than
//! another kernel thread has woken up, and then two share the processor. Why only if a thread is
//! ready: a slot is of no use to a worker that has nothing to do. Why only if a processor would be
//! idle: where overcommitted workers run (`processors/overcommit.rs`), one that blocks leaves its
//! processor to another of them.
//!
//! ```text
//!              Blocked, first seen             delay over, thread ready, confirmed
//! owner runs ────────────────────► observed ─────────────────────────────────► slot taken
//!      ▲                              │                          (ownership: THREAD to LOST)
//!      └──────── runs again ──────────┘                                  │
//!                                                                        ▼
//!                       the owner comes back: LOST, so it rests    `handoff.rs`
//! ```
//!
//! A stop, by a debugger or SIGSTOP, reads as a block of every worker. So the records are confirmed
//! by the kernel's own state of the thread before a slot is taken ([`presence::examine`]).
//!
//! The time since which an owner has been blocked is in its observed state
//! (`detection/observed.rs`).

use std::sync::Arc;

use stanchion_machine::clock;
use stanchion_machine::presence::Presence;

use super::handoff;
use super::lost_time;
use crate::detection::handoff_delay::LEAST_NS;
use crate::detection::monitor::{Found, Looker, MonitoredWorker as _};
use crate::detection::observed::{Observation, Observed};
use crate::runtime::state::RuntimeState;
use crate::stats::upcalls::Upcall;

/// The time after which an owner that is off its processor, and not blocked, is looked at again.
const AGAIN_NS: u64 = 1_000_000;

/// Looks at the owner of a slot. Takes the slot if the owner is blocked, and the conditions of the
/// header hold.
#[inline]
pub(crate) fn look_at(runtime: &Arc<RuntimeState>, slot: usize, looker: Looker) -> Found {
    let owner = runtime.processors.slot(slot).owner();
    let record = runtime.workers.record(owner);
    let observation = record.observed.read();
    match Observed::of(record.presence()) {
        // It is on its processor, which is the common case.
        Observed::Runs => owner_runs(runtime, slot, owner, observation),
        state => look_closely(runtime, slot, owner, (observation, state), looker),
    }
}

/// Does the same where the kernel does not record switches. This takes some microseconds.
pub(crate) fn examine(runtime: &Arc<RuntimeState>, slot: usize) -> Found {
    let owner = runtime.processors.slot(slot).owner();
    let record = runtime.workers.record(owner);
    let observation = record.observed.read();
    if record.examine() == Some(Presence::Blocked) {
        let blocked = (observation, Observed::Blocked);
        return look_closely(runtime, slot, owner, blocked, Looker::BlindMonitor);
    }
    owner_runs(runtime, slot, owner, observation)
}

/// Records that the slot's owner is running. `observation` is what was last observed of it.
#[inline]
fn owner_runs(
    runtime: &RuntimeState,
    slot: usize,
    owner: usize,
    observation: Observation,
) -> Found {
    if observation.state() != Observed::Runs {
        update(runtime, slot, owner, (observation, Observed::Runs));
    }
    Found::Fine
}

/// Records that the calling worker runs, on its slot or having lost it.
#[inline]
pub(crate) fn worker_runs(runtime: &RuntimeState, worker: usize) {
    let record = runtime.workers.record(worker);
    owner_runs(runtime, record.slot(), worker, record.observed.read());
}

/// Moves the observed state of a slot's owner. The thread that is first to do so counts the
/// upcalls.
#[cold]
fn update(
    runtime: &RuntimeState,
    slot: usize,
    owner: usize,
    (observation, state): (Observation, Observed),
) {
    let record = runtime.workers.record(owner);
    // The time of the last switch, if the owner has not been switched again since.
    let at = record.switched_at().filter(|_| Observed::of(record.presence()) == state);
    // Another thread was first.
    if !record.observed.update(observation, state, clock::now()) {
        return;
    }
    let was_blocked = observation.state() == Observed::Blocked;
    if was_blocked {
        record.end_unreplaced_block();
    }
    for &upcall in observation.upcalls(state) {
        // An owner that has been preempted since it was back was switched in before that.
        let is_known = upcall != Upcall::Unblocked || state == Observed::Runs;
        let at = at.filter(|_| is_known);
        let latency = at.map(|at| clock::monotonic().saturating_sub(at));
        runtime.detection.record(upcall, slot, latency);
    }
    // Its slot is of use again.
    if was_blocked && runtime.processors.slot(slot).owner() == owner {
        lost_time::stop(runtime, slot);
    }
}

/// Looks at an owner that is off its processor.
#[cold]
fn look_closely(
    runtime: &Arc<RuntimeState>,
    slot: usize,
    owner: usize,
    (observation, state): (Observation, Observed),
    looker: Looker,
) -> Found {
    let record = runtime.workers.record(owner);
    // It is in the scheduler, where it may sleep.
    if !record.ownership().is_in_thread() {
        return Found::Fine;
    }
    if observation.state() != state {
        update(runtime, slot, owner, (observation, state));
    }
    let leaves_idle = || looker == Looker::BlindMonitor || leaves_processor_idle(runtime, slot);
    // Another worker could do nothing with the slot.
    let is_needed = runtime.has_work();
    if state == Observed::Preempted || !is_needed || !leaves_idle() {
        lost_time::stop(runtime, slot);
        let is_unneeded = state == Observed::Blocked && !is_needed;
        return if is_unneeded { Found::Unneeded } else { Found::Fine };
    }
    lost_time::start(runtime, slot);
    let observation = record.observed.read();
    // It is back.
    if observation.state() != state {
        return Found::Fine;
    }
    let waited = clock::now().nanos_since(observation.since());
    let delay = runtime.detection.handoff_delay.nanos();
    let delay = match looker {
        // The block has lasted for as long as it took to wake the monitor.
        Looker::WokenMonitor => delay,
        Looker::Worker | Looker::BlindMonitor => delay.max(LEAST_NS),
    };
    // It may be back soon.
    if waited < delay {
        return Found::Blocked(delay - waited);
    }
    // No worker can have the slot. This is asked again after another delay, not at each look.
    if !runtime.can_replace() {
        if record.begin_unreplaced_block() {
            runtime.detection.counters.unreplaced.increment();
        }
        record.observed.update(observation, Observed::Blocked, clock::now());
        return Found::Fine;
    }
    // It is on its way back, or stopped.
    if record.examine() != Some(Presence::Blocked) {
        record.observed.update(observation, Observed::Blocked, clock::now());
        return Found::Blocked(AGAIN_NS);
    }
    // It is blocked: threads of its kind block, and its return may open a slot.
    record.kind().count_block();
    runtime.processors.overcommit.allow(usize::MAX);
    if handoff::take_slot(runtime, slot, owner) { Found::Taken } else { Found::Fine }
}

/// Returns whether a processor would be idle because the owner of the slot is blocked.
fn leaves_processor_idle(runtime: &RuntimeState, slot: usize) -> bool {
    let processors = &runtime.processors;
    // Without overcommitted slots each blocked owner leaves a processor.
    let has_own = slot < processors.limit.allowed() && !processors.overcommit.is_any_open();
    has_own || runtime.lacks_runners()
}
