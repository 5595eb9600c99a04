//! Rounds in which every thread passes once through the lock, then loops until all have: the
//! paper's figure 4.3, a lock used as a barrier.
//!
//! The same threads repeat rounds for a fixed time. The first thread leads: it opens a round, takes
//! part in it, and reads the clock when the last thread is through. If each thread has a processor,
//! threads spin between rounds and at the end of one, as in the paper. If threads outnumber the
//! processors, they yield. Otherwise, with any lock, each thread that is through would keep the
//! others off its processor for a time slice.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::contender::{Contender, Unlocked};
use stanchion_study::measure::{Placement, StartLine};

/// The settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// The number of threads, and the processors that they stay on.
    pub place: Placement<'a>,
    /// The time for which rounds are repeated.
    pub window: Duration,
}

/// The result of a measurement: nanoseconds for one round, divided by the threads in it.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The number of rounds.
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

/// Runs `pass` with one atomic instruction in place of the lock. The result is the cost of the
/// start, the finish and the clock.
pub fn run_unlocked(pass: &Pass<'_>) -> Passed {
    let counter = Unlocked::new();
    rounds(pass, || counter.increment())
}

/// The words that the threads share. Few threads write each word and all read it, so each has a
/// line of its own.
#[derive(Default)]
struct Rounds {
    /// The number of rounds opened so far. Only the leader writes it.
    open: Line<AtomicUsize>,
    /// Threads that are through the lock in this round. The leader resets it, and each thread adds
    /// 1.
    through: Line<AtomicUsize>,
    /// Set by the leader before it opens the last round, which is empty.
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
        // Relaxed: no thread is in the lock between rounds. The Release below publishes the store.
        shared.through.0.store(0, Ordering::Relaxed);
        let over = began.elapsed() >= window && !times.is_empty();
        // Relaxed: the same Release publishes it.
        shared.over.store(over, Ordering::Relaxed);
        let started = Instant::now();
        // Release: pairs with the Acquire in `follow`.
        shared.open.0.fetch_add(1, Ordering::Release);
        if over {
            return times;
        }
        through_the_lock();
        // AcqRel: pairs with the same addition in `follow`, so the last thread that is through has
        // seen every other thread's section.
        shared.through.0.fetch_add(1, Ordering::AcqRel);
        // Acquire: pairs with the additions to `through` by all threads.
        wait(spin, || shared.through.0.load(Ordering::Acquire) >= threads);
        times.push(started.elapsed());
    }
}

fn follow(shared: &Rounds, threads: usize, spin: bool, through_the_lock: impl Fn()) {
    for round in 1.. {
        // Acquire: pairs with the leader's Release addition to `open`.
        wait(spin, || shared.open.0.load(Ordering::Acquire) >= round);
        // Relaxed: ordered by the Acquire above.
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        through_the_lock();
        // AcqRel: pairs with the same addition in other threads, and with the Acquire loads of
        // `through`.
        shared.through.0.fetch_add(1, Ordering::AcqRel);
        // The paper's processors loop until all are through. If this thread looks late, the opening
        // of the next round means the same. Acquire: pairs with the additions to `through`, and
        // with the leader's Release addition to `open`.
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
