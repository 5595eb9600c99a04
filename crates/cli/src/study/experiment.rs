//! An experiment as a value: what the paper claims, and how to try it here.

use serde::Serialize;

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
    pub(crate) kind: Kind,
    pub(crate) body: Body,
}

/// How it is run, or what is missing to run it.
pub(crate) enum Body {
    Run(fn(&Context) -> Result<Outcome, Stop>),
    Needs(&'static [Part]),
}

/// Which machine an experiment runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// This computer, with its own processors.
    Real,
    /// The paper's machine, in virtual time.
    Simulated,
    /// A formula, beside a count or a random simulation of what it describes.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// A part of Stanchion that an experiment waits for. One that is built has no place here: give the experiment its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Activations,
    Applications,
    Gang,
    Lockfree,
    QueueingModel,
    Simulator,
    Threadpool,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Activations => "stanchion-activations (user-level threads)",
            Self::Applications => "the paper's application in stanchion-applications",
            Self::Gang => "stanchion-gang (threads that run together)",
            Self::Lockfree => "stanchion-lockfree (structures that need no lock)",
            Self::QueueingModel => "the queueing network in stanchion-model",
            Self::Simulator => "stanchion-simulator (the paper's machine in virtual time)",
            Self::Threadpool => "stanchion-threadpool (five ways to manage ready threads)",
        }
    }
}

impl Body {
    /// Why it cannot be run, if it cannot.
    pub(crate) fn missing(&self) -> Option<String> {
        match self {
            Self::Run(_) => None,
            Self::Needs(parts) => {
                let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
                Some(format!("not built yet: needs {}", names.join(" and ")))
            }
        }
    }
}
