//! The structures of `stanchion-lockfree` and their peers.
//!
//! A *pair* is two operations on one structure that is empty at first: a push and a pop, or two
//! additions. Threads do pairs for a window of time. After each operation they do other work for a
//! number of nanoseconds.
//!
//! The columns are:
//!
//! - `ns/pair`: the window, divided by the pairs of all threads. With 2 processors and other work
//!   of 500 ns, 500 ns of it are that work.
//! - `net`: `ns/pair` less the time that the threads take for the other work alone, in the same
//!   round.
//! - `CPU ns`: the processor time of all threads, divided by all pairs.
//! - `p99.9 ns` and `longest µs`: of one operation. Every 32nd pair is timed.
//! - `least/most`: the fewest pairs of a thread, divided by the most pairs of a thread.
//! - `granted, %`: the share of the computer's processor time that the threads got. Below 90 %,
//!   another program was running or the threads slept.
//! - `regret`: `ns/pair`, divided by that of the best peer in the same cell. Below 1, the structure
//!   is faster.
//!
//! On a computer that runs other programs too, give the contest precedence. As root, run
//! `echo -20 > /proc/self/autogroup; nice -n -20 target/release/stanchion-contests structures`,
//! and check that `granted` is near 100 %.

/// Adds the structures of one kind of the table to a family. `Ours` is the caller's.
macro_rules! ours {
    ([$family:expr] $({ $test:ident: $structure:ty, name: $name:literal, $($rest:tt)* })+) => {
        $family$(.ours::<Ours<$structure>>($name))+
    };
}

mod counters;
mod heaps;
mod queues;
mod reclamation;
mod stacks;
mod window;

use std::time::Duration;

use crate::cell::{Against, Cell, Column, Contestant};
use crate::race::race;
use crate::work::in_threads;
use crate::{Effort, Options, Report};
pub use window::{Load, Window};
use window::{Structure, other_work, window};

/// The columns of a window's figures.
const COLUMNS: &[Column] = &[
    Column::median("ns/pair", 1),
    Column::median("CPU ns", 1),
    Column::median("p99.9 ns", 0),
    Column::largest("longest µs", 1),
    Column::median("least/most", 2),
    Column::median("granted, %", 0),
];

/// The capacity of a bounded queue in a contest, and the first size of locked arrays.
const ROOM: usize = 1024;

/// The length of a window.
const WINDOW: Duration = Duration::from_millis(20);

/// The number of rounds of a contest.
const ROUNDS: usize = 15;

/// The numbers of threads.
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// A function that measures a structure in one window.
type Run = fn(Load<'_>, Duration) -> Window;

/// A structure that can be measured under any load.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    /// The name in tables.
    pub name: &'static str,
    /// True if the structures of this workspace are compared with it.
    pub is_peer: bool,
    /// Measures the structure in one window.
    pub run: Run,
}

/// Structures with the same task.
struct Family {
    /// The name in tables.
    name: &'static str,
    /// The structures, those of this workspace first.
    entrants: Vec<Entrant>,
}

impl Family {
    fn new(name: &'static str) -> Self {
        Self { name, entrants: Vec::new() }
    }

    fn ours<S: Structure>(self, name: &'static str) -> Self {
        self.with(Entrant { name, is_peer: false, run: window::<S> })
    }

    fn peer<S: Structure>(self, name: &'static str) -> Self {
        self.with(Entrant { name, is_peer: true, run: window::<S> })
    }

    fn with(mut self, entrant: Entrant) -> Self {
        self.entrants.push(entrant);
        self
    }

    fn cell(&self, title: String, load: Load<'static>) -> Cell {
        let contestants = self.entrants.iter().map(|entrant| {
            let run = entrant.run;
            let run = move |effort: Effort| run(load, effort.time(WINDOW)).figures();
            match entrant.is_peer {
                true => Contestant::peer(entrant.name, run),
                false => Contestant::new(entrant.name, run),
            }
        });
        let mut cell = Cell::new(title, COLUMNS, Against::BestPeer, contestants.collect());
        cell.other_work = Some(Box::new(move |effort| other_work(load, effort.time(WINDOW))));
        cell
    }
}

fn families() -> [Family; 6] {
    [
        queues::bounded(),
        queues::unbounded(),
        stacks::family(),
        heaps::family(),
        counters::family(),
        reclamation::family(),
    ]
}

/// Returns the queues: those with a bound, or those that grow.
#[must_use]
pub fn queues(bounded: bool) -> Vec<Entrant> {
    if bounded { queues::bounded() } else { queues::unbounded() }.entrants
}

/// Returns the stacks.
#[must_use]
pub fn stacks() -> Vec<Entrant> {
    stacks::family().entrants
}

/// Returns the priority queues.
#[must_use]
pub fn heaps() -> Vec<Entrant> {
    heaps::family().entrants
}

/// Returns the counters.
#[must_use]
pub fn counters() -> Vec<Entrant> {
    counters::family().entrants
}

/// Returns the cells without other work.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let of = |family: &Family| {
        THREADS.map(|threads| {
            let title = format!("{}, {}", family.name, in_threads(threads));
            family.cell(title, Load::pairs(threads, 0))
        })
    };
    families().iter().flat_map(of).collect()
}

/// Runs all families, without other work and with 500 ns of it.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    let mut report = Report::default();
    for family in families() {
        let loads = THREADS
            .into_iter()
            .flat_map(|threads| [0, 500].map(|work_ns| Load::pairs(threads, work_ns)));
        let cells = loads
            .map(|load| family.cell(format!("{}, {}", family.name, load.name()), load))
            .collect();
        race(family.name, cells, ROUNDS, options, progress, &mut report);
    }
    report
}
