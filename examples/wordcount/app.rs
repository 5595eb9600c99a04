//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::part::PART;
use super::report::Report;
use super::walk::Search;
use crate::strategies;
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Counts the words in files and in all files below directories, over a pool of threads, and prints
/// the most frequent ones.
///
/// Words are letters and digits that follow each other; case does not matter. Each directory, each
/// file and each MiB of a large file is a task. Links below a directory are not followed, and what
/// is not text in UTF-8 is left out, each with a line that says why.
#[derive(Debug, Parser)]
#[command(
    name = "wordcount",
    version,
    after_help = "Exit code 0: all that is text was counted; 1: the same, but something could not be read; 2: the arguments are no good, or the pool cannot be built."
)]
struct Arguments {
    /// Files and directories.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// The number of the most frequent words that are listed.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Looks also at files and directories with names that begin with a dot.
    #[arg(long)]
    hidden: bool,

    /// Does not tell which files are not text.
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    threads: strategies::Threads,

    /// The way in which the pool manages ready work.
    #[arg(long, value_name = "NAME", default_value = strategies::DEFAULT, value_parser = strategies::values())]
    strategy: String,
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let search = Search { roots: &arguments.paths, hidden: arguments.hidden, part: PART };
    let threads = arguments.threads.number();
    let began = Instant::now();
    let found = match strategies::run(&arguments.strategy, threads, search) {
        Ok(found) => found,
        Err(refused) => {
            let _ = writeln!(err, "wordcount: {refused}");
            return 2;
        }
    };
    let elapsed = began.elapsed();
    for (path, fault) in &found.faults {
        if !(arguments.quiet && fault.is_harmless()) {
            let _ = writeln!(err, "wordcount: {}: {fault}", path.display());
        }
    }
    let report = Report {
        found: &found,
        strategy: &arguments.strategy,
        threads,
        top: arguments.top,
        elapsed,
    };
    crate::report::end("wordcount", report.write(out), out, err);
    u8::from(found.faults.iter().any(|(_, fault)| !fault.is_harmless()))
}
