//! Many threads on one structure for a window of time.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::clock::now;

use crate::cell::Figures;
use crate::work::{in_threads, thread_time};

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

/// The number of threads, and the amount of other work after each operation.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// The number of threads.
    pub(crate) threads: usize,
    /// The other work after each operation, in ns.
    pub(crate) work_ns: u64,
}

impl Load {
    pub(crate) fn name(self) -> String {
        format!("{}, {} ns", in_threads(self.threads), self.work_ns)
    }

    /// Returns the other work in iterations of an empty loop.
    fn turns(self) -> u64 {
        if self.work_ns == 0 { 0 } else { (self.work_ns as f64 / ns_per_turn()) as u64 }
    }
}

/// Returns the time that a pair's other work takes.
pub(crate) fn other_work(load: Load, length: Duration) -> f64 {
    if load.work_ns == 0 { 0.0 } else { window::<Nothing>(load, length).ns_per_pair }
}

/// The result of one contestant in one window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Window {
    /// The window, divided by the pairs of all threads, in ns.
    ns_per_pair: f64,
    /// The processor time of all threads, divided by their pairs, in ns.
    cpu_per_pair: f64,
    /// The fewest pairs of a thread, divided by the most pairs of a thread.
    fairness: f64,
    /// The share of the computer's processor time that the threads got.
    granted: f64,
    /// The 99.9th percentile of the timed operations, in ns.
    tail_ns: f64,
    /// The longest of the timed operations, in ns.
    longest_ns: f64,
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
    /// The number of pairs that it did.
    pairs: u64,
    /// The processor time that it got, in nanoseconds.
    processor: u64,
    /// For each k, the number of timed operations that took from 2^(k/4) ns on.
    waits: [u64; 128],
    /// The longest of the timed operations.
    longest_ns: u64,
}

/// One of this many pairs is timed.
const LOOK: u64 = 32;

pub(crate) fn window<S: Structure>(load: Load, length: Duration) -> Window {
    let (structure, turns) = (S::make(), load.turns());
    let (ready, over) = (Barrier::new(load.threads + 1), AtomicBool::new(false));
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    let (elapsed, shares) = thread::scope(|scope| {
        let workers: Vec<_> = (0..load.threads as u64)
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
                    pairs(structure, index << 40, turns, over)
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

fn pairs<S: Structure>(structure: &S, from: u64, turns: u64, over: &AtomicBool) -> Share {
    let mut share =
        Share { start: Instant::now(), pairs: 0, processor: 0, waits: [0; 128], longest_ns: 0 };
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

fn summary(load: Load, elapsed: Duration, shares: &[Share]) -> Window {
    let pairs = shares.iter().map(|share| share.pairs).sum::<u64>().max(1) as f64;
    let processor: u64 = shares.iter().map(|share| share.processor).sum();
    let least = shares.iter().map(|share| share.pairs).min().unwrap_or(0) as f64;
    let most = shares.iter().map(|share| share.pairs).max().unwrap_or(0).max(1) as f64;
    let processors = thread::available_parallelism().map_or(1, usize::from).min(load.threads);
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
        cpu_per_pair: processor as f64 / pairs,
        fairness: least / most,
        granted: processor as f64 / (elapsed.as_nanos() as f64 * processors as f64),
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
