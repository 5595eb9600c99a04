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
    /// A thread a processor, nobody stalled: what the lock does at its best.
    Calm,
    /// Four threads a processor, stalled at random.
    Crowd,
    /// The same threads and stalls on one processor: a waiter that never gives it up keeps the holder from it.
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

/// What the user asked for.
#[derive(Clone, Copy, Debug)]
pub struct Torture {
    /// For each lock, all phases together.
    pub time: Duration,
    /// Threads of a crowd; four a processor if `None`.
    pub threads: Option<usize>,
    /// Without an acquisition for this long, a lock is stuck.
    pub stuck_after: Duration,
    /// What the randomness starts from.
    pub seed: u64,
}

/// Threads of a crowd for each processor.
pub const CROWDING: usize = 4;

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 3] = [Phase::Calm, Phase::Crowd, Phase::OneProcessor];

    /// The plan of this phase: half of the time goes to the crowd.
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
