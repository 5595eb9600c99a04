//! `stanchion record`: runs a program with the shim of `stanchion-preload` before its locks, and
//! writes what its waits were.
//!
//! All processes of the program count in one file, mapped into each. The names in it are paths and
//! offsets; symbols are looked up when the program has ended.

pub(crate) mod calls;
mod cost;
mod events;
mod log;
pub(crate) mod names;
mod orders;
mod overhead;
mod program;
mod run;
mod shim;
pub(crate) mod stalls;
mod summary;
mod symbols;
mod table;

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stanchion_competitive::waits::Recording;
use stanchion_machine::clock;

use crate::args::{RecordOptions, Switches};
use crate::paths;
use stanchion_study::output::Output;

/// Why nothing was recorded: the command was not run, or its waits could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("recording needs 64-bit Linux with the GNU C library: this is {0}")]
    System(String),

    #[error(
        "no shim ({name}) lies beside this command or in ../lib (--shim FILE names one elsewhere); {0}",
        name = shim::NAME
    )]
    NoShim(stanchion_shim::Failure),

    #[error("the shim {}: {reason}", path.display())]
    Shim { path: PathBuf, reason: String },

    #[error("there is no program `{}`{}", .0.display(), looked_in(.0))]
    NotFound(OsString),

    #[error("cannot run {}: {reason}", path.display())]
    NotExecutable { path: PathBuf, reason: String },

    #[error("{} cannot be recorded: {reason}", path.display())]
    Unsuitable { path: PathBuf, reason: String },

    #[error("cannot make the table of waits {}: {source}", path.display())]
    Table { path: PathBuf, source: std::io::Error },

    #[error("cannot run {}: {source}", path.display())]
    Start { path: PathBuf, source: std::io::Error },

    #[error("`{}` ended with {status} and was not measured", program.display())]
    Failed { program: OsString, status: std::process::ExitStatus },

    #[error("the table of waits {}: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },

    #[error(transparent)]
    Output(#[from] stanchion_study::error::Error),
}

impl Refusal {
    /// As of other programs that run a command: 127 if there is none, 126 if it cannot be run.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable { .. } | Self::Start { .. } => 126,
            Self::Damaged { .. } | Self::Write { .. } | Self::Failed { .. } => 1,
            Self::Output(error) => error.exit_code(),
            _ => 2,
        }
    }
}

fn looked_in(command: &OsStr) -> &'static str {
    if command.as_encoded_bytes().contains(&b'/') { "" } else { " in PATH" }
}

/// Runs the command; says what it ended with.
pub(crate) fn run(options: &RecordOptions) -> Result<u8, Refusal> {
    let (command, arguments) = options.command.split_first().expect("clap asks for one word");
    shim::supported()?;
    let program = program::find(command)?;
    program::check(&program)?;
    let shim = shim::find(options.shim.as_deref())?;
    let policy = options.lock.map(|policy| policy.name());
    // Stays until the end.
    let ring = (options.switches == Switches::Auto).then(run::ring).transpose();
    let has_switches = matches!(ring, Ok(Some(_)));
    let way = run::Way { shim: &shim, policy, limit: options.limit, has_switches };
    let program_command = || run::command(&program, command, arguments);
    if let Some(pairs) = options.cost {
        overhead::measure(pairs as usize, program_command, way, options.orders, command)?;
        return Ok(0);
    }
    let made = check_output(&options.output)?;
    let table = table::Table::of_waits(cost::measured())?;
    let orders = options.orders.then(table::Table::of_orders).transpose()?;

    let log = log::Events::new(options.limit);

    stalls::listen(table.path(), options.stalls_after.map(Duration::from_secs));
    let began = Instant::now();
    let began_ns = clock::monotonic();
    let mut recorded = program_command();
    run::record(&mut recorded, way, table.path(), log.as_ref().map(log::Events::path));
    run::record_orders(&mut recorded, orders.as_ref().map(table::Table::path));
    let ended = run::run(recorded, &program)?;
    let elapsed = began.elapsed();

    let gathered = table.gather()?;
    if let Some(orders) = orders {
        let lines = orders::lines(&orders.orders()?, &file_name(command));
        lines.iter().for_each(|line| Output::Stderr.line(format_args!("{line}")));
    }
    let left = stalls::left(table.path());
    left.iter().for_each(|line| Output::Stderr.line(format_args!("{line}")));
    if let Some(reason) = summary::nothing(&gathered, &program, !left.is_empty()) {
        if made {
            let _ = std::fs::remove_file(&options.output);
        }
        Output::Stderr.line(format_args!("stanchion: nothing was recorded: {reason}"));
        return Ok(ended.exit_code());
    }
    let named = names::named(&gathered);
    let recording = Recording {
        program: file_name(command),
        mutexes: Some(policy.unwrap_or(Recording::PTHREAD).to_owned()),
        cost_ns: gathered.cost_ns,
        unit_ns: gathered.unit_ns,
        elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        locks: named.locks.clone(),
        overflow: gathered.nameless,
    };
    let write = |source| Refusal::Write { path: options.output.clone(), source };
    let waits = |(place, waits): &(names::Place, _)| {
        let calls = place.calls.clone();
        paths::Waits::new(place.class.word(), &place.name, &place.way, calls, waits)
    };
    let by_path: Vec<_> = named.paths.iter().map(waits).collect();
    let log = log.and_then(log::Events::gather);
    let events = log.as_ref().map(|log| events::events(log, &named, &gathered, began_ns));
    let events = events.map(|events| events::within(events, options.limit));
    let section = events.as_ref().map(|(_, section)| section.as_str());
    let text = paths::write(&recording, &by_path, named.unwalked, section);
    table::without_size_signal(|| std::fs::write(&options.output, text)).map_err(write)?;
    let events = events.as_ref().map(|(events, _)| (events, ring.as_ref().map(Option::is_some)));
    summary::print(&recording, &named, &gathered, events, &options.output, ended);
    Ok(ended.exit_code())
}

fn file_name(command: &OsString) -> String {
    let path = Path::new(command);
    path.file_name()
        .unwrap_or(command)
        .to_string_lossy()
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

/// Sees to it that the output can be written, before the program runs; says whether the file was
/// made by that.
fn check_output(path: &Path) -> Result<bool, Refusal> {
    let there = path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let unwritable = |source| stanchion_study::error::Error::Unwritable {
        path: path.to_owned(),
        option: "--output FILE",
        source,
    };
    Ok(opened.map(|_| !there).map_err(unwritable)?)
}
