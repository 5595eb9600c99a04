//! Our locks on simulated machines, and the measurements, each compiled for them.

use lock_api::RawMutex;
use sim_machine::wait::Spin;
use stanchion_simulator::{Failure, Machine};

use super::super::locks::registry::{ANY_ORDER, FIRST_COME, Way, our_locks};
use super::super::outcome::Drawn;
use super::contest::{self, Contest, Standing};
use super::copies::{self, Beside, Copies};
use super::latency;
use super::pass::{self, Pass};

/// Draws a contest, under a name and a title.
type Draw = fn(&Machine, &Contest, (&'static str, &str)) -> Result<Drawn, Failure>;

/// A lock and the measurements.
pub(crate) struct Lock {
    pub(crate) name: &'static str,
    /// The paper's way of waiting that it is, if it is one.
    pub(crate) way: Option<Way>,
    pub(crate) contest: fn(&Machine, &Contest) -> Result<Standing, Failure>,
    pub(crate) draw: Draw,
    pub(crate) pass: fn(&Machine, &Pass) -> Result<f64, Failure>,
    pub(crate) copies: fn(&Machine, &Copies) -> Result<Beside, Failure>,
    pub(crate) latency: fn(&Machine, times: u32, seed: u64) -> Result<f64, Failure>,
}

const fn lock<R: RawMutex + 'static>(name: &'static str, way: Option<Way>, _ordered: bool) -> Lock {
    Lock {
        name,
        way,
        contest: contest::run::<R>,
        draw: contest::draw::<R>,
        pass: pass::run::<R>,
        copies: copies::run::<R>,
        latency: latency::run::<R>,
    }
}

/// Our locks, compiled against the simulated machine. Their waiters only spin, as the papers' did: each has a processor of its own, and to yield
/// it would cost a switch. As many slots as the largest machine has processors.
pub(crate) const LOCKS: &[Lock] = our_locks!(sim_spin, Spin, 128, lock);

/// The lock that is the paper's way of waiting `way`.
pub(crate) fn of_way(way: Way) -> usize {
    LOCKS
        .iter()
        .position(|lock| lock.way == Some(way))
        .expect("each of the paper's ways has a line in our_locks")
}
