//! The machine that a study runs on, and the chosen experiments that run on it.

use std::path::Path;

use stanchion_simulator::{Machine, machines};

use super::experiment::{Bodies, Body, Experiment, Kind, Run, Simulated};
use crate::error::Error;
use crate::survey::description;

/// The machine that `--machine` names.
#[derive(Debug)]
pub enum Target {
    /// This computer.
    Real,
    /// The machines that each experiment names, the paper's own first.
    Papers,
    /// One machine in virtual time for all experiments, by its name or from a description in a
    /// file.
    Named(Box<Machine>),
}

const REAL: &str = "real";
const PAPERS: &str = "simulated";

impl Target {
    /// Returns the target that `name` stands for. If there is none, the error has the names that it
    /// resembles.
    pub fn of(name: &str) -> Result<Self, Error> {
        match name {
            REAL => Ok(Self::Real),
            PAPERS => Ok(Self::Papers),
            _ => named(name).map(|machine| Self::Named(Box::new(machine))),
        }
    }

    /// Returns true if it is this computer.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::Real)
    }

    /// Names the target for use in a sentence.
    fn words(&self) -> String {
        match self {
            Self::Real => "this computer".to_owned(),
            Self::Papers => "a simulated machine".to_owned(),
            Self::Named(machine) => format!("the simulated {}", machine.name),
        }
    }
}

/// Returns the machine with that name, or from the description in that file.
pub fn named(name: &str) -> Result<Machine, Error> {
    if is_file(name) {
        return description::read(Path::new(name));
    }
    machines::by_name(name).map_err(|_| Error::UnknownMachine {
        name: name.to_owned(),
        near: near(name),
        all: names().collect(),
    })
}

/// Returns true if `name` is the path of a description, not the name of a machine.
fn is_file(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".json")
}

fn names() -> impl Iterator<Item = &'static str> {
    [REAL, PAPERS].into_iter().chain(machines::NAMES.iter().copied())
}

/// Returns up to three names that `name` may be a misspelling or the beginning of.
fn near(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let most = (name.chars().count() / 3).max(1);
    let mut found: Vec<(usize, &'static str)> = names()
        .map(|known| {
            let begun = name.len() >= 3 && known.starts_with(&name);
            (if begun { 0 } else { strsim::damerau_levenshtein(&name, known) }, known)
        })
        .filter(|&(distance, _)| distance <= most)
        .collect();
    found.sort_by_key(|&(distance, _)| distance);
    found.into_iter().map(|(_, known)| known).take(3).collect()
}

/// One run of one experiment, or the reason why there is none.
pub struct Task<'a> {
    /// The experiment that runs.
    pub experiment: &'a Experiment,
    /// The kind of machine it runs on.
    pub kind: Kind,
    /// The function to call, or the reason why there is none.
    pub call: Result<Call, &'static str>,
}

/// A function to call.
pub enum Call {
    /// A function that runs on this computer, or a formula.
    Here(Run),
    /// A function that runs on a simulated machine, and that machine.
    On(Simulated, Box<Machine>),
}

/// Returns the runs of `chosen` on `target`, in order. If nothing would run, returns an error.
pub fn plan<'a>(chosen: &[&'a Experiment], target: &Target) -> Result<Vec<Task<'a>>, Error> {
    let mut tasks = Vec::new();
    for experiment in chosen {
        let task = |kind, call| Task { experiment, kind, call };
        match (&experiment.bodies, target) {
            (Bodies::Formula(_), Target::Named(_)) => {
                let why = "it is a formula, which no machine changes: leave out --machine";
                tasks.push(task(Kind::Formula, Err(why)));
            }
            (Bodies::Formula(body), _) => {
                tasks.push(task(Kind::Formula, runnable(body).map(Call::Here)));
            }
            (Bodies::Machines { real, .. }, Target::Real) => {
                tasks.push(task(Kind::Real, runnable(real).map(Call::Here)));
            }
            (Bodies::Machines { simulated, .. }, _) => match runnable(simulated) {
                Err(missing) => tasks.push(task(Kind::Simulated, Err(missing))),
                Ok(simulated) => {
                    let calls = on(simulated, target)?;
                    tasks.extend(calls.into_iter().map(|call| task(Kind::Simulated, Ok(call))));
                }
            },
        }
    }
    if tasks.iter().all(|task| task.call.is_err()) {
        return Err(refusal(&tasks, target));
    }
    Ok(tasks)
}

fn runnable<F: Copy>(body: &Body<F>) -> Result<F, &'static str> {
    match *body {
        Body::Run(run) => Ok(run),
        Body::Never(why) => Err(why),
    }
}

/// Returns the calls of one simulated experiment.
fn on(simulated: Simulated, target: &Target) -> Result<Vec<Call>, Error> {
    if let Target::Named(machine) = target {
        return Ok(vec![Call::On(simulated, machine.clone())]);
    }
    let paper = |name: &&'static str| Ok(Call::On(simulated, paper_machine(name)?));
    simulated.machines.iter().map(paper).collect()
}

fn paper_machine(name: &str) -> Result<Box<Machine>, Error> {
    match Target::of(name)? {
        Target::Named(machine) => Ok(machine),
        Target::Real | Target::Papers => {
            unreachable!("an experiment names machines in virtual time")
        }
    }
}

/// Returns the error that says why nothing would run.
fn refusal(tasks: &[Task<'_>], target: &Target) -> Error {
    let what = match tasks {
        [one] => one.experiment.id.to_owned(),
        several => format!("the {} chosen experiments", several.len()),
    };
    let why = tasks.iter().find_map(|task| task.call.as_ref().err().copied());
    let (machine, why) = (target.words(), why.unwrap_or_default().to_owned());
    Error::NothingRuns { what, machine, why }
}
