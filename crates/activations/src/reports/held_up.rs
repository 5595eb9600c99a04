//! Threads that are held up by another thread on the only kernel thread that they can use, and
//! the threads that hold them up.
//!
//! `history.rs` says when threads share a kernel thread. If one of them then blocks it in the
//! kernel, or computes without end, the others wait for that. Here they are found, for metrics and
//! reports; nothing is done about it.
//!
//! A thread that spins cannot be told from one that computes. So what is reported is that it has
//! not come to a scheduling point for [`LONG_NS`] while others were ready: the number of its
//! worker's turn has not changed. Two looks are compared, so that a turn need not read a clock.

use machine::clock;
use stanchion_competitive::Mutex;

use crate::processors::worker_record::WorkerRecord;
use crate::runtime::state::RuntimeState;
use crate::reports::stall::Stalled;

/// For so long a thread keeps its processor before it is reported.
const LONG_NS: u64 = 100_000_000;

/// For each worker the turn that was last seen, and since when it has been seen.
#[derive(Default)]
pub(crate) struct ObservedTurns(Mutex<Vec<(u64, u64)>>);

impl RuntimeState {
    fn started_carriers(&self) -> impl Iterator<Item = &WorkerRecord> {
        (0..self.started()).map(|index| self.worker(index))
    }

    /// How many threads are ready, and wait for a kernel thread that is blocked in the kernel.
    pub(crate) fn held_up(&self) -> usize {
        let holds = |worker: &&WorkerRecord| worker.ready() > 0 && worker.is_stuck();
        self.started_carriers().filter(holds).map(WorkerRecord::ready).sum()
    }

    /// The threads that are ready, if all of them wait for kernel threads that are blocked in the
    /// kernel, and no other thread of the runtime can go on.
    pub(crate) fn stalled_behind_blocks(&self) -> Option<Stalled> {
        let first = self.held_at_a_look()?;
        machine::thread::yield_now();
        (self.held_at_a_look()? == first).then_some(first)
    }

    fn held_at_a_look(&self) -> Option<Stalled> {
        if self.awaits_time() || self.idle_workers().waiting() > 0 {
            return None;
        }
        let (mut held, mut names, mut blocked, mut with_slot) = (0, Vec::new(), Vec::new(), 0);
        let asleep = self.parked().count();
        for worker in self.started_carriers() {
            let ready = worker.ready();
            if worker.ownership().is_in_scheduler() {
                with_slot += 1;
                if ready > 0 {
                    return None;
                }
            } else if worker.ownership().has_thread() {
                if !worker.is_stuck() {
                    return None;
                }
                if ready > 0 {
                    held += ready;
                    names.extend(worker.names_in_mail());
                    blocked.extend(self.stacks().name_at(worker.stack()));
                }
            } else if !worker.ownership().is_spare() {
                return None;
            }
        }
        if self.has_work() {
            // A kernel thread will do it, unless all are blocked and no more may be started.
            if with_slot > 0 || self.can_replace() {
                return None;
            }
            held += self.ready_queue().len() + self.prioritized().count();
        }
        let none_runs = with_slot == asleep && self.parked().count() == asleep;
        (held > 0 && none_runs).then(|| Stalled::behind_blocks(held, names, blocked))
    }

    /// The names of the threads that have kept their processors since a look [`LONG_NS`] ago or
    /// longer, while others are ready.
    pub(crate) fn keeps_processors(&self) -> Vec<Option<String>> {
        let now = clock::monotonic();
        let has_work = self.has_work();
        let mut seen = self.turns().0.lock();
        let mut keep = Vec::new();
        for (index, worker) in self.started_carriers().enumerate() {
            if index == seen.len() {
                seen.push((0, now));
            }
            let turn = worker.turn();
            if !worker.ownership().has_thread() || seen[index].0 != turn {
                seen[index] = (turn, now);
            } else if now.saturating_sub(seen[index].1) >= LONG_NS
                && (has_work && worker.ownership().is_in_thread() || worker.ready() > 0)
                && !worker.is_stuck()
            {
                keep.push(self.stacks().name_at(worker.stack()));
            }
        }
        keep
    }
}
