//! All that a study found: what `results.json` holds and the page shows.

use serde::Serialize;

use super::experiment::{Experiment, Kind, Paper};
use super::outcome::{Outcome, Verdict};
use crate::host::Host;

/// One study.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// Names the layout of this document.
    pub(crate) schema: &'static str,
    /// Seconds since 1970.
    pub(crate) written: u64,
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    pub(crate) machine: Host,
    /// False while a study runs, and if it was interrupted.
    pub(crate) complete: bool,
    #[serde(rename = "experiments")]
    pub(crate) entries: Vec<Entry>,
}

impl Results {
    /// Changes whenever a reader of the last layout would misread the next.
    pub(crate) const SCHEMA: &'static str = "stanchion-study/1";
}

/// One experiment and what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) id: &'static str,
    pub(crate) paper: Paper,
    pub(crate) source: &'static str,
    pub(crate) title: String,
    pub(crate) claim: &'static str,
    pub(crate) kind: Kind,
    /// How long it ran; nothing if it did not.
    pub(crate) seconds: Option<f64>,
    pub(crate) failed: bool,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

impl Entry {
    /// Before it has run: why it will not, or that its turn has not come.
    pub(crate) fn waiting(experiment: &Experiment) -> Self {
        let reason = experiment
            .body
            .missing()
            .unwrap_or_else(|| "the study was interrupted before its turn".to_owned());
        Self {
            id: experiment.id,
            paper: experiment.paper,
            source: experiment.paper.name(),
            title: experiment.title.to_owned(),
            claim: experiment.claim,
            kind: experiment.kind,
            seconds: None,
            failed: false,
            outcome: Outcome::new(Verdict::NotRun(reason)),
        }
    }
}
