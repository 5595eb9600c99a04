//! `stanchion study`: choose experiments, run them in turn, write what is known after each.
//!
//! ```text
//! catalogue ──select──▶ chosen ──run──▶ Entry … ──▶ Results ──▶ report.html, results.json
//! ```
//!
//! The report is a fold over entries and is rewritten after every experiment, so that nothing short of a full
//! disk loses a finished one.

mod all89;
mod catalogue;
mod context;
mod experiment;
mod klmo91;
mod locks;
pub(crate) mod outcome;
pub(crate) mod regret;
mod regsim;
mod results;
mod select;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stanchion_competitive::waits::Recording;

pub(crate) use locks::latency::least;
pub(crate) use results::{Entry, Results};

use crate::advise::pool;
use crate::args::StudyOptions;
use crate::error::Error;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::report::Destination;
use crate::units::count;
use context::{Context, Stop};
use experiment::{Body, Experiment};
use outcome::{Outcome, Verdict};

/// Runs the command.
pub(crate) fn run(options: &StudyOptions) -> Result<(), Error> {
    let all = catalogue::catalogue();
    let chosen = select::select(&all, &options.filters)?;
    if options.list {
        list(&chosen);
        return Ok(());
    }
    // Before anything is opened: a report of nothing must not take the place of one of something.
    select::some_built(&chosen)?;
    let regret = regret_plan(&chosen, options)?;
    let given = given(&chosen, options)?;
    let destination = Destination::open(&options.out, options.json.as_deref())?;
    let out = if destination.json_to_stdout() { Output::Stderr } else { Output::Stdout };
    let interrupt = Interrupt::listen()?;
    let machine = Host::here();
    if let Some(warning) = machine.warning() {
        Output::Stderr.line(format_args!("stanchion: {warning}"));
    }
    let mut results = Results {
        schema: Results::SCHEMA,
        written: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        quick: options.quick,
        seed: options.seed,
        machine,
        complete: false,
        entries: chosen.iter().map(|experiment| Entry::waiting(experiment)).collect(),
    };
    for (index, experiment) in chosen.iter().enumerate() {
        if let Body::Run(body) = experiment.body
            && !interrupt.asked()
        {
            let mut context =
                Context::new(experiment.id, options.quick, options.seed, interrupt.clone());
            context.regret.clone_from(&regret);
            context.given.clone_from(&given);
            run_one(&mut results.entries[index], body, &context);
            drop(context);
            say(out, &results.entries[index]);
            destination.write(&results, false)?;
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

/// The plan of `regret`, if that is chosen; what is said about it must mean something, before anything runs.
fn regret_plan(
    chosen: &[&Experiment],
    options: &StudyOptions,
) -> Result<Option<regret::options::Plan>, Error> {
    let is_chosen = chosen.iter().any(|experiment| experiment.id == regret::EXPERIMENT.id);
    match (is_chosen, options.only_for_regret()) {
        (true, _) => regret::options::Plan::new(options).map(Some),
        (false, Some(option)) => Err(Error::OnlyForRegret(option)),
        (false, None) => Ok(None),
    }
}

/// The recordings named on the command line; somebody must want them.
fn given(chosen: &[&Experiment], options: &StudyOptions) -> Result<Vec<Recording>, Error> {
    let wanted = chosen.iter().any(|experiment| klmo91::TABLES_OF_WAITS.contains(&experiment.id));
    if !wanted && !options.waits.is_empty() {
        return Err(Error::OnlyForTables);
    }
    pool::load(&options.waits)
}

fn run_one(entry: &mut Entry, body: fn(&Context) -> Result<Outcome, Stop>, context: &Context) {
    let started = Instant::now();
    match body(context) {
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
    entry.seconds = Some(started.elapsed().as_secs_f64());
}

fn list(chosen: &[&Experiment]) {
    let width = chosen.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let out = Output::Stdout;
    for experiment in chosen {
        let (id, kind, title) = (experiment.id, experiment.kind.name(), experiment.title);
        let state = experiment.body.missing().unwrap_or_else(|| "built".to_owned());
        out.line(format_args!("{id:width$}  {kind:9}  {title}"));
        out.line(format_args!("{:width$}  {:9}  {state}", "", ""));
    }
    let built = chosen.iter().filter(|experiment| experiment.body.missing().is_none()).count();
    out.line(format_args!("{}, {built} built", count(chosen.len(), "experiment")));
}

fn say(out: Output, entry: &Entry) {
    let verdict = &entry.outcome.verdict;
    let (id, name, why) = (entry.id, verdict.name(), verdict.because());
    let seconds = entry.seconds.unwrap_or(0.0);
    out.line(format_args!("{id:15} {name:10} {seconds:6.1} s  {why}"));
    for line in &entry.outcome.lines {
        out.line(format_args!("    {line}"));
    }
}

fn say_end(out: Output, results: &Results, destination: &Destination) {
    let waiting = results.entries.iter().filter(|entry| entry.seconds.is_none()).count();
    if waiting > 0 {
        out.line(format_args!("{} not run; the report says why", count(waiting, "experiment")));
    }
    out.line(format_args!("report: {}", destination.page().display()));
}
