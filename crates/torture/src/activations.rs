//! Torture for user-level threads: runtimes of every kind, one after the other, with stalled
//! workers and a count of every thread.
//!
//! At random, threads outside and inside the runtime do this:
//!
//! - They spawn, join, yield, park, unpark others and wait for a time.
//! - They panic.
//! - They block in the kernel, with and without saying so.
//!
//! At the end of a round the runtime is dropped, by a kernel thread or by one of its own threads.
//!
//! Each thread captures a `Slip`, and returns it or panics with it. The slip is counted when it
//! is made, when its thread runs, and when it is dropped.

use std::fmt;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_activations::{
    JoinHandle, Runtime, Thread, blocking, current, park, park_timeout, spawn, yield_now,
};
use stanchion_threadpool::strategy::{LocalReadyQueue, SingleLock};

use crate::phase::Torture;
use crate::random::Random;
use crate::victims::Victims;

/// The time between two stalls of workers.
const PAUSE: Duration = Duration::from_micros(500);

/// A fault of the runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActivationsFault {
    /// Nothing ran for this long.
    #[error(
        "no progress for {0:?} under {1}: a thread is ready and every worker sleeps, or one waits for ever"
    )]
    NoProgress(Duration, String),
    /// The counts do not agree.
    #[error(
        "{made} threads were made under {under}, {run} ran, and {dropped} captures were dropped"
    )]
    Books {
        /// The runtime, named by its seed.
        under: String,
        /// The number of threads that were made.
        made: u64,
        /// The number of threads that ran.
        run: u64,
        /// The number of captures that were dropped.
        dropped: u64,
    },
}

/// The counts of a run without faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActivationsFigures {
    /// The number of runtimes that were built and ended.
    pub rounds: u64,
    /// The number of threads that ran.
    pub threads: u64,
    /// The number of stalls that were inflicted.
    pub stalls: u64,
}

impl fmt::Display for ActivationsFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runtimes, {} threads, {} stalls", self.rounds, self.threads, self.stalls)
    }
}

/// The counts of one round. All of its threads write them.
#[derive(Default)]
struct Books {
    /// The number of slips that were made.
    made: AtomicU64,
    /// The number of threads that ran.
    run: AtomicU64,
    /// The number of slips that were dropped.
    dropped: AtomicU64,
    /// The number of steps that threads have done.
    steps: AtomicU64,
    /// The kernel threads that have carried a thread. They are spared once the round only drops its
    /// runtime.
    carriers: Victims,
}

/// The capture of a thread, which the thread also returns.
struct Slip(Arc<Books>);

impl Slip {
    fn of(books: &Arc<Books>) -> Self {
        // Relaxed, here and below: counts that are compared when all threads have ended.
        books.made.fetch_add(1, Relaxed);
        Self(books.clone())
    }

    fn run(&self) {
        self.0.run.fetch_add(1, Relaxed);
        self.0.carriers.add();
    }

    fn step(&self) {
        self.0.steps.fetch_add(1, Relaxed);
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Relaxed);
    }
}

/// Tortures runtimes for the whole of `torture.time`.
///
/// # Errors
///
/// The first fault. Its threads are left behind, so the caller should end the process soon.
pub fn torment(torture: &Torture) -> Result<ActivationsFigures, ActivationsFault> {
    let begin = Instant::now();
    let mut figures = ActivationsFigures::default();
    while figures.rounds == 0 || begin.elapsed() < torture.time {
        let seed = torture.seed + figures.rounds;
        let books = Arc::new(Books::default());
        let mine = books.clone();
        let time = torture.time.min(Duration::from_millis(300));
        let runner = thread::spawn(move || round(seed, &mine, time));
        let under = format!("seed {seed}");
        let counts = [&books.steps, &books.run, &books.dropped];
        let steps = || counts.iter().map(|count| count.load(Relaxed)).sum();
        let stalls = books.carriers.stall_until_end(&runner, torture, PAUSE, steps);
        let stuck = || ActivationsFault::NoProgress(torture.stuck_after, under.clone());
        figures.stalls += stalls.ok_or_else(stuck)?;
        let panicked = runner.join().is_err();
        // A runtime that one of its threads dropped ends by itself.
        let ended = Instant::now();
        while books.dropped.load(Relaxed) != books.made.load(Relaxed)
            && ended.elapsed() < torture.stuck_after
        {
            thread::sleep(Duration::from_millis(1));
        }
        let (made, run, dropped) =
            (books.made.load(Relaxed), books.run.load(Relaxed), books.dropped.load(Relaxed));
        if panicked || dropped != made || run != made {
            return Err(ActivationsFault::Books { under, made, run, dropped });
        }
        figures.rounds += 1;
        figures.threads += run;
    }
    Ok(figures)
}

/// Builds the kind of runtime that the seed selects.
fn build(seed: u64) -> Runtime {
    let builder = Runtime::builder()
        .processors(1 + (seed % 4) as usize)
        .spare_kernel_threads((seed / 4 % 5) as usize)
        .stack_size(128 * 1024)
        .pinned(seed % 7 == 6)
        .activations(seed % 3 != 2)
        .idle_spin(Duration::from_micros(seed % 2 * 20));
    let builder = match seed % 5 {
        3 => builder.strategy::<SingleLock>(),
        4 => builder.strategy::<LocalReadyQueue>(),
        _ => builder,
    };
    builder.build().expect("so many threads can be had")
}

/// Runs one runtime, from its first thread to its last.
fn round(seed: u64, books: &Arc<Books>, time: Duration) {
    let runtime = build(seed);
    let begin = Instant::now();
    thread::scope(|threads| {
        for stream in 0..3 {
            let runtime = &runtime;
            threads.spawn(move || {
                let mut random = Random::new(seed, stream);
                while begin.elapsed() < time {
                    act(runtime, books, &mut random);
                }
            });
        }
    });
    books.carriers.spare();
    if seed % 4 == 3 {
        let (sends, receives) = mpsc::channel::<Runtime>();
        let slip = Slip::of(books);
        drop(runtime.spawn(move || {
            slip.run();
            drop(receives.recv());
            yield_now();
        }));
        // If the thread has panicked, the runtime is dropped here, which waits. The counts then
        // show the panic.
        drop(sends.send(runtime));
    } else {
        drop(runtime);
    }
}

/// Does something at random from outside the runtime.
fn act(runtime: &Runtime, books: &Arc<Books>, random: &mut Random) {
    let seed = random.number();
    let slip = Slip::of(books);
    match random.below(8) {
        0..4 => {
            let handles: Vec<JoinHandle<Slip>> = (0..random.below(20))
                .map(|number| {
                    let slip = Slip::of(books);
                    runtime.spawn(move || live(slip, seed.wrapping_add(number), 1))
                })
                .collect();
            // Some are joined, some are not.
            handles.into_iter().filter(|_| random.below(2) == 0).for_each(|one| drop(one.join()));
            slip.run();
        }
        4..6 => drop(runtime.spawn(move || live(slip, seed, 3)).join()),
        6 => {
            // The new thread waits for this thread, and this thread for the new one.
            let outside = current();
            let inside = runtime.spawn(move || {
                slip.run();
                while !park_timeout(Duration::from_millis(20)) {
                    slip.step();
                }
                outside.unpark();
            });
            inside.thread().unpark();
            park();
        }
        // Sleep, so that the runtime falls asleep.
        _ => {
            thread::sleep(Duration::from_micros(300));
            slip.run();
        }
    }
}

/// Does something at random in a thread of the runtime.
fn live(slip: Slip, seed: u64, levels: u32) -> Slip {
    slip.run();
    let mut random = Random::new(seed, u64::from(levels));
    for _ in 0..random.below(4) {
        match random.below(6) {
            0 => yield_now(),
            1 => drop(park_timeout(Duration::from_micros(random.below(300)))),
            2 => thread::sleep(Duration::from_micros(random.below(200))),
            3 => blocking(|| thread::sleep(Duration::from_micros(random.below(200)))),
            4 => wake_each_other(&slip, 5),
            _ => {
                current().unpark();
                park();
            }
        }
        slip.step();
    }
    if levels > 0 {
        let children: Vec<JoinHandle<Slip>> = (0..random.below(3))
            .map(|number| {
                let child = Slip::of(&slip.0);
                spawn(move || live(child, seed.wrapping_add(number), levels - 1))
            })
            .collect();
        children.into_iter().filter(|_| random.below(3) != 0).for_each(|one| drop(one.join()));
    }
    if random.below(8) == 0 {
        panic_any(slip);
    }
    slip
}

/// Lets the calling thread and another thread take turns.
fn wake_each_other(slip: &Slip, rounds: u64) {
    let turn = Arc::new(AtomicU64::new(0));
    let first = current();
    let other = {
        let (slip, turn) = (Slip::of(&slip.0), turn.clone());
        spawn(move || {
            slip.run();
            take_turns(&turn, 1, rounds, &first);
        })
    };
    take_turns(&turn, 0, rounds, other.thread());
    drop(other.join());
}

/// Takes every second turn, and wakes the other thread after it.
fn take_turns(turn: &AtomicU64, mine: u64, rounds: u64, other: &Thread) {
    for round in 0..rounds {
        // Relaxed: parking orders the accesses.
        while turn.load(Relaxed) != 2 * round + mine {
            park();
        }
        turn.store(2 * round + mine + 1, Relaxed);
        other.unpark();
    }
}
