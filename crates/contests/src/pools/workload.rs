//! Workloads, and runs of them in processes of their own.

use super::apart::run_apart;
use crate::Effort;
use crate::cell::{Against, Cell, Column, Contestant, Figures};
use crate::work::in_threads;

/// The columns of a run's figures.
const COLUMNS: &[Column] =
    &[Column::median("ns/item", 1), Column::median("p99 ns", 0), Column::median("CPU ns", 1)];

/// The times of one run, in nanoseconds for each item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time of the run, divided by the items. For latencies: the median of the items.
    pub(crate) ns: f64,
    /// The 99th percentile of the items of a latency. NaN for all other workloads.
    pub(crate) p99: f64,
    /// The processor time of the process, divided by the items.
    pub(crate) cpu: f64,
}

/// A pool that does the workload.
struct Entrant {
    /// The name in tables.
    name: &'static str,
    /// True if the pools of this workspace are compared with it.
    is_peer: bool,
    /// Does a number of items with a number of threads, which is the first argument.
    run: fn(usize, usize) -> Times,
}

/// A number of items, done by pools with several numbers of threads.
pub(crate) struct Workload {
    /// The name in tables.
    pub(crate) name: &'static str,
    /// The number of items of a contest's run.
    items: usize,
    /// The share of the items that is enough for one sample of criterion.
    sample: f64,
    /// The numbers of threads: a cell for each.
    threads: &'static [usize],
    /// The pools.
    entrants: Vec<Entrant>,
}

impl Workload {
    pub(crate) fn new(name: &'static str, items: usize, threads: &'static [usize]) -> Self {
        Self { name, items, sample: 1.0, threads, entrants: Vec::new() }
    }

    /// Sets the share of the items that is enough for one sample of criterion.
    pub(crate) fn sampled(self, sample: f64) -> Self {
        Self { sample, ..self }
    }

    pub(crate) fn ours(self, name: &'static str, run: fn(usize, usize) -> Times) -> Self {
        self.with(Entrant { name, is_peer: false, run })
    }

    pub(crate) fn peer(self, name: &'static str, run: fn(usize, usize) -> Times) -> Self {
        self.with(Entrant { name, is_peer: true, run })
    }

    fn with(mut self, entrant: Entrant) -> Self {
        self.entrants.push(entrant);
        self
    }

    /// Returns a cell for each number of threads. Each run of it has a process of its own.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let cell = |&threads: &usize| {
            let contestants = self.entrants.iter().map(|entrant| {
                let (workload, name, items) = (self.name, entrant.name, self.items);
                let run = move |effort: Effort| apart(workload, name, threads, effort.count(items));
                match entrant.is_peer {
                    true => Contestant::peer(name, run),
                    false => Contestant::new(name, run),
                }
            });
            let title = format!("{}, {}", self.name, in_threads(threads));
            let cell = Cell::new(title, COLUMNS, Against::BestPeer, contestants.collect());
            cell.sampled(self.sample)
        };
        self.threads.iter().map(cell).collect()
    }
}

/// Does one run in a process of its own, where no other pool has left threads behind.
fn apart(workload: &str, name: &str, threads: usize, items: usize) -> Figures {
    let told = format!("{workload}|{name}|{threads}|{items}");
    let figures = run_apart(&told);
    assert_eq!(figures.len(), COLUMNS.len(), "the run {told} says something else");
    figures
}

/// Does the run of one of `workloads` that this process was told.
pub(crate) fn serve(told: &str, workloads: &[Workload]) {
    let parts: Vec<&str> = told.split('|').collect();
    let [workload, name, threads, items] = parts[..] else { panic!("{told}") };
    let workload = workloads.iter().find(|known| known.name == workload);
    let mut entrants = workload.into_iter().flat_map(|workload| &workload.entrants);
    let entrant = entrants.find(|known| known.name == name);
    let number = |word: &str| word.parse().expect("a number");
    let run = entrant.expect("a workload and a contestant of this program").run;
    let Times { ns, p99, cpu } = run(number(threads), number(items));
    println!("{ns} {p99} {cpu}");
}
