//! The locks on this computer: ours, from the list, then those of other crates, one a line.

use parking_lot::{RawFairMutex, RawMutex};
use stanchion_applications::regsim::{self, Netlist, Options, Run};
use stanchion_machine::wait::Patient;

use super::contender::{Contender, Raw, Shared};
use super::contest::{Contest, Standing};
use super::pass::{Pass, Passed};
use super::raw::{FromGuard, McsBarging, Spin, SpinTicket, Std};
use super::{contest, latency, pass};
use crate::list::{ANY_ORDER, FIRST_COME, Way};
use crate::our_locks;

/// A lock and the measurements, each compiled for it.
pub struct Lock {
    /// The name, in the report.
    pub name: &'static str,
    /// The paper's way of waiting that the lock implements, if any.
    pub way: Option<Way>,
    /// True if the lock serves first come, first served.
    pub ordered: bool,
    /// Runs a contest for the lock.
    pub contest: fn(&Contest<'_>) -> Standing,
    /// Runs rounds in which each thread passes once.
    pub pass: fn(&Pass<'_>) -> Passed,
    /// Measures one thread's lock and unlock.
    pub latency: fn(runs: u32) -> f64,
    /// Runs the circuit simulator on the lock; none for a lock without guards, which no application
    /// can use.
    pub regsim: Option<fn(&Netlist, &Options) -> Run>,
}

const fn lock<L: Contender>(name: &'static str, way: Option<Way>, ordered: bool) -> Lock {
    Lock {
        name,
        way,
        ordered,
        contest: contest::run::<L>,
        pass: pass::run::<L>,
        latency: latency::run::<L>,
        regsim: None,
    }
}

/// Makes the entry of a lock with a guard that `lock_api` can carry. The measurements run on `L`,
/// and the application on `R`, which is the same lock.
const fn usable<L: Contender, R: lock_api::RawMutex + Send + Sync + 'static>(
    name: &'static str,
    way: Option<Way>,
    ordered: bool,
) -> Lock {
    Lock { regsim: Some(regsim::run::<R>), ..lock::<L>(name, way, ordered) }
}

/// Makes the entry of a raw lock of `lock_api` 0.5.
const fn raw<R: lock_api::RawMutex + Send + Sync + 'static>(
    name: &'static str,
    way: Option<Way>,
    ordered: bool,
) -> Lock {
    usable::<Raw<R>, R>(name, way, ordered)
}

/// All locks of the study: ours first, then those that programs use today.
pub static LOCKS: &[Lock] = our_locks!(
    stanchion_spin,
    Patient,
    16,
    stanchion_spin::contention::MEASURED,
    raw,
    usable::<std::sync::Mutex<Shared>, FromGuard<Std>>("std Mutex", None, ANY_ORDER),
    raw::<RawMutex>("parking_lot Mutex", None, ANY_ORDER),
    raw::<RawFairMutex>("parking_lot FairMutex", None, FIRST_COME),
    usable::<peer_spin::mutex::SpinMutex<Shared>, FromGuard<Spin>>(
        "spin SpinMutex",
        None,
        ANY_ORDER,
    ),
    usable::<peer_spin::mutex::TicketMutex<Shared>, FromGuard<SpinTicket>>(
        "spin TicketMutex",
        None,
        FIRST_COME,
    ),
    lock::<mcslock::raw::spins::Mutex<Shared>>("mcslock raw", None, FIRST_COME),
    usable::<mcslock::barging::spins::Mutex<Shared>, FromGuard<McsBarging>>(
        "mcslock barging",
        None,
        ANY_ORDER,
    ),
);

/// Returns the index of the lock that implements the paper's way of waiting `way`.
pub fn of_way(way: Way) -> usize {
    LOCKS
        .iter()
        .position(|lock| lock.way == Some(way))
        .expect("each of the paper's ways has a line in LOCKS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_every_way_has_its_lock() {
        let mut names: Vec<&str> = LOCKS.iter().map(|lock| lock.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), LOCKS.len());
        for way in [Way::Exchange, Way::Read, Way::Backoff, Way::Polling] {
            assert_eq!(LOCKS[of_way(way)].way, Some(way));
        }
    }
}
