//! The program that figures 5.2 to 5.4 project, and what the model takes of it.
//!
//! The paper's model has measured inputs, and prints few of them. Each here has its source beside it; those without one lie in a range, and
//! a projection's verdict must hold for every set of inputs in the ranges, not only for the one that is drawn. All times are in µs.
//!
//! "Central" is the paper's *local freelist*: lists of free blocks for each processor, one ready queue for all. "Local" is its *local readyq*,
//! where each processor also has a ready queue. A thread is enqueued once and dequeued once, so it visits two queues.

use stanchion_model::contention::{self, Demand, Equilibrium, Lock, Workload};
use stanchion_simulator::machine::Memory;
use stanchion_simulator::machines::symmetry_a;

use super::super::context::Stop;
use super::super::outcome::Table;
use crate::units::significant;

/// What the model takes of a thread package and its machine.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    /// Creating, starting and finishing a thread, alone. Section 3.6: PRESTO's 600 is "an order of magnitude worse than our threads".
    thread: f64,
    /// Enqueueing or dequeueing under a lock. Section 4.5: "both take less than 10".
    section: f64,
    /// Bus time of managing a thread. Not printed, but section 3.6 says that null threads on local ready queues fill the bus of 20 processors:
    /// more than 60 / 20.
    bus: f64,
    /// The share of it inside critical sections. Section 4.5: "almost half".
    inside: f64,
    /// Bus time that a waiting processor asks for in each section. Section 5.1: two cache misses.
    spinning: f64,
}

/// Where a ready thread waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    Central,
    Local,
}

pub(super) const CENTRAL: &str = "central ready queue";
pub(super) const LOCAL: &str = "local ready queues";

/// Two cache misses on the bus of the simulated Symmetry.
fn two_misses() -> f64 {
    match symmetry_a(20).memory {
        Memory::WriteThrough(memory) => 2e6 * memory.miss_bus.as_secs(),
        _ => unreachable!("Symmetry A writes through"),
    }
}

impl Inputs {
    /// The set that is drawn.
    pub(super) fn drawn() -> Self {
        Self { thread: 60.0, section: 10.0, bus: 6.0, inside: 0.45, spinning: two_misses() }
    }

    /// Every set that a verdict must hold for, the drawn one among them.
    pub(super) fn all() -> Vec<Self> {
        let drawn = Self::drawn();
        let mut all = Vec::new();
        for section in [0.6 * drawn.section, drawn.section] {
            for bus in [0.5, 1.0, 2.0].map(|factor| factor * drawn.bus) {
                for spinning in [0.5, 1.0, 2.0].map(|factor| factor * drawn.spinning) {
                    all.push(Self { section, bus, spinning, ..drawn });
                }
            }
        }
        all
    }

    /// The same, processors that wait being no load on the bus.
    pub(super) fn without_spinning(self) -> Self {
        Self { spinning: 0.0, ..self }
    }

    /// Threads that compute for `user`, a `load` of that time (0 to 1) on the bus.
    fn work(self, queue: Queue, user: f64, load: f64, processors: u32) -> Workload {
        let inside = self.inside * self.bus;
        let section = Demand { bus: inside / 2.0, cache: self.section - inside / 2.0 };
        let outside = self.bus - inside;
        let rest = self.thread - 2.0 * self.section - outside;
        let copies = if queue == Queue::Local { processors } else { 1 };
        Workload {
            user: Demand::with_share(user, load),
            outside: Demand { bus: outside, cache: rest },
            locks: vec![Lock::spread(2.0, section, copies)],
            spinning: self.spinning,
        }
    }

    pub(super) fn solve(
        self,
        queue: Queue,
        user: f64,
        load: f64,
        processors: u32,
    ) -> Result<Equilibrium, Stop> {
        contention::solve(&self.work(queue, user, load, processors), processors)
            .map_err(|error| Stop::Failed(error.to_string()))
    }
}

/// Thousands of threads a second.
pub(super) fn thousands(solved: &Equilibrium) -> f64 {
    1e3 * solved.throughput
}

/// A share of 1 in whole per cent.
pub(super) fn share(value: f64) -> String {
    format!("{:.0}\u{a0}%", 100.0 * value)
}

/// What went in, for the reader who wants to know.
pub(super) fn inputs() -> Table {
    let drawn = Inputs::drawn();
    let row = |what: &str, value: f64, range: String, source: &str| {
        vec![what.to_owned(), significant(value), range, source.to_owned()]
    };
    let around =
        |value: f64| format!("{} to {}", significant(0.5 * value), significant(2.0 * value));
    Table {
        title: "What the model takes, in µs for each thread".to_owned(),
        columns: ["input", "drawn", "verdict holds for", "source"].map(str::to_owned).into(),
        rows: vec![
            row(
                "thread management, alone",
                drawn.thread,
                "–".to_owned(),
                "section 3.6: an order of magnitude less than PRESTO's 600",
            ),
            row(
                "each of two critical sections, of that",
                drawn.section,
                format!("{} and {}", significant(0.6 * drawn.section), significant(drawn.section)),
                "section 4.5: less than 10",
            ),
            row(
                "bus time of thread management",
                drawn.bus,
                around(drawn.bus),
                "ours: not printed; section 3.6: 20 processors fill the bus, so more than 60 / 20",
            ),
            row(
                "share of it in critical sections",
                drawn.inside,
                "–".to_owned(),
                "section 4.5: almost half",
            ),
            row(
                "bus time of spinning, for each section that goes by",
                drawn.spinning,
                around(drawn.spinning),
                "section 5.1: two cache misses, as long as on the simulated Symmetry A",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_what_it_takes() {
        for queue in [Queue::Central, Queue::Local] {
            let alone = Inputs::drawn().solve(queue, 300.0, 0.05, 1).expect("it settles");
            assert!((alone.cycle - 360.0).abs() < 1e-6);
            assert!((alone.bus_utilization * alone.cycle - 21.0).abs() < 1e-6);
        }
        assert!((two_misses() - 0.6).abs() < 1e-9);
        assert_eq!(Inputs::all().len(), 18);
        assert_eq!(inputs().rows.len(), 5);
    }
}
