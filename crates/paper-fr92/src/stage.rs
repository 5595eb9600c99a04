//! The place of a run: this computer, or a simulated machine.

use std::time::Duration;

use stanchion_simulator::Machine;

use super::points::{Case, Measured, Method, Others, Place, Point, Setting};
use super::{real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::{Precision, Repeated, rounds_until};
use stanchion_study::outcome::{Outcome, Verdict, range};
use stanchion_study::units::percent;

/// The least share of the processors' time that this program must have. With less, the computer is
/// not quiet enough to judge which threads are on its processors together.
const QUIET: f64 = 0.95;

/// A machine that cases can be measured on.
pub(super) enum Stage<'a> {
    Real(real::Here),
    Simulated(&'a Machine, Place),
}

impl<'a> Stage<'a> {
    pub(super) fn real(context: &Context) -> Result<Self, Stop> {
        Ok(Self::Real(real::Here::new(context)?))
    }

    pub(super) fn simulated(context: &Context, machine: &'a Machine) -> Result<Self, Stop> {
        Ok(Self::Simulated(machine, simulated::place(context, machine)?))
    }

    /// Returns the same machine, on which each yield is charged so many switches.
    pub(super) fn charging(self, switches: f64) -> Self {
        match self {
            Self::Simulated(machine, place) => {
                Self::Simulated(machine, Place { charged: switches, ..place })
            }
            here @ Self::Real(_) => here,
        }
    }

    pub(super) fn place(&self) -> &Place {
        match self {
            Self::Real(here) => &here.place,
            Self::Simulated(_, place) => place,
        }
    }

    /// Returns whether the paper's own figures, in milliseconds, can be compared with those of this
    /// machine.
    pub(super) fn is_the_papers(&self) -> bool {
        matches!(self, Self::Simulated(machine, _) if machine.name == "makbilan")
    }

    /// Returns whether the figures include this computer's own scheduler and other programs on it.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Self::Real(_))
    }

    /// Returns the outcome with this verdict. It is not judged if a figure of this computer is not
    /// known precisely enough, or if other programs were on the processors too.
    pub(super) fn judged(&self, repeated: Option<Repeated>, verdict: Verdict) -> Outcome {
        let verdict = match repeated {
            Some(repeated) => repeated.judge(verdict),
            None => verdict,
        };
        Outcome::new(match self {
            Self::Real(here) if here.share < QUIET => Verdict::NotJudged(format!(
                "other programs run here too: of the processors' time {} was left. It would be: {}, {}",
                percent(here.share),
                verdict.name(),
                verdict.because(),
            )),
            _ => verdict,
        })
    }

    /// Measures all `cases`. On this computer they are measured in turn, round after round, until
    /// the figures that decide are known as precisely as is required.
    pub(super) fn measure(
        &self,
        context: &Context,
        cases: &[Case],
        deciding: &Deciding<'_>,
    ) -> Result<(Vec<Point>, Option<Repeated>), Stop> {
        let place = self.place();
        let (runs, repeated) = match self {
            Self::Real(here) => {
                let (runs, repeated) = rounds_until(
                    context,
                    cases.len(),
                    deciding.precision,
                    |case, round| {
                        here.measure(&REAL.setting(context, place, &cases[case], round as u64))
                    },
                    |case| cases[case].members > 1 && (deciding.decides)(&cases[case]),
                    |runs| {
                        let times: Vec<f64> = runs.iter().map(|measured| measured.time).collect();
                        (deciding.figures)(&times)
                    },
                )?;
                (runs, Some(repeated))
            }
            Self::Simulated(machine, _) => (patterns(context, machine, place, cases)?, None),
        };
        let point = |(case, runs): (&Case, &Vec<Measured>)| {
            let measured = pooled(runs);
            Point {
                case: *case,
                measured,
                range: repeated.map(|_| range(runs.iter().map(|measured| measured.time))),
                full: place.iteration(case).full(),
                model: place.predicted(case, measured),
            }
        };
        Ok((cases.iter().zip(&runs).map(point).collect(), repeated))
    }
}

/// The figures that decide a claim on this computer.
pub(super) struct Deciding<'a> {
    /// The precision that is required of the figures.
    pub(super) precision: Precision,
    /// Says whether a case decides.
    pub(super) decides: &'a dyn Fn(&Case) -> bool,
    /// Computes the figures from the times of the cases that decide, in the order of the cases.
    pub(super) figures: &'a dyn Fn(&[f64]) -> Vec<f64>,
}

/// Returns the times of blocking over those of gangs, from the times of gangs and then of blocking.
pub(super) fn blocking_over_gangs(times: &[f64]) -> Vec<f64> {
    let (gangs, blocking) = times.split_at(times.len() / 2);
    gangs.iter().zip(blocking).map(|(gang, blocking)| blocking / gang).collect()
}

/// The measured rounds of a setting, a quantum for each program: in a quick run, and in a full one.
struct Rounds {
    /// The rounds among programs that do the same.
    alike: [u32; 2],
    /// The rounds among others that compute, where an iteration may take a round.
    computing: [u32; 2],
    /// The rounds before these.
    settle: u32,
}

/// On a simulated machine there are some hundred iterations where each takes a round.
const SIMULATED: Rounds = Rounds { alike: [8, 40], computing: [30, 100], settle: 3 };
/// On this computer a setting is measured several times.
const REAL: Rounds = Rounds { alike: [2, 12], computing: [10, 30], settle: 1 };

impl Rounds {
    /// Returns the setting of `case`, with one of its patterns.
    fn setting(&self, context: &Context, place: &Place, case: &Case, pattern: u64) -> Setting {
        let nanos = |millis: f64| (millis * 1e6).round() as u64;
        let crowd = case.others == Others::Computing;
        let [quick, full] = if crowd { self.computing } else { self.alike };
        Setting {
            method: case.method,
            load: case.load,
            members: case.members,
            least: nanos(place.least(case)),
            spread: nanos(case.var * place.unit),
            slow: nanos(case.slow),
            others: case.others,
            switch: place.switch_of(case),
            quantum: place.quantum,
            rounds: context.pick(quick, full),
            settle: self.settle,
            seed: context.seed.wrapping_add(pattern),
        }
    }
}

/// Measures all `cases` on a simulated machine, each with several patterns of uncoordinated
/// processors.
fn patterns(
    context: &Context,
    machine: &Machine,
    place: &Place,
    cases: &[Case],
) -> Result<Vec<Vec<Measured>>, Stop> {
    let number = |case: &Case| match case.method {
        Method::Busy => context.pick(6, 24),
        Method::Gang | Method::GangTwoPhase => 1,
        _ => context.pick(1, 4),
    };
    let mut settings = Vec::new();
    for case in cases {
        let patterns = 0..number(case);
        settings.extend(patterns.map(|pattern| SIMULATED.setting(context, place, case, pattern)));
    }
    let mut measured = simulated::run(context, machine, &settings)?.into_iter();
    Ok(cases.iter().map(|case| measured.by_ref().take(number(case) as usize).collect()).collect())
}

/// Makes one figure of several patterns or rounds: the mean rate, as the model takes a mean
/// overlap.
fn pooled(patterns: &[Measured]) -> Measured {
    let iterations: u64 = patterns.iter().map(|one| one.iterations).sum();
    let time: f64 = patterns.iter().map(|one| one.time * one.iterations.max(1) as f64).sum();
    let alpha: f64 = patterns.iter().map(|one| one.alpha).sum();
    Measured {
        time: time / iterations.max(1) as f64,
        iterations,
        alpha: alpha / patterns.len() as f64,
    }
}

/// Returns the notes on the machine, for the reader of a figure.
pub(super) fn notes(stage: &Stage<'_>, repeated: Option<Repeated>) -> Vec<String> {
    let place = stage.place();
    let machine = match stage {
        Stage::Real(_) => format!(
            "{} processors, threads kept on theirs. A unit of GRAIN is {:.0} ns, a hundredth of the Makbilan's; gangs have a quantum of {:?}, without gangs the system's scheduler takes \
             turns as it likes. Its switch takes {:.2} µs (threads that yield to each other), a barrier {:.2} µs.",
            place.processors,
            place.unit * 1e6,
            place.quantum,
            place.switch * 1e3,
            place.barrier * 1e3,
        ),
        Stage::Simulated(machine, _) => format!(
            "{} processors in virtual time; the gangs are those of stanchion-gang, run by its own executor. A barrier of all takes {:.3} ms, of which each thread computes {:.3}, \
             as the paper's model has it. Looks of a waiting thread are {:?} apart: they take the bus, for {} does not cache what is remote.",
            place.processors,
            place.barrier,
            place.rest,
            Duration::from_nanos(simulated::LOOK.as_nanos()),
            machine.name,
        ),
    };
    let rounds =
        repeated.map(|repeated| format!("A figure is the mean rate of {}.", repeated.words()));
    let mut notes = vec![
        machine,
        "Blocking is the paper's: a waiting thread yields until all have come. How often, on average, is the α of the model's point beside it. Threads that compute for random parts of a \
         quantum keep the processors out of step at the outset; an uncoordinated figure is the mean rate of several such patterns."
            .to_owned(),
    ];
    notes.extend(rounds);
    notes
}

/// Returns the verdict for one processor, where no member waits for another.
pub(super) fn alone() -> Verdict {
    Verdict::NotJudged(
        "with one processor a gang has one member, which waits for no other".to_owned(),
    )
}
