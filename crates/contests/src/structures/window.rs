//! Many threads on one structure for a window of time.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::clock::now;

use crate::cell::Figures;
use crate::work::{in_threads, thread_time};

/// A structure, and the two operations of a pair.
pub(crate) trait Structure: Sync {
    /// Returns an empty structure, with room for so many numbers if it has a bound.
    fn make(room: usize) -> Self;
    /// Puts a number in, or returns false if there is no room. The numbers of one thread count up
    /// by one, and no two threads use the same number.
    fn first(&self, number: u64) -> bool;
    /// Takes a number out, or returns false if there is none.
    fn second(&self) -> bool;
}

/// No structure: only the other work is done.
struct Nothing;

impl Structure for Nothing {
    fn make(_: usize) -> Self {
        Self
    }

    fn first(&self, number: u64) -> bool {
        black_box(number);
        true
    }

    fn second(&self) -> bool {
        black_box(self);
        true
    }
}

/// The threads of a window, and their work.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The number of threads.
    pub threads: usize,
    /// The mean of the other work after each operation, in ns.
    pub work_ns: u64,
    /// The lengths of the other work, as multiples of the mean. Each thread takes them in turn,
    /// from a place of its own. If there are none, each is the mean.
    pub factors: &'a [f32],
    /// True if each thread is pinned to a processor, in turn.
    pub pinned: bool,
    /// True if half of the threads only put numbers in, and the others only take them out.
    pub apart: bool,
    /// The room of a structure with a bound.
    pub room: usize,
    /// The numbers that are in the structure at first: at most half of the room.
    pub filled: usize,
}

impl Load<'static> {
    /// Returns the load of a contest: pinned threads that do pairs, and an empty structure.
    pub(crate) const fn pairs(threads: usize, work_ns: u64) -> Self {
        Self {
            threads,
            work_ns,
            factors: &[],
            pinned: true,
            apart: false,
            room: super::ROOM,
            filled: 0,
        }
    }
}

impl Load<'_> {
    pub(crate) fn name(self) -> String {
        format!("{}, {} ns", in_threads(self.threads), self.work_ns)
    }

    /// Returns the lengths of the other work, in iterations of an empty loop; none if there is no
    /// other work.
    fn turns(self) -> Vec<u64> {
        if self.work_ns == 0 {
            return Vec::new();
        }
        let mean = self.work_ns as f64 / ns_per_turn();
        let factors = if self.factors.is_empty() { &[1.0] } else { self.factors };
        factors.iter().map(|&factor| (mean * f64::from(factor)) as u64).collect()
    }

    /// Returns the part of a thread.
    fn part(self, thread: usize) -> Part {
        match (self.apart, thread.is_multiple_of(2)) {
            (false, _) => Part::Both,
            (true, true) => Part::Producer,
            (true, false) => Part::Consumer,
        }
    }
}

/// The operations of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It puts a number in and takes one out.
    Both,
    /// It only puts numbers in.
    Producer,
    /// It only takes numbers out.
    Consumer,
}

/// Returns the time that a pair's other work takes.
pub(crate) fn other_work(load: Load<'_>, length: Duration) -> f64 {
    if load.work_ns == 0 { 0.0 } else { window::<Nothing>(load, length).ns_per_pair }
}

/// The result of one contestant in one window. If producers and consumers are apart, a pair is a
/// number that was taken out.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The window, divided by the pairs of all threads, in ns.
    pub ns_per_pair: f64,
    /// The processor time of all threads, divided by their pairs, in ns.
    pub cpu_per_pair: f64,
    /// The pairs of each thread that does pairs or takes numbers out.
    pub pairs: Vec<f64>,
    /// Nanoseconds, and the number of timed operations that took so long, to within a twentieth.
    pub waits: Vec<(u64, u64)>,
    /// The fewest pairs of a thread, divided by the most pairs of a thread.
    fairness: f64,
    /// The share of the computer's processor time that the threads got.
    granted: f64,
    /// The 99.9th percentile of the timed operations, in ns.
    tail_ns: f64,
    /// The longest of the timed operations, in ns.
    pub longest_ns: f64,
}

impl Window {
    /// Returns the figures in the order of [`super::COLUMNS`].
    pub(crate) fn figures(&self) -> Figures {
        vec![
            self.ns_per_pair,
            self.cpu_per_pair,
            self.tail_ns,
            self.longest_ns / 1e3,
            self.fairness,
            self.granted * 100.0,
        ]
    }
}

/// The result of one thread.
struct Share {
    /// The time at which the thread began.
    start: Instant,
    /// The number of pairs that it did, or of single operations.
    pairs: u64,
    /// False for a producer: its operations are not counted.
    counts: bool,
    /// The processor time that it got, in nanoseconds.
    processor: u64,
    /// For each k, the number of timed operations that took from 2^(k/16) ns on.
    waits: Vec<u64>,
    /// The longest of the timed operations.
    longest_ns: u64,
}

/// One of this many pairs is timed, if there is little other work.
const LOOK: u64 = 32;

/// Nanoseconds of other work from which each pair is timed.
const MUCH: u64 = 1_000;

/// Classes of one power of two, in which timed operations are counted.
const FINE: usize = 16;

/// All classes.
const CLASSES: usize = 32 * FINE;

/// The attempts of an operation in a row before its thread yields.
const ATTEMPTS: u32 = 64;

pub(crate) fn window<S: Structure>(load: Load<'_>, length: Duration) -> Window {
    let (structure, turns) = (S::make(load.room), load.turns());
    for number in 0..load.filled as u64 {
        structure.first(FILLED + number);
    }
    let (ready, over) = (Barrier::new(load.threads + 1), AtomicBool::new(false));
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    let (elapsed, shares) = thread::scope(|scope| {
        let workers: Vec<_> = (0..load.threads as u64)
            .map(|index| {
                let (structure, ready, over, turns) = (&structure, &ready, &over, &turns);
                let processor = processors.get(index as usize % processors.len().max(1)).copied();
                scope.spawn(move || {
                    // Otherwise the kernel may leave all threads on the processors where they
                    // began, for the whole window.
                    if let Some(processor) = processor.filter(|_| load.pinned) {
                        core_affinity::set_for_current(processor);
                    }
                    let work = Lengths { turns, at: index as usize * turns.len() / load.threads };
                    let look = if load.work_ns < MUCH { LOOK } else { 1 };
                    let part = load.part(index as usize);
                    ready.wait();
                    pairs(structure, part, index << 40, work, look, over)
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
    summary(load, elapsed, &shares)
}

/// The numbers that are in a structure at first. No thread puts in such a number.
const FILLED: u64 = 1 << 60;

/// The lengths of a thread's other work, in turn and without end.
struct Lengths<'a> {
    /// Iterations of an empty loop.
    turns: &'a [u64],
    /// The place of the next length.
    at: usize,
}

impl Lengths<'_> {
    /// Does the next piece of other work.
    #[inline]
    fn work(&mut self) {
        let Some(&turns) = self.turns.get(self.at) else { return };
        self.at = if self.at + 1 == self.turns.len() { 0 } else { self.at + 1 };
        work(turns);
    }
}

fn pairs<S: Structure>(
    structure: &S,
    part: Part,
    from: u64,
    mut other: Lengths<'_>,
    look: u64,
    over: &AtomicBool,
) -> Share {
    let mut share = Share {
        start: Instant::now(),
        pairs: 0,
        counts: part != Part::Producer,
        processor: 0,
        waits: vec![0; CLASSES],
        longest_ns: 0,
    };
    let start = thread_time();
    while !over.load(Relaxed) {
        let number = from + share.pairs;
        let timed = share.pairs.is_multiple_of(look);
        if part != Part::Consumer {
            if !share.operate(timed, over, || structure.first(number)) {
                break;
            }
            other.work();
        }
        if part != Part::Producer {
            if !share.operate(timed, over, || structure.second()) {
                break;
            }
            other.work();
        }
        share.pairs += 1;
    }
    share.processor = thread_time().saturating_sub(start);
    share
}

impl Share {
    /// Tries an operation until it succeeds. Returns false if the window was over before.
    #[inline]
    fn operate(&mut self, timed: bool, over: &AtomicBool, operation: impl Fn() -> bool) -> bool {
        let before = timed.then(now);
        let mut attempts = 0;
        while !operation() {
            if over.load(Relaxed) {
                return false;
            }
            attempts += 1;
            if attempts % ATTEMPTS == 0 { thread::yield_now() } else { spin_loop() }
        }
        if let Some(before) = before {
            self.note(now().nanos_since(before));
        }
        true
    }

    fn note(&mut self, nanos: u64) {
        let class = (nanos.max(1) as f64).log2() * FINE as f64;
        self.waits[(class as usize).min(CLASSES - 1)] += 1;
        self.longest_ns = self.longest_ns.max(nanos);
    }
}

fn summary(load: Load<'_>, elapsed: Duration, shares: &[Share]) -> Window {
    let counted = shares.iter().filter(|share| share.counts);
    let each: Vec<f64> = counted.map(|share| share.pairs as f64).collect();
    let pairs = each.iter().sum::<f64>().max(1.0);
    let processor: u64 = shares.iter().map(|share| share.processor).sum();
    let least = each.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = each.iter().copied().fold(1.0, f64::max);
    let processors = thread::available_parallelism().map_or(1, usize::from).min(load.threads);
    let seen = |class: usize| shares.iter().map(|share| share.waits[class]).sum::<u64>();
    let all: u64 = (0..CLASSES).map(seen).sum();
    let start = |class: usize| 2_f64.powf(class as f64 / FINE as f64);
    let mut beyond = 0;
    let tail = (0..CLASSES)
        .rev()
        .find(|&class| {
            beyond += seen(class);
            beyond * 1_000 > all
        })
        .unwrap_or(0);
    let waits = (0..CLASSES).map(|class| (start(class) as u64, seen(class)));
    Window {
        ns_per_pair: elapsed.as_nanos() as f64 / pairs,
        cpu_per_pair: processor as f64 / pairs,
        fairness: least / most,
        granted: processor as f64 / (elapsed.as_nanos() as f64 * processors as f64),
        tail_ns: start(tail),
        longest_ns: shares.iter().map(|share| share.longest_ns).max().unwrap_or(0) as f64,
        pairs: each,
        waits: waits.filter(|&(_, count)| count > 0).collect(),
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
