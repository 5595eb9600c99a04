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
use stanchion_gang::barrier::Barrier;

use super::crossing::{self, Circumstances, Crossing, Member};
use super::{ROUNDS, in_words};
use crate::cell::{Against, Cell, Column, Contestant};
use crate::race::race;
use crate::{Effort, Options, Report};

/// The columns of a run's figures.
const COLUMNS: &[Column] =
    &[Column::median("ns", 0), Column::median("CPU ns", 0), Column::median("p99 ns", 0)];

/// The time of a run.
const LASTING: Duration = Duration::from_millis(60);

/// A function that measures a barrier for a time.
type Run = fn(Circumstances, Duration) -> Crossing;

/// Expands to the name of each barrier of the table at which members sleep, and the function that
/// measures it.
macro_rules! entrants {
    ([] $({
        $test:ident: $barrier:ty,
        name: $name:literal,
        sleeps: [$($type:ident, $sleeps:ident)?],
        $($rest:tt)*
    })+) => {
        &[$($((stringify!($type), ours::<$barrier>),)?)+]
    };
}

/// The barriers of this workspace.
const OURS: &[(&str, Run)] = stanchion_gang::__barriers!(entrants);

/// The barriers of others, and whether members that wait for long sleep.
const PEERS: &[(&str, bool, Run)] = &[
    ("hurdles", false, hurdles),
    ("std", true, standard),
    ("spin", false, spin),
    ("spin-then-yield", false, spin_then_yield),
];

/// The barrier that stands first: the one to take if nothing is known.
const FIRST: &str = "CoResident";

/// A barrier that can be measured in any circumstances.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    /// The name in tables.
    pub name: &'static str,
    /// True if the barriers of this workspace are compared with it.
    pub is_peer: bool,
    /// True if members that wait for long sleep.
    pub sleeps: bool,
    /// Measures the barrier for a time.
    pub run: fn(Circumstances, Duration) -> Crossing,
}

/// Returns all barriers. The first is the one to take if nothing is known.
#[must_use]
pub fn entrants() -> Vec<Entrant> {
    let (first, others): (Vec<_>, Vec<_>) = OURS.iter().partition(|(name, _)| *name == FIRST);
    let ours = first.into_iter().chain(others);
    let ours = ours.map(|&(name, run)| Entrant { name, is_peer: false, sleeps: true, run });
    let peers = PEERS.iter();
    let peers = peers.map(|&(name, sleeps, run)| Entrant { name, is_peer: true, sleeps, run });
    ours.chain(peers).collect()
}

impl<B: Barrier> Member for Waiter<Arc<B>> {
    fn cross(&mut self) {
        let _ = self.wait().expect("no member leaves");
    }
}

fn ours<B: Barrier>(cell: Circumstances, lasting: Duration) -> Crossing {
    let barrier = Arc::new(B::with_members(cell.threads).expect("so many are possible"));
    crossing::run(Waiter::all(barrier), cell, lasting)
}

impl Member for hurdles::Barrier {
    fn cross(&mut self) {
        self.wait();
    }
}

fn hurdles(cell: Circumstances, lasting: Duration) -> Crossing {
    let barrier = hurdles::Barrier::new(cell.threads);
    crossing::run(vec![barrier; cell.threads], cell, lasting)
}

impl Member for Arc<std::sync::Barrier> {
    fn cross(&mut self) {
        self.wait();
    }
}

fn standard(cell: Circumstances, lasting: Duration) -> Crossing {
    let barrier = Arc::new(std::sync::Barrier::new(cell.threads));
    crossing::run(vec![barrier; cell.threads], cell, lasting)
}

impl Member for Arc<peer_spin::Barrier> {
    fn cross(&mut self) {
        self.wait();
    }
}

fn spin(cell: Circumstances, lasting: Duration) -> Crossing {
    let barrier = Arc::new(peer_spin::Barrier::new(cell.threads));
    crossing::run(vec![barrier; cell.threads], cell, lasting)
}

/// The barrier of llama.cpp since its pull request 29258: some pauses, then yields.
struct SpinThenYield {
    /// The number of members that have arrived. The last one writes 0.
    arrived: stanchion_machine::topology::CachePadded<AtomicUsize>,
    /// The number of the crossing. The last member to arrive writes it.
    crossed: stanchion_machine::topology::CachePadded<AtomicUsize>,
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

fn spin_then_yield(cell: Circumstances, lasting: Duration) -> Crossing {
    let barrier = Arc::new(SpinThenYield {
        arrived: stanchion_machine::topology::CachePadded::new(AtomicUsize::new(0)),
        crossed: stanchion_machine::topology::CachePadded::new(AtomicUsize::new(0)),
        members: cell.threads,
    });
    crossing::run(vec![barrier; cell.threads], cell, lasting)
}

/// Returns the circumstances of two threads, each on a processor of its own.
fn pair() -> Circumstances {
    Circumstances { threads: 2, grain: 0, skewed: false, hogs: 0, pinned: true }
}

/// Returns all other circumstances.
fn grid() -> impl Iterator<Item = Circumstances> {
    [0, 2].into_iter().flat_map(|hogs| {
        [2, 4, 8, 16].into_iter().flat_map(move |threads| {
            let grains = [0, 1_000, 10_000, 100_000, 1_000_000].into_iter();
            grains.map(move |grain| Circumstances {
                threads,
                grain,
                skewed: false,
                hogs,
                pinned: false,
            })
        })
    })
}

fn cell(section: &str, circumstances: Circumstances) -> Cell {
    let Circumstances { threads, grain, hogs, pinned, .. } = circumstances;
    let pinned = if pinned { ", pinned" } else { "" };
    let grain = in_words(grain);
    let title = format!("{section}, {threads} threads, grain {grain}, {hogs} hogs{pinned}");
    let measure =
        |run: Run| move |effort: Effort| run(circumstances, effort.time(LASTING)).figures();
    let contestants = entrants().into_iter().map(|entrant| match entrant.is_peer {
        true => Contestant::peer(entrant.name, measure(entrant.run)),
        false => Contestant::new(entrant.name, measure(entrant.run)),
    });
    Cell::new(title, COLUMNS, Against::Best, contestants.collect()).sampled(0.5)
}

/// Returns the cells without work and without hogs.
pub(crate) fn cells() -> Vec<Cell> {
    let plain = grid().filter(|circumstances| circumstances.grain + circumstances.hogs as u64 == 0);
    let grid = plain.map(|circumstances| cell("grid", circumstances));
    [cell("pair", pair())].into_iter().chain(grid).collect()
}

/// Runs the pair, then all other cells.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    let mut report = Report::default();
    race("pair", vec![cell("pair", pair())], ROUNDS, options, progress, &mut report);
    let grid = grid().map(|circumstances| cell("grid", circumstances)).collect();
    race("grid", grid, ROUNDS, options, progress, &mut report);
    report
}
