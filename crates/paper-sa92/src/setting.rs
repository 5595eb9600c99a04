//! The settings of a run: a system of threads, a machine's processors, and the program.

use std::time::Duration;

use stanchion_study::measure::{Precision, Repeated};
use stanchion_study::outcome::Outcome;

/// A way to have threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// None: the program on one thread, without a cache.
    Sequential,
    /// Kernel threads, one for each fork. A lock that is taken puts its waiter to sleep at once.
    Kernel,
    /// The same with competitive locks.
    Competitive,
    /// User-level threads of `stanchion-activations` on kernel threads. The kernel reports no
    /// events to them.
    User,
    /// User-level threads of `stanchion-activations` on activations.
    Activations,
    /// The same on this computer. Each thread stays on the kernel thread on which it began.
    Staying,
    /// A model of the paper's user-level threads on kernel threads, on a simulated machine.
    UserModel,
    /// A model of the paper's user-level threads on activations, on a simulated machine.
    ActivationsModel,
}

impl System {
    /// The systems that are compared.
    pub(super) const COMPARED: [Self; 4] =
        [Self::Kernel, Self::Competitive, Self::User, Self::Activations];

    /// The models of the paper's own threads.
    pub(super) const MODELS: [Self; 2] = [Self::UserModel, Self::ActivationsModel];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "one thread",
            Self::Kernel => "kernel threads",
            Self::Competitive => "kernel threads, competitive locks",
            Self::User => "user threads on kernel threads",
            Self::Activations => "user threads on activations",
            Self::Staying => "the same, threads stay",
            Self::UserModel => "a model of the paper's on kernel threads",
            Self::ActivationsModel => "a model of the paper's on activations",
        }
    }
}

/// The program and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// The number of bodies.
    pub(super) bodies: usize,
    /// The bodies of a task.
    pub(super) grain: usize,
    /// The number of time steps.
    pub(super) steps: u64,
    /// The opening angle of the tree walk.
    pub(super) theta: f64,
    /// The time that a miss of the buffer cache waits in the kernel.
    pub(super) miss: Duration,
    /// The length of the buffer cache's critical section, in those of our program, if the model's
    /// user-level threads on kernel threads spin while another holds its lock. 0 if they let others
    /// run instead. On a simulated machine only.
    pub(super) spinning_sections: u64,
    /// The percentage of an operation on the model's user-level threads on kernel threads for which
    /// it holds the lock of the ready list. On a simulated machine only.
    pub(super) locked_percent: u64,
}

/// A program with a task for each body. On the paper's machine a task is some milliseconds of a
/// CVAX, so threads are made often enough to matter.
pub(super) const FINE: Program = Program {
    bodies: 600,
    grain: 1,
    steps: 2,
    theta: 1.0,
    miss: Duration::from_millis(50),
    spinning_sections: 0,
    locked_percent: 0,
};

/// A program with a task for sixteen neighbours, which touch a third of the blocks.
pub(super) const COARSE: Program = Program { bodies: 2_000, grain: 16, steps: 1, ..FINE };

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// The kind of threads.
    pub(super) system: System,
    /// The number of processors, for all copies together.
    pub(super) processors: usize,
    /// The share of the bodies that fits into memory, in percent.
    pub(super) memory: u32,
    /// The number of programs at the same time.
    pub(super) copies: usize,
    /// The program that each copy runs.
    pub(super) program: Program,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// The time from the beginning of the program to its end. Of several programs it is the
    /// longest.
    pub(super) seconds: f64,
    /// The hash of the bodies' final places.
    pub(super) checksum: u64,
    /// The number of misses of the buffer cache.
    pub(super) misses: u64,
}

/// The figures that decide a claim on this computer.
pub(super) struct Deciding<'a> {
    /// The precision that is required of the figures.
    pub(super) precision: Precision,
    /// Says whether a setting decides.
    pub(super) decides: &'a dyn Fn(&Setting) -> bool,
    /// Computes the figures from the times of the settings that decide, in the settings' order.
    pub(super) figures: &'a dyn Fn(&[f64]) -> Vec<f64>,
}

/// The runs of all settings.
pub(super) struct Runs {
    /// The middle run of each setting.
    pub(super) measured: Vec<Measured>,
    /// The least and the greatest time of each setting's runs.
    pub(super) ranges: Vec<(f64, f64)>,
    /// The rounds on this computer.
    pub(super) repeated: Option<Repeated>,
}

impl Runs {
    /// Returns `outcome` with these notes. It is not judged if a figure that decides is not known
    /// precisely enough.
    pub(super) fn outcome(&self, outcome: Outcome, notes: Vec<String>) -> Outcome {
        match self.repeated {
            Some(repeated) => repeated.outcome(outcome, notes),
            None => Outcome { notes, ..outcome },
        }
    }
}

impl Measured {
    /// Returns the measurement of the copy that took longest.
    ///
    /// # Panics
    ///
    /// Panics if the copies brought the bodies to different places, or if there is no copy.
    pub(super) fn slowest(copies: impl IntoIterator<Item = Self>) -> Self {
        let slower = |one: Self, other: Self| {
            assert_eq!(one.checksum, other.checksum, "two copies came to different places");
            if one.seconds < other.seconds { other } else { one }
        };
        copies.into_iter().reduce(slower).expect("a copy")
    }
}
