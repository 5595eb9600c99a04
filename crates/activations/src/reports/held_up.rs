//! Threads that are held up by another thread on the only kernel thread that they can use, and the
//! threads that hold them up.
//!
//! `thread/kind.rs` says when threads share a kernel thread. If one of them then blocks it in the
//! kernel, or computes without end, the others wait for that. They are found here, for metrics and
//! reports. Nothing is done about it.
//!
//! A thread that spins cannot be told from one that computes. So a thread is reported when it has
//! not come to a scheduling point for [`LONG_NS`] while others were ready: the number of its
//! worker's turn has not changed. Two looks are compared, so that a turn need not read a clock.

use stanchion_machine::clock;

use super::stall::Stalled;
use crate::processors::worker_record::WorkerRecord;
use crate::runtime::state::RuntimeState;

/// The time for which a thread keeps its processor before it is reported.
const LONG_NS: u64 = 100_000_000;

/// Returns the number of ready threads that wait for a kernel thread that is blocked in the kernel.
pub(crate) fn count(runtime: &RuntimeState) -> usize {
    let holds_up = |worker: &&WorkerRecord| worker.ready() > 0 && worker.is_stuck();
    runtime.workers.started_records().filter(holds_up).map(WorkerRecord::ready).sum()
}

/// Returns the threads that are ready, if all of them wait for kernel threads that are blocked in
/// the kernel, and no other thread of the runtime can go on.
pub(crate) fn behind_blocks(runtime: &RuntimeState) -> Option<Stalled> {
    let first = look(runtime)?;
    stanchion_machine::thread::yield_now();
    (look(runtime)? == first).then_some(first)
}

fn look(runtime: &RuntimeState) -> Option<Stalled> {
    let (processors, ready) = (&runtime.processors, &runtime.ready);
    if ready.timers.any() || processors.idle_workers.waiting() > 0 {
        return None;
    }
    let (mut held_up, mut names, mut blockers, mut with_slot) = (0, Vec::new(), Vec::new(), 0);
    let asleep = processors.parked.count();
    for worker in runtime.workers.started_records() {
        let local_ready = worker.ready();
        // It is in the scheduler: if it has ready threads, it will run them.
        if worker.ownership().is_in_scheduler() {
            with_slot += 1;
            if local_ready > 0 {
                return None;
            }
        // It is in a thread: if that is not blocked, it will come to a scheduling point.
        } else if worker.ownership().has_thread() {
            if !worker.is_stuck() {
                return None;
            }
            if local_ready > 0 {
                held_up += local_ready;
                names.extend(worker.mailed_names());
                blockers.extend(runtime.fibers.stacks.name_at(worker.stack()));
            }
        // It waits for a slot, with ready threads.
        } else if !worker.ownership().is_idle() {
            return None;
        }
    }
    if runtime.has_work() {
        // A kernel thread will do it, unless all are blocked and no more may be started.
        if with_slot > 0 || runtime.can_replace() {
            return None;
        }
        held_up += ready.normal.len() + ready.prioritized.count();
    }
    let none_runs = with_slot == asleep && processors.parked.count() == asleep;
    (held_up > 0 && none_runs).then(|| Stalled::behind_blocks(held_up, names, blockers))
}

/// Returns the names of the threads that have kept their processors since a look [`LONG_NS`] ago or
/// longer, while others are ready.
pub(crate) fn long_running(runtime: &RuntimeState) -> Vec<Option<String>> {
    let now = clock::monotonic();
    let has_work = runtime.has_work();
    let mut seen = runtime.seen_turns.lock();
    let mut long_running = Vec::new();
    for (index, worker) in runtime.workers.started_records().enumerate() {
        if index == seen.len() {
            seen.push((0, now));
        }
        let turn = worker.turn();
        let (last_turn, since) = seen[index];
        // It runs no thread, or has come to a scheduling point since the last look.
        if !worker.ownership().has_thread() || last_turn != turn {
            seen[index] = (turn, now);
        } else if now.saturating_sub(since) >= LONG_NS
            && (has_work && worker.ownership().is_in_thread() || worker.ready() > 0)
            && !worker.is_stuck()
        {
            long_running.push(runtime.fibers.stacks.name_at(worker.stack()));
        }
    }
    long_running
}
