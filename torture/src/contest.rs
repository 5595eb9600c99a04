//! Threads that fight for one lock, and the books that are kept of it.
//!
//! Two counters, both raised once inside every critical section, must be equal whenever the lock is held, and in the end be what all
//! threads together say they did. Each is raised by a load and a store, not by one atomic step, so two holders at once lose
//! updates just as plain memory would; they are atomics all the same, so that a broken lock yields wrong numbers and not
//! undefined behaviour in the program that is to report it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::random::Random;
use crate::subject::{Attempt, Subject};
use crate::tormentor;

/// What is wrong with a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The counters differed inside the critical section, or do not add up.
    #[error(
        "two holders at once: the counters differed {torn} times, and {done} acquisitions left them at {first} and {second}"
    )]
    TwoHolders {
        /// How often a holder found them different.
        torn: u64,
        /// What the threads say they did.
        done: u64,
        /// The first counter in the end.
        first: u64,
        /// The second counter in the end.
        second: u64,
    },
    /// Nobody acquired the lock for so long.
    #[error("no progress for {0:?}: every thread waits, nobody holds or the holder never gave up")]
    NoProgress(Duration),
    /// Some threads acquired the lock, this one never, or not any more although the others had all left.
    #[error(
        "thread {thread} had the lock {had} times in {lasted:?}, while all together had it {done} times"
    )]
    Starved {
        /// The thread, from 0.
        thread: usize,
        /// How often it had the lock.
        had: u64,
        /// How long it was at it.
        lasted: Duration,
        /// Acquisitions of all threads.
        done: u64,
    },
    /// A thread panicked.
    #[error("thread {0} panicked")]
    Panicked(usize),
}

/// What to do to a lock.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many threads fight for it.
    pub threads: usize,
    /// For how long.
    pub time: Duration,
    /// Without an acquisition for this long, the lock is stuck.
    pub stuck_after: Duration,
    /// Whether threads are stalled at random, wherever they are.
    pub stalls: bool,
    /// Whether all threads share one processor.
    pub one_processor: bool,
    /// What the randomness starts from.
    pub seed: u64,
}

/// What happened to it.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// Attempts that gave up.
    pub refusals: u64,
    /// The longest that any thread waited.
    pub longest_wait: Duration,
    /// Stalls that were inflicted.
    pub stalls: u64,
    /// From the first start to the last end.
    pub elapsed: Duration,
}

impl Figures {
    /// Acquisitions of all threads.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.acquisitions.iter().sum()
    }

    /// The fewest and the most that a thread had.
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

/// One thread's books. Written by that thread alone, read by the one that watches.
#[derive(Default)]
struct Ledger {
    acquisitions: AtomicU64,
    refusals: AtomicU64,
    longest_wait_ns: AtomicU64,
    /// The kernel's name for the thread, once it runs; its address for stalls.
    thread: AtomicI32,
}

struct Ring {
    lock: Arc<dyn Subject>,
    first: AtomicU64,
    second: AtomicU64,
    torn: AtomicU64,
    over: AtomicBool,
    ledgers: Vec<CachePadded<Ledger>>,
}

/// How often the watching thread looks.
const LOOK: Duration = Duration::from_millis(2);
/// A lock that was had within this time is not standing still.
const MOVING: Duration = Duration::from_millis(50);

/// Lets threads fight for `lock` as `plan` says.
///
/// On a fault, threads that wait for ever are left behind; the caller is expected to end the process soon.
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

/// Watches until all threads have ended, tormenting them meanwhile; says how many stalls it inflicted.
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
            // Only while it moves: a lock that stands still is watched until it is stuck. Relaxed: a flag that publishes nothing.
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

/// Nobody acquires anything any more: because two held it, because all wait, or because one does after the others have left.
fn stuck(ring: &Ring, fighters: &[JoinHandle<()>], plan: Plan, lasted: Duration) -> Fault {
    let done = total(ring);
    // Threads may still be inside, so only what they saw themselves counts here.
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
        // The last one has ended since: it was slow, and `lasted` says how slow.
        None => Fault::NoProgress(plan.stuck_after),
    }
}

fn total(ring: &Ring) -> u64 {
    // Relaxed: figures of a moment; those of the end are read after `join`.
    ring.ledgers.iter().map(|ledger| ledger.acquisitions.load(Relaxed)).sum()
}

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

fn check_exclusion(ring: &Ring, figures: &Figures) -> Result<(), Fault> {
    let (torn, done) = (ring.torn.load(Relaxed), figures.total());
    let (first, second) = (ring.first.load(Relaxed), ring.second.load(Relaxed));
    if torn == 0 && first == done && second == done {
        return Ok(());
    }
    Err(Fault::TwoHolders { torn, done, first, second })
}

/// Loops of work inside at most, about 2 ns each: mostly short sections, as spin locks are meant for.
const INSIDE: u64 = 64;
/// The longest wait of a timed attempt.
const PATIENCE_NS: u64 = 200_000;

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

/// The critical section: raises both counters, in two steps each.
fn inside(ring: &Ring, work: u64) {
    // Relaxed throughout: the lock is what orders these, and whether it does is the question.
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
