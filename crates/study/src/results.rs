//! All that a study found: what `results.json` or `simulated.json` holds and the page shows.
//!
//! What was simulated is the same on every computer, so `simulated.json` says nothing of the host
//! or of the time it took: the same seed gives the same bytes.

use serde::{Deserialize, Serialize};
use stanchion_simulator::Machine;

use super::experiment::{Kind, Paper};
use super::outcome::{Outcome, Verdict};
use super::target::{Call, Task};
use crate::host::Host;

/// One study.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Names the layout of this document.
    pub schema: &'static str,
    /// What only a study of this computer says.
    #[serde(flatten)]
    pub here: Option<Here>,
    /// Whether the study was run with `--quick`.
    pub quick: bool,
    /// The seed of everything random in it.
    pub seed: u64,
    /// The machines that were simulated, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// False while a study runs, and if it was interrupted.
    pub complete: bool,
    /// The runs, in the order of the catalogue.
    #[serde(rename = "experiments")]
    pub entries: Vec<Entry>,
}

/// When and where.
#[derive(Debug, Serialize)]
pub struct Here {
    /// Seconds since 1970.
    pub written: u64,
    /// The computer that the study ran on.
    pub machine: Host,
}

impl Results {
    /// Of a study of this computer. Changes whenever a reader of the last layout would misread the
    /// next.
    pub const SCHEMA: &'static str = "stanchion-study/1";
    /// Of a study of simulated machines; changes likewise.
    pub const SIMULATED: &'static str = "stanchion-simulated/1";

    /// Before anything has run.
    pub fn waiting(tasks: &[Task<'_>], here: Option<Here>, quick: bool, seed: u64) -> Self {
        let mut machines: Vec<Machine> = Vec::new();
        for task in tasks {
            if let Ok(Call::On(_, machine)) = &task.call
                && !machines.contains(&**machine)
            {
                machines.push((**machine).clone());
            }
        }
        Self {
            schema: if here.is_some() { Self::SCHEMA } else { Self::SIMULATED },
            here,
            quick,
            seed,
            machines,
            complete: false,
            entries: tasks.iter().map(Entry::waiting).collect(),
        }
    }
}

/// What an earlier study in the same place found on the other kind of machine.
#[derive(Debug, Deserialize)]
pub struct Earlier {
    /// The name of the document's layout.
    pub schema: String,
    /// Nothing if it was simulated.
    pub written: Option<u64>,
    /// The runs that it has.
    #[serde(rename = "experiments")]
    pub entries: Vec<Entry>,
}

/// One run of an experiment and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The experiment's name on the command line.
    pub id: String,
    /// The paper that the experiment is of.
    pub paper: Paper,
    /// The paper's authors, title and year.
    pub source: String,
    /// The experiment's heading.
    pub title: String,
    /// What the paper claims.
    pub claim: String,
    /// What kind of machine it ran on.
    pub kind: Kind,
    /// The machine that it was simulated on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    /// How long the run took.
    #[serde(default, skip_serializing_if = "Took::is_untold")]
    pub seconds: Took,
    /// Whether the run ended in an error.
    pub failed: bool,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A simulated machine by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct On {
    /// The machine's name.
    pub name: String,
    /// How many processors it has.
    pub processors: usize,
}

/// How long a run took here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Option<f64>", into = "Option<f64>")]
pub enum Took {
    /// It has not run.
    NotRun,
    /// So many seconds.
    Seconds(f64),
    /// It ran in virtual time, and how long that took here is no part of what it found.
    #[default]
    Untold,
}

impl Took {
    fn is_untold(&self) -> bool {
        *self == Self::Untold
    }
}

impl From<Option<f64>> for Took {
    fn from(seconds: Option<f64>) -> Self {
        seconds.map_or(Self::NotRun, Self::Seconds)
    }
}

impl From<Took> for Option<f64> {
    fn from(took: Took) -> Self {
        match took {
            Took::Seconds(seconds) => Some(seconds),
            Took::NotRun | Took::Untold => None,
        }
    }
}

impl Entry {
    /// Before it has run: why it will not, or that its turn has not come.
    pub fn waiting(task: &Task<'_>) -> Self {
        let experiment = task.experiment;
        let reason = match &task.call {
            Ok(_) => "the study was interrupted before its turn".to_owned(),
            Err(why) => (*why).to_owned(),
        };
        let on = match &task.call {
            Ok(Call::On(_, machine)) => {
                Some(On { name: machine.name.clone(), processors: machine.processors })
            }
            Ok(Call::Here(_)) | Err(_) => None,
        };
        Self {
            id: experiment.id.to_owned(),
            paper: experiment.paper,
            source: experiment.paper.name().to_owned(),
            title: experiment.title.to_owned(),
            claim: experiment.claim.to_owned(),
            kind: task.kind,
            on,
            seconds: Took::NotRun,
            failed: false,
            outcome: Outcome::new(Verdict::NotRun(reason)),
        }
    }

    /// Whether its turn came.
    pub fn ran(&self) -> bool {
        self.seconds != Took::NotRun
    }

    /// What it ran on, for the head of a column.
    pub fn place(&self) -> String {
        match (&self.on, self.kind) {
            (Some(on), _) => format!("{}, {} processors, simulated", on.name, on.processors),
            (None, Kind::Real) => "this computer".to_owned(),
            (None, kind) => kind.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_of_real_runs_only() {
        let json = |took| serde_json::to_string(&took).unwrap();
        assert_eq!(json(Took::Seconds(1.5)), "1.5");
        assert_eq!(json(Took::NotRun), "null");
        let read = |text| serde_json::from_str::<Took>(text).unwrap();
        assert_eq!(read("null"), Took::NotRun);
        assert_eq!(read("2.5"), Took::Seconds(2.5));
    }
}
