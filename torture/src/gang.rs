//! Torture for gangs whose slots are switched by signal: members that allocate, hold locks, panic, are cancelled or never look, stopped wherever they are
//! when a turn of 200 µs is over, and stalled beside that.
//!
//! A round is an executor for some gangs. Each must end as its kind says, and the counter under the lock must be what its members have counted.

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_gang::{Ended, GangError, GangExecutor, GangHandle, Member, Switching};

use crate::phase::Torture;
use crate::random::Random;
use crate::tormentor;

/// The shortest that is a few times what a switch costs.
const QUANTUM: Duration = Duration::from_micros(200);
/// Gangs of a round.
const GANGS: usize = 6;
/// Steps of a member that ends of itself.
const STEPS: u64 = 40;

/// What is wrong with the gangs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GangFault {
    /// No member did a step for so long.
    #[error("no progress for {0:?}: a turn that does not end, or a member that was not let go on")]
    NoProgress(Duration),
    /// A gang ended otherwise than it must.
    #[error("round {round}: {what}")]
    Books {
        /// Which round.
        round: u64,
        /// How it ended.
        what: String,
    },
}

/// What happened to them.
#[derive(Clone, Copy, Debug, Default)]
pub struct GangFigures {
    /// Executors built and shut down.
    pub rounds: u64,
    /// How often a member left its seat and came back.
    pub switches: u64,
    /// Steps of all members.
    pub steps: u64,
    /// Stalls inflicted.
    pub stalls: u64,
}

impl fmt::Display for GangFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, switches, steps, stalls } = self;
        write!(f, "{rounds} executors, {switches} switches, {steps} steps, {stalls} stalls")
    }
}

/// What a gang does, and how it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Allocates and frees, and reduces what it has made.
    Allocates,
    /// Counts under a lock that all gangs want.
    Locks,
    /// One member panics, a lock in its hands.
    Panics,
    /// Does steps until it is cancelled.
    Cancelled,
    /// Computes, and comes nowhere that it would look.
    Deaf,
}

const KINDS: [Kind; 5] = [Kind::Allocates, Kind::Locks, Kind::Panics, Kind::Cancelled, Kind::Deaf];

/// What all members of a round share.
#[derive(Default)]
struct Books {
    steps: AtomicU64,
    counted: AtomicU64,
    counter: Mutex<u64>,
    /// The members that run, by the kernel's numbers.
    members: Mutex<Vec<i32>>,
}

/// A gang of a kind, one of whose members is chosen.
#[derive(Clone, Copy)]
struct Part {
    kind: Kind,
    chosen: usize,
    seed: u64,
}

impl Part {
    fn play(self, member: &mut Member, books: &Books) -> Result<u64, Ended> {
        let me = tormentor::this_thread();
        books.members.lock().unwrap_or_else(PoisonError::into_inner).push(me);
        // A member that panics leaves its number: a stall of nobody fails.
        let outcome = self.steps(member, books);
        books.members.lock().unwrap_or_else(PoisonError::into_inner).retain(|&other| other != me);
        outcome
    }

    fn steps(self, member: &mut Member, books: &Books) -> Result<u64, Ended> {
        let mut random = Random::new(self.seed, member.index() as u64);
        let mut sum = 0;
        for step in 1.. {
            // Relaxed: whether it still moves, and a count that is compared when all have been joined.
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

    /// What is wrong with the way it ended.
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

/// Tortures gangs for the whole of `torture.time`. Where signals cannot switch slots, cooperatively.
///
/// # Errors
///
/// The first fault. Its threads are left behind; the caller is expected to end the process soon.
pub fn torment(torture: &Torture) -> Result<GangFigures, GangFault> {
    let begin = Instant::now();
    let mut figures = GangFigures::default();
    while figures.rounds == 0 || begin.elapsed() < torture.time {
        let (number, seed) = (figures.rounds, torture.seed + figures.rounds);
        let books = Arc::new(Books::default());
        let mine = Arc::clone(&books);
        let seats = torture.threads;
        let runner = thread::spawn(move || round(seed, seats, &mine));
        figures.stalls += watch(&books, &runner, torture)?;
        let ended = runner.join().unwrap_or_else(|_| Err("the round panicked".to_owned()));
        figures.switches += ended.map_err(|what| GangFault::Books { round: number, what })?;
        figures.rounds += 1;
        figures.steps += books.steps.load(Relaxed);
    }
    Ok(figures)
}

/// Stalls members until the round has ended.
fn watch(
    books: &Books,
    runner: &thread::JoinHandle<Result<u64, String>>,
    torture: &Torture,
) -> Result<u64, GangFault> {
    let mut random = Random::new(torture.seed, u64::MAX);
    let mut last = (0, Instant::now());
    let mut stalls = 0;
    while !runner.is_finished() {
        // A member that is off may hold it.
        if let Ok(members) = books.members.try_lock()
            && !members.is_empty()
        {
            let victim = members[random.below(members.len() as u64) as usize];
            stalls += u64::from(tormentor::stall(victim));
        }
        thread::sleep(Duration::from_millis(1));
        let steps = books.steps.load(Relaxed);
        if steps != last.0 {
            last = (steps, Instant::now());
        } else if last.1.elapsed() >= torture.stuck_after {
            return Err(GangFault::NoProgress(torture.stuck_after));
        }
    }
    Ok(stalls)
}

/// An executor and its gangs; the switches that there were.
fn round(seed: u64, seats: Option<usize>, books: &Arc<Books>) -> Result<u64, String> {
    let seats = seats.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let seats = seats.clamp(2, 16);
    let executor = GangExecutor::builder()
        .seats(seats)
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
