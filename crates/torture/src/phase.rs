//! The three phases of a lock's torture.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::contest::{Fault, Figures, Plan, contest};
use crate::subject::Subject;

/// A way to torture a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// One thread for each processor, none stalled: the lock at its best.
    Calm,
    /// Four threads for each processor, stalled at random.
    Crowd,
    /// The same threads and stalls on one processor. A waiter that never yields it keeps the holder
    /// from running.
    OneProcessor,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Calm => "calm",
            Self::Crowd => "crowd",
            Self::OneProcessor => "one processor",
        })
    }
}

/// The user's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Torture {
    /// The time for each lock, all phases together.
    pub time: Duration,
    /// The number of threads of a crowd, or four for each processor if `None`.
    pub threads: Option<usize>,
    /// The time without an acquisition after which a lock counts as stuck.
    pub stuck_after: Duration,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The number of threads of a crowd for each processor.
pub const CROWDING: usize = 4;

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 3] = [Phase::Calm, Phase::Crowd, Phase::OneProcessor];

    /// Returns the plan of this phase. Half of the time goes to the crowd.
    #[must_use]
    pub fn plan(self, torture: &Torture) -> Plan {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let crowd = torture.threads.unwrap_or(processors * CROWDING);
        Plan {
            threads: if self == Phase::Calm { crowd.min(processors.max(2)) } else { crowd },
            time: torture.time / if self == Phase::Crowd { 2 } else { 4 },
            stuck_after: torture.stuck_after,
            stalls: self != Phase::Calm,
            one_processor: self == Phase::OneProcessor,
            seed: torture.seed,
        }
    }

    /// Tortures `lock`.
    ///
    /// # Errors
    ///
    /// As [`contest`].
    pub fn run(self, lock: Arc<dyn Subject>, torture: &Torture) -> Result<Figures, Fault> {
        contest(lock, self.plan(torture))
    }
}
