//! Threads that contend for one lock, and the counts by which the lock is checked.
//!
//! Every critical section raises two counters once. They must be equal whenever the lock is held.
//! In the end they must equal the sum of the threads' own counts. Each counter is raised by a load
//! and a store, not by one atomic step, so two holders at once lose updates just as plain memory
//! would. The counters are atomics all the same. So a broken lock causes wrong numbers, and not
//! undefined behaviour in the program that has to report it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::random::Random;
use crate::subject::{Attempt, Subject};
use crate::tormentor;

/// A fault of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The counters differed inside the critical section, or do not add up.
    #[error(
        "two holders at once: the counters differed {torn} times, and {done} acquisitions left them at {first} and {second}"
    )]
    TwoHolders {
        /// The number of times that a holder found the counters different.
        torn: u64,
        /// The number of acquisitions that the threads counted.
        done: u64,
        /// The final value of the first counter.
        first: u64,
        /// The final value of the second counter.
        second: u64,
    },
    /// No thread acquired the lock for this long.
    #[error(
        "no progress for {0:?}: every thread waits, the lock is free or the holder never gave it up"
    )]
    NoProgress(Duration),
    /// Other threads acquired the lock, but this thread never did, or did not any more after all
    /// others had ended.
    #[error(
        "thread {thread} had the lock {had} times in {lasted:?}, while all together had it {done} times"
    )]
    Starved {
        /// The number of the thread, from 0.
        thread: usize,
        /// The number of acquisitions of the thread.
        had: u64,
        /// The time for which the thread ran.
        lasted: Duration,
        /// The number of acquisitions of all threads.
        done: u64,
    },
    /// A thread panicked.
    #[error("thread {0} panicked")]
    Panicked(usize),
}

/// The parameters of one contest.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of threads that contend.
    pub threads: usize,
    /// The time for which they contend.
    pub time: Duration,
    /// The time without an acquisition after which the lock counts as stuck.
    pub stuck_after: Duration,
    /// True if threads are stalled at random, at any point.
    pub stalls: bool,
    /// True if all threads share one processor.
    pub one_processor: bool,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The counts of a contest without faults.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The number of acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// The number of attempts that gave up.
    pub refusals: u64,
    /// The longest wait of any thread.
    pub longest_wait: Duration,
    /// The number of stalls that were inflicted.
    pub stalls: u64,
    /// The time from the first start to the last end.
    pub elapsed: Duration,
}

impl Figures {
    /// Returns the number of acquisitions of all threads.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.acquisitions.iter().sum()
    }

    /// Returns the fewest and the most acquisitions of a thread.
    #[must_use]
    pub fn spread(&self) -> (u64, u64) {
        let least = self.acquisitions.iter().min().copied().unwrap_or(0);
        (least, self.acquisitions.iter().max().copied().unwrap_or(0))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.spread();
        let rate = self.total() as f64 / self.elapsed.as_secs_f64();
        let wait = self.longest_wait.as_secs_f64() * 1e3;
        write!(
            f,
            "{rate:>11.0} a second  least {least:>8} most {most:>8}  longest wait {wait:>8.2} ms  {} stalls, {} gave up",
            self.stalls, self.refusals
        )
    }
}

/// One thread's counts. That thread alone writes them, and the watching thread reads them.
#[derive(Default)]
struct Ledger {
    /// The number of acquisitions.
    acquisitions: AtomicU64,
    /// The number of attempts that gave up.
    refusals: AtomicU64,
    /// The longest wait so far, in nanoseconds.
    longest_wait_ns: AtomicU64,
    /// The kernel's number of the thread while it runs, else 0. Stalls are sent to it.
    thread: AtomicI32,
}

/// The state that all threads of a contest share.
struct Ring {
    /// The lock under test.
    lock: Arc<dyn Subject>,
    /// The counter that a holder raises first.
    first: AtomicU64,
    /// The counter that a holder raises last.
    second: AtomicU64,
    /// The number of times that a holder found the counters different. Holders write it.
    torn: AtomicU64,
    /// True when the threads have to end. The watching thread writes it.
    over: AtomicBool,
    /// The counts of each thread.
    ledgers: Vec<CachePadded<Ledger>>,
}

/// The time between two looks of the watching thread.
const LOOK: Duration = Duration::from_millis(2);
/// A lock that was acquired within this time still moves.
const MOVING: Duration = Duration::from_millis(50);

/// Lets threads contend for `lock` as `plan` says.
///
/// On a fault, threads that wait for ever are left behind. The caller should end the process soon.
///
/// # Errors
///
/// The first [`Fault`] found, exclusion before progress before starvation.
pub fn contest(lock: Arc<dyn Subject>, plan: Plan) -> Result<Figures, Fault> {
    let ring = Arc::new(Ring {
        lock,
        first: AtomicU64::new(0),
        second: AtomicU64::new(0),
        torn: AtomicU64::new(0),
        over: AtomicBool::new(false),
        ledgers: (0..plan.threads).map(|_| CachePadded::default()).collect(),
    });
    let begin = Instant::now();
    let fighters: Vec<_> = (0..plan.threads)
        .map(|index| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || fight(&ring, index, plan))
        })
        .collect();
    let stalls = watch(&ring, &fighters, plan, begin)?;
    for (index, fighter) in fighters.into_iter().enumerate() {
        fighter.join().map_err(|_| Fault::Panicked(index))?;
    }
    let elapsed = begin.elapsed();
    let figures = figures(&ring, stalls, elapsed);
    check_exclusion(&ring, &figures)?;
    match figures.acquisitions.iter().position(|&count| count == 0) {
        Some(thread) => {
            Err(Fault::Starved { thread, had: 0, lasted: elapsed, done: figures.total() })
        }
        None => Ok(figures),
    }
}

/// Watches until all threads have ended, and stalls them meanwhile. Returns the number of stalls.
fn watch(
    ring: &Ring,
    fighters: &[JoinHandle<()>],
    plan: Plan,
    begin: Instant,
) -> Result<u64, Fault> {
    let mut random = Random::new(plan.seed, u64::MAX);
    let mut stalls = 0;
    let mut last = (0, begin);
    while !fighters.iter().all(JoinHandle::is_finished) {
        if begin.elapsed() >= plan.time && last.1.elapsed() < MOVING {
            // Only while the lock moves: a lock that stands still is watched until it is stuck.
            // Relaxed: a flag that publishes nothing.
            ring.over.store(true, Relaxed);
        } else if plan.stalls {
            let victim = &ring.ledgers[random.below(plan.threads as u64) as usize];
            stalls += u64::from(tormentor::stall(victim.thread.load(Relaxed)));
        }
        thread::sleep(if plan.stalls { LOOK / 4 } else { LOOK });
        let done = total(ring);
        if done != last.0 {
            last = (done, Instant::now());
        } else if last.1.elapsed() >= plan.stuck_after {
            return Err(stuck(ring, fighters, plan, begin.elapsed()));
        }
    }
    Ok(stalls)
}

/// Finds the reason why no thread acquires the lock any more: two threads held it, all threads
/// wait, or one thread waits after the others have ended.
fn stuck(ring: &Ring, fighters: &[JoinHandle<()>], plan: Plan, lasted: Duration) -> Fault {
    let done = total(ring);
    // Threads may still be inside. So only the differences that they saw count here.
    let torn = ring.torn.load(Relaxed);
    if torn > 0 {
        let (first, second) = (ring.first.load(Relaxed), ring.second.load(Relaxed));
        return Fault::TwoHolders { torn, done, first, second };
    }
    if !fighters.iter().any(JoinHandle::is_finished) {
        return Fault::NoProgress(plan.stuck_after);
    }
    let waiting = fighters.iter().enumerate().filter(|(_, fighter)| !fighter.is_finished());
    let had = |thread: usize| ring.ledgers[thread].acquisitions.load(Relaxed);
    match waiting.map(|(thread, _)| thread).min_by_key(|&thread| had(thread)) {
        Some(thread) => Fault::Starved { thread, had: had(thread), lasted, done },
        // The last thread has ended since. It was slow, and `lasted` says how slow.
        None => Fault::NoProgress(plan.stuck_after),
    }
}

/// Returns the number of acquisitions so far.
fn total(ring: &Ring) -> u64 {
    // Relaxed: momentary counts. The final ones are read after `join`.
    ring.ledgers.iter().map(|ledger| ledger.acquisitions.load(Relaxed)).sum()
}

/// Sums up the threads' counts.
fn figures(ring: &Ring, stalls: u64, elapsed: Duration) -> Figures {
    let ledgers = || ring.ledgers.iter();
    Figures {
        acquisitions: ledgers().map(|ledger| ledger.acquisitions.load(Relaxed)).collect(),
        refusals: ledgers().map(|ledger| ledger.refusals.load(Relaxed)).sum(),
        longest_wait: Duration::from_nanos(
            ledgers().map(|ledger| ledger.longest_wait_ns.load(Relaxed)).max().unwrap_or(0),
        ),
        stalls,
        elapsed,
    }
}

/// Checks that the counters agree with the threads' counts.
fn check_exclusion(ring: &Ring, figures: &Figures) -> Result<(), Fault> {
    let (torn, done) = (ring.torn.load(Relaxed), figures.total());
    let (first, second) = (ring.first.load(Relaxed), ring.second.load(Relaxed));
    if torn == 0 && first == done && second == done {
        return Ok(());
    }
    Err(Fault::TwoHolders { torn, done, first, second })
}

/// The most loops of work inside, about 2 ns each. Spin locks are meant for such short sections.
const INSIDE: u64 = 64;
/// The longest wait of a timed attempt, in nanoseconds.
const PATIENCE_NS: u64 = 200_000;

/// Runs one thread of the contest.
fn fight(ring: &Ring, index: usize, plan: Plan) {
    if plan.one_processor {
        tormentor::share_one_processor();
    }
    let ledger = &ring.ledgers[index];
    ledger.thread.store(tormentor::this_thread(), Relaxed);
    let mut random = Random::new(plan.seed, index as u64);
    let mut longest = 0;
    // Relaxed: see `watch`.
    while !ring.over.load(Relaxed) {
        let attempt = match random.below(16) {
            0 => Attempt::Try,
            1 => Attempt::TryFor(Duration::from_nanos(random.below(PATIENCE_NS))),
            _ => Attempt::Wait,
        };
        let work = random.below(INSIDE);
        let begin = Instant::now();
        let had = ring.lock.run(attempt, &mut || {
            longest = longest.max(begin.elapsed().as_nanos() as u64);
            inside(ring, work);
        });
        ledger.longest_wait_ns.store(longest, Relaxed);
        let count = if had { &ledger.acquisitions } else { &ledger.refusals };
        count.fetch_add(1, Relaxed);
    }
    ledger.thread.store(0, Relaxed);
}

/// Runs the critical section: raises both counters, in two steps each.
fn inside(ring: &Ring, work: u64) {
    // Relaxed, here and below: the lock has to order these accesses, and the test is whether it
    // does.
    let (first, second) = (ring.first.load(Relaxed), ring.second.load(Relaxed));
    if first != second {
        ring.torn.fetch_add(1, Relaxed);
    }
    ring.first.store(first.wrapping_add(1), Relaxed);
    for step in 0..work {
        std::hint::black_box(step);
    }
    ring.second.store(second.wrapping_add(1), Relaxed);
}
