//! The strategies, a line each, and the programs that run on them.
//!
//! Their locks are the paper's: test-and-set, waiters backing off as on the Ethernet ("We used this algorithm for our measurements in Section 3"). A new
//! thread of the local ready queues goes to a random one, as in the paper's test. The sixth is ours; the two after it are the hybrids
//! that section 3.6 names and doubts.
//!
//! Compiled twice, as a part of `real` and of `simulated`, which say whose strategies these are and how processors wait.

use std::marker::PhantomData;

use super::applications::null_threads::{Latency, Options, Refused, Run, Sweep, latency, run};
use super::spin::TestAndSet;
use super::spin::contention::Ethernet;
use super::threadpool::Strategy;
use super::threadpool::strategy::{
    CentralElseLocal, Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks,
    ProbeIdleElseCentral, Random, SingleLock, WorkStealing,
};
use super::{DELAY_NS, Wait};

/// The paper's lock. The unit of its delays is the machine's.
pub(crate) type Lock = TestAndSet<Ethernet<DELAY_NS>, Wait>;

/// A strategy and the measurements, each compiled for it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Options) -> Result<Run, Refused>,
    pub(crate) latency: fn(&Sweep) -> Result<Vec<Latency>, Refused>,
}

/// Makes rows.
pub(crate) struct Make<S>(PhantomData<S>);

impl<S: Strategy> Make<S> {
    pub(crate) const ROW: Row =
        Row { name: S::NAME, run: run::<S, Wait>, latency: latency::<S, Wait> };
}

/// The strategies, in the order of [`super::super::SINGLE`] and so on.
pub(crate) const ROWS: &[Row] = &[
    Make::<SingleLock<Lock>>::ROW,
    Make::<MultipleLocks<Lock>>::ROW,
    Make::<LocalFreeList<Lock>>::ROW,
    Make::<IdleQueue<Lock>>::ROW,
    Make::<LocalReadyQueue<Lock, Fifo, Random>>::ROW,
    Make::<WorkStealing>::ROW,
    Make::<CentralElseLocal<Lock>>::ROW,
    Make::<ProbeIdleElseCentral<Lock>>::ROW,
];
