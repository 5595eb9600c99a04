//! Table 3.1 in virtual time: the cost of an uncontended lock and unlock on the simulated machine.
//!
//! The simulated Symmetry is calibrated to this table: its exchange takes half of 5.6 µs. A lock of
//! this project is more than two exchanges. This table checks the calibration: such a lock should
//! cost what the paper measured. The other rows are computations of programs, which take the time
//! that they are given (see the notes of figure 4.1).
//!
//! Rule of the verdict, on the Symmetry Model A: *holds* if acquiring and releasing the paper's own
//! lock (test-and-set with backoff) takes 5.6 µs, give or take 5 %; else *differs*. On another
//! machine the table says nothing, and the claim is *not judged*.

use stanchion_simulator::Machine;

use super::LOCK;
use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Verdict};
use stanchion_study::simulation::cells;
use stanchion_study::units::{nanos, percent};
use stanchion_study_locks::list::Way;

/// The paper's time of a lock and its unlock, in nanoseconds.
const PAPER: f64 = 5_600.0;
const WITHIN: f64 = 0.05;

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let all = Vec::from_iter(0..LOCKS.len());
    context.plan(all.len());
    let (times, seed) = (context.pick(1_000, 10_000), context.seed);
    let costs = cells(context, machine, &all, |&lock| (LOCKS[lock].latency)(machine, times, seed))?;
    let ours = costs[of_way(Way::Backoff)];
    let verdict = verdict(machine, ours);
    let rows = LOCKS.iter().zip(&costs);
    Ok(Outcome {
        comparisons: vec![Comparison::new(LOCK, "5.6 µs", nanos(ours))],
        pictures: vec![Picture {
            title: "Lock and unlock, uncontended".to_owned(),
            shape: Shape::Rows,
            x: Axis::linear("processors"),
            y: Axis::linear("ns"),
            series: rows.map(|(lock, &cost)| Series::new(lock.name, [(1.0, cost)])).collect(),
        }],
        notes: vec![format!(
            "The mean of {times} times in virtual time, all lines in the cache. What the locks compute beside their accesses of memory takes no time."
        )],
        ..Outcome::new(verdict)
    })
}

fn verdict(machine: &Machine, lock: f64) -> Verdict {
    let off = lock / PAPER - 1.0;
    if machine.name == "symmetry-a" {
        let figures = format!("{} against 5.6 µs, {} off", nanos(lock), percent(off.abs()));
        Verdict::when(off.abs() <= WITHIN, figures)
    } else {
        Verdict::NotJudged(format!("the table is of the Symmetry Model A; here {}", nanos(lock)))
    }
}

#[cfg(test)]
mod tests {
    use lock_api::{GuardSend, RawMutex};
    use sim_machine::atomic::{AtomicBool, Ordering};
    use sim_machine::wait::Spin;
    use sim_spin::TestAndSet;
    use sim_spin::contention::Ethernet;
    use stanchion_simulator::machines;

    use super::*;
    use stanchion_simulated_locks::latency;

    /// A lock that exchanges so many times to be acquired, and is good for one thread only.
    struct Wrong<const TIMES: usize>(AtomicBool);

    // SAFETY: it excludes no other thread, but only one thread uses it.
    unsafe impl<const TIMES: usize> RawMutex for Wrong<TIMES> {
        const INIT: Self = Self(AtomicBool::new(false));
        type Guard = GuardSend;

        fn lock(&self) -> GuardSend {
            for _ in 0..TIMES {
                // Acquire: costs what it costs in a lock. It has no partner, with one thread.
                self.0.swap(true, Ordering::Acquire);
            }
            GuardSend::new()
        }

        fn try_lock(&self) -> Option<GuardSend> {
            Some(self.lock())
        }

        unsafe fn unlock(&self, _guard: GuardSend) {
            // Release: like the Acquire of `lock`, only for its cost.
            self.0.store(false, Ordering::Release);
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn judged<R: RawMutex + 'static>() -> Verdict {
        let machine = machines::symmetry_a(20);
        verdict(&machine, latency::run::<R>(&machine, 1_000, 1).unwrap())
    }

    #[test]
    fn only_two_exchanges_cost_what_the_paper_measured() {
        for right in [judged::<TestAndSet<Ethernet, Spin>>(), judged::<Wrong<1>>()] {
            assert_eq!(right.name(), "holds", "{right:?}");
        }
        for wrong in [judged::<Wrong<0>>(), judged::<Wrong<2>>()] {
            assert_eq!(wrong.name(), "differs", "{wrong:?}");
        }
    }
}
