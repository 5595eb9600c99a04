//! All that a study found: what `results.json` or `simulated.json` holds and the page shows.
//!
//! What was simulated is the same on every computer, so `simulated.json` says nothing of the host or of the time it took:
//! the same seed gives the same bytes.

use serde::{Deserialize, Serialize};
use stanchion_simulator::Machine;

use super::experiment::{Kind, Paper};
use super::outcome::{Outcome, Verdict};
use super::target::{Call, Task};
use crate::host::Host;

/// One study.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// Names the layout of this document.
    pub(crate) schema: &'static str,
    /// What only a study of this computer says.
    #[serde(flatten)]
    pub(crate) here: Option<Here>,
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    /// The machines that were simulated, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) machines: Vec<Machine>,
    /// False while a study runs, and if it was interrupted.
    pub(crate) complete: bool,
    #[serde(rename = "experiments")]
    pub(crate) entries: Vec<Entry>,
}

/// When and where.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    /// Seconds since 1970.
    pub(crate) written: u64,
    pub(crate) machine: Host,
}

impl Results {
    /// Of a study of this computer. Changes whenever a reader of the last layout would misread the next.
    pub(crate) const SCHEMA: &'static str = "stanchion-study/1";
    /// Of a study of simulated machines; changes likewise.
    pub(crate) const SIMULATED: &'static str = "stanchion-simulated/1";

    /// Before anything has run.
    pub(crate) fn waiting(tasks: &[Task<'_>], here: Option<Here>, quick: bool, seed: u64) -> Self {
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
pub(crate) struct Earlier {
    pub(crate) schema: String,
    /// Nothing if it was simulated.
    pub(crate) written: Option<u64>,
    #[serde(rename = "experiments")]
    pub(crate) entries: Vec<Entry>,
}

/// One run of an experiment and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) paper: Paper,
    pub(crate) source: String,
    pub(crate) title: String,
    pub(crate) claim: String,
    pub(crate) kind: Kind,
    /// The machine that it was simulated on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<On>,
    #[serde(default, skip_serializing_if = "Took::is_untold")]
    pub(crate) seconds: Took,
    pub(crate) failed: bool,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// A simulated machine by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct On {
    pub(crate) name: String,
    pub(crate) processors: usize,
}

/// How long a run took here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Option<f64>", into = "Option<f64>")]
pub(crate) enum Took {
    NotRun,
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
    pub(crate) fn waiting(task: &Task<'_>) -> Self {
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
    pub(crate) fn ran(&self) -> bool {
        self.seconds != Took::NotRun
    }

    /// What it ran on, for the head of a column.
    pub(crate) fn place(&self) -> String {
        match (&self.on, self.kind) {
            (Some(on), _) => format!("{}, {} processors, simulated", on.name, on.processors),
            (None, Kind::Real) => "this computer".to_owned(),
            (None, kind) => kind.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::catalogue;
    use super::super::context::Context;
    use super::super::select::select;
    use super::super::target::{Target, plan};
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn time_is_told_of_real_runs_only() {
        let json = |took| serde_json::to_string(&took).unwrap();
        assert_eq!(json(Took::Seconds(1.5)), "1.5");
        assert_eq!(json(Took::NotRun), "null");
        let read = |text| serde_json::from_str::<Took>(text).unwrap();
        assert_eq!(read("null"), Took::NotRun);
        assert_eq!(read("2.5"), Took::Seconds(2.5));
    }

    fn simulated(seed: u64) -> String {
        let all = catalogue();
        let filters = ["all89/table3.1", "all89/fig4.3"].map(str::to_owned);
        let tasks = plan(&select(&all, &filters).unwrap(), &Target::Papers).unwrap();
        let mut results = Results::waiting(&tasks, None, true, seed);
        for (entry, task) in results.entries.iter_mut().zip(&tasks) {
            let context = Context::new("test", true, seed, Interrupt::default());
            super::super::run_one(entry, task.call.as_ref().ok().unwrap(), &context);
            entry.seconds = Took::Untold;
        }
        serde_json::to_string_pretty(&results).unwrap()
    }

    /// What another process of the same seed writes is compared in `tests/command.rs`.
    #[test]
    fn the_same_seed_gives_the_same_bytes_twice_in_one_process() {
        let first = simulated(1);
        // What this process has on its heap is not the runs'.
        let _between = vec![0_u8; 12_345];
        assert_eq!(first, simulated(1));
        assert_ne!(first, simulated(2));
        assert_eq!(serde_json::from_str::<Earlier>(&first).unwrap().entries.len(), 4);
    }
}
