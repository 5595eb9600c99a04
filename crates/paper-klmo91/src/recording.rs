//! The waits of a program, recorded as the paper recorded them.
//!
//! *We let each thread spin up to 1008 times (63 units of lock-waiting time) before blocking*
//! (section 3). With C at 200 spins that is 5.04 C. So the recorder is put around a policy that
//! spins for 5.04 C, and its buckets are 0.08 C wide, the paper's 16 spins.
//!
//! C is found as in the paper, by *a simple program that executed context switches as rapidly as it
//! could* (section 5). Two threads on one processor wake each other by turns, and half of a round
//! trip is C. The mutex itself measures C while it is used. That measurement follows the load, but
//! here one number is needed.

use std::sync::Arc;
use std::time::Duration;

use stanchion_competitive::cost;
use stanchion_formulas::competitive::Distribution;
use stanchion_study::context::{Context, Stop};
use stanchion_study::survey::switches::round_trip;
use stanchion_study::units::nanos;

use crate::waits::pool::Pool;

/// The paper's 1008 spins, as a multiple of C.
pub(crate) const LONGEST_SPIN: f64 = 5.04;

/// The least number of waits with which a recording says anything.
pub(crate) const ENOUGH: u64 = 100;

/// A program's waits and the figures that they are compared with.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The label of the program in tables.
    pub(crate) name: String,
    /// The paper's row that stands beside it.
    pub(crate) beside: &'static str,
    /// A description of the run.
    pub(crate) what: String,
    /// Its waits, lock by lock, and C.
    pub(crate) pool: Pool,
    /// The time from the start of the program to its end.
    pub(crate) elapsed: Duration,
    /// The number of processors that it had.
    pub(crate) processors: usize,
    /// The way of recording, if it differs from that of the paper's programs.
    pub(crate) how: Option<&'static str>,
    /// The nanoseconds of its machine that a nanosecond of its clock is: 1 on this computer.
    pub(crate) scale: f64,
}

impl Recorded {
    /// Returns the waits of all locks together.
    pub(crate) fn all(&self) -> Result<Distribution, Stop> {
        let mut points = Vec::new();
        for lock in &self.pool.locks {
            points.extend_from_slice(lock.waits().map_err(unsound)?.points());
        }
        Distribution::from_points(&points).map_err(unsound)
    }

    /// Formats nanoseconds of the program's clock, in its machine's time.
    pub(crate) fn time(&self, clock: f64) -> String {
        nanos(clock * self.scale)
    }

    /// Returns the share of waits with two contenders, the holder and one waiter, if it was
    /// recorded.
    pub(crate) fn share_of_two(&self) -> Option<f64> {
        let arrivals = self.pool.arrivals();
        let all: u64 = arrivals.iter().sum();
        (all > 0).then(|| arrivals[0] as f64 / all as f64)
    }

    /// Returns the reason why the recording has too few waits to be judged, if it has.
    pub(crate) fn too_few(&self) -> Option<String> {
        let waits = self.pool.waits();
        (waits < ENOUGH).then(|| {
            format!("{}: {waits} waits, fewer than the {ENOUGH} that say anything", self.name)
        })
    }
}

/// A recording, or why there is none.
pub(crate) type Taken = Result<Arc<Recorded>, String>;

/// Returns the failure for recorded waits that no lock can have.
pub(crate) fn unsound(error: stanchion_formulas::competitive::CompetitiveError) -> Stop {
    Stop::Failed(format!("recorded waits: {error}"))
}

/// Returns C in nanoseconds: half of the time in which two threads on one processor wake each
/// other. If threads cannot be kept on one processor, it is the mutex's own estimate.
pub(crate) fn switch(context: &Context) -> u64 {
    let first = context.processors.first().ok_or_else(|| "no processor".to_owned());
    let nanos = first.and_then(|&first| round_trip([first, first])).map(|nanos| nanos / 2.0);
    nanos.map_or_else(|_| cost::current(), |nanos| nanos as u64).max(1)
}
