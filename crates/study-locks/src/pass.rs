//! Every thread passes once through the lock, then loops until all have: the paper's figure 4.3, a
//! lock used as a barrier.
//!
//! Rounds are repeated for a fixed time by the same threads. The first of them leads: it opens a
//! round, takes part in it, and reads the clock when the last thread is through. With a processor
//! each, threads spin between rounds and at the end of one, as in the paper; where they outnumber
//! the processors they yield, for otherwise the ones that are through would keep the others off the
//! processors for a time slice each, whatever the lock.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::contender::{Contender, Unlocked};
use stanchion_study::measure::{Placement, StartLine};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// How many threads there are, and where each stays.
    pub place: Placement<'a>,
    /// How long rounds are repeated.
    pub window: Duration,
}

/// What came out: nanoseconds for one round, divided by the threads in it.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// How many rounds there were.
    pub rounds: u32,
    /// The median round, divided by the threads, in nanoseconds.
    pub median: f64,
    /// The mean round, likewise.
    pub mean: f64,
    /// The longest round, likewise.
    pub longest: f64,
}

/// Runs `pass` on a new lock of type `L`.
pub fn run<L: Contender>(pass: &Pass<'_>) -> Passed {
    let lock = L::new();
    let passed = rounds(pass, || lock.with(|shared| shared.counter += 1));
    let counted = lock.with(|shared| shared.counter);
    let expected = u64::from(passed.rounds) * pass.place.threads as u64;
    assert_eq!(counted, expected, "the lock let two threads in at once");
    passed
}

/// The same with one atomic instruction in place of the lock: what the start, the finish and the
/// clock cost.
pub fn run_unlocked(pass: &Pass<'_>) -> Passed {
    let counter = Unlocked::new();
    rounds(pass, || counter.increment())
}

/// What the threads share; each word is written by few and read by all, so each has a line of its
/// own.
#[derive(Default)]
struct Rounds {
    open: Line<AtomicUsize>,
    through: Line<AtomicUsize>,
    over: AtomicBool,
}

#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

fn rounds(pass: &Pass<'_>, through_the_lock: impl Fn() + Sync) -> Passed {
    let threads = pass.place.threads;
    let spin = threads <= pass.place.processors.len();
    let shared = Rounds::default();
    let line = StartLine::default();
    let times = thread::scope(|scope| {
        for index in 1..threads {
            let (shared, line, through_the_lock) = (&shared, &line, &through_the_lock);
            scope.spawn(move || {
                let _pinned = pass.place.take_place(index);
                line.wait();
                follow(shared, threads, spin, through_the_lock);
            });
        }
        let leader = scope.spawn(|| {
            let _pinned = pass.place.take_place(0);
            line.wait();
            lead(&shared, threads, spin, pass.window, &through_the_lock)
        });
        line.open_when(threads);
        leader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    summary(times, threads)
}

fn lead(
    shared: &Rounds,
    threads: usize,
    spin: bool,
    window: Duration,
    through_the_lock: impl Fn(),
) -> Vec<Duration> {
    let mut times = Vec::new();
    let began = Instant::now();
    loop {
        // Relaxed: nobody is in a round between rounds; the Release below publishes it.
        shared.through.0.store(0, Ordering::Relaxed);
        let over = began.elapsed() >= window && !times.is_empty();
        // Relaxed: published by the same Release.
        shared.over.store(over, Ordering::Relaxed);
        let started = Instant::now();
        // Release: pairs with the Acquire in `follow`.
        shared.open.0.fetch_add(1, Ordering::Release);
        if over {
            return times;
        }
        through_the_lock();
        // AcqRel: the last to be through has seen every other thread's section.
        shared.through.0.fetch_add(1, Ordering::AcqRel);
        wait(spin, || shared.through.0.load(Ordering::Acquire) >= threads);
        times.push(started.elapsed());
    }
}

fn follow(shared: &Rounds, threads: usize, spin: bool, through_the_lock: impl Fn()) {
    for round in 1.. {
        // Acquire: pairs with the leader's Release.
        wait(spin, || shared.open.0.load(Ordering::Acquire) >= round);
        // Relaxed: ordered by the Acquire above.
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        through_the_lock();
        shared.through.0.fetch_add(1, Ordering::AcqRel);
        // The paper's processors loop until all are through. The next round's opening means the
        // same, should this thread look late.
        wait(spin, || {
            shared.through.0.load(Ordering::Acquire) >= threads
                || shared.open.0.load(Ordering::Acquire) > round
        });
    }
}

fn wait(spin: bool, done: impl Fn() -> bool) {
    while !done() {
        if spin { spin_loop() } else { thread::yield_now() }
    }
}

fn summary(mut times: Vec<Duration>, threads: usize) -> Passed {
    times.sort_unstable();
    let each = |time: Duration| time.as_nanos() as f64 / threads as f64;
    let sum: Duration = times.iter().sum();
    Passed {
        rounds: times.len() as u32,
        median: each(times[times.len() / 2]),
        mean: each(sum) / times.len() as f64,
        longest: times.last().map_or(0.0, |&time| each(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::LOCKS;
    use super::*;

    #[test]
    fn every_thread_passes_in_every_round() {
        for lock in LOCKS {
            for threads in [1, 3] {
                let place = Placement { processors: &[], threads };
                let passed = (lock.pass)(&Pass { place, window: Duration::from_millis(2) });
                assert!(passed.rounds > 0, "{}", lock.name);
                assert!(passed.median > 0.0 && passed.median <= passed.longest, "{}", lock.name);
            }
        }
    }
}
