//! Threads that are held up by another thread on the only kernel thread that they can use, and
//! the threads that hold them up.
//!
//! `history.rs` says when threads share a kernel thread. If one of them then blocks it in the
//! kernel, or computes without end, the others wait for that. Here they are found, for metrics and
//! reports; nothing is done about it.
//!
//! A thread that spins cannot be told from one that computes. So what is reported is that it has
//! not come to a scheduling point for [`LONG_NS`] while others were ready: the number of its
//! carrier's turn has not changed. Two looks are compared, so that a turn need not read a clock.

use machine::clock;
use stanchion_competitive::Mutex;

use crate::processors::worker_record::Carrier;
use crate::runtime::state::Shared;
use crate::reports::stall::Stalled;

/// For so long a thread keeps its processor before it is reported.
const LONG_NS: u64 = 100_000_000;

/// For each carrier the turn that was last seen, and since when it has been seen.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Vec<(u64, u64)>>);

impl Shared {
    fn started_carriers(&self) -> impl Iterator<Item = &Carrier> {
        (0..self.started()).map(|index| self.carrier(index))
    }

    /// How many threads are ready, and wait for a kernel thread that is blocked in the kernel.
    pub(crate) fn held_up(&self) -> usize {
        let holds = |carrier: &&Carrier| carrier.ready() > 0 && carrier.is_stuck();
        self.started_carriers().filter(holds).map(Carrier::ready).sum()
    }

    /// The threads that are ready, if all of them wait for kernel threads that are blocked in the
    /// kernel, and no other thread of the runtime can go on.
    pub(crate) fn stalled_behind_blocks(&self) -> Option<Stalled> {
        let first = self.held_at_a_look()?;
        machine::thread::yield_now();
        (self.held_at_a_look()? == first).then_some(first)
    }

    fn held_at_a_look(&self) -> Option<Stalled> {
        if self.awaits_time() || self.reserve().waiting() > 0 {
            return None;
        }
        let (mut held, mut names, mut blocked, mut seated) = (0, Vec::new(), Vec::new(), 0);
        let asleep = self.sleeping().count();
        for carrier in self.started_carriers() {
            let ready = carrier.ready();
            if carrier.standing().is_in_scheduler() {
                seated += 1;
                if ready > 0 {
                    return None;
                }
            } else if carrier.standing().has_thread() {
                if !carrier.is_stuck() {
                    return None;
                }
                if ready > 0 {
                    held += ready;
                    names.extend(carrier.names_in_mail());
                    blocked.extend(self.stacks().name_at(carrier.stack()));
                }
            } else if !carrier.standing().is_spare() {
                return None;
            }
        }
        if self.has_work() {
            // A kernel thread will do it, unless all are blocked and no more may be started.
            if seated > 0 || self.can_replace() {
                return None;
            }
            held += self.ready_queue().len() + self.unusual().count();
        }
        let none_runs = seated == asleep && self.sleeping().count() == asleep;
        (held > 0 && none_runs).then(|| Stalled::behind_blocks(held, names, blocked))
    }

    /// The names of the threads that have kept their processors since a look [`LONG_NS`] ago or
    /// longer, while others are ready.
    pub(crate) fn keeps_processors(&self) -> Vec<Option<String>> {
        let now = clock::monotonic();
        let has_work = self.has_work();
        let mut seen = self.turns().0.lock();
        let mut keep = Vec::new();
        for (index, carrier) in self.started_carriers().enumerate() {
            if index == seen.len() {
                seen.push((0, now));
            }
            let turn = carrier.turn();
            if !carrier.standing().has_thread() || seen[index].0 != turn {
                seen[index] = (turn, now);
            } else if now.saturating_sub(seen[index].1) >= LONG_NS
                && (has_work && carrier.standing().is_in_thread() || carrier.ready() > 0)
                && !carrier.is_stuck()
            {
                keep.push(self.stacks().name_at(carrier.stack()));
            }
        }
        keep
    }
}
