//! The hand-off of a slot: taking it from a worker, and giving it to another one.
//!
//! The slot goes to the waiting worker with the highest priority; of several, to the one that has
//! waited longest. If none waits, an idle worker without bound threads gets it, else a new worker,
//! else an idle worker with bound threads.
//!
//! # Invariants
//!
//! 1. A thread that has taken a slot gives it to a worker, or leaves it vacant for the next worker
//!    that rests (`processors/idle_workers.rs`). No slot is lost.

use std::sync::Arc;

use stanchion_machine::clock;
use stanchion_machine::stack::half_of_address_space_is_used;

use super::lost_time;
use crate::runtime::state::RuntimeState;

/// Takes this slot from a worker that runs a thread there, and gives it to another. Returns whether
/// the worker still had it.
pub(crate) fn take_slot(runtime: &Arc<RuntimeState>, slot: usize, owner: usize) -> bool {
    let record = runtime.workers.record(owner);
    // Before the exchange: a worker that is back at once asks for this time.
    record.set_slot_lost_at(clock::now());
    // It has given the slot away, or is back.
    if !record.ownership().take(slot) {
        return false;
    }
    let taken = runtime.processors.slot(slot);
    taken.set_bound_turns(taken.bound_turns().saturating_add(1));
    runtime.detection.counters.handoffs.increment();
    // Also for a worker that has said beforehand that it will block.
    if runtime.has_work() {
        lost_time::start(runtime, slot);
    }
    give_slot(runtime, slot);
    true
}

/// Gives a slot that the caller has to a worker that can use it.
fn give_slot(runtime: &Arc<RuntimeState>, slot: usize) {
    let idle_workers = &runtime.processors.idle_workers;
    // A worker that waits for a slot, or an idle one.
    if let Some(to) = idle_workers.take_next(true) {
        return assign_slot(runtime, slot, to);
    }
    // A new worker, which no other thread knows yet.
    if let Ok(Some(to)) = runtime.start_worker() {
        return assign_slot(runtime, slot, to);
    }
    // There are no more: the slot waits for a worker that rests.
    match idle_workers.vacate(slot) {
        Some(to) => assign_slot(runtime, slot, to),
        None => runtime.detection.counters.unreplaced.increment(),
    }
}

/// Takes out a worker without a slot and without bound threads, or starts one. The caller gives it
/// a slot.
pub(crate) fn take_free_worker(runtime: &Arc<RuntimeState>) -> Option<usize> {
    runtime.processors.idle_workers.take_free().or_else(|| {
        // Where address space is short, it is for stacks and for the program. If the system refuses
        // a kernel thread, the present ones have to do.
        let is_short = runtime.workers.are_all_started() || half_of_address_space_is_used();
        if is_short { None } else { runtime.start_worker().ok().flatten() }
    })
}

/// Gives a slot to a worker that has none.
pub(crate) fn assign_slot(runtime: &RuntimeState, slot: usize, to: usize) {
    runtime.processors.slot(slot).set_owner(to);
    runtime.detection.slot_times(slot).set_assigned();
    runtime.workers.record(to).give_slot(slot);
}

/// Opens the slots that are closed and allowed.
#[cold]
pub(crate) fn open_slots(runtime: &Arc<RuntimeState>) {
    let processors = &runtime.processors;
    while let Some(slot) = processors.idle_workers.open(processors.limit.allowed()) {
        processors.limit.slot_opened();
        give_slot(runtime, slot);
    }
}
