//! `stanchion study`: choose experiments, run them in turn, write what is known after each.
//!
//! ```text
//! catalogue ──select──▶ chosen ──plan──▶ Task … ──run──▶ Entry … ──▶ Results ──▶ report.html, results.json
//! ```
//!
//! On simulated machines the results go to `simulated.json` instead; the page sets both side by side.
//!
//! The report is a fold over entries and is rewritten after every experiment, so that nothing short of a full
//! disk loses a finished one.

mod all89;
mod catalogue;
mod context;
mod experiment;
mod fr92;
mod klmo91;
pub(crate) mod locks;
mod ms97;
pub(crate) mod outcome;
pub(crate) mod regret;
mod regsim;
mod results;
mod sa92;
mod select;
pub(crate) mod simulated;
mod target;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stanchion_competitive::waits::Recording;

pub(crate) use locks::latency::least;
pub(crate) use locks::sweep::{lower_quartile, median};
pub(crate) use results::{Earlier, Entry, Results, Took};
pub(crate) use target::named as machine_named;

use crate::advise::pool;
use crate::args::StudyOptions;
use crate::error::Error;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::report::Destination;
use crate::units::count;
use context::{Context, Stop};
use experiment::Experiment;
use outcome::{Outcome, Verdict};
use results::Here;
use target::{Call, Target};

/// Runs the command.
pub(crate) fn run(options: &StudyOptions) -> Result<(), Error> {
    let all = catalogue::catalogue();
    let chosen = select::select(&all, &options.filters)?;
    if options.list {
        list(&chosen);
        return Ok(());
    }
    let target = Target::of(&options.machine)?;
    if options.trace && target.is_real() {
        return Err(Error::OnlyOnSimulated("--trace"));
    }
    // Before anything is opened: a report of nothing must not take the place of one of something.
    let tasks = target::plan(&chosen, &target)?;
    let regret = regret_plan(&chosen, options, &target)?;
    let given = given(&chosen, options, &target)?;
    let destination = Destination::open(&options.out, options.json.as_deref(), target.is_real())?;
    let out = if destination.json_to_stdout() { Output::Stderr } else { Output::Stdout };
    let interrupt = Interrupt::listen()?;
    let here = target.is_real().then(here);
    let mut results = Results::waiting(&tasks, here, options.quick, options.seed);
    for (entry, task) in tasks.iter().enumerate() {
        if let Ok(call) = &task.call
            && !interrupt.asked()
        {
            let id = task.experiment.id;
            let mut context = Context::new(id, options.quick, options.seed, interrupt.clone());
            context.regret.clone_from(&regret);
            context.given.clone_from(&given);
            let took = run_one(&mut results.entries[entry], call, &context);
            if !target.is_real() {
                results.entries[entry].seconds = Took::Untold;
            }
            drop(context);
            say(out, &results.entries[entry], took);
            destination.write(&results, false)?;
            if options.trace {
                destination.write_traces(&results.entries[entry])?;
            }
        }
    }
    results.complete = !interrupt.asked();
    destination.write(&results, true)?;
    say_end(out, &results, &destination);
    if interrupt.asked() {
        return Err(Error::Interrupted(destination.page().to_owned()));
    }
    match results.entries.iter().filter(|entry| entry.failed).count() {
        0 => Ok(()),
        failed => Err(Error::Failed(failed)),
    }
}

/// This computer, with a warning on standard error if it is not fit to measure on.
fn here() -> Here {
    let machine = Host::here();
    if let Some(warning) = machine.warning() {
        Output::Stderr.line(format_args!("stanchion: {warning}"));
    }
    let written = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    Here { written, machine }
}

/// The plan of `regret`, if that is chosen; what is said about it must mean something, before anything runs.
fn regret_plan(
    chosen: &[&Experiment],
    options: &StudyOptions,
    target: &Target,
) -> Result<Option<regret::options::Plan>, Error> {
    let is_chosen = chosen.iter().any(|experiment| experiment.id == regret::EXPERIMENT.id);
    match (is_chosen && target.is_real(), options.only_for_regret()) {
        (true, _) => regret::options::Plan::new(options).map(Some),
        (false, Some(option)) if !target.is_real() => Err(Error::OnlyOnReal(option)),
        (false, Some(option)) => Err(Error::OnlyForRegret(option)),
        (false, None) => Ok(None),
    }
}

/// The recordings named on the command line; somebody must want them.
fn given(
    chosen: &[&Experiment],
    options: &StudyOptions,
    target: &Target,
) -> Result<Vec<Recording>, Error> {
    let wanted = chosen.iter().any(|experiment| klmo91::TABLES_OF_WAITS.contains(&experiment.id));
    if !options.waits.is_empty() {
        if !target.is_real() {
            return Err(Error::OnlyOnReal("--waits"));
        }
        if !wanted {
            return Err(Error::OnlyForTables);
        }
    }
    pool::load(&options.waits)
}

/// Runs `call` and says how many seconds that took.
fn run_one(entry: &mut Entry, call: &Call, context: &Context) -> f64 {
    let started = Instant::now();
    let done = match call {
        Call::Here(run) => run(context),
        Call::On(simulated, machine) => (simulated.run)(context, machine),
    };
    match done {
        Ok(mut outcome) => {
            if let Some(title) = outcome.title.take() {
                entry.title = title;
            }
            entry.outcome = outcome;
        }
        Err(Stop::Interrupted) => {
            entry.outcome = Outcome::new(Verdict::NotRun("interrupted while it ran".to_owned()));
        }
        Err(Stop::Failed(reason)) => {
            entry.failed = true;
            entry.outcome = Outcome::new(Verdict::NotRun(format!("it failed: {reason}")));
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    entry.seconds = Took::Seconds(seconds);
    seconds
}

fn list(chosen: &[&Experiment]) {
    let width = chosen.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let out = Output::Stdout;
    for experiment in chosen {
        let (id, title) = (experiment.id, experiment.title);
        let (kinds, state) = (experiment.bodies.kinds(), experiment.bodies.state());
        out.line(format_args!("{id:width$}  {kinds:9}  {title}"));
        out.line(format_args!("{:width$}  {:9}  {state}", "", ""));
    }
    let built = chosen.iter().filter(|experiment| experiment.bodies.is_built()).count();
    out.line(format_args!("{}, {built} built", count(chosen.len(), "experiment")));
}

fn say(out: Output, entry: &Entry, seconds: f64) {
    let verdict = &entry.outcome.verdict;
    let (id, name, why) = (&entry.id, verdict.name(), verdict.because());
    let on = entry.on.as_ref().map(|on| format!("{:12} ", on.name)).unwrap_or_default();
    out.line(format_args!("{id:15} {on}{name:10} {seconds:6.1} s  {why}"));
    for line in &entry.outcome.lines {
        out.line(format_args!("    {line}"));
    }
}

fn say_end(out: Output, results: &Results, destination: &Destination) {
    let waiting: Vec<&str> = results
        .entries
        .iter()
        .filter(|entry| !entry.ran())
        .map(|entry| entry.id.as_str())
        .collect();
    if !waiting.is_empty() {
        let number = count(waiting.len(), "experiment");
        // On this computer those are the ones that only simulated machines have; elsewhere somebody may have expected one.
        let which =
            if results.here.is_some() { String::new() } else { format!(": {}", waiting.join(" ")) };
        out.line(format_args!("{number} not run; the report says why{which}"));
    }
    out.line(format_args!("report: {}", destination.page().display()));
}
