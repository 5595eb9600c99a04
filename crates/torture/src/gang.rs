//! Torture for gangs with slots that are switched by signal. Members allocate, hold locks, panic,
//! are cancelled, or never reach a checkpoint. They are stopped at any point when a turn of 200 µs
//! is over. They are also stalled.
//!
//! A round is an executor for some gangs. Each gang must end as its kind says. The counter under
//! the lock must equal the members' own count.

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_gang::{Ended, GangError, GangExecutor, GangHandle, Member, Switching};

use crate::phase::Torture;
use crate::random::Random;
use crate::victims::Victims;

/// The length of a turn: the shortest that is a few times the cost of a switch.
const QUANTUM: Duration = Duration::from_micros(200);
/// The number of gangs in a round.
const GANGS: usize = 6;
/// The number of steps of a member that ends by itself.
const STEPS: u64 = 40;

/// The time between two stalls of members.
const PAUSE: Duration = Duration::from_micros(1_000);

/// A fault of the gangs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GangFault {
    /// No member did a step for this long.
    #[error("no progress for {0:?}: a turn that does not end, or a member that was not let go on")]
    NoProgress(Duration),
    /// A gang did not end as its kind must.
    #[error("round {round}: {what}")]
    Books {
        /// The number of the round.
        round: u64,
        /// A description of the end.
        what: String,
    },
}

/// The counts of a run without faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct GangFigures {
    /// The number of executors that were built and shut down.
    pub rounds: u64,
    /// The number of times that a member left its processor and came back.
    pub switches: u64,
    /// The number of steps of all members.
    pub steps: u64,
    /// The number of stalls that were inflicted.
    pub stalls: u64,
}

impl fmt::Display for GangFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, switches, steps, stalls } = self;
        write!(f, "{rounds} executors, {switches} switches, {steps} steps, {stalls} stalls")
    }
}

/// The work of a gang, and the way it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Members allocate and free memory, and reduce a sum.
    Allocates,
    /// Members count under a lock that all gangs use.
    Locks,
    /// One member panics while it holds a lock.
    Panics,
    /// Members do steps until they are cancelled.
    Cancelled,
    /// Members compute and never reach a checkpoint.
    Deaf,
}

/// All kinds.
const KINDS: [Kind; 5] = [Kind::Allocates, Kind::Locks, Kind::Panics, Kind::Cancelled, Kind::Deaf];

/// The state that all members of a round share.
#[derive(Default)]
struct Books {
    /// The number of steps of all members. Each member adds its own.
    steps: AtomicU64,
    /// The number of increments of `counter`. Members add one after each.
    counted: AtomicU64,
    /// The number of increments under the lock.
    counter: Mutex<u64>,
    /// The members that run. Each member adds and removes itself.
    members: Victims,
}

/// The role of a gang's members: its kind, and one chosen member.
#[derive(Clone, Copy)]
struct Part {
    /// The kind of the gang.
    kind: Kind,
    /// The index of the member that panics, if the kind is `Panics`.
    chosen: usize,
    /// The seed of the gang's random numbers.
    seed: u64,
}

impl Part {
    /// Runs one member.
    fn play(self, member: &mut Member, books: &Books) -> Result<u64, Ended> {
        books.members.add();
        // A member that panics leaves its number in the list.
        let outcome = self.steps(member, books);
        books.members.remove();
        outcome
    }

    /// Does the steps of one member.
    fn steps(self, member: &mut Member, books: &Books) -> Result<u64, Ended> {
        let mut random = Random::new(self.seed, member.index() as u64);
        let mut sum = 0;
        for step in 1.. {
            // Relaxed: shows that the gang still moves, and is a count that is compared when all
            // threads have been joined.
            books.steps.fetch_add(1, Relaxed);
            match self.kind {
                Kind::Allocates => {
                    let made: Vec<String> =
                        (0..random.below(40)).map(|number| number.to_string()).collect();
                    black_box(&made);
                    sum += member.all_reduce(1, |a, b| a + b)?;
                }
                Kind::Locks => {
                    let mut counter = books.counter.lock().unwrap_or_else(PoisonError::into_inner);
                    *counter += 1;
                    drop(counter);
                    books.counted.fetch_add(1, Relaxed);
                    sum += 1;
                    member.checkpoint()?;
                }
                Kind::Panics if member.index() == self.chosen && step == STEPS / 2 => {
                    let _held = books.counter.lock().unwrap_or_else(PoisonError::into_inner);
                    panic!("on purpose");
                }
                Kind::Panics | Kind::Cancelled => member.barrier()?,
                Kind::Deaf => {
                    for _ in 0..random.below(20_000) {
                        sum = black_box(sum);
                    }
                    sum += 1;
                }
            }
            if step == STEPS && matches!(self.kind, Kind::Allocates | Kind::Locks | Kind::Deaf) {
                break;
            }
        }
        Ok(sum)
    }

    /// Returns a description of the fault if the gang did not end as it must.
    fn check(self, members: usize, outcome: Result<Vec<u64>, GangError>) -> Option<String> {
        let each = if self.kind == Kind::Allocates { STEPS * members as u64 } else { STEPS };
        let right = match (&outcome, self.kind) {
            (Ok(sums), Kind::Allocates | Kind::Locks | Kind::Deaf) => {
                sums.len() == members && sums.iter().all(|&sum| sum == each)
            }
            (Err(GangError::Panicked { member, .. }), Kind::Panics) => *member == self.chosen,
            (Err(GangError::Cancelled), Kind::Cancelled) => true,
            _ => false,
        };
        (!right).then(|| format!("{:?} of {members} ended with {outcome:?}", self.kind))
    }
}

/// Tortures gangs for the whole of `torture.time`. If signals cannot switch slots, they are
/// switched cooperatively.
///
/// # Errors
///
/// The first fault. Its threads are left behind, so the caller should end the process soon.
pub fn torment(torture: &Torture) -> Result<GangFigures, GangFault> {
    let begin = Instant::now();
    let mut figures = GangFigures::default();
    while figures.rounds == 0 || begin.elapsed() < torture.time {
        let (number, seed) = (figures.rounds, torture.seed + figures.rounds);
        let books = Arc::new(Books::default());
        let mine = Arc::clone(&books);
        let seats = torture.threads;
        let runner = thread::spawn(move || round(seed, seats, &mine));
        let steps = || books.steps.load(Relaxed);
        let stalls = books.members.stall_until_end(&runner, torture, PAUSE, steps);
        figures.stalls += stalls.ok_or(GangFault::NoProgress(torture.stuck_after))?;
        let ended = runner.join().unwrap_or_else(|_| Err("the round panicked".to_owned()));
        figures.switches += ended.map_err(|what| GangFault::Books { round: number, what })?;
        figures.rounds += 1;
        figures.steps += books.steps.load(Relaxed);
    }
    Ok(figures)
}

/// Runs an executor and its gangs. Returns the number of switches.
fn round(seed: u64, seats: Option<usize>, books: &Arc<Books>) -> Result<u64, String> {
    let seats = seats.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let seats = seats.clamp(2, 16);
    let executor = GangExecutor::builder()
        .processors(seats)
        .slots(2 * GANGS)
        .quantum(QUANTUM)
        .switching(Switching::Signal)
        .pin(true)
        .build()
        .map_err(|refused| refused.to_string())?;
    let mut random = Random::new(seed, 0);
    let mut gangs: Vec<(Part, usize, GangHandle<u64>)> = Vec::new();
    for number in 0..GANGS as u64 {
        let members = 1 + random.below(seats as u64) as usize;
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let chosen = random.below(members as u64) as usize;
        let part = Part { kind, chosen, seed: seed ^ number << 32 };
        let books = Arc::clone(books);
        let gang = executor.spawn(members, move |member: &mut Member| part.play(member, &books));
        gangs.push((part, members, gang.map_err(|refused| refused.to_string())?));
    }
    for (part, _, gang) in &gangs {
        if part.kind == Kind::Cancelled {
            thread::sleep(Duration::from_micros(random.below(2_000)));
            gang.cancel();
        }
    }
    for (part, members, gang) in gangs {
        if let Some(wrong) = part.check(members, gang.join()) {
            return Err(wrong);
        }
    }
    let switches = executor.metrics().switches;
    executor.shutdown();
    let counter = *books.counter.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = books.counted.load(Relaxed);
    if counter != counted {
        return Err(format!("{counted} counted under the lock, and it holds {counter}"));
    }
    Ok(switches)
}
