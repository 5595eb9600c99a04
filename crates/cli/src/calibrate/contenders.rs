//! The locks and the policies, each compiled for both machines.

use lock_api::RawMutex;
use stanchion_simulator::{Failure, Machine};

use super::real::{self as here, Work};
use super::simulated as there;
use stanchion_study_locks::list::{ANY_ORDER, Way};
use stanchion_study_locks::our_locks;

/// A lock, here and there.
pub(crate) struct Contender {
    /// The name of the lock or of the policy.
    pub(crate) name: &'static str,
    /// Measures one thread on this computer, in nanoseconds.
    pub(crate) real_alone: fn() -> f64,
    /// Measures so many runs of two threads on this computer, in nanoseconds.
    pub(crate) real_pair: fn(Work, u32) -> Vec<f64>,
    /// Measures one thread on a simulated machine, in nanoseconds.
    pub(crate) simulated_alone: fn(&Machine) -> Result<f64, Failure>,
    /// Measures so many runs of two threads on a simulated machine, and returns the median in
    /// nanoseconds.
    pub(crate) simulated_pair: fn(&Machine, u32) -> Result<f64, Failure>,
}

/// The half of a contender that runs here.
struct Real {
    /// The name of the lock or of the policy.
    name: &'static str,
    /// Measures one thread, in nanoseconds.
    alone: fn() -> f64,
    /// Measures so many runs of two threads, in nanoseconds.
    pair: fn(Work, u32) -> Vec<f64>,
}

const fn real<R: RawMutex + Send + Sync + 'static>(
    name: &'static str,
    _: Option<Way>,
    _: bool,
) -> Real {
    Real { name, alone: here::alone::<R>, pair: here::pair::<R> }
}

/// The half that runs in virtual time.
struct Simulated {
    /// The name of the lock or of the policy.
    name: &'static str,
    /// Measures one thread, in nanoseconds.
    alone: fn(&Machine) -> Result<f64, Failure>,
    /// Measures so many runs of two threads, and returns the median in nanoseconds.
    pair: fn(&Machine, u32) -> Result<f64, Failure>,
}

const fn simulated<R: RawMutex + 'static>(
    name: &'static str,
    _: Option<Way>,
    _: bool,
) -> Simulated {
    Simulated { name, alone: there::alone::<R>, pair: there::pair::<R> }
}

/// Expands to the mutexes of `$competitive`, one for each policy of the table. `$entry` makes an
/// entry of each.
macro_rules! mutexes {
    ([$competitive:ident $entry:ident] $({
        $test:ident: $policy:ty,
        name: $name:literal,
        public: [$($public:ident $(::$new:ident)?)?],
        $($rest:tt)*
    })+) => {
        &[$($(
            $entry::<$competitive::RawPolicyMutex<$policy>>(stringify!($public), None, ANY_ORDER),
        )?)+]
    };
}

const LOCKS: (&[Real], &[Simulated]) = (
    our_locks!(
        stanchion_spin,
        stanchion_machine::wait::Patient,
        16,
        stanchion_spin::contention::MEASURED,
        real
    ),
    our_locks!(
        sim_spin,
        sim_machine::wait::Patient,
        16,
        stanchion_spin::contention::MEASURED,
        simulated
    ),
);
const POLICIES: (&[Real], &[Simulated]) = (
    stanchion_competitive::__policies!(mutexes [stanchion_competitive real]),
    sim_competitive::__policies!(mutexes [sim_competitive simulated]),
);

/// All, the locks first.
pub(crate) fn contenders() -> Vec<Contender> {
    let halves = |(real, simulated): (&'static [Real], &'static [Simulated])| {
        real.iter().zip(simulated).map(|(real, simulated)| {
            debug_assert_eq!(real.name, simulated.name);
            Contender {
                name: real.name,
                real_alone: real.alone,
                real_pair: real.pair,
                simulated_alone: simulated.alone,
                simulated_pair: simulated.pair,
            }
        })
    };
    halves(LOCKS).chain(halves(POLICIES)).collect()
}
