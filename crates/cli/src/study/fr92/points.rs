//! What is measured: a program of the paper's, by how its threads wait and who is put on the processors together.

use std::time::Duration;

use stanchion_model::gang::{Iteration, System};

/// How threads wait, and whether gangs are on the processors together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Busy waiting, gang scheduling.
    Gang,
    /// Busy waiting, each processor for itself.
    Busy,
    /// Yielding, each processor for itself: the paper's blocking.
    Yielding,
    /// Sleeping, each processor for itself: who is woken is served when the scheduler likes.
    Sleeping,
    /// Busy waiting for a time, then sleeping; each processor for itself.
    TwoPhase,
    /// The same with gang scheduling.
    GangTwoPhase,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gang => "busy waiting, gangs",
            Self::Busy => "busy waiting, uncoordinated",
            Self::Yielding => "blocking",
            Self::Sleeping => "blocking by sleep",
            Self::TwoPhase => "two-phase, uncoordinated",
            Self::GangTwoPhase => "two-phase, gangs",
        }
    }

    pub(crate) fn has_gangs(self) -> bool {
        matches!(self, Self::Gang | Self::GangTwoPhase)
    }
}

/// What the programs beside the first do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// The same.
    Alike,
    /// They compute and never wait.
    Computing,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) method: Method,
    /// Programs.
    pub(crate) load: usize,
    /// Threads of each, one on each processor.
    pub(crate) members: usize,
    /// Nanoseconds computed in an iteration: GRAIN and VAR.
    pub(crate) least: u64,
    pub(crate) spread: u64,
    pub(crate) others: Others,
    /// That of gangs, and of the skewing threads; without gangs the scheduler has its own.
    pub(crate) quantum: Duration,
    /// How many rounds (a quantum for each program) are measured.
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
}

impl Setting {
    pub(crate) fn round(&self) -> Duration {
        self.quantum * u32::try_from(self.load).unwrap_or(u32::MAX)
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    /// Milliseconds of an iteration.
    pub(crate) time: f64,
    /// Iterations of all programs that were measured.
    pub(crate) iterations: u64,
    /// How often a thread yielded in a wait, on average.
    pub(crate) alpha: f64,
}

/// What the model has to know of a machine, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Processors, so threads of a gang.
    pub(crate) processors: usize,
    pub(crate) quantum: Duration,
    /// What it takes to switch: measured here, or in the machine's description.
    pub(crate) switch: f64,
    /// What a unit of GRAIN takes.
    pub(crate) unit: f64,
    /// What an iteration without computing takes, by threads that wait busily for nobody else.
    pub(crate) barrier: f64,
}

impl Place {
    /// Equation 14 for this machine and gangs of so many.
    pub(crate) fn iteration(&self, grain: f64, var: f64, members: usize) -> Iteration {
        let work = Iteration::uniform(grain * self.unit, var * self.unit, members as u32);
        work.and_then(|work| Iteration::new(self.barrier + work.processing(), work.waiting()))
            .expect("grains are not negative")
    }

    pub(crate) fn system(&self, load: usize, members: usize) -> System {
        let quantum = self.quantum.as_secs_f64() * 1e3;
        System::new(quantum, self.switch, load as u32, members as u32)
            .expect("a place has a quantum, programs and processors")
    }

    /// What the model says of `method`; nothing where it says nothing.
    pub(crate) fn predicted(&self, method: Method, at: &Point) -> Option<f64> {
        let iteration = self.iteration(at.grain, at.var, at.members);
        let system = self.system(at.load, at.members);
        match method {
            Method::Gang | Method::GangTwoPhase => Some(system.gang(iteration)),
            Method::Busy => Some(system.uncoordinated(iteration)),
            Method::Yielding => system.blocking(iteration, at.measured.alpha).ok(),
            Method::Sleeping | Method::TwoPhase => None,
        }
    }
}

/// A measurement in the paper's units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) load: usize,
    pub(crate) members: usize,
    pub(crate) grain: f64,
    pub(crate) var: f64,
    pub(crate) measured: Measured,
}
