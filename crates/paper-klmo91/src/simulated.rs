//! The programs and the strategies in virtual time, as a simulated machine runs them.
//!
//! Times are in nanoseconds of the code's clock, in which the mutex knows its C;
//! [`Recorded::scale`] and [`race`] turn them into the machine's.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sim_competitive::policy::OptimalOnline;
use sim_competitive::waits::{self, Recorder};
use sim_competitive::{Policy, RawPolicyMutex};
use stanchion_competitive::waits::Recording;
use stanchion_simulator::{Failure, Machine, Simulation, Time, inside, machines};

use super::place;
use super::race::{AGAIN, MOST_NOISE, Standings, thresholds};
use super::recorded::Source;
use super::recording::{LONGEST_SPIN, Recorded};
use crate::waits::pool::Pool;
use sim_programs::klmo91::entrants::entrants;
pub(crate) use sim_programs::klmo91::programs::{Galaxy, Hanoi, Program, Regsim};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Counterfactual;
use stanchion_study::outcome::{Found, Verdict};
use stanchion_study::settings::spinning::{ENTRANTS, Place};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::failed;
use stanchion_study::units::{grouped, percent};

/// Bytes of a virtual thread's stack: the programs parse and plan on the first.
const STACK: usize = 256 << 10;

/// The limit of virtual time, longer than any of the paper's runs (three hours).
const LONGEST: Time = Time::millis(20_000_000);

/// Runs `body` on `machine`.
fn on<R: 'static>(
    machine: &Machine,
    seed: u64,
    body: impl FnOnce() -> R + 'static,
) -> Result<R, Failure> {
    let simulation = Simulation::new(machine.clone()).seed(seed).stack_size(STACK).time(LONGEST);
    simulation.run(body).map(|run| run.result)
}

/// Makes a program. The sequential program computes the result that it must find. Its clock is that
/// of the machine.
pub(crate) fn make<A: 'static>(
    machine: &Machine,
    context: &Context,
    make: impl FnOnce(&Place) -> Result<A, Stop> + 'static,
) -> Result<Arc<A>, Stop> {
    let place = place::on(machine, context);
    on(machine, context.seed, move || make(&place).map(Arc::new))
        .map_err(|failure| failed(machine, &failure))?
}

/// A program with a process of another address space beside it, which computes in bursts.
pub(crate) struct Beside<A> {
    /// The program.
    program: A,
    /// The share of one processor that the process asks for, from 0 to 1.
    share: f64,
}

/// The time from the beginning of one burst of the process to that of the next, in nanoseconds of
/// the machine: a tick of the system's clock.
const PERIOD_NS: f64 = 10e6;

/// Returns the counterfactual of a process beside the program, with its `sizes` from 0 to 1.
pub(crate) const fn process(
    sizes: &'static [f64],
    figure: &'static str,
    run: fn(&Context, &Machine, f64) -> Result<Found, Stop>,
) -> Counterfactual {
    Counterfactual {
        name: "a competing process",
        piece: "The scheduler gives processors to ready threads without regard to address space \
                (section 3), and Taos with its windows and threads for garbage collection ran beside \
                the programs (sections 3 and 5); here the programs run alone.",
        size: "share of one processor",
        sizes,
        figure,
        run,
    }
}

impl<A> Beside<A> {
    pub(crate) fn new(program: A, share: f64) -> Self {
        Self { program, share }
    }
}

impl<A: Program> Program for Beside<A> {
    fn run<P: Policy + 'static>(
        &self,
        make: &dyn Fn(&str) -> RawPolicyMutex<P>,
    ) -> Result<Duration, Stop> {
        if self.share == 0.0 {
            return self.program.run(make);
        }
        let burst = PERIOD_NS * self.share;
        let (burst, rest) = (burst as u64, (PERIOD_NS - burst) as u64);
        let is_over = Rc::new(Cell::new(false));
        let told = is_over.clone();
        let process = inside::spawn(
            None,
            None,
            Box::new(move || {
                while !told.get() {
                    inside::work(burst);
                    if rest > 0 {
                        inside::sleep(rest);
                    }
                }
            }),
        );
        let elapsed = self.program.run(make);
        is_over.set(true);
        inside::join(process);
        elapsed
    }

    fn processors(&self) -> usize {
        self.program.processors()
    }

    fn describe(&self) -> String {
        self.program.describe()
    }
}

/// Returns C in nanoseconds of the code's clock: the time that a thread spends on going to sleep,
/// the switch to another, and the time until the first can run again.
fn switch(machine: &Machine) -> u64 {
    let scheduling = &machine.scheduling;
    let cost = scheduling.park + scheduling.switch + scheduling.wakeup;
    (cost.as_nanos() as f64 / machine.scale) as u64
}

/// Runs `program` once and returns its waits, recorded as in section 3.
pub(crate) fn record(
    name: &'static str,
    program: &Arc<impl Program + 'static>,
    machine: &Machine,
    seed: u64,
) -> Result<Recorded, Stop> {
    let switch = switch(machine);
    let longest = (LONGEST_SPIN * switch as f64) as u64;
    let recorded = program.clone();
    let (elapsed, text) = on(machine, seed, move || -> Result<_, Stop> {
        waits::restart_with_cost(switch);
        let elapsed = recorded.run(&|name| {
            let policy = OptimalOnline::with_threshold(longest);
            RawPolicyMutex::with_policy(Recorder::with_policy(waits::intern(name), policy))
        })?;
        Ok((elapsed, waits::snapshot().to_json()))
    })
    .map_err(|failure| failed(machine, &failure))??;
    // Convert from the twin's type to ours.
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

/// The note on the way of recording.
const HOW: &str = "\
    In virtual time, threads on whichever processor is idle. Every wait may spin for 5.04 C before it blocks, as the paper's could for 1008 spins, and lasts until \
    the thread has the lock, or, if it blocked, until the release that woke it. What the programs compute is declared in instructions of a CVAX, three million a \
    second; Regsim's objects have so few locks that the optimum's share of its time is about the paper's.";

/// A recording, with its program and its machine.
type Taken = ((Source, String), Arc<Recorded>);

/// The recordings of this process. One of each program and machine is enough: a study has one size
/// and one seed.
static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());

/// Returns the recording of `source` on `machine`. If no experiment of this study has recorded it
/// yet, records it now.
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
            let recorded = Arc::new(take(source, context, machine, 0.0)?);
            all.push((key, recorded.clone()));
            recorded
        }
    };
    context.step()?;
    Ok(recorded)
}

/// The paper's programs that we have.
pub(crate) const SOURCES: [Source; 3] = [Source::Galaxy, Source::Hanoi, Source::Regsim];

/// Records `source`, beside a process that asks for `share` of a processor.
pub(crate) fn take(
    source: Source,
    context: &Context,
    machine: &Machine,
    share: f64,
) -> Result<Recorded, Stop> {
    let seed = context.seed;
    match source {
        Source::Galaxy => {
            let steps = context.pick(40, 200);
            let galaxy = make(machine, context, move |place| {
                Ok(Beside::new(Galaxy::new(place, steps)?, share))
            })?;
            record("Galaxy", &galaxy, machine, seed)
        }
        Source::Hanoi => {
            let rounds = context.pick(4, 20);
            let hanoi = make(machine, context, move |place| {
                Ok(Beside::new(Hanoi::new(place, rounds), share))
            })?;
            record("Hanoi", &hanoi, machine, seed)
        }
        Source::Regsim => {
            let cycles = context.pick(20, 100);
            let regsim = make(machine, context, move |place| {
                Ok(Beside::new(Regsim::new(place, cycles)?, share))
            })?;
            record("Regsim", &regsim, machine, seed)
        }
        Source::Build | Source::Server | Source::OwnBuild | Source::OwnServer => {
            Err(Stop::Failed("other people's programs run on a real machine only".to_owned()))
        }
    }
}

/// The paper's three runs, each with another seed. Always-block's second part has seeds of its own.
/// Its difference from the first is luck.
const ROUNDS: u64 = 3;

/// Runs `program` with every strategy. `recorded` are waits of the same program. The results are in
/// nanoseconds of the machine.
pub(crate) fn race<A: Program + Send + Sync + 'static>(
    context: &Context,
    machine: &Machine,
    program: &Arc<A>,
    recorded: &Recorded,
) -> Result<Standings, Stop> {
    let thresholds = Arc::new(thresholds(recorded)?);
    let entrants = entrants::<A>();
    let settings: Vec<(usize, u64)> =
        (0..ROUNDS).flat_map(|round| (0..ENTRANTS).map(move |entrant| (entrant, round))).collect();
    let elapsed = cells(context, machine, &settings, |&(entrant, round)| {
        let other = if entrant == AGAIN { ROUNDS } else { 0 };
        let seed = context.seed.wrapping_add(round + other);
        let (run, program, thresholds) =
            (entrants[entrant].run, program.clone(), thresholds.clone());
        on(machine, seed, move || run(&program, &thresholds))
    })?;
    let mut times = vec![Vec::new(); entrants.len()];
    for (&(entrant, _), elapsed) in settings.iter().zip(elapsed) {
        times[entrant].push(elapsed?.as_nanos() as f64 * machine.scale);
    }
    let names = entrants.iter().map(|entrant| entrant.name).collect();
    let policies = entrants.iter().map(|entrant| entrant.policy).collect();
    Ok(Standings::of(names, policies, times))
}

/// The number of steps of the progress bar that [`race`] takes.
pub(crate) const STEPS: usize = ENTRANTS * ROUNDS as usize;

/// Returns `verdict` of the standings, unless luck decides more than the strategies do.
pub(crate) fn unless_luck(
    standings: &Standings,
    verdict: impl FnOnce(&Standings) -> Verdict,
) -> Verdict {
    if standings.noise() <= MOST_NOISE {
        return verdict(standings);
    }
    Verdict::NotJudged(format!(
        "with another seed always-block takes another time, by {}: too few rounds",
        percent(standings.noise())
    ))
}

/// Returns the verdict, if the claim is about this machine.
pub(crate) fn judged(machine: &Machine, verdict: Verdict) -> Verdict {
    if machine.name == machines::firefly().name {
        return verdict;
    }
    Verdict::NotJudged(format!("the paper's claim is about the Firefly. {}", verdict.because()))
}

/// Returns the notes on tables 3 and 4 in virtual time, for their reader.
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
            grouped(recorded.pool.waits()),
            recorded.time(recorded.pool.cost)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::race::{SPIN, standings};
    use super::*;
    use stanchion_study::interrupt::Interrupt;

    fn context(seed: u64) -> Context {
        Context::new(true, seed, Interrupt::default())
    }

    fn firefly() -> Machine {
        machines::firefly()
    }

    fn hanoi(seed: u64) -> Arc<Hanoi> {
        make(&firefly(), &context(seed), |place| Ok(Hanoi::new(place, 1))).unwrap()
    }

    #[test]
    fn what_is_recorded_is_the_same_every_time() {
        let recorded = |seed| {
            let galaxy = make(&firefly(), &context(seed), |place| Galaxy::new(place, 2)).unwrap();
            record("Galaxy", &galaxy, &firefly(), seed).unwrap()
        };
        let (once, twice, other) = (recorded(1), recorded(1), recorded(2));
        assert!(once.pool.waits() > 0, "a thread has waited");
        assert_eq!(format!("{once:?}"), format!("{twice:?}"));
        assert_ne!(format!("{once:?}"), format!("{other:?}"), "other stars");
    }

    #[test]
    fn c_is_the_paper_s() {
        let machine = firefly();
        assert_eq!(switch(&machine) as f64 * machine.scale, 200_000.0);
        let recorded = record("Hanoi", &hanoi(1), &machine, 1).unwrap();
        assert_eq!(recorded.time(recorded.pool.cost), "200\u{a0}µs");
    }

    #[test]
    fn a_race_is_the_same_every_time_and_not_a_tie() {
        let (machine, context) = (firefly(), context(1));
        let galaxy = make(&machine, &context, |place| Galaxy::new(place, 1)).unwrap();
        let recorded = record("Galaxy", &galaxy, &machine, 1).unwrap();
        let run = || race(&context, &machine, &galaxy, &recorded).unwrap();
        let standings = run();
        assert_eq!(format!("{standings:?}"), format!("{:?}", run()));
        assert!(standings.improvement(SPIN) > 0.0, "blocking costs more than short waits");
    }

    #[test]
    fn only_the_firefly_is_judged_and_only_without_luck() {
        let holds = |_: &Standings| Verdict::Holds("so".to_owned());
        let steady = standings([10.0; ENTRANTS]);
        let verdict = unless_luck(&steady, holds);
        assert_eq!(verdict.name(), "holds");
        assert_eq!(judged(&firefly(), verdict.clone()), verdict);
        let elsewhere = judged(&machines::modern(6), verdict);
        assert_eq!(elsewhere.name(), "not judged");
        assert!(elsewhere.because().ends_with("Firefly. so"), "{elsewhere:?}");
        let mut lucky = [10.0; ENTRANTS];
        lucky[AGAIN] = 11.0;
        assert_eq!(unless_luck(&standings(lucky), holds).name(), "not judged");
    }

    #[test]
    fn others_programs_are_not_simulated() {
        assert!(take(Source::Build, &context(1), &firefly(), 0.0).is_err());
        assert!(take(Source::Server, &context(1), &firefly(), 0.0).is_err());
    }
}
