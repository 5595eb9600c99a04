//! An experiment as a value: the paper's claim, and a way to test it on each kind of machine.
//!
//! An experiment is a formula, or it has a body for this computer, one for simulated machines, or
//! both. If it lacks one, it says why such a run makes no sense ([`Body::Never`]).
//!
//! # To give an experiment its simulated run
//!
//! In the experiment's file, replace the `simulated` of its [`Bodies::Machines`] by a
//! [`Simulated`]. It has the names of the machines (`stanchion_simulator::machines`), the paper's
//! own first, and a function. The function takes the study's [`Context`] and one [`Machine`], and
//! returns an [`Outcome`] as the real one does.
//!
//! - It must depend on nothing but its two arguments (the seed is `context.seed`): no clock, no
//!   host, no order of a hash map. Its outcome goes into `simulated.json`, which is the same to the
//!   byte on every computer with the same build.
//! - It should run on any machine, since `--machine modern-2s` passes it that one. Thread counts
//!   come from `machine.processors`. A claim about the paper's own machine is judged on that
//!   machine only.
//! - To stand in one row of the report with a comparison of the real run, a comparison has the same
//!   `what`.
//!
//! If there are several names, `--machine simulated` runs the experiment on each machine and makes
//! an entry for each.
//!
//! # If the simulated run differs from the paper
//!
//! First look for a mistake in the model, and mend it. If a piece of the paper's system is missing,
//! and the paper does not state its size, add a [`Counterfactual`] to the experiment's
//! `counterfactuals`. Its text names the piece, and a passage of the paper or a published source.
//!
//! - The first size is the model's own: there the piece is missing. The others are the whole range
//!   that the sources leave open, on both sides of the first. None is left out.
//! - If the paper states the size, and the model does not arrive at it, the piece may put that in.
//!   Its text says so.
//! - Its function judges by the experiment's own rule. It returns the figure that decides.
//!
//! `--counterfactuals` runs the experiments that have one and differ, once for each size, on the
//! first of their machines.

use serde::{Deserialize, Serialize};
use stanchion_simulator::Machine;

use super::context::{Context, Stop};
use super::outcome::{Found, Outcome};

/// One figure or table of a paper.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `paper/figure`, the name on the command line.
    pub id: &'static str,
    /// The paper that the figure is in.
    pub paper: Paper,
    /// The subject of the figure, as a heading.
    pub title: &'static str,
    /// The claim to check, in one sentence.
    pub claim: &'static str,
    /// The ways to run it.
    pub bodies: Bodies,
}

/// The functions that run an experiment.
#[derive(Clone, Debug)]
pub enum Bodies {
    /// A formula, which runs on no machine. It is compared with a count or a random simulation of
    /// what it describes.
    Formula(Body<Run>),
    /// Runs on this computer, on simulated machines, or on both.
    Machines {
        /// The run on this computer.
        real: Body<Run>,
        /// The run on simulated machines.
        simulated: Body<Simulated>,
    },
}

/// The function of a run on this computer, or of a formula.
pub type Run = fn(&Context) -> Result<Outcome, Stop>;

/// A run on a machine in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    /// The paper's own machine, then others that the experiment is about; names of
    /// `stanchion_simulator::machines`.
    pub machines: &'static [&'static str],
    /// Runs the experiment on one of them.
    pub run: fn(&Context, &Machine) -> Result<Outcome, Stop>,
    /// Runs of a model with a piece that this one lacks. Empty if no such piece is known.
    pub counterfactuals: &'static [Counterfactual],
}

/// A piece of the paper's system that the model lacks, and a function that runs the experiment with
/// that piece.
#[derive(Clone, Copy, Debug)]
pub struct Counterfactual {
    /// The name of the piece, in a few words.
    pub name: &'static str,
    /// A sentence that says what is missing, with its source.
    pub piece: &'static str,
    /// The quantity that is swept, with its unit.
    pub size: &'static str,
    /// The sizes of the piece. The first is the model's own, the others are the range that the
    /// sources leave open.
    pub sizes: &'static [f64],
    /// The figure that decides the verdict.
    pub figure: &'static str,
    /// Runs the experiment on a machine, with the piece at one of `sizes`.
    pub run: fn(&Context, &Machine, f64) -> Result<Found, Stop>,
}

/// The function of a run, or the reason why there is none.
#[derive(Clone, Copy, Debug)]
pub enum Body<F> {
    /// The function.
    Run(F),
    /// There will be no such run, for this reason.
    Never(&'static str),
}

impl Simulated {
    /// Returns a run on `machines`, the paper's own first. It has no counterfactuals.
    pub const fn on(
        machines: &'static [&'static str],
        run: fn(&Context, &Machine) -> Result<Outcome, Stop>,
    ) -> Self {
        Self { machines, run, counterfactuals: &[] }
    }

    /// Returns the same run, with runs of a model that has a piece more.
    pub const fn with_counterfactuals(self, counterfactuals: &'static [Counterfactual]) -> Self {
        Self { counterfactuals, ..self }
    }
}

impl Bodies {
    /// Returns the bodies of a formula, which runs on no machine.
    pub const fn formula(run: Run) -> Self {
        Self::Formula(Body::Run(run))
    }

    /// Returns the bodies of an experiment that runs on this computer only; `why` says why.
    pub const fn real(run: Run, why: &'static str) -> Self {
        Self::Machines { real: Body::Run(run), simulated: Body::Never(why) }
    }

    /// Returns the kinds of machines that it runs on, as printed in the list of experiments.
    pub fn kinds(&self) -> &'static str {
        match self {
            Self::Formula(_) => "formula",
            Self::Machines { real, simulated } => match (real.never(), simulated.never()) {
                (false, false) => "both",
                (false, true) => "real",
                (true, _) => "simulated",
            },
        }
    }

    /// Returns true if its simulated run has counterfactuals.
    pub fn has_counterfactuals(&self) -> bool {
        match self {
            Self::Machines { simulated: Body::Run(simulated), .. } => {
                !simulated.counterfactuals.is_empty()
            }
            _ => false,
        }
    }

    /// Returns true if at least one run of it is built.
    pub fn is_built(&self) -> bool {
        match self {
            Self::Formula(body) => body.missing().is_none(),
            Self::Machines { real, simulated } => {
                real.missing().is_none() || simulated.missing().is_none()
            }
        }
    }
}

impl<F> Body<F> {
    /// Returns the reason why it cannot be run, if it cannot.
    pub fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => None,
            Self::Never(why) => Some(why),
        }
    }

    fn never(&self) -> bool {
        matches!(self, Self::Never(_))
    }
}

/// The kind of machine that an experiment ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// This computer, with its own processors.
    Real,
    /// A machine in virtual time.
    Simulated,
    /// None.
    Formula,
}

impl Kind {
    /// Returns the kind in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Simulated => "simulated",
            Self::Formula => "formula",
        }
    }
}

/// The papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Thread management and spin locks, 1989.
    All89,
    /// Competitive spinning, 1991.
    Klmo91,
    /// Scheduler activations, 1992.
    Sa92,
    /// Gang scheduling, 1992.
    Fr92,
    /// Preemption-safe locks and non-blocking structures, 1997.
    Ms97,
}

impl Paper {
    /// Returns the paper's authors, title and year.
    pub fn name(self) -> &'static str {
        match self {
            Self::All89 => {
                "Anderson, Lazowska, Levy: The performance implications of thread management \
                 alternatives for shared-memory multiprocessors, 1989"
            }
            Self::Klmo91 => {
                "Karlin, Li, Manasse, Owicki: Empirical studies of competitive spinning for a \
                 shared-memory multiprocessor, 1991"
            }
            Self::Sa92 => "Anderson, Bershad, Lazowska, Levy: Scheduler activations, 1992",
            Self::Fr92 => {
                "Feitelson, Rudolph: Gang scheduling performance benefits for fine-grain \
                 synchronization, 1992"
            }
            Self::Ms97 => {
                "Michael, Scott: Relative performance of preemption-safe locking and \
                 non-blocking synchronization on multiprogrammed shared-memory multiprocessors, \
                 1997"
            }
        }
    }
}
