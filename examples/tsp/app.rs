//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::family::{Family, Search};
use super::report::Report;
use crate::{Level, Memory, at_least_one};
use clap::{Parser, ValueEnum, value_parser};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stanchion_applications::tsp::{self, Bound, Instance, MAX_THREADS, Options, ParseError};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file read. The largest symmetric instance of TSPLIB has a few megabytes.
const MAX_FILE: u64 = 256 << 20;

/// Finds the shortest tour through some cities on several threads, which share a heap, a stack and
/// counters of your choice.
///
/// Reads a TSPLIB file of a symmetric instance: EXPLICIT (FULL_MATRIX, UPPER_ROW, LOWER_ROW,
/// UPPER_DIAG_ROW, LOWER_DIAG_ROW), EUC_2D, CEIL_2D, GEO or ATT. The search is exact, by branch and
/// bound: the length does not depend on anything but the file.
#[derive(Debug, Parser)]
#[command(
    name = "tsp",
    version,
    after_help = "Exit code 0: found; 1: something is wrong with the tour; 2: the arguments or the file are no good, or there are too many cities."
)]
struct Arguments {
    /// The cities, a TSPLIB file.
    file: PathBuf,

    /// The heap, the stack and the counters.
    #[arg(long, value_name = "NAME", default_value = "hybrid")]
    structure: Family,

    /// The memory of the nodes of the stack without locks.
    #[arg(long, value_name = "NAME", default_value = "counted")]
    memory: Memory,

    /// Threads, at most 64.
    #[arg(long, allow_negative_numbers = true, value_name = "T", default_value_t = 2, value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: u16,

    #[command(flatten)]
    level: Level,

    /// The way in which tours are compared.
    #[arg(long, value_name = "NAME", default_value = "ascent")]
    bound: Bounds,

    /// Begins without a tour, as if nothing were known: more tours to look at.
    #[arg(long)]
    no_head_start: bool,

    /// Refuses an instance that is estimated to need more tours than this; about a million a second
    /// are looked at on each processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 5_000_000_000, value_parser = at_least_one)]
    limit: u64,

    /// Leaves the threads to the system. Without it each stays on one processor, and these are
    /// dealt out in turn.
    #[arg(long)]
    no_pin: bool,
}

/// The values of `--bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bounds {
    /// By spanning trees of distances made even by Held and Karp's ascent: for the answer.
    Ascent,
    /// By spanning trees alone: for much use of the structures.
    Tree,
}

/// The streams of the output.
pub struct Streams<'a> {
    /// The report goes here.
    pub out: &'a mut dyn Write,
    /// Messages go here.
    pub err: &'a mut dyn Write,
    /// Set if `err` is a terminal.
    pub err_is_terminal: bool,
}

/// Why there is no run to report.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{}:{}: {}", .0.display(), .1.line, .1.reason)]
    Instance(PathBuf, ParseError),
    #[error("{}: cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    #[error("{}: has more than {} MiB: is this a TSPLIB file?", .0.display(), MAX_FILE >> 20)]
    TooLarge(PathBuf),
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, streams: Streams<'_>) -> u8 {
    let Streams { out, err, err_is_terminal } = streams;
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let instance = match read(&arguments.file) {
        Ok(instance) => instance,
        Err(refused) => {
            let _ = writeln!(err, "{refused}");
            return 2;
        }
    };
    let shared = match arguments.level.start() {
        Ok(shared) => shared,
        Err(refused) => {
            let _ = writeln!(err, "tsp: --level: {refused}");
            return 2;
        }
    };
    let options = Options {
        threads: arguments.threads.into(),
        bound: match arguments.bound {
            Bounds::Ascent => Bound::Ascent,
            Bounds::Tree => Bound::Tree,
        },
        head_start: !arguments.no_head_start,
        limit: arguments.limit,
        pinned: !arguments.no_pin,
        ..Options::default()
    };
    let spinner = spinner(err_is_terminal);
    let mut watch = |scene: tsp::Scene| {
        let best = scene.best.map_or("none yet".to_owned(), |best| best.to_string());
        let open = scene.made.saturating_sub(scene.done);
        spinner.set_message(format!("{} tours, {open} open, shortest so far {best}", scene.made));
        spinner.tick();
    };
    let search = Search {
        instance: &instance,
        options: &options,
        around: shared.around(),
        watch: &mut watch,
    };
    let outcome = search.run(arguments.structure, arguments.memory);
    spinner.finish_and_clear();
    let run = match outcome {
        Ok(run) => run,
        Err(refused) => {
            let _ = writeln!(err, "{}: {refused}", arguments.file.display());
            return 2;
        }
    };
    let report = Report {
        file: &arguments.file,
        instance: &instance,
        family: arguments.structure,
        memory: arguments.memory,
        options,
        shared: &shared,
        run: &run,
    };
    crate::report::end("tsp", report.write(out), out, err);
    match &run.fault {
        None => 0,
        Some(fault) => {
            let _ = writeln!(
                err,
                "{}: {fault}: either a structure is out of order or the program is wrong; please report it with this command line",
                arguments.file.display()
            );
            1
        }
    }
}

/// Returns a spinner: the length of the run is not known.
fn spinner(shown: bool) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

fn read(path: &Path) -> Result<Instance, Refused> {
    let unreadable = |error| Refused::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, be it endless.
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Refused::TooLarge(path.to_owned()));
    }
    Instance::parse(&bytes).map_err(|error| Refused::Instance(path.to_owned(), error))
}
