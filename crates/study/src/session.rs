//! Runs the chosen experiments in turn and rewrites the report after each.
//!
//! The report is a fold over entries and is rewritten after every experiment, so that nothing short
//! of a full disk loses a finished one. Findings on simulated machines go to `simulated.json`,
//! findings on this computer to `results.json`. The page shows both side by side.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stanchion_simulator::machines;

use crate::asked::Asked;
use crate::context::{Context, Given, Stop};
use crate::error::Error;
use crate::experiment::{Experiment, Kind};
use crate::grids::{self, Choice};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::others::Account;
use crate::outcome::{Outcome, Verdict};
use crate::output::Output;
use crate::progress::Progress;
use crate::quiet::{Patience, Quiet};
use crate::report::Destination;
use crate::results::{Entry, Here, Results, Took};
use crate::resume;
use crate::simulation::run_simulated;
use crate::stated::{self, Point};
use crate::target::{Call, Target, Task};
use crate::units::count;

/// The settings of a study, and the files of its report.
#[derive(Debug)]
pub struct Settings {
    /// True if experiments take shorter windows and fewer repeats.
    pub quick: bool,
    /// The seed of everything random in the experiments.
    pub seed: u64,
    /// The directory of the report. It is made if it does not exist.
    pub out: PathBuf,
    /// The file for a copy of the results; "-" is standard output.
    pub json: Option<PathBuf>,
    /// The command line, for the results.
    pub asked: Asked,
    /// True if the study in `out` goes on.
    pub resume: bool,
    /// True if simulated experiments that differ run their counterfactuals.
    pub counterfactuals: bool,
    /// True if the timelines of simulated runs are written as well.
    pub trace: bool,
    /// The time for which it waits for quiet moments before experiments on this computer.
    pub patience: Patience,
    /// Returns the expected duration of the experiment of an id, for the bar.
    pub expected: fn(&str) -> Duration,
    /// Values that the command line gives to single experiments.
    pub given: Given,
    /// The points that the papers state, which the charts of their experiments show.
    pub stated: Vec<Point>,
}

/// Runs `tasks` on `target`.
pub fn run(tasks: &[Task<'_>], target: &Target, settings: &Settings) -> Result<(), Error> {
    let here = target.is_real().then(here);
    let mut results = Results::waiting(tasks, here, settings.quick, settings.seed);
    results.asked = Some(settings.asked.clone());
    let json = settings.json.as_deref();
    let out = if json == Some(Path::new("-")) { Output::Stderr } else { Output::Stdout };
    if settings.resume {
        results = resume::kept(&settings.out, results)?;
        if results.is_over() {
            let folder = settings.out.display();
            out.line(format_args!("nothing is left to resume: the study in {folder} is whole"));
            return Ok(());
        }
        results.complete = false;
    }
    // `target::plan` has refused a study in which nothing runs, so no empty report replaces an
    // earlier one.
    let destination = Destination::open(&settings.out, json, target.is_real())?;
    let interrupt = Interrupt::listen()?;
    warn(&results);
    results.answer(&grids::kept(&settings.out));
    let called: Vec<(usize, &Task<'_>, &Call)> = tasks
        .iter()
        .enumerate()
        .filter(|&(entry, _)| results.entries[entry].is_left())
        .filter_map(|(entry, task)| Some((entry, task, task.call.as_ref().ok()?)))
        .collect();
    let expected = |task: &Task<'_>| (settings.expected)(task.experiment.id);
    let progress =
        Progress::new(called.len(), called.iter().map(|&(_, task, _)| expected(task)).sum());
    let (mut quiet, mut has_waited) = (Quiet::new(settings.patience), false);
    for (begun, &(entry, task, call)) in called.iter().enumerate() {
        if interrupt.asked() {
            break;
        }
        let part = progress.begin(begun, task.experiment.id, expected(task));
        let context = Context::new(settings.quick, settings.seed, interrupt.clone())
            .with_progress(part)
            .with_given(settings.given.clone())
            .with_counterfactuals(settings.counterfactuals);
        let is_measured = task.kind == Kind::Real;
        if is_measured
            && let Some(wait) = quiet.wait(&context.processors, &interrupt)
            && !std::mem::replace(&mut has_waited, true)
        {
            let words = wait.words(task.experiment.id);
            progress.aside(|| Output::Stderr.line(format_args!("stanchion: {words}")));
        }
        let account = || Account::now(&context.processors, &[]).filter(|_| is_measured);
        let before = account();
        let took = run_one(&mut results.entries[entry], call, &context, &settings.stated);
        let others = before.zip(account()).and_then(|(before, after)| after.others_since(before));
        results.entries[entry].others = others;
        quiet.note(others);
        if !target.is_real() && results.entries[entry].ran() {
            results.entries[entry].seconds = Took::Untold;
        }
        // It may have ended before its time, with a part of its figures.
        results.entries[entry].left |= interrupt.asked();
        drop(context);
        let new = std::mem::take(&mut results.entries[entry].outcome.grids);
        if !new.is_empty() {
            results.answer(&grids::keep(&settings.out, &new)?);
        }
        progress.aside(|| say(out, &results.entries[entry], took));
        destination.write(&results, false)?;
        if settings.trace {
            destination.write_traces(&results.entries[entry])?;
        }
    }
    progress.finish();
    results.complete = results.missing().is_empty();
    if let Some(here) = &mut results.here {
        here.ended = Some(now());
    }
    destination.write(&results, true)?;
    say_end(out, &results, &destination, settings);
    if interrupt.asked() {
        return Err(Error::Interrupted(destination.page().to_owned()));
    }
    match results.entries.iter().filter(|entry| entry.failed).count() {
        0 => Ok(()),
        failed => Err(Error::Failed(failed)),
    }
}

/// Describes this computer.
fn here() -> Here {
    Here { written: now(), ended: None, resumed: Vec::new(), machine: Host::here() }
}

/// Prints a warning on standard error if this computer is not fit to measure on.
fn warn(results: &Results) {
    if let Some(warning) = results.here.as_ref().and_then(|here| here.machine.warning()) {
        Output::Stderr.line(format_args!("stanchion: {warning}"));
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Runs `call` and returns the seconds that it took. Its charts show those of the `points` that are
/// of its experiment. If the user stops it before it has figures, those of an earlier run stay.
pub fn run_one(entry: &mut Entry, call: &Call, context: &Context, points: &[Point]) -> f64 {
    let started = Instant::now();
    let done = match call {
        Call::Here(run) => run(context),
        Call::On(simulated, machine) => run_simulated(simulated, context, machine),
    };
    let is_the_papers = match call {
        Call::Here(_) => false,
        Call::On(simulated, machine) => simulated.machines.first() == Some(&&*machine.name),
    };
    // A machine file may have the paper's name and lack a series. One without charts was not
    // judged.
    let is_built_in = match call {
        Call::Here(_) => true,
        Call::On(_, machine) => machines::by_name(&machine.name).is_ok_and(|own| own == **machine),
    };
    let done = done.and_then(|mut outcome| {
        let is_strict = is_built_in && !outcome.pictures.is_empty();
        match stated::place(points, &entry.id, &mut outcome.pictures, is_the_papers) {
            Err(series) if is_strict => Err(Stop::Failed(format!(
                "the paper states a point of `{series}`, which no chart shows"
            ))),
            _ => Ok(outcome),
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    match done {
        Ok(mut outcome) => {
            if let Some(title) = outcome.title.take() {
                entry.title = title;
            }
            entry.outcome = outcome;
            entry.failed = false;
        }
        Err(Stop::Interrupted) => {
            if !entry.ran() {
                let why = "interrupted while it ran".to_owned();
                entry.outcome = Outcome::new(Verdict::NotRun(why));
            }
            return seconds;
        }
        Err(Stop::Failed(reason)) => {
            entry.failed = true;
            entry.outcome = Outcome::new(Verdict::NotRun(format!("it failed: {reason}")));
        }
    }
    entry.seconds = Took::Seconds(seconds);
    entry.left = false;
    seconds
}

/// Prints the experiments by paper, with the expected times of a quick study.
pub fn list(chosen: &[&Experiment], expected: fn(&str) -> Duration) {
    let width = chosen.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let out = Output::Stdout;
    let mut papers = Vec::new();
    for experiment in chosen {
        if !papers.contains(&experiment.paper) {
            papers.push(experiment.paper);
        }
    }
    for paper in papers {
        let of = || chosen.iter().filter(|experiment| experiment.paper == paper);
        out.line(format_args!("{}: {}", paper.name(), count(of().count(), "experiment")));
        for experiment in of() {
            let (id, title, kinds) = (experiment.id, experiment.title, experiment.bodies.kinds());
            let seconds = expected(id).as_secs_f64();
            out.line(format_args!("  {id:width$}  {seconds:5.1} s  {kinds:9}  {title}"));
        }
    }
    let number = count(chosen.len(), "experiment");
    let minutes =
        chosen.iter().map(|experiment| expected(experiment.id)).sum::<Duration>().as_secs_f64()
            / 60.0;
    out.line(format_args!("{number}; the times are those of --quick, {minutes:.1} minutes in all"));
}

fn say(out: Output, entry: &Entry, seconds: f64) {
    let verdict = &entry.outcome.verdict;
    let (id, name, why) = (&entry.id, verdict.name(), verdict.because());
    let on = entry.on.as_ref().map(|on| format!("{:12} ", on.name)).unwrap_or_default();
    out.line(format_args!("{id:15} {on}{name:10} {seconds:6.1} s  {why}"));
    for line in &entry.outcome.lines {
        out.line(format_args!("    {line}"));
    }
    for swept in &entry.outcome.counterfactuals {
        if swept.found.is_empty() {
            let name = &swept.name;
            out.line(format_args!("    --counterfactuals runs it with {name}"));
        }
        for line in swept.lines().iter().filter(|_| !swept.found.is_empty()) {
            out.line(format_args!("    {line}"));
        }
    }
}

fn say_end(out: Output, results: &Results, destination: &Destination, settings: &Settings) {
    let waiting: Vec<&str> = results
        .entries
        .iter()
        .filter(|entry| !entry.ran() && !entry.left)
        .map(|entry| entry.id.as_str())
        .collect();
    if !waiting.is_empty() {
        let number = count(waiting.len(), "experiment");
        // On this computer, these are the experiments that run only on simulated machines, so the
        // line need not name them. On other machines the user may have expected one of them.
        let which =
            if results.here.is_some() { String::new() } else { format!(": {}", waiting.join(" ")) };
        out.line(format_args!("{number} not run; the report says why{which}"));
    }
    say_answers(out, &results.answers);
    if let Some(disturbed) = results.disturbed() {
        out.line(format_args!("{disturbed}"));
    }
    out.line(format_args!("report: {}", destination.page().display()));
    if !results.complete {
        let missing = results.missing();
        let verb = if missing.len() == 1 { "is" } else { "are" };
        let number = count(missing.len(), "experiment");
        out.line(format_args!("{number} {verb} missing: {}", missing.join(" ")));
        out.line(format_args!("This command goes on: {}", settings.asked.command(&settings.out)));
    }
}

/// Prints what to use on this computer, a line for each family.
fn say_answers(out: Output, answers: &[Choice]) {
    if answers.is_empty() {
        return;
    }
    out.line(format_args!("What to use on this computer:"));
    let width = answers.iter().map(|answer| answer.title.chars().count()).max().unwrap_or(0);
    for answer in answers {
        let (title, name, sure) = (&answer.title, answer.answer(), answer.sure());
        out.line(format_args!("  {title:width$}  {name}, {sure}"));
    }
    if let Some(brief) = answers.iter().find(|answer| answer.brief) {
        let command = Choice::command(&brief.family);
        out.line(format_args!("A first look only. For the whole: {command}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Bodies, Kind, Paper, Run};

    fn holds(_: &Context) -> Result<Outcome, Stop> {
        Ok(Outcome::new(Verdict::Holds("a figure".to_owned())))
    }

    fn is_stopped(_: &Context) -> Result<Outcome, Stop> {
        Err(Stop::Interrupted)
    }

    fn fails(_: &Context) -> Result<Outcome, Stop> {
        Err(Stop::Failed("no memory".to_owned()))
    }

    #[test]
    fn an_experiment_that_is_stopped_is_left_and_keeps_the_figures_that_it_had() {
        let bodies = Bodies::formula(holds);
        let experiment =
            Experiment { id: "one", paper: Paper::All89, title: "title", claim: "Claim.", bodies };
        let call = Ok(Call::Here(holds));
        let mut entry = Entry::waiting(&Task { experiment: &experiment, kind: Kind::Real, call });
        let context = Context::new(true, 1, Interrupt::default());
        let mut run = |run: Run| {
            run_one(&mut entry, &Call::Here(run), &context, &[]);
            (entry.ran(), entry.is_left(), entry.outcome.verdict.because().to_owned())
        };
        assert_eq!(run(is_stopped), (false, true, "interrupted while it ran".to_owned()));
        assert_eq!(run(fails), (true, true, "it failed: no memory".to_owned()));
        assert_eq!(run(holds), (true, false, "a figure".to_owned()));
        assert!(!entry.failed);
        entry.left = true;
        run_one(&mut entry, &Call::Here(is_stopped), &context, &[]);
        assert_eq!((entry.is_left(), entry.outcome.verdict.because()), (true, "a figure"));
    }
}
