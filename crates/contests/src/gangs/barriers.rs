//! Barriers, of this workspace and of others, in many circumstances.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::thread::yield_now;
use std::time::Duration;

use stanchion_gang::Waiter;
use stanchion_gang::barrier::{
    Barrier, BitMask, Blocking, Central, CoResident, Dissemination, Tree, TwoPhase,
};

use crate::measure::{self, Cell, Figures, Member, median};
use crate::options::Options;

/// A barrier, and a function that measures it in a cell.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// Measures the barrier in a cell for a time.
    run: fn(Cell, Duration) -> Figures,
}

const CONTESTANTS: [Contestant; 11] = [
    Contestant { name: "CoResident", run: ours::<CoResident> },
    Contestant { name: "Central", run: ours::<Central> },
    Contestant { name: "BitMask", run: ours::<BitMask> },
    Contestant { name: "Tree", run: ours::<Tree> },
    Contestant { name: "Dissemination", run: ours::<Dissemination> },
    Contestant { name: "Blocking", run: ours::<Blocking> },
    Contestant { name: "TwoPhase", run: ours::<TwoPhase> },
    Contestant { name: "hurdles (peer)", run: hurdles },
    Contestant { name: "std (peer)", run: standard },
    Contestant { name: "spin (peer)", run: spin },
    Contestant { name: "spin-then-yield (peer)", run: spin_then_yield },
];

impl<B: Barrier> Member for Waiter<Arc<B>> {
    fn cross(&mut self) {
        let _ = self.wait().expect("no member leaves");
    }
}

fn ours<B: Barrier>(cell: Cell, lasting: Duration) -> Figures {
    let barrier = Arc::new(B::with_members(cell.threads).expect("so many are possible"));
    measure::run(Waiter::all(barrier), cell, lasting)
}

impl Member for hurdles::Barrier {
    fn cross(&mut self) {
        self.wait();
    }
}

fn hurdles(cell: Cell, lasting: Duration) -> Figures {
    let barrier = hurdles::Barrier::new(cell.threads);
    measure::run(vec![barrier; cell.threads], cell, lasting)
}

impl Member for Arc<std::sync::Barrier> {
    fn cross(&mut self) {
        self.wait();
    }
}

fn standard(cell: Cell, lasting: Duration) -> Figures {
    let barrier = Arc::new(std::sync::Barrier::new(cell.threads));
    measure::run(vec![barrier; cell.threads], cell, lasting)
}

impl Member for Arc<peer_spin::Barrier> {
    fn cross(&mut self) {
        self.wait();
    }
}

fn spin(cell: Cell, lasting: Duration) -> Figures {
    let barrier = Arc::new(peer_spin::Barrier::new(cell.threads));
    measure::run(vec![barrier; cell.threads], cell, lasting)
}

/// The barrier of llama.cpp since its pull request 29258: some pauses, then yields.
struct SpinThenYield {
    /// The number of members that have arrived. The last one writes 0.
    arrived: machine::topology::CachePadded<AtomicUsize>,
    /// The number of the crossing. The last member to arrive writes it.
    crossed: machine::topology::CachePadded<AtomicUsize>,
    /// The number of members.
    members: usize,
}

/// The number of pauses before the first yield.
const PAUSES: usize = 2_048;

impl Member for Arc<SpinThenYield> {
    fn cross(&mut self) {
        let crossed = self.crossed.load(Relaxed);
        if self.arrived.fetch_add(1, AcqRel) == self.members - 1 {
            self.arrived.store(0, Relaxed);
            self.crossed.store(crossed.wrapping_add(1), Release);
            return;
        }
        let mut pauses = 0;
        while self.crossed.load(Acquire) == crossed {
            if pauses < PAUSES {
                pauses += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
    }
}

fn spin_then_yield(cell: Cell, lasting: Duration) -> Figures {
    let barrier = Arc::new(SpinThenYield {
        arrived: machine::topology::CachePadded::new(AtomicUsize::new(0)),
        crossed: machine::topology::CachePadded::new(AtomicUsize::new(0)),
        members: cell.threads,
    });
    measure::run(vec![barrier; cell.threads], cell, lasting)
}

/// Returns the cells with two threads, each on a processor of its own.
pub(crate) fn pair() -> Vec<Cell> {
    vec![Cell { threads: 2, grain: 0, hogs: 0, pinned: true }]
}

/// Returns all other cells.
pub(crate) fn grid() -> Vec<Cell> {
    let mut cells = Vec::new();
    for hogs in [0, 2] {
        for threads in [2, 4, 8, 16] {
            for grain in [0, 1_000, 10_000, 100_000, 1_000_000] {
                cells.push(Cell { threads, grain, hogs, pinned: false });
            }
        }
    }
    cells
}

fn name(cell: Cell) -> String {
    let grain = match cell.grain {
        nanos if nanos < 1_000_000 => format!("{} µs", nanos / 1_000),
        nanos => format!("{} ms", nanos / 1_000_000),
    };
    let pinned = if cell.pinned { ", pinned" } else { "" };
    format!("{} threads, grain {grain}, {} hogs{pinned}", cell.threads, cell.hogs)
}

/// Runs the selected cells and prints all of them in the end.
pub(crate) fn run(section: &str, cells: &[Cell], options: &Options) {
    let running: Vec<_> =
        CONTESTANTS.iter().filter(|known| options.wants_contestant(known.name)).collect();
    let cells: Vec<_> = cells.iter().filter(|cell| options.wants_cell(&name(**cell))).collect();
    if running.is_empty() || cells.is_empty() {
        return;
    }
    let mut rounds = vec![vec![Vec::new(); running.len()]; cells.len()];
    for round in 0..options.rounds() {
        for (cell, rounds) in cells.iter().zip(&mut rounds) {
            for place in 0..running.len() {
                let which = if round % 2 == 0 { place } else { running.len() - 1 - place };
                rounds[which].push((running[which].run)(**cell, options.lasting()));
            }
        }
    }
    let mut worst = vec![(0.0, String::new()); running.len()];
    for (cell, rounds) in cells.iter().zip(&rounds) {
        let cell = name(**cell);
        let medians: Vec<Figures> = rounds.iter().map(|rounds| medians(rounds)).collect();
        let best = medians.iter().map(|figures| figures.ns).fold(f64::INFINITY, f64::min);
        println!("\n{section}: {cell}");
        println!("{:<34} {:>11} {:>11} {:>11} {:>8}", "", "ns", "CPU", "p99", "regret");
        for ((contestant, figures), worst) in running.iter().zip(medians).zip(&mut worst) {
            let Figures { ns, cpu, p99 } = figures;
            let regret = ns / best;
            println!("{:<34} {ns:>11.0} {cpu:>11.0} {p99:>11.0} {regret:>8.2}", contestant.name);
            if regret > worst.0 {
                *worst = (regret, cell.clone());
            }
        }
    }
    println!("\n{section}: worst regret of {} cells", cells.len());
    for (contestant, (regret, cell)) in running.iter().zip(worst) {
        println!("{:<34} {regret:>8.2} in {cell}", contestant.name);
    }
}

/// Returns the median of each figure.
fn medians(rounds: &[Figures]) -> Figures {
    let of =
        |figure: fn(&Figures) -> f64| median(&mut rounds.iter().map(figure).collect::<Vec<_>>());
    Figures { ns: of(|run| run.ns), cpu: of(|run| run.cpu), p99: of(|run| run.p99) }
}
