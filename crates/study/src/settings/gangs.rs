//! A measurement of gang scheduling.

use std::time::Duration;

/// The method by which threads wait, and the scheduling: gangs, or each processor for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Busy waiting, gang scheduling.
    Gang,
    /// Busy waiting, each processor for itself.
    Busy,
    /// Yielding, each processor for itself: the paper's blocking.
    Yielding,
    /// Yielding, and a computing thread gives way to a waiting thread after all of its partners
    /// have arrived.
    Preferred,
    /// Busy waiting for as long as a switch takes, then sleeping; each processor for itself.
    TwoPhase,
    /// Busy waiting for as long as a switch takes, then yielding; gang scheduling.
    GangTwoPhase,
}

impl Method {
    /// Returns the method in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gang => "busy waiting, gangs",
            Self::Busy => "busy waiting, uncoordinated",
            Self::Yielding => "blocking",
            Self::Preferred => "blocking, the unblocked first",
            Self::TwoPhase => "two-phase waiting, uncoordinated",
            Self::GangTwoPhase => "two-phase waiting, gangs",
        }
    }
}

/// The behaviour of the programs beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They do the same as the first program.
    Alike,
    /// They compute and never wait.
    Computing,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The method by which threads wait.
    pub method: Method,
    /// The number of programs.
    pub load: usize,
    /// The number of threads of each program, one on each processor.
    pub members: usize,
    /// The least nanoseconds computed in an iteration: GRAIN less half of VAR.
    pub least: u64,
    /// The nanoseconds that an iteration may take longer, uniformly distributed.
    pub spread: u64,
    /// Further nanoseconds for one member of each program, a different member in each iteration.
    pub slow: u64,
    /// The behaviour of the programs beside the first.
    pub others: Others,
    /// The time quantum of gangs and of the skewing threads. Without gangs the scheduler has its
    /// own.
    pub quantum: Duration,
    /// The cost of a switch without gangs, in milliseconds; only for simulated machines.
    pub switch: f64,
    /// The number of rounds (a quantum for each program) that are measured.
    pub rounds: u32,
    /// The number of rounds before these, in which the skewing threads end.
    pub settle: u32,
    /// The seed of the grains.
    pub seed: u64,
}

impl Setting {
    /// Returns the duration of a round: a quantum for each program.
    pub fn round(&self) -> Duration {
        self.quantum * u32::try_from(self.load).unwrap_or(u32::MAX)
    }
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Milliseconds of an iteration; a lower bound if there was none.
    pub time: f64,
    /// Iterations of all programs that were measured.
    pub iterations: u64,
    /// The average number of times that a thread yielded in a wait.
    pub alpha: f64,
}
