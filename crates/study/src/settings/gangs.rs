//! A measurement of gang scheduling.

use std::time::Duration;

/// How threads wait, and whether gangs are on the processors together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Busy waiting, gang scheduling.
    Gang,
    /// Busy waiting, each processor for itself.
    Busy,
    /// Yielding, each processor for itself: the paper's blocking.
    Yielding,
    /// The same, and whoever computes gives way to a thread for which the others have come.
    Preferred,
    /// Busy waiting for as long as a switch takes, then sleeping; each processor for itself.
    TwoPhase,
    /// Busy waiting for as long, then yielding; gang scheduling.
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

/// What the programs beside the first do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// The same.
    Alike,
    /// They compute and never wait.
    Computing,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How threads wait.
    pub method: Method,
    /// Programs.
    pub load: usize,
    /// Threads of each, one on each processor.
    pub members: usize,
    /// Nanoseconds computed in an iteration at least: GRAIN and half of VAR less.
    pub least: u64,
    /// How much longer an iteration may take, all times being as likely.
    pub spread: u64,
    /// What one member of each program, another in each iteration, takes beside that.
    pub slow: u64,
    /// What the programs beside the first do.
    pub others: Others,
    /// That of gangs, and of the skewing threads; without gangs the scheduler has its own.
    pub quantum: Duration,
    /// What it costs to switch without gangs, in milliseconds: for simulated machines.
    pub switch: f64,
    /// How many rounds (a quantum for each program) are measured.
    pub rounds: u32,
    /// The seed of the grains.
    pub seed: u64,
}

impl Setting {
    /// Returns how long a round takes: a quantum for each program.
    pub fn round(&self) -> Duration {
        self.quantum * u32::try_from(self.load).unwrap_or(u32::MAX)
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Milliseconds of an iteration; at least so many, if there was none.
    pub time: f64,
    /// Iterations of all programs that were measured.
    pub iterations: u64,
    /// How often a thread yielded in a wait, on average.
    pub alpha: f64,
}
