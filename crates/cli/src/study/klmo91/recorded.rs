//! The waits of a program, recorded as the paper recorded them.
//!
//! *We let each thread spin up to 1008 times (63 units of lock-waiting time) before blocking* (section 3). With C at 200 spins that is 5.04 C, so the
//! recorder is put around a policy that spins for 5.04 C, and its buckets are 0.08 C wide, the paper's 16 spins.
//!
//! C is found as the paper's was, by *a simple program that executed context switches as rapidly as it could* (section 5): two threads on one
//! processor wake each other by turns, and half of a round trip is C. (The mutex itself measures C while it is used; that one follows the load, and one
//! number is needed here.)
//!
//! Figures 3 and 4 and tables 1 and 2 are about the same recordings, so each program is recorded once in a study.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stanchion_competitive::policy::OptimalOnline;
use stanchion_competitive::waits::{self, Recorder};
use stanchion_competitive::{RawPolicyMutex, cost};
use stanchion_model::competitive::Distribution;

use super::super::context::{Context, Stop};
use super::programs::{Galaxy, Hanoi, Program, Regsim};
use crate::advise::pool::Pool;
use crate::survey::switches::round_trip;

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
            format!("{} had {waits} waits, fewer than the {ENOUGH} that say anything", self.name)
        })
    }
}

/// What recorded waits cannot be.
pub(crate) fn unsound(error: stanchion_model::competitive::CompetitiveError) -> Stop {
    Stop::Failed(format!("recorded waits: {error}"))
}

/// The paper's programs that Stanchion has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    Galaxy,
    Hanoi,
    Regsim,
}

impl Own {
    pub(crate) const ALL: [Self; 3] = [Self::Galaxy, Self::Hanoi, Self::Regsim];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Galaxy => "Galaxy",
            Self::Hanoi => "Hanoi",
            Self::Regsim => "Regsim",
        }
    }
}

/// What has been recorded in this process: a study has one size and one seed.
static TAKEN: Mutex<Vec<(Own, Arc<Recorded>)>> = Mutex::new(Vec::new());

/// The recording of `own`: taken now, unless another experiment of this study has.
pub(crate) fn of(own: Own, context: &Context) -> Result<Arc<Recorded>, Stop> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, recorded)) = taken.iter().find(|entry| entry.0 == own) {
        return Ok(Arc::clone(recorded));
    }
    let recorded = match own {
        Own::Galaxy => record(own, &Galaxy::new(context, context.pick(600, 6_000))?, context),
        Own::Hanoi => record(own, &Hanoi::new(context, context.pick(40, 400)), context),
        Own::Regsim => record(own, &Regsim::new(context, context.pick(200, 2_000))?, context),
    };
    let recorded = Arc::new(recorded?);
    taken.push((own, Arc::clone(&recorded)));
    Ok(recorded)
}

/// The recordings of several, each a step of the experiment.
pub(crate) fn all(own: &[Own], context: &Context) -> Result<Vec<Arc<Recorded>>, Stop> {
    let mut recorded = Vec::new();
    for &own in own {
        recorded.push(of(own, context)?);
        context.step()?;
    }
    Ok(recorded)
}

/// Runs `program` once and says what its waits were.
pub(crate) fn record(
    own: Own,
    program: &impl Program,
    context: &Context,
) -> Result<Recorded, Stop> {
    let switch = switch(context);
    let longest = (LONGEST_SPIN * switch as f64) as u64;
    waits::restart_with_cost(switch);
    let elapsed = program.run(&|name| {
        let policy = OptimalOnline::with_threshold(longest);
        RawPolicyMutex::with_policy(Recorder::named_with(waits::intern(name), policy))
    })?;
    let mut recording = waits::snapshot();
    recording.cost_ns = switch;
    Ok(Recorded {
        name: own.name().to_owned(),
        beside: own.name(),
        what: program.describe(),
        pool: Pool::of(vec![recording]),
        elapsed,
        processors: program.processors(),
    })
}

/// C in nanoseconds: half of the time in which two threads on one processor wake each other. Where threads cannot be kept on one, what the mutex takes it
/// to be.
pub(crate) fn switch(context: &Context) -> u64 {
    let first = context.processors.first().ok_or_else(|| "no processor".to_owned());
    let nanos = first.and_then(|&first| round_trip([first, first])).map(|nanos| nanos / 2.0);
    nanos.map_or_else(|_| cost::current(), |nanos| nanos as u64).max(1)
}
