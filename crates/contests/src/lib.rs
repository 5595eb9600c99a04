#![doc = include_str!("../README.md")]

pub mod cell;
pub mod gangs;
pub mod handover;
mod options;
pub mod pools;
mod race;
mod report;
pub mod statistics;
pub mod structures;
pub mod threads;
pub mod work;

pub use options::{Effort, Options};
pub use pools::serve_run;
pub use report::{Part, Report, Row, Table, Value};

/// The function of a contest. It calls its second argument with a line before each cell.
type Run = fn(&Options, &mut dyn FnMut(&str)) -> Report;

/// A contest: contestants that do the same operations, in many cells.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// The name by which it is run.
    pub name: &'static str,
    /// One line on what is measured.
    pub about: &'static str,
    /// Runs it. The arguments are those of [`Contest::run`].
    run: Run,
}

impl Contest {
    /// Runs the selected cells. Calls `progress` with a line before each of them.
    ///
    /// # Panics
    ///
    /// If a contestant fails, or the system refuses threads, descriptors or memory. Contests of
    /// pools also panic in a program that does not call [`serve_run`].
    #[must_use]
    pub fn run(&self, options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
        (self.run)(options, progress)
    }
}

/// All contests.
pub const CONTESTS: [Contest; 14] = [
    Contest {
        name: "structures",
        about: "Queues, stacks, heaps, counters and reclamation: regret, tails, fairness",
        run: structures::contest,
    },
    Contest {
        name: "handover",
        about: "Values that threads hand to others through queues and channels: processor time",
        run: handover::contest,
    },
    Contest {
        name: "pools",
        about: "Thread pools: forks, tasks and a crowded machine, with processor time and regret",
        run: pools::contest,
    },
    Contest {
        name: "latencies",
        about: "Thread pools: wake-ups, bursts and coarse forks, with the 99th percentile",
        run: pools::latencies_contest,
    },
    Contest {
        name: "idle",
        about: "Pools and executors without work: their processor time",
        run: pools::idle_contest,
    },
    Contest {
        name: "barriers",
        about: "Barriers in 41 circumstances: regret, tails, processor time",
        run: gangs::barriers::contest,
    },
    Contest {
        name: "gangs",
        about: "Gangs that take turns against threads without coordination, and where they cross",
        run: gangs::groups::contest,
    },
    Contest {
        name: "slots",
        about: "A switch from one gang to another, in each mode: quantiles",
        run: gangs::slots::contest,
    },
    Contest {
        name: "fork",
        about: "A thread that does nothing is made, run and joined: processor time",
        run: threads::fork::contest,
    },
    Contest {
        name: "signal",
        about: "Two threads that wake each other in turn: processor time",
        run: threads::signal::contest,
    },
    Contest {
        name: "blocked",
        about: "Threads that block in the kernel half of the time: the used share of processors",
        run: threads::blocked::contest,
    },
    Contest {
        name: "upcall",
        about: "The time until another thread runs in place of a blocked one: quantiles",
        run: threads::upcall::contest,
    },
    Contest {
        name: "hogs",
        about: "Phases of short threads beside other programs: processor time",
        run: threads::hogs::contest,
    },
    Contest {
        name: "waits",
        about: "Programs with threads that wait in user space while others block: processor time",
        run: threads::waits::contest,
    },
];

/// Returns the contest of that name.
///
/// ```
/// let contest = stanchion_contests::find("barriers").expect("there is one");
/// assert_eq!(contest.name, "barriers");
/// assert!(stanchion_contests::find("ballet").is_none());
/// ```
#[must_use]
pub fn find(name: &str) -> Option<&'static Contest> {
    CONTESTS.iter().find(|contest| contest.name == name)
}
