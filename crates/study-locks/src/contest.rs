//! A contest: all threads take the lock over and over for a fixed time. The results are the number
//! of acquisitions, their cost, their fairness and the longest wait.
//!
//! Why not the paper's "until the counter reaches 1,000,000": on an oversubscribed machine, a
//! first-come-first-served spin lock is hundreds of times slower than another lock. A fixed count
//! would take minutes for the slow lock, and would be over for the fast one before all threads have
//! started. A fixed time costs the same for all. The time for a million follows by proportion, and
//! figures say that they are scaled.
//!
//! The longest wait is taken in a second run, because reading the clock twice for each acquisition
//! would be a large part of what is measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::contender::{Contender, Shared, Unlocked};
use stanchion_study::measure::{Placement, StartLine, jain, nanos, processor_time};

/// The settings of a contest.
#[derive(Clone, Copy, Debug)]
pub struct Contest<'a> {
    /// The number of threads, and the processors that they stay on.
    pub place: Placement<'a>,
    /// The time for which acquisitions are counted.
    pub window: Duration,
    /// Steps of [`Shared::work`] in each critical section, beside the increment.
    pub steps: u32,
    /// True if each wait is timed, for [`Standing::longest_wait`].
    pub timed: bool,
}

/// The result of a contest.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The number of acquisitions by all threads together.
    pub acquisitions: u64,
    /// The time from the start to the last thread's end, in nanoseconds. It is a little more than
    /// the window.
    pub elapsed: f64,
    /// Processor time that the whole process used during `elapsed`, in nanoseconds.
    pub processor_time: f64,
    /// The number of threads.
    pub threads: usize,
    /// Jain's index of the acquisitions of each thread: 1 if all threads have the same number,
    /// 1/threads if one thread has all.
    pub fairness: f64,
    /// Longest time from asking for the lock to having it, in nanoseconds; 0 if not timed.
    pub longest_wait: f64,
}

impl Standing {
    /// Returns the elapsed nanoseconds for each acquisition, all threads together.
    pub fn pace(&self) -> f64 {
        self.elapsed / self.acquisitions.max(1) as f64
    }

    /// Returns the processor time as a share of what one processor for each thread would give; 0 if
    /// the system does not tell it.
    pub fn had(&self) -> f64 {
        self.processor_time / (self.elapsed * self.threads as f64)
    }

    /// Returns the processor nanoseconds for each acquisition.
    pub fn cost(&self) -> f64 {
        self.processor_time / self.acquisitions.max(1) as f64
    }
}

/// The counts of one thread.
struct Lap {
    /// The number of acquisitions by the thread.
    acquisitions: u64,
    /// Its longest wait; zero if waits are not timed.
    longest_wait: Duration,
    /// The time after its last acquisition.
    ended: Instant,
}

/// Runs `contest` on a new lock of type `L`.
pub fn run<L: Contender>(contest: &Contest<'_>) -> Standing {
    let lock = L::new();
    let section = |shared: &mut Shared| {
        shared.counter += 1;
        shared.work(contest.steps);
    };
    let standing = if contest.timed {
        threads(contest, |stop| {
            timed_laps(stop, || lock.with(|shared| (Instant::now(), section(shared)).0))
        })
    } else {
        threads(contest, |stop| laps(stop, || lock.with(section)))
    };
    let counted = lock.with(|shared| shared.counter);
    assert_eq!(counted, standing.acquisitions, "the lock let two threads in at once");
    standing
}

/// Runs `contest` on the counter without a lock. `steps` and `timed` are ignored.
pub fn run_unlocked(contest: &Contest<'_>) -> Standing {
    let counter = Unlocked::new();
    threads(contest, |stop| laps(stop, || counter.increment()))
}

#[inline(always)]
fn laps(stop: &AtomicBool, acquire: impl Fn()) -> Lap {
    let mut acquisitions = 0;
    // Acquire at least once: on a busy machine, a thread may run for the first time after the
    // window is over.
    loop {
        acquire();
        acquisitions += 1;
        // Relaxed: the flag only asks to stop and publishes nothing.
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Lap { acquisitions, longest_wait: Duration::ZERO, ended: Instant::now() }
}

#[inline(always)]
fn timed_laps(stop: &AtomicBool, acquire: impl Fn() -> Instant) -> Lap {
    let mut lap = Lap { acquisitions: 0, longest_wait: Duration::ZERO, ended: Instant::now() };
    loop {
        let asked = Instant::now();
        let entered = acquire();
        lap.longest_wait = lap.longest_wait.max(entered - asked);
        lap.acquisitions += 1;
        // Relaxed: as above.
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    lap.ended = Instant::now();
    lap
}

fn threads(contest: &Contest<'_>, body: impl Fn(&AtomicBool) -> Lap + Sync) -> Standing {
    let line = StartLine::default();
    let stop = AtomicBool::new(false);
    let count = contest.place.threads;
    thread::scope(|scope| {
        let runners: Vec<_> = (0..count)
            .map(|index| {
                let (line, stop, body) = (&line, &stop, &body);
                scope.spawn(move || {
                    let _pinned = contest.place.take_place(index);
                    line.wait();
                    body(stop)
                })
            })
            .collect();
        line.open_when(count);
        let (started, used) = (Instant::now(), processor_time());
        thread::sleep(contest.window);
        // Relaxed: as above. Joining the threads orders their counts.
        stop.store(true, Ordering::Relaxed);
        let laps: Vec<Lap> = runners
            .into_iter()
            .map(|runner| runner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        summary(&laps, started, processor_time().saturating_sub(used))
    })
}

fn summary(laps: &[Lap], started: Instant, processor_time: Duration) -> Standing {
    let ended = laps.iter().map(|lap| lap.ended).max().unwrap_or(started);
    let counts: Vec<f64> = laps.iter().map(|lap| lap.acquisitions as f64).collect();
    Standing {
        acquisitions: laps.iter().map(|lap| lap.acquisitions).sum(),
        elapsed: nanos(ended - started),
        processor_time: nanos(processor_time),
        threads: laps.len(),
        fairness: jain(&counts),
        longest_wait: laps.iter().map(|lap| nanos(lap.longest_wait)).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::{LOCKS, Lock};
    use super::*;

    fn contest(lock: &Lock, threads: usize, timed: bool) -> Standing {
        let place = Placement { processors: &[], threads };
        let window = Duration::from_millis(5);
        (lock.contest)(&Contest { place, window, steps: 1, timed })
    }

    #[test]
    fn every_lock_excludes_and_is_timed() {
        for lock in LOCKS {
            let standing = contest(lock, 2, true);
            assert!(standing.acquisitions > 0, "{}", lock.name);
            assert!(standing.longest_wait > 0.0, "{}", lock.name);
            assert!(standing.pace() > 0.0 && standing.elapsed >= 5e6, "{}", lock.name);
            assert!((0.5..=1.0).contains(&standing.fairness), "{}", lock.name);
            assert_eq!(contest(lock, 1, false).longest_wait, 0.0, "{}", lock.name);
        }
    }

    /// A lock with one increment in its counter that no thread made. Two threads in the section at
    /// once may leave such a count.
    struct Miscounting(std::sync::Mutex<Shared>);
    impl Contender for Miscounting {
        fn new() -> Self {
            let mut shared = Shared::default();
            shared.counter = 1;
            Self(std::sync::Mutex::new(shared))
        }
        fn with<R>(&self, section: impl FnOnce(&mut Shared) -> R) -> R {
            self.0.with(section)
        }
    }

    #[test]
    #[should_panic(expected = "two threads in at once")]
    fn a_miscount_is_noticed() {
        let place = Placement { processors: &[], threads: 1 };
        run::<Miscounting>(&Contest {
            place,
            window: Duration::from_millis(1),
            steps: 0,
            timed: false,
        });
    }
}
