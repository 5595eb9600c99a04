//! The strategies, a line each, and the programs that run on them.
//!
//! Their locks are the paper's: test-and-set, waiters backing off as on the Ethernet ("We used this
//! algorithm for our measurements in Section 3"). A new thread of the local ready queues goes to a
//! random one, as in the paper's test. The sixth is ours; the two after it are the hybrids that
//! section 3.6 names and doubts.

use machine::wait::WaitPolicy;
use stanchion_applications::null_threads::{Latency, Options, Refused, Run, Sweep, latency, run};
use stanchion_spin::TestAndSet;
use stanchion_spin::contention::Ethernet;
use stanchion_threadpool::Strategy;
use stanchion_threadpool::strategy::{
    CentralElseLocal, Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks,
    ProbeIdleElseCentral, Random, SingleLock, WorkStealing,
};

/// The paper's lock. The way in which its waiters pass the time and the unit of its delays are the
/// machine's.
pub type Lock<W, const DELAY_NS: u64> = TestAndSet<Ethernet<DELAY_NS>, W>;

/// A strategy and the measurements, each compiled for it.
pub struct Row {
    /// The strategy's name, in the report.
    pub name: &'static str,
    /// Runs ready threads under it.
    pub run: fn(&Options) -> Result<Run, Refused>,
    /// Measures how long a processor that becomes idle takes to find a thread.
    pub latency: fn(&Sweep) -> Result<Vec<Latency>, Refused>,
}

/// Returns the row of the strategy `S` on processors that wait as `W` says.
pub const fn row<S: Strategy, W: WaitPolicy>() -> Row {
    Row { name: S::NAME, run: run::<S, W>, latency: latency::<S, W> }
}

/// How many strategies there are.
pub const ROWS: usize = 8;

/// Returns the strategies, on processors that wait as `W` says and whose locks delay by multiples
/// of `DELAY_NS`.
pub const fn rows<W: WaitPolicy + 'static, const DELAY_NS: u64>() -> [Row; ROWS] {
    [
        row::<SingleLock<Lock<W, DELAY_NS>>, W>(),
        row::<MultipleLocks<Lock<W, DELAY_NS>>, W>(),
        row::<LocalFreeList<Lock<W, DELAY_NS>>, W>(),
        row::<IdleQueue<Lock<W, DELAY_NS>>, W>(),
        row::<LocalReadyQueue<Lock<W, DELAY_NS>, Fifo, Random>, W>(),
        row::<WorkStealing, W>(),
        row::<CentralElseLocal<Lock<W, DELAY_NS>>, W>(),
        row::<ProbeIdleElseCentral<Lock<W, DELAY_NS>>, W>(),
    ]
}
