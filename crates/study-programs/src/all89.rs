//! The strategies, a line each, and the programs that run on them.
//!
//! Their locks are the paper's: test-and-set, with Ethernet backoff ("We used this algorithm for
//! our measurements in Section 3"). With local ready queues, a new thread goes to a random queue,
//! as in the paper's test. The sixth strategy is ours. The two after it are the hybrids that
//! section 3.6 names and doubts.

use stanchion_applications::null_threads::{Latency, Options, Refused, Run, Sweep, latency, run};
use stanchion_machine::wait::WaitPolicy;
use stanchion_spin::TestAndSet;
use stanchion_spin::contention::Ethernet;
use stanchion_threadpool::Strategy;
use stanchion_threadpool::strategy::{
    CentralElseLocal, Fifo, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks,
    ProbeIdleElseCentral, Random, SingleLock, WorkStealing,
};

/// The paper's lock. The machine decides how its waiters pass the time and the unit of its delays.
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

/// Returns the row of the strategy `S`. Its processors wait by the policy `W`.
pub const fn row<S: Strategy, W: WaitPolicy>() -> Row {
    Row { name: S::NAME, run: run::<S, W>, latency: latency::<S, W> }
}

/// The number of strategies.
pub const ROWS: usize = 8;

/// Returns the strategies. Their processors wait by the policy `W`, and their locks delay by
/// multiples of `DELAY_NS`.
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
