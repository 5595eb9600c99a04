//! Torture for the thread pool: every strategy and every way to wait, one after the other, with
//! stalled workers and a count of every task.
//!
//! At random, threads outside and tasks use tasks, forks, scopes and broadcasts. They resize the
//! pool. Some tasks block, some panic.
//!
//! At the end of a round the pool is shut down, at once or after all tasks have run.
//!
//! Each task captures a `Slip`. The slip is counted when it is made, when its task runs, and when
//! it is dropped.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_threadpool::strategy::Strategy;
use stanchion_threadpool::{ThreadPool, ThreadPoolBuilder, Wait, blocking, join, scope, spawn};

use crate::phase::{CROWDING, Torture};
use crate::random::Random;
use crate::victims::Victims;

/// A round with one strategy. Its arguments are the way to wait, a seed, the counts, and the time
/// that it lasts.
type Round = fn(Wait, u64, &Arc<Books>, Duration);

/// The time between two stalls of workers.
const PAUSE: Duration = Duration::from_micros(500);

/// A fault of the pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolFault {
    /// Nothing ran for this long.
    #[error(
        "no progress for {0:?} under {1}: a task is ready and every worker sleeps, or a thread waits for ever"
    )]
    NoProgress(Duration, String),
    /// The counts do not agree.
    #[error("{made} tasks were made under {under}, {run} ran, and {dropped} captures were dropped")]
    Books {
        /// The strategy and the way to wait.
        under: String,
        /// The number of tasks that were made.
        made: u64,
        /// The number of tasks that ran.
        run: u64,
        /// The number of captures that were dropped.
        dropped: u64,
    },
}

/// The counts of a run without faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolFigures {
    /// The number of pools that were built and ended.
    pub rounds: u64,
    /// The number of tasks that ran.
    pub tasks: u64,
    /// The number of stalls that were inflicted.
    pub stalls: u64,
}

impl fmt::Display for PoolFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pools, {} tasks, {} stalls", self.rounds, self.tasks, self.stalls)
    }
}

/// The counts of one round. All of its threads write them.
#[derive(Default)]
struct Books {
    /// The number of slips that were made.
    made: AtomicU64,
    /// The number of tasks that ran.
    run: AtomicU64,
    /// The number of slips that were dropped.
    dropped: AtomicU64,
    /// The workers. They are spared once the pool is shut down.
    workers: Victims,
}

/// The capture of a task.
struct Slip(Arc<Books>);

impl Slip {
    fn of(books: &Arc<Books>) -> Self {
        // Relaxed, here and below: counts that are compared when all threads have been joined.
        books.made.fetch_add(1, Relaxed);
        Self(books.clone())
    }

    fn run(&self) {
        self.0.run.fetch_add(1, Relaxed);
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Relaxed);
    }
}

/// Tortures pools for the whole of `torture.time`.
///
/// # Errors
///
/// The first fault. Its threads are left behind, so the caller should end the process soon.
pub fn torment(torture: &Torture) -> Result<PoolFigures, PoolFault> {
    macro_rules! rounds {
        ([] $({ $name:ident: $strategy:ty, type: $type:ident, $($rest:tt)* })+) => {
            [$((stringify!($type), round::<$strategy> as Round)),+]
        };
    }
    let rounds = stanchion_threadpool::__strategies!(rounds);
    let waits = [Wait::Any, Wait::Isolated, Wait::Leapfrog, Wait::Park];
    let each = torture.time / (rounds.len() * waits.len()) as u32;
    let begin = Instant::now();
    let mut figures = PoolFigures::default();
    while figures.rounds == 0 || begin.elapsed() < torture.time {
        let index = figures.rounds as usize;
        let (name, run) = rounds[index % rounds.len()];
        let wait = waits[index / rounds.len() % waits.len()];
        let books = Arc::new(Books::default());
        let under = format!("{name} and {wait:?}");
        let (seed, mine) = (torture.seed + figures.rounds, books.clone());
        let time = each.min(Duration::from_millis(500));
        let runner = thread::spawn(move || run(wait, seed, &mine, time));
        let steps = || books.run.load(Relaxed) + books.dropped.load(Relaxed);
        let stalls = books.workers.stall_until_end(&runner, torture, PAUSE, steps);
        let stuck = || PoolFault::NoProgress(torture.stuck_after, under.clone());
        figures.stalls += stalls.ok_or_else(stuck)?;
        let (made, run, dropped) =
            (books.made.load(Relaxed), books.run.load(Relaxed), books.dropped.load(Relaxed));
        let drained = !shuts_down_now(seed);
        let panicked = runner.join().is_err();
        if panicked || dropped != made || run > made || (drained && run != made) {
            return Err(PoolFault::Books { under, made, run, dropped });
        }
        figures.rounds += 1;
        figures.tasks += run;
    }
    Ok(figures)
}

/// Returns whether a round with this seed drops the tasks that are left at its end.
fn shuts_down_now(seed: u64) -> bool {
    seed % 4 == 3
}

/// Runs one pool, from its first thread to its last.
fn round<S: Strategy>(wait: Wait, seed: u64, books: &Arc<Books>, time: Duration) {
    let crowd = CROWDING * thread::available_parallelism().map_or(1, usize::from);
    let mine = books.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(crowd)
        .max_threads(crowd)
        .wait(wait)
        .start_handler(move |_| mine.workers.add())
        .build_with::<S>()
        .expect("so many threads can be had");
    let begin = Instant::now();
    thread::scope(|threads| {
        for stream in 0..3 {
            let pool = &pool;
            threads.spawn(move || {
                let mut random = Random::new(seed, stream);
                while begin.elapsed() < time {
                    act(pool, books, &mut random, crowd);
                }
            });
        }
    });
    if shuts_down_now(seed) {
        pool.shutdown_now();
    } else {
        pool.shutdown();
    }
    books.workers.spare();
}

/// Does something at random from outside the pool.
fn act<S: Strategy>(pool: &ThreadPool<S>, books: &Arc<Books>, random: &mut Random, crowd: usize) {
    let seed = random.number();
    match random.below(16) {
        0..8 => {
            for _ in 0..random.below(20) {
                let slip = Slip::of(books);
                pool.spawn(move || slip.run());
            }
        }
        8..12 => {
            let slip = Slip::of(books);
            // The task may panic, which is no fault.
            drop(catch_unwind(AssertUnwindSafe(|| pool.install(move || breed(&slip, seed, 3)))));
        }
        12 => drop(pool.broadcast(|worker| worker.index())),
        13 => drop(pool.set_num_threads(1 + random.below(crowd as u64) as usize)),
        14 => {
            let slip = Slip::of(books);
            pool.spawn(move || {
                blocking(|| thread::sleep(Duration::from_micros(200)));
                slip.run();
            });
        }
        // Sleep, so that the pool falls asleep.
        _ => thread::sleep(Duration::from_micros(300)),
    }
}

/// Does something at random in a task.
fn breed(slip: &Slip, seed: u64, levels: u32) {
    slip.run();
    let mut random = Random::new(seed, u64::from(levels));
    let books = &slip.0;
    if levels == 0 {
        return;
    }
    let seeds = [random.number(), random.number()];
    match random.below(4) {
        0 => {
            let slips = [Slip::of(books), Slip::of(books)];
            let [first, second] = &slips;
            join(|| breed(first, seeds[0], levels - 1), || breed(second, seeds[1], levels - 1));
        }
        1 => {
            let slip = Slip::of(books);
            spawn(move || breed(&slip, seeds[0], levels - 1));
        }
        2 => scope(|s| {
            for seed in seeds {
                let slip = Slip::of(books);
                s.spawn(move |_| breed(&slip, seed, levels - 1));
            }
        }),
        _ => {
            let slip = Slip::of(books);
            spawn(move || {
                slip.run();
                panic_any("a task that panics");
            });
        }
    }
}
