//! The place of a run: this computer, or a simulated machine.

use std::time::Duration;

use stanchion_simulator::Machine;

use super::points::{Case, Measured, Method, Others, Place, Point, Setting};
use super::{real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::{Outcome, Verdict};
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

    /// Returns the outcome with this verdict. If other programs were on the processors too, it is
    /// not judged.
    pub(super) fn judged(&self, verdict: Verdict) -> Outcome {
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

    /// Returns the number of patterns of an uncoordinated machine that one figure is the mean of.
    fn patterns(&self, context: &Context, method: Method) -> u64 {
        match (self, method) {
            (Self::Real(_), _) => context.pick(1, 3),
            (_, Method::Busy) => context.pick(6, 24),
            (_, Method::Gang | Method::GangTwoPhase) => 1,
            _ => context.pick(1, 4),
        }
    }

    /// Measures all `cases`.
    pub(super) fn measure(&self, context: &Context, cases: &[Case]) -> Result<Vec<Point>, Stop> {
        let place = self.place();
        let mut settings = Vec::new();
        for case in cases {
            let patterns = self.patterns(context, case.method);
            settings.extend((0..patterns).map(|pattern| setting(context, place, case, pattern)));
        }
        let measured = match self {
            Self::Real(here) => here.run(context, &settings)?,
            Self::Simulated(machine, _) => simulated::run(context, machine, &settings)?,
        };
        let mut rest = &measured[..];
        let points = cases.iter().map(|case| {
            let (of_case, others) = rest.split_at(self.patterns(context, case.method) as usize);
            rest = others;
            let measured = pooled(of_case);
            Point {
                case: *case,
                measured,
                full: place.iteration(case).full(),
                model: place.predicted(case, measured),
            }
        });
        Ok(points.collect())
    }
}

fn setting(context: &Context, place: &Place, case: &Case, pattern: u64) -> Setting {
    let nanos = |millis: f64| (millis * 1e6).round() as u64;
    let crowd = case.others == Others::Computing;
    Setting {
        method: case.method,
        load: case.load,
        members: case.members,
        least: nanos(case.grain * place.unit),
        spread: nanos(case.var * place.unit),
        slow: nanos(case.slow),
        others: case.others,
        switch: place.switch_of(case),
        quantum: place.quantum,
        // Some hundred iterations where each takes a round.
        rounds: if crowd { context.pick(30, 100) } else { context.pick(8, 40) },
        seed: context.seed.wrapping_add(pattern),
    }
}

/// Makes one figure of several patterns: the mean rate, as the model takes a mean overlap.
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
pub(super) fn notes(stage: &Stage<'_>) -> Vec<String> {
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
            "{} processors in virtual time; the gangs are those of stanchion-gang, run by its own executor. A barrier of all takes {:.3} ms here, the paper's took 0.137; t_p has ours. \
             Looks of a waiting thread are {:?} apart: they take the bus, for {} does not cache what is remote.",
            place.processors,
            place.barrier,
            Duration::from_nanos(simulated::LOOK.as_nanos()),
            machine.name,
        ),
    };
    vec![
        machine,
        "Blocking is the paper's: a waiting thread yields until all have come. How often, on average, is the α of the model's point beside it. Threads that compute for random parts of a \
         quantum keep the processors out of step at the outset; an uncoordinated figure is the mean rate of several such patterns."
            .to_owned(),
    ]
}

/// Returns the verdict for one processor, where no member waits for another.
pub(super) fn alone() -> Verdict {
    Verdict::NotJudged(
        "with one processor a gang has one member, which waits for no other".to_owned(),
    )
}
