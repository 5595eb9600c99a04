//! An experiment as a value: what the paper claims, and how to try it on each kind of machine.
//!
//! An experiment is a formula, or it has a body for this computer, one for simulated machines, or both. If it lacks one, it says why such a run has no
//! sense ([`Body::Never`]).
//!
//! # To give an experiment its simulated run
//!
//! In the experiment's file, replace the `simulated` of its [`Bodies::Machines`] by a [`Simulated`]: the names of the machines
//! (`stanchion_simulator::machines`), the paper's own first, and a function that is handed the study's [`Context`] and one
//! [`Machine`], and returns an [`Outcome`] as the real one does. It must depend on nothing but those two (the seed is
//! `context.seed`): no clock, no host, no order of a hash map, since its outcome goes into `simulated.json`, which is the same
//! to the byte on every computer. It should run on any machine that it is given, since `--machine modern-2s` hands it that one: thread
//! counts come from `machine.processors`, and a claim about the paper's own machine is judged on that only. Comparisons that
//! should stand in one row of the report with those of the real run have the same `what`.
//!
//! With several names the experiment runs on each, an entry for each, when the study is asked for `--machine simulated`.

use serde::{Deserialize, Serialize};
use stanchion_simulator::Machine;

use super::context::{Context, Stop};
use super::outcome::Outcome;

/// One figure or table of a paper.
pub(crate) struct Experiment {
    /// `paper/figure`, the name on the command line.
    pub(crate) id: &'static str,
    pub(crate) paper: Paper,
    pub(crate) title: &'static str,
    /// What is to be checked, in one sentence.
    pub(crate) claim: &'static str,
    pub(crate) bodies: Bodies,
}

/// How an experiment is run.
pub(crate) enum Bodies {
    /// On no machine: a formula, beside a count or a random simulation of what it describes.
    Formula(Body<Run>),
    Machines {
        real: Body<Run>,
        simulated: Body<Simulated>,
    },
}

/// On this computer, or a formula.
pub(crate) type Run = fn(&Context) -> Result<Outcome, Stop>;

/// On a machine in virtual time.
#[derive(Clone, Copy)]
pub(crate) struct Simulated {
    /// The paper's own machine, then others that the experiment is about; names of `stanchion_simulator::machines`.
    pub(crate) machines: &'static [&'static str],
    pub(crate) run: fn(&Context, &Machine) -> Result<Outcome, Stop>,
}

/// A way to run it, or why there is none.
pub(crate) enum Body<F> {
    Run(F),
    /// It will not be built; the reason.
    Never(&'static str),
}

impl Bodies {
    pub(crate) const fn formula(run: Run) -> Self {
        Self::Formula(Body::Run(run))
    }

    /// On this computer only, and why.
    pub(crate) const fn real(run: Run, why: &'static str) -> Self {
        Self::Machines { real: Body::Run(run), simulated: Body::Never(why) }
    }

    /// On which kinds of machines, as the list of experiments says it.
    pub(crate) fn kinds(&self) -> &'static str {
        match self {
            Self::Formula(_) => "formula",
            Self::Machines { real, simulated } => match (real.never(), simulated.never()) {
                (false, false) => "both",
                (false, true) => "real",
                (true, _) => "simulated",
            },
        }
    }

    /// Whether some run of it is built.
    pub(crate) fn is_built(&self) -> bool {
        match self {
            Self::Formula(body) => body.missing().is_none(),
            Self::Machines { real, simulated } => {
                real.missing().is_none() || simulated.missing().is_none()
            }
        }
    }

    /// What is built of it and what is not, as the list of experiments says it.
    pub(crate) fn state(&self) -> String {
        let (real, simulated) = match self {
            Self::Formula(body) => return body.missing().unwrap_or("built").to_owned(),
            Self::Machines { real, simulated } => (real.missing(), simulated.missing()),
        };
        match (real, simulated) {
            (None, None) => "built".to_owned(),
            (None, Some(why)) => format!("built; simulated: {why}"),
            (Some(why), None) => format!("built; real: {why}"),
            (Some(real), Some(_)) => real.to_owned(),
        }
    }
}

impl<F> Body<F> {
    /// Why it cannot be run, if it cannot.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => None,
            Self::Never(why) => Some(why),
        }
    }

    fn never(&self) -> bool {
        matches!(self, Self::Never(_))
    }
}

/// What an experiment ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// This computer, with its own processors.
    Real,
    /// A machine in virtual time.
    Simulated,
    /// None.
    Formula,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
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
pub(crate) enum Paper {
    All89,
    Klmo91,
    Sa92,
    Fr92,
    Ms97,
}

impl Paper {
    pub(crate) fn name(self) -> &'static str {
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
