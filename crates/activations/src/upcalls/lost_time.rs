//! When processor time is lost to a blocked worker, and when it is not any more. The definition is
//! in `detection/lost_time.rs`.

use stanchion_machine::clock;
use stanchion_machine::presence::Presence;

use crate::detection::monitor::MonitoredWorker as _;
use crate::runtime::state::RuntimeState;
use crate::stats::upcalls::Upcall;

/// Starts to count: the owner of the slot is blocked, and a thread is ready.
pub(crate) fn start(runtime: &RuntimeState, slot: usize) {
    // A slot beyond the processors has no processor that would be idle.
    if !runtime.processors.overcommit.has(slot) {
        runtime.detection.slot_times(slot).start_losing();
    }
}

/// Stops to count on all slots: no thread is ready.
pub(crate) fn stop_all(runtime: &RuntimeState) {
    runtime.processors.in_use().for_each(|slot| stop(runtime, slot));
}

/// Stops to count: the owner of the slot is back, no thread is ready that it keeps waiting, or no
/// processor would be idle.
pub(crate) fn stop(runtime: &RuntimeState, slot: usize) {
    if let Some(since) = runtime.detection.slot_times(slot).take_lost_since() {
        let owner = runtime.owner(slot);
        // An owner that is back has been back since its last switch, whichever thread sees it.
        let runs = owner.presence() == Presence::Running;
        let back = if runs { owner.switched_at() } else { None };
        add(runtime, slot, since, back.unwrap_or_else(clock::monotonic));
    }
}

/// Ends the hand-off of a slot: the worker that was given the slot runs on it.
pub(crate) fn owner_started(runtime: &RuntimeState, slot: usize) {
    let detection = &runtime.detection;
    let times = detection.slot_times(slot);
    let Some(assigned) = times.take_assigned() else { return };
    let now = clock::monotonic();
    detection.record(Upcall::ProcessorAdded, slot, Some(now.saturating_sub(assigned)));
    if let Some(since) = times.take_lost_since() {
        detection.lost_time.handoffs.count(add(runtime, slot, since, now));
    }
}

fn add(runtime: &RuntimeState, slot: usize, since: u64, until: u64) -> u64 {
    let lost = until.saturating_sub(since);
    runtime.detection.lost_time.add(lost);
    if let Some(tracer) = runtime.detection.tracer() {
        tracer.lost_time(slot, since, lost);
    }
    lost
}
