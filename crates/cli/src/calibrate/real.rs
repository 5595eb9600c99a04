//! The two programs on this computer.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lock_api::{Mutex, RawMutex};
use stanchion_machine::topology::{self, CachePadded, pin};

use super::{AWAY, HOLD, ROUNDS};
use stanchion_study::measure::least;
use stanchion_study::survey::switches::interruptions_of_this_thread;
use stanchion_study::survey::wait_while;

/// Runs that two threads make before they are joined.
const BATCH: usize = 8;
/// Batches that are tried at most for the runs that were asked for.
const BATCHES: u32 = 40;
/// From when both threads are there until they begin.
const AHEAD: Duration = Duration::from_micros(5);
/// A thread that begins later than this had lost its processor.
const LATE: Duration = Duration::from_micros(2);

/// Nanoseconds for one lock and unlock of a new lock, by one thread alone.
pub(super) fn alone<R: RawMutex>() -> f64 {
    let lock = black_box(Mutex::<R, ()>::new(()));
    least(20, 5_000, || drop(lock.lock()))
}

/// Computing that takes a given time: a chain of steps of the length that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// The number of steps in a nanosecond.
    steps_per_nano: f64,
    /// The time of no step at all, in nanoseconds.
    least: f64,
}

impl Work {
    /// Measures the length of a step.
    pub(super) fn calibrated() -> Self {
        const STEPS: u32 = 1_000;
        let none = least(200, 1_000, || steps(black_box(0)));
        let length = (least(200, 10, || steps(black_box(STEPS))) - none) / f64::from(STEPS);
        Self { steps_per_nano: 1.0 / length, least: none }
    }

    #[inline(always)]
    fn compute(self, nanos: u64) {
        steps(((nanos as f64 - self.least) * self.steps_per_nano).round() as u32);
    }
}

/// Begins when what comes before it is done: a processor would compute while it waits for the line
/// of a lock, and a simulated one does not.
#[inline(always)]
fn after_all() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which changes nothing.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// Each step needs the one before.
#[inline(always)]
fn steps(count: u32) {
    after_all();
    let mut state = 1_u64;
    for _ in 0..count {
        state = random(state);
    }
    black_box(state);
}

/// One step of Marsaglia's xorshift generator.
pub(super) fn random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// Up to `runs` undisturbed runs of two threads on the first two processors, each with a new lock:
/// nanoseconds for each time it was taken.
///
/// None if there is no second processor; fewer if too many were disturbed.
pub(super) fn pair<R: RawMutex + Send + Sync>(work: Work, runs: u32) -> Vec<f64> {
    let mut taken = Vec::new();
    if let [first, second, ..] = *topology::processors() {
        for _ in 0..BATCHES {
            taken.extend(batch::<R>([first, second], work));
            if taken.len() >= runs as usize {
                break;
            }
        }
    }
    taken.truncate(runs as usize);
    taken
}

/// The state that the two threads of a batch share.
struct Crew<R: RawMutex> {
    /// A new lock for each run.
    locks: [CachePadded<Mutex<R, ()>>; BATCH],
    /// The number of arrivals of both threads, over all runs.
    arrived: CachePadded<AtomicU64>,
    /// When the run of that number begins, in nanoseconds since the origin; 0 while that is not
    /// known.
    gates: [CachePadded<AtomicU64>; BATCH],
    /// The moment from which all times of the batch count.
    origin: Instant,
}

/// When a thread was through, if nothing disturbed it.
type Through = Option<u64>;

fn batch<R: RawMutex + Send + Sync>(on: [usize; 2], work: Work) -> Vec<f64> {
    let crew = Crew::<R> {
        locks: [(); BATCH].map(|()| CachePadded::new(Mutex::new(()))),
        arrived: CachePadded::new(AtomicU64::new(0)),
        gates: [(); BATCH].map(|()| CachePadded::new(AtomicU64::new(0))),
        origin: Instant::now(),
    };
    let part = |me: u64| {
        let _pinned = pin(on[me as usize]);
        (0..BATCH).map(|run| crew.run(run, me, work)).collect::<Vec<Through>>()
    };
    let [mine, others] = thread::scope(|scope| {
        let threads = [0, 1].map(|me| scope.spawn(move || part(me)));
        threads.map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let gates = crew.gates.iter().map(|gate| gate.load(Ordering::Relaxed));
    let runs = gates.zip(mine.into_iter().zip(others));
    runs.filter_map(|(gate, (mine, other))| {
        Some((mine?.max(other?) - gate) as f64 / f64::from(2 * ROUNDS))
    })
    .collect()
}

impl<R: RawMutex> Crew<R> {
    fn nanos(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn run(&self, run: usize, me: u64, work: Work) -> Through {
        // AcqRel: the run before is over for both.
        self.arrived.fetch_add(1, Ordering::AcqRel);
        wait_while(|| self.arrived.load(Ordering::Acquire) < 2 * (run as u64 + 1));
        if me == 0 {
            let gate = self.nanos() + AHEAD.as_nanos() as u64;
            // Relaxed: only a number, here and below.
            self.gates[run].store(gate, Ordering::Relaxed);
        }
        wait_while(|| self.gates[run].load(Ordering::Relaxed) == 0);
        let gate = self.gates[run].load(Ordering::Relaxed);
        let before = interruptions_of_this_thread();
        while self.nanos() < gate {
            spin_loop();
        }
        let late = self.nanos() > gate + LATE.as_nanos() as u64;
        let mut state = random(1 + me + 2 * run as u64);
        for _ in 0..ROUNDS {
            let held = self.locks[run].lock();
            work.compute(HOLD);
            drop(held);
            state = random(state);
            work.compute(state % (2 * AWAY + 1));
        }
        let through = self.nanos();
        let interrupted = interruptions_of_this_thread() != before;
        (!late && !interrupted).then_some(through)
    }
}
