//! `stanchion study`: choose experiments of the catalogue, check what the options mean for them,
//! and run them.
//!
//! What runs them and writes the report is the library `stanchion-study`.

mod catalogue;
mod share;
#[cfg(test)]
mod tests;
mod times;

use std::path::PathBuf;
use std::time::Duration;

use stanchion_competitive::waits::Recording;
use stanchion_paper_klmo91::waits::pool;
use stanchion_regret::options::{Options, Plan};
use stanchion_regret::random;
use stanchion_study::asked::Asked;
use stanchion_study::context::Given;
use stanchion_study::experiment::Experiment;
use stanchion_study::grids;
use stanchion_study::output::Output;
use stanchion_study::quiet::Patience;
use stanchion_study::report;
use stanchion_study::select::{select, with_counterfactuals};
use stanchion_study::session::{self, Settings};
use stanchion_study::share::{Comparison, judge as judged};
use stanchion_study::target::{self, Target};

use crate::args::{CompareOptions, StudyOptions};
use crate::error::Error;

/// Seconds of a brief look at all families, in a quick study and in another one.
const LOOK_QUICK: u64 = 90;
const LOOK: u64 = 600;

/// Runs the command.
pub(crate) fn run(asked: &StudyOptions) -> Result<(), Error> {
    let all = catalogue::catalogue();
    let mut chosen = select(&all, &asked.filters)?;
    if asked.counterfactuals {
        chosen = with_counterfactuals(&all, &chosen)?;
    }
    if asked.list {
        session::list(&chosen, times::expected);
        return Ok(());
    }
    let target = Target::of(&asked.machine)?;
    if let Some(option) = asked.only_for_simulated()
        && target.is_real()
    {
        return Err(Error::OnlyOnSimulated(option));
    }
    if share::without_measuring(asked, &target)? {
        return Ok(());
    }
    // Before anything is opened: a report of nothing must not take the place of one of something.
    let tasks = target::plan(&chosen, &target)?;
    let mut given = Given::default();
    if let Some(options) = regret_options(&chosen, asked, &target)? {
        match random::Plan::new(&options)? {
            Some(plan) => given.give(plan),
            None => given.give(Plan::new(&options)?),
        }
        // A whole study takes a brief look at the families of which there is no whole grid.
        let families = grids::not_whole(&asked.output);
        if asked.filters.is_empty() && !families.is_empty() {
            let seconds = if options.quick { LOOK_QUICK } else { LOOK };
            given.give(random::FirstLook { time: Duration::from_secs(seconds), families });
        }
    }
    share::check(asked)?;
    given.give(recordings(&chosen, asked, &target)?);
    let settings = Settings {
        quick: asked.quick,
        seed: asked.seed,
        out: asked.output.clone(),
        json: asked.json.clone(),
        asked: what_is_asked(asked, &target),
        resume: asked.resume,
        counterfactuals: asked.counterfactuals,
        trace: asked.trace,
        // Figures of a build that is not optimized mean nothing anyway.
        patience: if cfg!(debug_assertions) { Patience::NONE } else { Patience::of(asked.quick) },
        expected: times::expected,
        given,
        stated: catalogue::points(),
    };
    let ran = session::run(&tasks, &target, &settings);
    match ran {
        // A failed experiment takes nothing from the grids.
        Ok(()) | Err(stanchion_study::error::Error::Failed(_)) => share::write(asked)?,
        Err(_) => {}
    }
    Ok(ran?)
}

/// Compares the files of several computers.
pub(crate) fn compare(options: &CompareOptions) -> Result<(), Error> {
    if options.judge {
        return judge(&options.files);
    }
    let comparison = Comparison::read(&options.files, options.distinct)?;
    let page = report::compared(&comparison, &options.output)?;
    for line in comparison.lines() {
        Output::Stdout.line(format_args!("{line}"));
    }
    Output::Stdout.line(format_args!("report: {}", page.display()));
    Ok(())
}

/// Judges the answers of each of two files by the cells of the other one.
fn judge(files: &[PathBuf]) -> Result<(), Error> {
    let [one, other] = files else { return Err(Error::JudgesTwo(files.len())) };
    for (answers, cells) in [(one, other), (other, one)] {
        let (answered, by) = (answers.display(), cells.display());
        Output::Stdout.line(format_args!("answers of {answered}, judged by the cells of {by}:"));
        let judged = judged(answers, cells)?;
        if judged.is_empty() {
            Output::Stdout.line(format_args!("  no family has three cells or more in both"));
        }
        for family in judged {
            Output::Stdout.line(format_args!("  {}", family.line()));
        }
    }
    Ok(())
}

/// The options of `regret`, if that is chosen; what is said about it must mean something, before
/// anything runs.
fn regret_options(
    chosen: &[&Experiment],
    options: &StudyOptions,
    target: &Target,
) -> Result<Option<Options>, Error> {
    let regret = stanchion_regret::EXPERIMENT.id;
    let is_chosen = chosen.iter().any(|experiment| experiment.id == regret);
    match (is_chosen && target.is_real(), options.only_for_regret()) {
        (true, _) => Ok(Some(of_regret(options))),
        (false, Some(option)) if !target.is_real() => Err(Error::OnlyOnReal(option)),
        (false, Some(option)) => Err(Error::OnlyForRegret(option)),
        (false, None) => Ok(None),
    }
}

fn of_regret(options: &StudyOptions) -> Options {
    Options {
        quick: options.quick,
        full: options.full,
        cells: options.cells.clone(),
        contestants: options.contestants.clone(),
        rounds: options.rounds,
        window_ms: options.window_ms,
        sweep: options.sweep,
        random: options.random,
        family: options.family.clone(),
        replay: options.replay.clone(),
        seed: options.seed,
    }
}

/// Returns all of the command line that decides what is measured.
fn what_is_asked(options: &StudyOptions, target: &Target) -> Asked {
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    Asked::new(&options.filters)
        .with_values("--machine", (!target.is_real()).then_some(&options.machine))
        .with_flag("--quick", options.quick)
        .with_flag("--full", options.full)
        .with_flag("--counterfactuals", options.counterfactuals)
        .with_values("--seed", [options.seed])
        .with_values("--waits", paths(&options.waits))
        .with_values("--cells", &options.cells)
        .with_values("--contestants", &options.contestants)
        .with_values("--rounds", options.rounds)
        .with_values("--window-ms", options.window_ms)
        .with_flag("--sweep", options.sweep)
        .with_values("--random", options.random)
        .with_values("--family", &options.family)
        .with_values("--replay", &options.replay)
}

/// The recordings named on the command line; an experiment that judges them must be chosen.
fn recordings(
    chosen: &[&Experiment],
    options: &StudyOptions,
    target: &Target,
) -> Result<Vec<Recording>, Error> {
    let tables = stanchion_paper_klmo91::TABLES_OF_WAITS;
    let wanted = chosen.iter().any(|experiment| tables.contains(&experiment.id));
    if !options.waits.is_empty() {
        if !target.is_real() {
            return Err(Error::OnlyOnReal("--waits"));
        }
        if !wanted {
            return Err(Error::OnlyForTables);
        }
    }
    Ok(pool::load(&options.waits)?)
}
