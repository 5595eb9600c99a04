//! The waits of a program, recorded as the paper recorded them.
//!
//! *We let each thread spin up to 1008 times (63 units of lock-waiting time) before blocking* (section 3). With C at 200 spins that is 5.04 C, so the
//! recorder is put around a policy that spins for 5.04 C, and its buckets are 0.08 C wide, the paper's 16 spins.
//!
//! C is found as the paper's was, by *a simple program that executed context switches as rapidly as it could* (section 5): two threads on one
//! processor wake each other by turns, and half of a round trip is C. (The mutex itself measures C while it is used; that one follows the load, and
//! one number is needed here.)
//!
//! Figures 1 to 4 and tables 1 and 2 are about the same recordings, so each program is recorded once in a study.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stanchion_competitive::cost;
use stanchion_model::competitive::Distribution;

use super::super::context::{Context, Stop};
use super::foreign::{self, Missing};
use super::place::Place;
use super::real::programs::{Galaxy, Hanoi, Program, Regsim};
use super::real::record;
use super::{fig1, fig2};
use crate::advise::pool::Pool;
use crate::survey::switches::round_trip;
use crate::units::nanos;

/// The paper's 1008 spins, as a multiple of C.
pub(crate) const LONGEST_SPIN: f64 = 5.04;

/// With fewer waits than this a recording says nothing.
pub(crate) const ENOUGH: u64 = 100;

/// A program's waits and what they are to be compared with.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// What the program is called in a table.
    pub(crate) name: String,
    /// The paper's row that stands beside it.
    pub(crate) beside: &'static str,
    /// What was run.
    pub(crate) what: String,
    /// Its waits, lock by lock, and C.
    pub(crate) pool: Pool,
    /// How long the program ran.
    pub(crate) elapsed: Duration,
    /// How many processors it had.
    pub(crate) processors: usize,
    /// How it was recorded, if otherwise than the paper's programs.
    pub(crate) how: Option<&'static str>,
    /// The nanoseconds of its machine that a nanosecond of its clock is: 1 on this computer.
    pub(crate) scale: f64,
}

impl Recorded {
    /// The waits of all locks together.
    pub(crate) fn all(&self) -> Result<Distribution, Stop> {
        let mut points = Vec::new();
        for lock in &self.pool.locks {
            points.extend_from_slice(lock.waits().map_err(unsound)?.points());
        }
        Distribution::from_points(&points).map_err(unsound)
    }

    /// So many nanoseconds of its clock, in its machine's time.
    pub(crate) fn time(&self, clock: f64) -> String {
        nanos(clock * self.scale)
    }

    /// The share of waits with two contenders, the holder and one that waits; none where that was not recorded.
    pub(crate) fn share_of_two(&self) -> Option<f64> {
        let arrivals = self.pool.arrivals();
        let all: u64 = arrivals.iter().sum();
        (all > 0).then(|| arrivals[0] as f64 / all as f64)
    }

    /// Why nothing can be said about it, if nothing can.
    pub(crate) fn too_few(&self) -> Option<String> {
        let waits = self.pool.waits();
        (waits < ENOUGH).then(|| {
            format!("{}: {waits} waits, fewer than the {ENOUGH} that say anything", self.name)
        })
    }
}

/// What recorded waits cannot be.
pub(crate) fn unsound(error: stanchion_model::competitive::CompetitiveError) -> Stop {
    Stop::Failed(format!("recorded waits: {error}"))
}

/// A program that can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Galaxy,
    Hanoi,
    Regsim,
    /// A parallel build.
    Build,
    /// A server.
    Server,
}

impl Source {
    /// In the order of the paper's tables.
    pub(crate) const ALL: [Self; 5] =
        [Self::Build, Self::Server, Self::Galaxy, Self::Hanoi, Self::Regsim];
}

/// A recording, or why there is none.
pub(crate) type Taken = Result<Arc<Recorded>, String>;

/// What has been recorded in this process: a study has one size and one seed.
static TAKEN: Mutex<Vec<(Source, Taken)>> = Mutex::new(Vec::new());

/// The recording of `source`: taken now, unless another experiment of this study has.
pub(crate) fn of(source: Source, context: &Context) -> Result<Taken, Stop> {
    let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all.iter().find(|entry| entry.0 == source).map(|entry| entry.1.clone());
    let taken = match before {
        Some(taken) => taken,
        None => take(source, context)?,
    };
    if all.iter().all(|entry| entry.0 != source) {
        all.push((source, taken.clone()));
    }
    context.step()?;
    Ok(taken)
}

fn take(source: Source, context: &Context) -> Result<Taken, Stop> {
    let place = Place::here(context);
    let foreign = match source {
        Source::Galaxy => {
            return own("Galaxy", &Galaxy::new(&place, context.pick(600, 6_000))?, context);
        }
        Source::Hanoi => return own("Hanoi", &Hanoi::new(&place, context.pick(40, 400)), context),
        Source::Regsim => {
            return own("Regsim", &Regsim::new(&place, context.pick(200, 2_000))?, context);
        }
        Source::Build => &fig1::BUILD,
        Source::Server => &fig2::SERVER,
    };
    match foreign::record(foreign, context) {
        Ok(recorded) => Ok(Ok(Arc::new(recorded))),
        Err(Missing::Because(why)) => Ok(Err(format!("{}: {why}", foreign.name))),
        Err(Missing::Stop(stop)) => Err(stop),
    }
}

fn own(name: &'static str, program: &impl Program, context: &Context) -> Result<Taken, Stop> {
    record(name, program, context).map(|recorded| Ok(Arc::new(recorded)))
}

/// C in nanoseconds: half of the time in which two threads on one processor wake each other. Where threads cannot be kept on one, what the mutex
/// takes it to be.
pub(crate) fn switch(context: &Context) -> u64 {
    let first = context.processors.first().ok_or_else(|| "no processor".to_owned());
    let nanos = first.and_then(|&first| round_trip([first, first])).map(|nanos| nanos / 2.0);
    nanos.map_or_else(|_| cost::current(), |nanos| nanos as u64).max(1)
}
