//! Our locks on simulated machines, and the measurements compiled for each.

use lock_api::RawMutex;
use sim_machine::wait::Spin;
use stanchion_simulator::{Failure, Machine};

use super::contest::{self, Contest, Standing};
use super::copies::{self, Beside, Copies};
use super::latency;
use super::pass::{self, Pass};
use stanchion_study::outcome::Drawn;
use stanchion_study_locks::list::Way;
use stanchion_study_locks::our_locks;

/// A function that draws a contest, with a name and a title.
type Draw = fn(&Machine, &Contest, (&'static str, &str)) -> Result<Drawn, Failure>;

/// A lock and its measurements.
pub struct Lock {
    /// The name, in the report.
    pub name: &'static str,
    /// The paper's way of waiting that the lock implements, if any.
    pub way: Option<Way>,
    /// Runs a contest for the lock.
    pub contest: fn(&Machine, &Contest) -> Result<Standing, Failure>,
    /// Draws the timeline of a contest.
    pub draw: Draw,
    /// Runs a round in which each thread passes once.
    pub pass: fn(&Machine, &Pass) -> Result<f64, Failure>,
    /// Runs sections on copies of the lock beside sections on a shared one.
    pub copies: fn(&Machine, &Copies) -> Result<Beside, Failure>,
    /// Measures one thread's lock and unlock.
    pub latency: fn(&Machine, times: u32, seed: u64) -> Result<f64, Failure>,
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

/// The unit of the backoff's delays in every simulated experiment, in nanoseconds of the code's
/// clock: 8 µs on the Symmetry, which is one critical section.
///
/// The paper does not say how long its backoff delays. It says that "most processors delay locally
/// until some other processor has acquired the lock, and then miss again" (section 4.4), so a first
/// delay ends within the next holder's section. The sections of thread management take "less than
/// 10 µs, roughly the same as for Figure 4.1" (section 4.5). Figure 4.1's takes 8 µs: a lock and an
/// unlock of 5.6 µs and a turn of an empty loop of 2.5 µs (table 3.1).
///
/// The locks' default unit, 100 ns on a processor of today, is in proportion 40 µs on the Symmetry:
/// five sections. A waiter that delays so long misses the releases of all five.
pub const DELAY_NS: u64 = 20;

/// Our locks, compiled against the simulated machine. Their waiters only spin, as the papers' did:
/// each has a processor of its own, and to yield it would cost a switch. They have as many slots as
/// the largest machine has processors.
pub static LOCKS: &[Lock] = our_locks!(sim_spin, Spin, 128, DELAY_NS, lock);

/// Returns the index of the lock that implements the paper's way of waiting `way`.
pub fn of_way(way: Way) -> usize {
    LOCKS
        .iter()
        .position(|lock| lock.way == Some(way))
        .expect("each of the paper's ways has a line in our_locks")
}
