//! Batches of tasks in circumstances that a caller draws.
//!
//! A batch is a tree of tasks. The leaves compute or block, the others create their children. The
//! next batch begins when the last leaf of one has ended, perhaps after a pause: a thread outside
//! of the pool begins it, or the worker that ran that leaf.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use stanchion_threadpool::strategy::Strategy;

use super::apart::run_apart;
use super::made::{forte, ours, rayon, tokio};

use crate::work::{Work, process_time};

/// The time for which a leaf blocks.
pub const BLOCK: Duration = Duration::from_micros(100);

/// The first word that a child process is told if it runs batches.
const NAME: &str = "batches";

/// The most times of batches that one run returns.
const TIMES: usize = 10_000;

/// The circumstances of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// The number of workers.
    pub threads: usize,
    /// The leaves of a batch.
    pub width: usize,
    /// The levels below the root: with 1 the root creates all leaves.
    pub depth: usize,
    /// The computation of a leaf, in ns.
    pub grain: u64,
    /// True if a worker begins each batch but the first.
    pub inside: bool,
    /// The time between two batches, in ns.
    pub pause: u64,
    /// The share of the leaves that block for [`BLOCK`] in place of their computation.
    pub blocking: f64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The mean time of a batch, in nanoseconds.
    pub nanos: f64,
    /// The processor time of the process for each batch, pauses included, in nanoseconds.
    pub processor: f64,
    /// Times of batches, in nanoseconds.
    pub times: Vec<f64>,
}

/// A pool that can run batches.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    /// The name in tables.
    pub name: &'static str,
    /// True if the pools of this workspace are compared with it.
    pub is_peer: bool,
    /// Runs batches in this process.
    run: fn(Batch, [Duration; 2]) -> Ran,
}

impl Entrant {
    /// Runs batches in a process of its own: first for `settle`, then for `lasting`, which counts.
    ///
    /// # Panics
    ///
    /// If the process fails, as it does in a program that does not call
    /// [`serve_run`](crate::serve_run).
    #[must_use]
    pub fn run(&self, batch: Batch, settle: Duration, lasting: Duration) -> Ran {
        let Batch { threads, width, depth, grain, inside, pause, blocking } = batch;
        let (name, inside) = (self.name, u8::from(inside));
        let [settle, lasting] = [settle, lasting].map(|time| time.as_nanos());
        let told = format!(
            "{NAME}|{name}|{threads}|{width}|{depth}|{grain}|{inside}|{pause}|{blocking}|{settle}|\
             {lasting}"
        );
        let figures = run_apart(&told);
        let [nanos, processor, times @ ..] = &figures[..] else {
            panic!("the run {told} has no figures");
        };
        Ran { nanos: *nanos, processor: *processor, times: times.to_vec() }
    }
}

/// Does the run that this process was told, if it is one of batches. Returns whether it is.
pub(super) fn serve(told: &str) -> bool {
    let words: Vec<&str> = told.split('|').collect();
    let [NAME, name, threads, width, depth, grain, inside, pause, blocking, settle, lasting] =
        words[..]
    else {
        return false;
    };
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let batch = Batch {
        threads: number(threads) as usize,
        width: number(width) as usize,
        depth: number(depth) as usize,
        grain: number(grain),
        inside: inside == "1",
        pause: number(pause),
        blocking: blocking.parse().expect("a share"),
    };
    let times = [settle, lasting].map(|time| Duration::from_nanos(number(time)));
    let entrant = entrants().into_iter().find(|entrant| entrant.name == name);
    let ran = (entrant.expect("a pool of this program").run)(batch, times);
    let times = ran.times.iter().take(TIMES).map(|time| format!(" {time:.0}"));
    println!("{} {}{}", ran.nanos, ran.processor, times.collect::<String>());
    true
}

/// The state that all tasks of a run share. It is leaked: the last leaf may still use it when the
/// run ends.
struct Run {
    /// The circumstances.
    batch: Batch,
    /// The computation of a leaf.
    work: Work,
    /// The leaves of the running batch that have not ended. Each leaf subtracts one.
    left: AtomicUsize,
    /// The batches of this part of the run. The thread that begins or ends a batch writes it.
    batches: Mutex<Batches>,
    /// Set when the last batch has ended, by its last leaf.
    over: AtomicBool,
    /// The thread outside of the pool.
    outside: Thread,
}

/// The batches so far.
struct Batches {
    /// The start of the running batch.
    began: Instant,
    /// The time from which no batch begins.
    until: Instant,
    /// Nanoseconds of each batch.
    times: Vec<f64>,
}

/// A task of a batch: a node of its tree.
#[derive(Clone, Copy)]
struct Task {
    /// The run.
    run: &'static Run,
    /// The number of the batch.
    batch: usize,
    /// The first of the leaves below.
    first: usize,
    /// The number of the leaves below.
    leaves: usize,
    /// The levels below.
    depth: usize,
}

impl Run {
    fn new(batch: Batch) -> &'static Self {
        let now = Instant::now();
        Box::leak(Box::new(Self {
            batch,
            work: Work::of(batch.grain),
            left: AtomicUsize::new(0),
            batches: Mutex::new(Batches { began: now, until: now, times: Vec::new() }),
            over: AtomicBool::new(false),
            outside: thread::current(),
        }))
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next batch and returns its root.
    fn begin(&'static self) -> Task {
        let Batch { width, depth, .. } = self.batch;
        // Release: pairs with the AcqRel of the leaves, so they see what was written before.
        self.left.store(width, Release);
        let mut batches = self.batches();
        batches.began = Instant::now();
        Task { run: self, batch: batches.times.len(), first: 0, leaves: width, depth }
    }

    /// Notes the end of a batch. Returns true if the run is over.
    fn end(&self) -> bool {
        let mut batches = self.batches();
        let now = Instant::now();
        let time = (now - batches.began).as_nanos() as f64;
        batches.times.push(time);
        now >= batches.until
    }

    fn pause(&self) {
        if self.batch.pause > 0 {
            thread::sleep(Duration::from_nanos(self.batch.pause));
        }
    }

    /// Runs batches for a time. `submit` hands a task to the pool.
    fn part(&'static self, time: Duration, submit: &impl Fn(Task)) {
        {
            let mut batches = self.batches();
            batches.times.clear();
            batches.until = Instant::now() + time;
        }
        // Release: pairs with the Acquire below; no leaf runs now.
        self.over.store(false, Release);
        loop {
            submit(self.begin());
            // Acquire: pairs with the last leaf's Release, so all leaves have happened before.
            while !self.over.load(Acquire) {
                thread::park();
            }
            if self.batch.inside || self.end() {
                return;
            }
            self.pause();
            // Release: as above.
            self.over.store(false, Release);
        }
    }
}

impl Task {
    /// Runs the task. `spawn` creates a task from inside of the pool.
    fn run(self, spawn: impl Fn(Self)) {
        if self.depth == 0 || self.leaves == 1 {
            return self.leaf(spawn);
        }
        let children = match self.depth {
            1 => self.leaves,
            depth => (self.leaves as f64).powf(1.0 / depth as f64).ceil() as usize,
        };
        for child in 0..children {
            let from = self.leaves * child / children;
            let leaves = self.leaves * (child + 1) / children - from;
            if leaves > 0 {
                spawn(Self { first: self.first + from, leaves, depth: self.depth - 1, ..self });
            }
        }
    }

    fn leaf(self, spawn: impl Fn(Self)) {
        let run = self.run;
        if self.blocks() {
            thread::sleep(BLOCK);
        } else {
            run.work.compute();
        }
        // AcqRel: the last leaf has all others behind it, and what it writes is seen after.
        if run.left.fetch_sub(1, AcqRel) > 1 {
            return;
        }
        if run.batch.inside && !run.end() {
            run.pause();
            return spawn(run.begin());
        }
        // Release: pairs with the Acquire of the thread outside.
        run.over.store(true, Release);
        run.outside.unpark();
    }

    /// Returns whether this leaf blocks: a share of all leaves does, spread over the batches.
    fn blocks(self) -> bool {
        let leaf = (self.batch * self.run.batch.width + self.first) as f64;
        // Multiples of the golden ratio are spread evenly between whole numbers.
        (leaf * 0.618_033_988_749_894_9).fract() < self.run.batch.blocking
    }
}

/// Runs batches for both times; the second counts.
fn measure(batch: Batch, times: [Duration; 2], submit: impl Fn(Task)) -> Ran {
    let run = Run::new(batch);
    run.part(times[0], &submit);
    let before = process_time();
    run.part(times[1], &submit);
    let processor = (process_time() - before) as f64;
    let times = std::mem::take(&mut run.batches().times);
    let batches = times.len() as f64;
    Ran { nanos: times.iter().sum::<f64>() / batches, processor: processor / batches, times }
}

fn on_ours<S: Strategy>(batch: Batch, times: [Duration; 2]) -> Ran {
    fn go(task: Task) {
        task.run(|task| stanchion_threadpool::spawn(move || go(task)));
    }
    let pool = ours::<S>(batch.threads);
    measure(batch, times, |task| pool.spawn(move || go(task)))
}

fn on_rayon(batch: Batch, times: [Duration; 2]) -> Ran {
    fn go(task: Task) {
        task.run(|task| rayon::spawn(move || go(task)));
    }
    let pool = rayon(batch.threads);
    measure(batch, times, |task| pool.spawn(move || go(task)))
}

fn on_tokio(batch: Batch, times: [Duration; 2]) -> Ran {
    fn go(task: Task) {
        task.run(|task| {
            tokio::spawn(async move { go(task) });
        });
    }
    let runtime = tokio(batch.threads);
    measure(batch, times, |task| {
        runtime.spawn(async move { go(task) });
    })
}

fn on_forte(batch: Batch, times: [Duration; 2]) -> Ran {
    fn go(worker: &forte::Worker, task: Task) {
        task.run(|task| worker.spawn(move |worker| go(worker, task)));
    }
    let pool = forte(batch.threads);
    measure(batch, times, |task| pool.spawn(move |worker| go(worker, task)))
}

/// Expands to the strategies of the table.
macro_rules! strategies {
    ([] $({
        $name:ident: $strategy:ty,
        type: $type:ident,
        cost: $cost:literal,
        contest: $contest:literal,
        $($rest:tt)*
    })+) => {
        vec![$(Entrant { name: $contest, is_peer: false, run: on_ours::<$strategy> }),+]
    };
}

/// Returns all pools. `work stealing` is the default of ours.
#[must_use]
pub fn entrants() -> Vec<Entrant> {
    let mut all: Vec<Entrant> = stanchion_threadpool::__strategies!(strategies);
    let peer = |name, run| Entrant { name, is_peer: true, run };
    all.extend([peer("rayon", on_rayon), peer("tokio", on_tokio), peer("forte", on_forte)]);
    all
}
