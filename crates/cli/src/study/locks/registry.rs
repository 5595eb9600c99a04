//! The locks, a line each.

use machine::wait::Patient;
use parking_lot::{RawFairMutex, RawMutex};
use stanchion_applications::regsim::{self, Netlist, Options, Run};

use super::contender::{Contender, Raw, Shared};
use super::contest::{Contest, Standing};
use super::pass::{Pass, Passed};
use super::raw::{FromGuard, McsBarging, Spin, SpinTicket, Std};
use super::{contest, latency, pass};

/// A lock and the measurements, each compiled for it.
pub(crate) struct Lock {
    pub(crate) name: &'static str,
    /// The paper's way of waiting that it is, if it is one.
    pub(crate) way: Option<Way>,
    /// First come, first served.
    pub(crate) ordered: bool,
    pub(crate) contest: fn(&Contest<'_>) -> Standing,
    pub(crate) pass: fn(&Pass<'_>) -> Passed,
    pub(crate) latency: fn(runs: u32) -> f64,
    /// The circuit simulator on it; none for a lock without guards, which no application can use.
    pub(crate) regsim: Option<fn(&Netlist, &Options) -> Run>,
}

/// The ways to wait that section 4 of Anderson, Lazowska and Levy compares, and the variation it proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Exchange,
    Read,
    Backoff,
    Polling,
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

/// A lock whose guard `lock_api` can carry: the measurements by `L`, the application by `R`, which is the same lock.
const fn usable<L: Contender, R: lock_api::RawMutex + Send + Sync + 'static>(
    name: &'static str,
    way: Option<Way>,
    ordered: bool,
) -> Lock {
    Lock { regsim: Some(regsim::run::<R>), ..lock::<L>(name, way, ordered) }
}

/// A raw lock of `lock_api` 0.5.
const fn raw<R: lock_api::RawMutex + Send + Sync + 'static>(
    name: &'static str,
    way: Option<Way>,
    ordered: bool,
) -> Lock {
    usable::<Raw<R>, R>(name, way, ordered)
}

pub(crate) const FIRST_COME: bool = true;
pub(crate) const ANY_ORDER: bool = false;

/// Our locks, from `$spin` (the real crate or the one for simulated machines), whose waiters pass
/// the time as `$wait` says, with `$slots` slots where that bounds the threads. The unit of the
/// backoff's delays is `$delay` nanoseconds. Each is made an entry by `$lock`; then comes `$other`.
macro_rules! our_locks {
    ($spin:ident, $wait:ty, $slots:literal, $delay:expr, $lock:ident $(, $other:expr)* $(,)?) => {
        &[
            $lock::<$spin::TestAndSet<$spin::contention::Exchange, $wait>>("TestAndSet, exchange", Some(Way::Exchange), ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Read, $wait>>("TestAndSet, read", Some(Way::Read), ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Ethernet<{ $delay }>, $wait>>("TestAndSet, backoff", Some(Way::Backoff), ANY_ORDER),
            $lock::<$spin::TestAndSet<$spin::contention::Polling, $wait>>("TestAndSet, polling", Some(Way::Polling), ANY_ORDER),
            $lock::<$spin::PreemptionSafe<$spin::contention::Polling, $wait>>("PreemptionSafe", None, ANY_ORDER),
            $lock::<$spin::Recovering<$wait>>("Recovering", None, ANY_ORDER),
            $lock::<$spin::Ticket<$wait>>("Ticket", None, FIRST_COME),
            $lock::<$spin::Anderson<$slots, $wait>>("Anderson", None, FIRST_COME),
            $lock::<$spin::Clh<$wait>>("Clh", None, FIRST_COME),
            $lock::<$spin::Mcs<$wait>>("Mcs", None, FIRST_COME),
            $lock::<$spin::TimePublishedMcs<$wait>>("TimePublishedMcs", None, ANY_ORDER),
            $($other),*
        ]
    };
}
pub(crate) use our_locks;

/// All locks of the study: ours first, then those that programs use today.
pub(crate) const LOCKS: &[Lock] = our_locks!(
    stanchion_spin,
    Patient,
    16,
    stanchion_spin::backoff::SLOT_NS,
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

/// The lock that is the paper's way of waiting `way`.
pub(crate) fn of_way(way: Way) -> usize {
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
