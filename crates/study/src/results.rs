//! The findings of a study: the content of `results.json` or `simulated.json`, which the page
//! shows.
//!
//! Simulated results of one build are the same on every computer. So `simulated.json` does not
//! mention the host or the time that the study took, and the same command line gives the same
//! bytes.

use serde::{Deserialize, Serialize};
use stanchion_simulator::Machine;

use std::fs;
use std::path::Path;

use super::asked::Asked;
use super::experiment::{Kind, Paper};
use super::outcome::{Outcome, Verdict};
use super::target::{Call, Task};
use crate::error::Error;
use crate::grids::{Choice, FAMILIES, Grid, choose};
use crate::host::Host;
use crate::others::DISTURBED;
use crate::units::{count, named};

/// One study.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The name of this document's layout.
    pub schema: String,
    /// The date and the host; only in a study of this computer.
    #[serde(flatten)]
    pub here: Option<Here>,
    /// True if the study was run with `--quick`.
    pub quick: bool,
    /// The seed of everything random in it.
    pub seed: u64,
    /// The command line, by which an interrupted study goes on. Older versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// The machines that were simulated, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// False while the study runs, and if it was interrupted.
    pub complete: bool,
    /// The answers to what to use on this computer, from the last random grid of each family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Choice>,
    /// The runs, in the order of the catalogue.
    #[serde(rename = "experiments")]
    pub entries: Vec<Entry>,
}

/// The time and the host of a study of this computer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Here {
    /// The time when the study began, in seconds since 1970.
    pub written: u64,
    /// The time when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// The times when it went on after an interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<u64>,
    /// The computer that the study ran on.
    pub machine: Host,
}

impl Results {
    /// The schema of a study of this computer. It changes if a reader of the last layout would
    /// misread the new one.
    pub const SCHEMA: &'static str = "stanchion-study/1";
    /// The schema of a study of simulated machines. It changes under the same condition.
    pub const SIMULATED: &'static str = "stanchion-simulated/1";

    /// Returns the results of a study in which nothing has run yet.
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
            schema: if here.is_some() { Self::SCHEMA } else { Self::SIMULATED }.to_owned(),
            here,
            quick,
            seed,
            asked: None,
            machines,
            complete: false,
            answers: Vec::new(),
            entries: tasks.iter().map(Entry::waiting).collect(),
        }
    }

    /// Reads the results of an earlier study.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let not_read =
            |why: String| Error::ReadResults { path: path.to_owned(), why: why.replace('\n', " ") };
        let text = fs::read_to_string(path).map_err(|error| not_read(error.to_string()))?;
        let layout: Layout = serde_json::from_str(&text)
            .map_err(|error| not_read(format!("it is no whole file of results ({error})")))?;
        if ![Self::SCHEMA, Self::SIMULATED].contains(&&*layout.schema) {
            let why = format!(
                "its layout is `{}`; this version reads {} and {}",
                layout.schema,
                Self::SCHEMA,
                Self::SIMULATED
            );
            return Err(not_read(why));
        }
        let read = |error: serde_json::Error| {
            not_read(format!("it is not as this version writes it ({error})"))
        };
        serde_json::from_str(&text).map_err(read)
    }

    /// Takes the answers from those of `grids` that are of this computer, in the order of families.
    pub fn answer(&mut self, grids: &[Grid]) {
        let Some(here) = &self.here else { return };
        let is_here = |grid: &&Grid| {
            grid.processor == here.machine.processor && grid.processors == here.machine.parallelism
        };
        let here: Vec<&Grid> = grids.iter().filter(is_here).collect();
        let of = |family: &str| choose(here.iter().find(|grid| grid.family == family)?);
        self.answers = FAMILIES.iter().filter_map(|(family, _)| of(family)).collect();
    }

    /// Returns the experiments that are still to be run.
    pub fn missing(&self) -> Vec<&str> {
        let left = self.entries.iter().filter(|entry| entry.left);
        let mut ids: Vec<&str> = left.map(|entry| &*entry.id).collect();
        // One may be left on several machines.
        ids.dedup();
        ids
    }

    /// Returns the experiments during which other programs were busy, and the largest share of the
    /// processors that those had, in a sentence.
    pub fn disturbed(&self) -> Option<String> {
        let share = |entry: &Entry| entry.others.filter(|&share| share > DISTURBED);
        let ids: Vec<&str> =
            self.entries.iter().filter(|entry| share(entry).is_some()).map(|of| &*of.id).collect();
        let most = self.entries.iter().filter_map(share).reduce(f64::max)?;
        let (number, ids) = (count(ids.len(), "experiment"), named(&ids));
        Some(format!(
            "Other programs had up to {:.0} % of the processors while {number} ran: {ids}. Close \
             those, and run the study again.",
            most * 100.0
        ))
    }

    /// Returns why figures may be off, in a sentence. Which experiments were disturbed says more
    /// than the load before them.
    pub fn warning(&self) -> Option<String> {
        let machine = &self.here.as_ref()?.machine;
        // Once experiments have run, it is known which of them were disturbed.
        if machine.optimized && self.entries.iter().any(|entry| entry.others.is_some()) {
            return self.disturbed();
        }
        Some(machine.warning()? + ".")
    }

    /// Returns true if nothing is left to run.
    pub fn is_over(&self) -> bool {
        self.complete && !self.entries.iter().any(Entry::is_left)
    }

    /// Returns whether they are of this computer, and not of simulated machines.
    pub fn is_real(&self) -> bool {
        self.schema == Self::SCHEMA
    }
}

/// The part of a document that says how to read the rest.
#[derive(Deserialize)]
struct Layout {
    /// The name of the layout.
    schema: String,
}

/// One run of an experiment and its outcome.
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
    /// The paper's claim.
    pub claim: String,
    /// The kind of machine that it ran on.
    pub kind: Kind,
    /// The machine that it was simulated on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    /// The duration of the run.
    #[serde(default, skip_serializing_if = "Took::is_untold")]
    pub seconds: Took,
    /// True if the run ended in an error.
    pub failed: bool,
    /// The share of this computer's processors that other programs had meanwhile, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// True if its turn has not come, or if the user stopped it before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// The outcome of the run.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A simulated machine by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct On {
    /// The machine's name.
    pub name: String,
    /// The machine's number of processors.
    pub processors: usize,
}

/// The duration of a run on this computer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Option<f64>", into = "Option<f64>")]
pub enum Took {
    /// It has not run.
    NotRun,
    /// It took this many seconds.
    Seconds(f64),
    /// It ran in virtual time. The real duration is no part of its findings.
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
    /// Returns the entry of a run before it starts. Its verdict says why it will not run, or that
    /// its turn has not come.
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
            others: None,
            left: task.call.is_ok(),
            outcome: Outcome::new(Verdict::NotRun(reason)),
        }
    }

    /// Returns true if a study that goes on runs it.
    pub fn is_left(&self) -> bool {
        self.left || self.failed
    }

    /// Returns true if it has run.
    pub fn ran(&self) -> bool {
        self.seconds != Took::NotRun
    }

    /// Names the machine that it ran on, for the head of a column.
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
    use crate::experiment::{Bodies, Body, Experiment};

    #[test]
    fn files_that_are_no_results_are_refused_with_the_reason() {
        let directory = std::env::temp_dir().join(format!("stanchion-read-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("results.json");
        let here = Here { written: 1, ended: Some(2), resumed: Vec::new(), machine: Host::here() };
        let results = Results::waiting(&[], Some(here), true, 7);
        let whole = serde_json::to_string(&results).unwrap();
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Results::read(&path)
        };
        let again = read(&whole).unwrap();
        assert_eq!((again.seed, again.here.unwrap().ended), (7, Some(2)));
        let cut = &whole[..whole.len() / 2];
        let later = whole.replace("study/1", "study/9");
        for (text, said) in [
            (cut, "no whole file of results"),
            ("[1, 2]", "no whole file of results"),
            (&later, "its layout is `stanchion-study/9`"),
            ("{\"schema\": \"stanchion-study/1\"}", "not as this version writes it"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_disturbed_study_warns_of_the_experiments_and_not_of_the_load() {
        let mut machine = Host::here();
        (machine.optimized, machine.load) = (true, "99.0 98.0 97.0 1/2 3".to_owned());
        let here = Here { written: 1, ended: None, resumed: Vec::new(), machine };
        let experiments = ["one", "two", "three"].map(|id| Experiment {
            id,
            paper: Paper::All89,
            title: "title",
            claim: "Claim.",
            bodies: Bodies::Formula(Body::Never("of a test")),
        });
        let task = |experiment| Task { experiment, kind: Kind::Real, call: Err("of a test") };
        let tasks: Vec<Task<'_>> = experiments.iter().map(task).collect();
        let mut results = Results::waiting(&tasks, Some(here), true, 7);
        assert!(results.warning().unwrap().contains("99.0 threads wanted"));
        for (entry, share) in results.entries.iter_mut().zip([0.4, 0.05, 0.2]) {
            entry.others = Some(share);
        }
        let said = "Other programs had up to 40 % of the processors while 2 experiments ran: one, \
                    three. Close those, and run the study again.";
        assert_eq!(results.warning().unwrap(), said);
        for entry in &mut results.entries {
            entry.others = Some(0.05);
        }
        assert_eq!(results.warning(), None, "they ran undisturbed, whatever was before");
    }

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
