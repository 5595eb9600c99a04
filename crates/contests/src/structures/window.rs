//! Many threads on one structure for a window of time, every contestant in turn.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use machine::clock::now;

use crate::report;

/// A structure, and the two operations of a pair.
pub(crate) trait Structure: Sync {
    /// Returns an empty structure.
    fn make() -> Self;
    /// Puts a number in. The numbers of one thread count up by one, and no two threads use the same
    /// number.
    fn first(&self, number: u64);
    /// Takes a number out.
    fn second(&self);
}

/// No structure: only the other work is done.
struct Nothing;

impl Structure for Nothing {
    fn make() -> Self {
        Self
    }

    fn first(&self, number: u64) {
        black_box(number);
    }

    fn second(&self) {
        black_box(self);
    }
}

/// A structure that runs under one name.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// True if the structures of this workspace are compared with it.
    pub(crate) peer: bool,
    /// Measures the structure in one window.
    run: fn(&Cell, Duration) -> Window,
}

/// Contestants with the same task.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) contestants: Vec<Contestant>,
}

impl Family {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, contestants: Vec::new() }
    }

    pub(crate) fn ours<S: Structure>(mut self, name: &'static str) -> Self {
        self.contestants.push(Contestant { name, peer: false, run: window::<S> });
        self
    }

    pub(crate) fn peer<S: Structure>(mut self, name: &'static str) -> Self {
        self.contestants.push(Contestant { name, peer: true, run: window::<S> });
        self
    }
}

/// The number of threads, and the amount of other work after each operation.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) threads: usize,
    pub(crate) work_ns: u64,
    /// The other work in iterations of an empty loop.
    turns: u64,
}

impl Cell {
    pub(crate) fn name(&self) -> String {
        let s = if self.threads == 1 { "" } else { "s" };
        format!("{} thread{s}, {} ns", self.threads, self.work_ns)
    }
}

/// The result of one contestant in one window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Window {
    pub(crate) ns_per_pair: f64,
    pub(crate) net: f64,
    pub(crate) cpu_per_pair: f64,
    pub(crate) fairness: f64,
    pub(crate) granted: f64,
    pub(crate) tail_ns: f64,
    pub(crate) longest_ns: f64,
}

/// The options of the command line.
pub(crate) struct Options {
    /// The selected parts of `family/contestant/cell`. Empty: all.
    filters: Vec<String>,
    /// The number of rounds.
    rounds: usize,
    /// The length of a window.
    window: Duration,
}

impl Options {
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, String> {
        let mut options =
            Self { filters: Vec::new(), rounds: 15, window: Duration::from_millis(20) };
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let value = arguments.next().unwrap_or_default();
                value.parse::<u32>().ok().filter(|&number| number > 0).ok_or_else(|| {
                    format!("{argument} {value}: wants a whole number from 1; try {argument} 20")
                })
            };
            match argument.as_str() {
                // Given by cargo.
                "--bench" => {}
                // Given by `cargo test --benches`: only shows whether everything runs.
                "--test" => {
                    options.rounds = 1;
                    options.window = Duration::from_millis(1);
                }
                "--rounds" => options.rounds = number()? as usize,
                "--window" => options.window = Duration::from_millis(number()?.into()),
                option if option.starts_with('-') => {
                    return Err(format!(
                        "{option}: no such option; there are --rounds N and --window MS"
                    ));
                }
                _ => options.filters.push(argument),
            }
        }
        Ok(options)
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Returns whether a filter asks for this cell, or there is no filter.
    pub(crate) fn wants(&self, family: &str, contestant: &str, cell: &str) -> bool {
        let name = format!("{family}/{contestant}/{cell}");
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

/// Runs all cells of a family. Prints each one when it is done, and the regrets in the end.
pub(crate) fn run(family: &Family, options: &Options) {
    let mut standings = Vec::new();
    for (threads, work_ns) in [1, 2, 4, 8].into_iter().flat_map(|p| [(p, 0), (p, 500)]) {
        let cell = Cell { threads, work_ns, turns: (work_ns as f64 / ns_per_turn()) as u64 };
        let running: Vec<&Contestant> = family
            .contestants
            .iter()
            .filter(|contestant| options.wants(family.name, contestant.name, &cell.name()))
            .collect();
        if running.is_empty() {
            continue;
        }
        let mut windows = vec![Vec::new(); running.len()];
        for round in 0..options.rounds {
            let nothing = if cell.turns > 0 {
                window::<Nothing>(&cell, options.window).ns_per_pair
            } else {
                0.0
            };
            for place in 0..running.len() {
                let which = if round % 2 == 0 { place } else { running.len() - 1 - place };
                let mut window = (running[which].run)(&cell, options.window);
                window.net = window.ns_per_pair - nothing;
                windows[which].push(window);
            }
        }
        let rows = running.into_iter().zip(windows.iter().map(|windows| medians(windows)));
        standings.push(report::cell(family, &cell, rows.collect()));
    }
    report::family(family, &standings);
}

/// Returns the median of each figure. The longest wait is the longest of all.
fn medians(windows: &[Window]) -> Window {
    let of = |figure: fn(&Window) -> f64| {
        let mut figures: Vec<f64> = windows.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Window {
        ns_per_pair: of(|window| window.ns_per_pair),
        net: of(|window| window.net),
        cpu_per_pair: of(|window| window.cpu_per_pair),
        fairness: of(|window| window.fairness),
        granted: of(|window| window.granted),
        tail_ns: of(|window| window.tail_ns),
        longest_ns: windows.iter().map(|window| window.longest_ns).fold(0.0, f64::max),
    }
}

/// The result of one thread.
struct Share {
    /// The time at which the thread began.
    start: Instant,
    /// The number of pairs that it did.
    pairs: u64,
    /// The processor time that it got.
    processor: Duration,
    /// For each k, the number of timed operations that took from 2^(k/4) ns on.
    waits: [u64; 128],
    /// The longest of the timed operations.
    longest_ns: u64,
}

/// One of this many pairs is timed.
const LOOK: u64 = 32;

fn window<S: Structure>(cell: &Cell, length: Duration) -> Window {
    let structure = S::make();
    let (ready, over) = (Barrier::new(cell.threads + 1), AtomicBool::new(false));
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    let (elapsed, shares) = thread::scope(|scope| {
        let workers: Vec<_> = (0..cell.threads as u64)
            .map(|index| {
                let (structure, ready, over) = (&structure, &ready, &over);
                let processor = processors.get(index as usize % processors.len().max(1)).copied();
                scope.spawn(move || {
                    // Otherwise the kernel may leave all threads on the processors where they
                    // began, for the whole window.
                    if let Some(processor) = processor {
                        core_affinity::set_for_current(processor);
                    }
                    ready.wait();
                    pairs(structure, index << 40, cell.turns, over)
                })
            })
            .collect();
        ready.wait();
        thread::sleep(length);
        over.store(true, Relaxed);
        let end = Instant::now();
        let join = |worker: thread::ScopedJoinHandle<'_, Share>| worker.join().expect("no panic");
        let shares: Vec<_> = workers.into_iter().map(join).collect();
        // This thread may have left the barrier last.
        let start = shares.iter().map(|share| share.start).min().unwrap_or(end);
        (end - start, shares)
    });
    summary(cell, elapsed, &shares)
}

fn pairs<S: Structure>(structure: &S, from: u64, turns: u64, over: &AtomicBool) -> Share {
    let mut share = Share {
        start: Instant::now(),
        pairs: 0,
        processor: Duration::ZERO,
        waits: [0; 128],
        longest_ns: 0,
    };
    let start = thread_time();
    while !over.load(Relaxed) {
        let number = from + share.pairs;
        if share.pairs.is_multiple_of(LOOK) {
            let (mut before, mut after) = (now(), now());
            for first in [true, false] {
                if first {
                    structure.first(number)
                } else {
                    structure.second()
                };
                (before, after) = (after, now());
                share.note(after.nanos_since(before));
                work(turns);
                after = if turns > 0 { now() } else { after };
            }
            black_box((before, after));
        } else {
            structure.first(number);
            work(turns);
            structure.second();
            work(turns);
        }
        share.pairs += 1;
    }
    share.processor = thread_time().saturating_sub(start);
    share
}

impl Share {
    fn note(&mut self, nanos: u64) {
        let class = (nanos.max(1) as f64).log2() * 4.0;
        self.waits[(class as usize).min(127)] += 1;
        self.longest_ns = self.longest_ns.max(nanos);
    }
}

fn summary(cell: &Cell, elapsed: Duration, shares: &[Share]) -> Window {
    let pairs = shares.iter().map(|share| share.pairs).sum::<u64>().max(1) as f64;
    let processor: Duration = shares.iter().map(|share| share.processor).sum();
    let least = shares.iter().map(|share| share.pairs).min().unwrap_or(0) as f64;
    let most = shares.iter().map(|share| share.pairs).max().unwrap_or(0).max(1) as f64;
    let processors = thread::available_parallelism().map_or(1, usize::from).min(cell.threads);
    let seen = |class: usize| shares.iter().map(|share| share.waits[class]).sum::<u64>();
    let all: u64 = (0..128).map(seen).sum();
    let mut beyond = 0;
    let tail = (0..128)
        .rev()
        .find(|&class| {
            beyond += seen(class);
            beyond * 1_000 > all
        })
        .unwrap_or(0);
    Window {
        ns_per_pair: elapsed.as_nanos() as f64 / pairs,
        net: 0.0,
        cpu_per_pair: processor.as_nanos() as f64 / pairs,
        fairness: least / most,
        granted: processor.as_secs_f64() / (elapsed.as_secs_f64() * processors as f64),
        tail_ns: 2_f64.powf(tail as f64 / 4.0),
        longest_ns: shares.iter().map(|share| share.longest_ns).max().unwrap_or(0) as f64,
    }
}

/// Does other work: a loop that touches no memory, as in the paper.
#[inline]
fn work(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// Returns the time of one iteration of the loop: the best of several tries.
fn ns_per_turn() -> f64 {
    static MEASURED: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *MEASURED.get_or_init(|| {
        const TURNS: u64 = 1_000_000;
        let of_a_try = |_| {
            let start = Instant::now();
            work(TURNS);
            start.elapsed().as_nanos() as f64 / TURNS as f64
        };
        (0..20).map(of_a_try).fold(f64::INFINITY, f64::min)
    })
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is memory for the answer, and no other code uses it.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "no clock of this thread's processor time");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
