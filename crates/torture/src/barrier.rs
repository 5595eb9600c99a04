//! Torture for barriers: all kinds in turn, with a crowd of members that are stalled at random.
//! Some members have deadlines that pass, and one member leaves.
//!
//! In the end all members of a barrier must have crossed the same number of phases, whatever broke
//! the barrier. Each phase must have had one leader.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_gang::Waiter;
use stanchion_gang::barrier::{Barrier, BitMask};

use crate::phase::{CROWDING, Torture};
use crate::random::Random;
use crate::victims::Victims;

/// The time between two stalls of members.
const PAUSE: Duration = Duration::from_micros(500);

/// A fault of a barrier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierFault {
    /// No member crossed for this long.
    #[error(
        "no progress for {0:?} at {1}: its members wait for one that has come, or was not told that it is broken"
    )]
    NoProgress(Duration, &'static str),
    /// The members' counts do not agree.
    #[error("{barrier} was crossed {crossed:?} times by its members, and {led} times led")]
    Split {
        /// The kind of barrier.
        barrier: &'static str,
        /// The number of phases that each member crossed.
        crossed: Vec<u64>,
        /// The number of crossings as the leader.
        led: u64,
    },
    /// A member panicked.
    #[error("a member of {0} panicked")]
    Panicked(&'static str),
}

/// The counts of a run without faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct BarrierFigures {
    /// The number of barriers that were made and broken.
    pub rounds: u64,
    /// The number of phases that were crossed.
    pub phases: u64,
    /// The number of stalls that were inflicted.
    pub stalls: u64,
}

impl fmt::Display for BarrierFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} barriers, {} phases, {} stalls", self.rounds, self.phases, self.stalls)
    }
}

/// The state of a round that the watching thread reads.
#[derive(Default)]
struct Books {
    /// The number of crossings of all members. Each member adds its own.
    crossed: AtomicU64,
    /// The members that run. Each member adds and removes itself.
    members: Victims,
}

/// The number of phases that each member crossed, and the number of crossings as the leader.
type Outcome = Option<(Vec<u64>, u64)>;

/// A round of one barrier. Its arguments are a seed, the number of members, the shared state, and
/// the time after which the round ends if nothing breaks the barrier before.
type Round = fn(u64, usize, &Books, Duration) -> Outcome;

/// Expands to the name and the round of each barrier of the table at which members sleep.
macro_rules! rounds {
    ([] $({
        $test:ident: $barrier:ty,
        name: $name:literal,
        sleeps: [$($type:ident, $sleeps:ident)?],
        $($rest:tt)*
    })+) => {
        &[$($((stringify!($type), round::<$barrier>),)?)+]
    };
}

/// The kinds of barrier, by name.
const ROUNDS: &[(&str, Round)] = stanchion_gang::__barriers!(rounds);

/// Tortures barriers for the whole of `torture.time`.
///
/// # Errors
///
/// The first fault. Its threads are left behind, so the caller should end the process soon.
pub fn torment(torture: &Torture) -> Result<BarrierFigures, BarrierFault> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let members = torture.threads.unwrap_or(CROWDING * processors).clamp(2, BitMask::MOST);
    let begin = Instant::now();
    let mut figures = BarrierFigures::default();
    while figures.rounds < ROUNDS.len() as u64 || begin.elapsed() < torture.time {
        let (name, run) = ROUNDS[figures.rounds as usize % ROUNDS.len()];
        let books = Arc::new(Books::default());
        let time = (torture.time / ROUNDS.len() as u32).min(Duration::from_millis(100));
        let seed = torture.seed + figures.rounds;
        // Not always the whole crowd: some barriers treat two members in a special way.
        let members = 2 + seed as usize % (members - 1);
        let mine = Arc::clone(&books);
        let runner = thread::spawn(move || run(seed, members, &mine, time));
        // Relaxed: shows only whether the barrier still moves.
        let crossed = || books.crossed.load(Relaxed);
        let stalls = books.members.stall_until_end(&runner, torture, PAUSE, crossed);
        figures.stalls += stalls.ok_or(BarrierFault::NoProgress(torture.stuck_after, name))?;
        let Ok(Some((crossed, led))) = runner.join() else {
            return Err(BarrierFault::Panicked(name));
        };
        if led != crossed[0] || crossed.iter().any(|&each| each != crossed[0]) {
            return Err(BarrierFault::Split { barrier: name, crossed, led });
        }
        figures.rounds += 1;
        figures.phases += led;
    }
    Ok(figures)
}

/// Runs one barrier until a member leaves or a deadline passes. Every other round has deadlines.
fn round<B: Barrier>(seed: u64, members: usize, books: &Books, time: Duration) -> Outcome {
    let barrier = B::with_members(members).expect("few enough for all");
    let begin = Instant::now();
    let led = AtomicU64::new(0);
    let member = |mut waiter: Waiter<&B>| {
        books.members.add();
        let index = waiter.index() as u64;
        let leaves = index == seed % members as u64;
        let mut random = Random::new(seed, index);
        let mut crossed = 0;
        while !leaves || begin.elapsed() < time {
            let short = seed.is_multiple_of(2) && random.below(64) == 0;
            let outcome = if short {
                waiter.wait_timeout(Duration::from_micros(random.below(5_000)))
            } else {
                waiter.wait()
            };
            let Ok(crossing) = outcome else { break };
            crossed += 1;
            // Relaxed: counts that are compared when all threads have been joined.
            books.crossed.fetch_add(1, Relaxed);
            led.fetch_add(u64::from(crossing.is_leader()), Relaxed);
        }
        books.members.remove();
        crossed
    };
    let crossed: Option<Vec<u64>> = thread::scope(|scope| {
        let waiters = Waiter::all(&barrier).into_iter();
        let threads: Vec<_> = waiters.map(|waiter| scope.spawn(|| member(waiter))).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    });
    crossed.map(|crossed| (crossed, led.into_inner()))
}
