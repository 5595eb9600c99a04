//! The programs and the strategies in virtual time, as a simulated machine runs them.
//!
//! Times are in nanoseconds of the code's clock, in which the mutex knows its C; [`Recorded::scale`] and [`race`] turn them into the machine's.

#[path = "entrants.rs"]
mod entrants;
#[path = "programs.rs"]
mod programs;

use sim_applications as applications;
use sim_competitive as competitive;

use std::sync::{Arc, Mutex, PoisonError};

use sim_competitive::RawPolicyMutex;
use sim_competitive::policy::OptimalOnline;
use sim_competitive::waits::{self, Recorder};
use stanchion_competitive::waits::Recording;
use stanchion_simulator::{Machine, Simulation, Time, machines};

use super::super::context::{Context, Stop};
use super::super::outcome::Verdict;
use super::place::Place;
use super::race::{AGAIN, Standings, Thresholds, thresholds};
use super::recorded::{LONGEST_SPIN, Recorded, Source};
use crate::advise::pool::Pool;
use entrants::entrants;
pub(crate) use programs::{Galaxy, Hanoi, Program, Regsim};

/// Bytes of a virtual thread's stack: the programs parse and plan on the first.
const STACK: usize = 256 << 10;

/// Longer in virtual time than any of the paper's runs (three hours).
const LONGEST: Time = Time::millis(20_000_000);

/// Runs `body` on `machine`.
fn on<R>(machine: &Machine, seed: u64, body: impl FnOnce() -> Result<R, Stop>) -> Result<R, Stop> {
    let simulation = Simulation::new(machine.clone()).seed(seed).stack_size(STACK).time(LONGEST);
    let run = simulation
        .run(body)
        .map_err(|failure| Stop::Failed(format!("on {}: {failure}", machine.name)))?;
    run.result
}

/// Makes a program. What it must find is computed by the sequential one, whose clock is the machine's.
pub(crate) fn make<A>(
    machine: &Machine,
    context: &Context,
    make: impl FnOnce(&Place) -> Result<A, Stop>,
) -> Result<A, Stop> {
    on(machine, context.seed, || make(&Place::on(machine, context)))
}

/// C in nanoseconds of the code's clock: what a thread spends on going to sleep, the switch to another, and what passes until it can run again.
fn switch(machine: &Machine) -> u64 {
    let scheduling = &machine.scheduling;
    let cost = scheduling.park + scheduling.switch + scheduling.wakeup;
    (cost.as_nanos() as f64 / machine.scale) as u64
}

/// Runs `program` once and says what its waits were, as section 3 has it.
pub(crate) fn record(
    name: &'static str,
    program: &impl Program,
    machine: &Machine,
    seed: u64,
) -> Result<Recorded, Stop> {
    let switch = switch(machine);
    let longest = (LONGEST_SPIN * switch as f64) as u64;
    let (elapsed, text) = on(machine, seed, || {
        waits::restart_with_cost(switch);
        let elapsed = program.run(&|name| {
            let policy = OptimalOnline::with_threshold(longest);
            RawPolicyMutex::with_policy(Recorder::named_with(waits::intern(name), policy))
        })?;
        Ok((elapsed, waits::snapshot().to_json()))
    })?;
    // From the twin's type to ours.
    let recording = Recording::from_json(text.as_bytes())
        .map_err(|error| Stop::Failed(format!("{name}'s waits: {error}")))?;
    let recording = Recording { program: name.to_owned(), cost_ns: switch, ..recording };
    Ok(Recorded {
        name: name.to_owned(),
        beside: name,
        what: program.describe(),
        pool: Pool::of(vec![recording]),
        elapsed,
        processors: program.processors(),
        how: Some(HOW),
        scale: machine.scale,
    })
}

/// How waits are recorded.
const HOW: &str = "In virtual time; every wait may spin for 5.04 C before it blocks, as the paper's could for 1008 spins, and lasts until the thread has \
                   the lock, or, if it blocked, until the release that woke it.";

/// A recording, by what it is of.
type Taken = ((Source, String), Arc<Recorded>);

/// What has been recorded in this process: a study has one size and one seed.
static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());

/// The recording of `source` on `machine`: taken now, unless another experiment of this study has.
pub(crate) fn of(
    source: Source,
    context: &Context,
    machine: &Machine,
) -> Result<Arc<Recorded>, Stop> {
    let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (source, machine.name.clone());
    let before = all.iter().find(|entry| entry.0 == key).map(|entry| entry.1.clone());
    let recorded = match before {
        Some(recorded) => recorded,
        None => {
            let recorded = Arc::new(take(source, context, machine)?);
            all.push((key, recorded.clone()));
            recorded
        }
    };
    context.step()?;
    Ok(recorded)
}

/// The paper's programs that we have.
pub(crate) const SOURCES: [Source; 3] = [Source::Galaxy, Source::Hanoi, Source::Regsim];

fn take(source: Source, context: &Context, machine: &Machine) -> Result<Recorded, Stop> {
    let seed = context.seed;
    match source {
        Source::Galaxy => {
            let steps = context.pick(12, 60);
            let galaxy = make(machine, context, |place| Galaxy::new(place, steps))?;
            record("Galaxy", &galaxy, machine, seed)
        }
        Source::Hanoi => {
            let rounds = context.pick(2, 10);
            let hanoi = make(machine, context, |place| Ok(Hanoi::new(place, rounds)))?;
            record("Hanoi", &hanoi, machine, seed)
        }
        Source::Regsim => {
            let cycles = context.pick(8, 40);
            let regsim = make(machine, context, |place| Regsim::new(place, cycles))?;
            record("Regsim", &regsim, machine, seed)
        }
        Source::Build | Source::Server => {
            Err(Stop::Failed("other people's programs run on a real machine only".to_owned()))
        }
    }
}

/// The paper's three runs, each with another seed. Always-block's second part has seeds of its own: what separates it from the first is luck.
const ROUNDS: u64 = 3;

/// Runs `program` with every strategy; `recorded` are waits of the same program. Nanoseconds of the machine.
pub(crate) fn race<A: Program + Sync>(
    context: &Context,
    machine: &Machine,
    program: &A,
    recorded: &Recorded,
) -> Result<Standings, Stop> {
    let thresholds = thresholds(recorded)?;
    let entrants = entrants::<A>();
    let mut times = vec![Vec::new(); entrants.len()];
    for round in 0..rounds(context) {
        for (index, entrant) in entrants.iter().enumerate() {
            let other = if index == AGAIN { ROUNDS } else { 0 };
            let seed = context.seed.wrapping_add(round + other);
            let thresholds: &Thresholds = &thresholds;
            let elapsed = on(machine, seed, || (entrant.run)(program, thresholds))?;
            times[index].push(elapsed.as_nanos() as f64 * machine.scale);
            context.step()?;
        }
    }
    let names = entrants.iter().map(|entrant| entrant.name).collect();
    let policies = entrants.iter().map(|entrant| entrant.policy).collect();
    Ok(Standings::of(names, policies, times))
}

fn rounds(context: &Context) -> u64 {
    context.pick(1, ROUNDS)
}

/// How many steps of the progress bar [`race`] takes.
pub(crate) fn steps(context: &Context) -> usize {
    super::race::ENTRANTS * rounds(context) as usize
}

/// The verdict, if the claim is about this machine.
pub(crate) fn judged(machine: &Machine, verdict: Verdict) -> Verdict {
    if machine.name == machines::firefly().name {
        return verdict;
    }
    Verdict::NotJudged(format!("the paper's claim is about the Firefly. {}", verdict.because()))
}

/// What a reader must know of tables 3 and 4 in virtual time.
pub(crate) fn notes(recorded: &Recorded) -> Vec<String> {
    vec![
        format!(
            "{}, in virtual time; medians of the rounds, of which each has another seed; every run is checked against the program's own result. Always-block takes \
             part twice, with other seeds: what separates it from itself is noise.",
            recorded.what
        ),
        format!(
            "The thresholds of Opt-known are the best for {} waits recorded in a run before, lock by lock, with C = {}. The other policies go by the C that \
             the mutex measures while it is used.",
            crate::units::grouped(recorded.pool.waits()),
            recorded.time(recorded.pool.cost)
        ),
    ]
}
