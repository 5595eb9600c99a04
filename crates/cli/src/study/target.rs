//! Which machine a study is asked for, and which of the chosen experiments run on it.

use std::path::Path;

use stanchion_simulator::{Machine, machines};

use super::experiment::{Bodies, Body, Experiment, Kind, Run, Simulated};
use crate::error::Error;
use crate::survey::description;

/// What `--machine` names.
#[derive(Debug)]
pub(crate) enum Target {
    /// This computer.
    Real,
    /// The machines that each experiment names, the paper's own first.
    Papers,
    /// One machine in virtual time, for all experiments; also one of a description in a file.
    Named(Box<Machine>),
}

const REAL: &str = "real";
const PAPERS: &str = "simulated";

impl Target {
    /// The target that `name` stands for; else an error with the names that it resembles.
    pub(crate) fn of(name: &str) -> Result<Self, Error> {
        match name {
            REAL => Ok(Self::Real),
            PAPERS => Ok(Self::Papers),
            _ => named(name).map(|machine| Self::Named(Box::new(machine))),
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Real)
    }

    /// As it stands in a sentence.
    fn words(&self) -> String {
        match self {
            Self::Real => "this computer".to_owned(),
            Self::Papers => "a simulated machine".to_owned(),
            Self::Named(machine) => format!("the simulated {}", machine.name),
        }
    }
}

/// The machine of that name, or of that description.
pub(crate) fn named(name: &str) -> Result<Machine, Error> {
    if is_file(name) {
        return description::read(Path::new(name));
    }
    machines::by_name(name).map_err(|_| Error::UnknownMachine {
        name: name.to_owned(),
        near: near(name),
        all: names().collect(),
    })
}

/// Whether this names a file with a description, not a machine.
fn is_file(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".json")
}

fn names() -> impl Iterator<Item = &'static str> {
    [REAL, PAPERS].into_iter().chain(machines::NAMES.iter().copied())
}

/// Up to three names that `name` may be a slip of the pen for, or the beginning of.
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

/// One run of one experiment, or why there is none.
pub(crate) struct Task<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) kind: Kind,
    /// Or why nothing is called.
    pub(crate) call: Result<Call, &'static str>,
}

/// What is called.
pub(crate) enum Call {
    Here(Run),
    On(Simulated, Box<Machine>),
}

/// The runs of `chosen` on `target`, in order; refused if there is none.
pub(crate) fn plan<'a>(chosen: &[&'a Experiment], target: &Target) -> Result<Vec<Task<'a>>, Error> {
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

/// The calls of one simulated experiment.
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

/// Why nothing at all would run.
fn refusal(tasks: &[Task<'_>], target: &Target) -> Error {
    let what = match tasks {
        [one] => one.experiment.id.to_owned(),
        several => format!("the {} chosen experiments", several.len()),
    };
    let why = tasks.iter().find_map(|task| task.call.as_ref().err().copied());
    let (machine, why) = (target.words(), why.unwrap_or_default().to_owned());
    Error::NothingRuns { what, machine, why }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::catalogue;
    use super::super::context::Context;
    use super::super::experiment::Paper;
    use super::super::select::select;
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn every_name_is_a_target_and_every_experiment_names_machines() {
        for name in machines::NAMES {
            assert!(matches!(Target::of(name), Ok(Target::Named(_))), "{name}");
        }
        for experiment in catalogue() {
            if let Bodies::Machines { simulated: Body::Run(simulated), .. } = experiment.bodies {
                assert!(!simulated.machines.is_empty(), "{}", experiment.id);
                for name in simulated.machines {
                    assert!(machines::NAMES.contains(name), "{}: {name}", experiment.id);
                }
            }
        }
    }

    #[test]
    fn an_unknown_machine_is_refused_with_the_nearest() {
        for (name, nearest) in [
            ("symetry-a", "symmetry-a"),
            ("firefy", "firefly"),
            ("reel", "real"),
            ("sim", "simulated"),
        ] {
            let error = Target::of(name).unwrap_err();
            assert!(error.to_string().contains(&format!("nearest: {nearest}")), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        let said = Target::of("cray").unwrap_err().to_string();
        assert!(!said.contains("nearest") && said.contains("symmetry-a"), "{said}");
    }

    fn refused(filter: &str, target: &Target) -> String {
        let all = catalogue();
        let chosen = select(&all, &[filter.to_owned()]).unwrap();
        match plan(&chosen, target) {
            Err(error) => error.to_string(),
            Ok(tasks) => panic!("{} tasks", tasks.len()),
        }
    }

    #[test]
    fn a_choice_of_nothing_that_runs_is_refused() {
        let said = refused("regret", &Target::Papers);
        assert!(said.contains("regret") && said.contains("a simulated machine"), "{said}");
        let said = refused("fig3.5", &Target::of("firefly").unwrap());
        assert!(said.contains("formula"), "{said}");
    }

    #[test]
    fn an_experiment_runs_on_each_machine_that_it_names_or_on_the_one_asked_for() {
        let all = catalogue();
        let filters = ["fig3.5", "all89/fig4.3", "regret"].map(str::to_owned);
        let chosen = select(&all, &filters).unwrap();
        let places = |target: &Target| -> Vec<String> {
            let place = |task: &Task<'_>| match &task.call {
                Ok(Call::Here(_)) => task.kind.name().to_owned(),
                Ok(Call::On(_, machine)) => machine.name.clone(),
                Err(_) => "none".to_owned(),
            };
            plan(&chosen, target).unwrap().iter().map(place).collect()
        };
        assert_eq!(places(&Target::Real), ["formula", "real", "real"]);
        let papers = ["formula", "symmetry-a", "symmetry-b", "firefly", "none"];
        assert_eq!(places(&Target::Papers), papers);
        assert_eq!(places(&Target::of("modern-2s").unwrap()), ["none", "modern-2s", "none"]);
    }

    #[test]
    fn the_experiments_on_locks_run_on_a_machine_of_one_processor() {
        let context = Context::new("test", true, 1, Interrupt::default());
        let one = Machine { name: "one".to_owned(), ..machines::symmetry_a(1) };
        for experiment in catalogue() {
            if let Bodies::Machines { simulated: Body::Run(simulated), .. } = experiment.bodies
                && experiment.paper == Paper::All89
            {
                let outcome = (simulated.run)(&context, &one).unwrap();
                assert!(!outcome.verdict.because().is_empty(), "{}", experiment.id);
            }
        }
    }
}
