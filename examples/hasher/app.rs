//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::cold;
use super::crews::{CREWS, Entry, Refused, Size};
use super::report::Report;
use super::walk::Found;
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

/// Hashes each file at or below a path, and prints how fast: one thread a file, which reads with
/// plain blocking calls.
///
/// The runs to compare differ in the runtime of the threads, --runtime: each reads the same files
/// and hashes them the same way, so only the runtime makes the times differ. Run each twice or
/// more. Without --cold the files are in memory, and the cost of a thread counts. With it they come
/// from the disk, and it counts whether other threads go on while one waits: with `activations` and
/// `kernel` they do, with `tokio` up to --threads; `user` and `rayon` lose a processor for each
/// thread that waits.
///
/// The hash is XXH64: it tells files apart, and is not for security. That of the tree is over all
/// names and hashes in order, so it is the same however the files were shared out, and wherever the
/// tree is. Links below the path are not followed.
#[derive(Debug, Parser)]
#[command(
    name = "hasher",
    version,
    after_help = "In memory, from the disk, and a peer:\n  hasher crates\n  hasher crates --cold\n  hasher crates --cold --runtime tokio\n\nExit code 0: every file was hashed; 1: the same, but something could not be read; 2: the arguments are no good, or the runtime cannot be built."
)]
struct Arguments {
    /// A directory or a file.
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,

    /// The kind of threads.
    #[arg(long, value_name = "NAME", default_value = CREWS[0].name, value_parser = crews())]
    runtime: String,

    /// The number of processors; without it as many as there are.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    processors: Option<u16>,

    /// The most kernel threads, for a runtime that starts more than one a processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,

    /// Asks the kernel first to drop the content of the files from its memory (`posix_fadvise`).
    /// Names and attributes stay there: to drop those needs privilege.
    #[arg(long)]
    cold: bool,

    /// Lists the hash of each file, as `xxhsum -H1` does, and only that.
    #[arg(long)]
    list: bool,
}

fn crews() -> PossibleValuesParser {
    PossibleValuesParser::new(CREWS.map(|crew| PossibleValue::new(crew.name).help(crew.about)))
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let here = || available_parallelism().map_or(1, NonZero::get);
    let processors = arguments.processors.map_or_else(here, usize::from);
    let size = Size { processors, threads: usize::from(arguments.threads) };
    let crew = CREWS.iter().find(|crew| crew.name == arguments.runtime).expect("clap has looked");
    match hash(crew, size, &arguments, out) {
        Ok((found, written)) => {
            for (path, error) in &found.faults {
                let path = arguments.path.join(path);
                let _ = writeln!(err, "hasher: {}: cannot be read: {error}", path.display());
            }
            crate::report::end("hasher", written, out, err);
            u8::from(!found.faults.is_empty())
        }
        Err(refused) => {
            let _ = writeln!(err, "hasher: {}: {refused}", arguments.runtime);
            2
        }
    }
}

fn hash(
    crew: &Entry,
    size: Size,
    arguments: &Arguments,
    out: &mut dyn Write,
) -> Result<(Found, io::Result<()>), Refused> {
    let root = &arguments.path;
    if arguments.cold {
        cold::forget(root)?;
    }
    let began = Instant::now();
    let (found, said) = (crew.run)(size, root)?;
    let elapsed = began.elapsed();
    let report = Report {
        root,
        found: &found,
        runtime: crew.name,
        processors: size.processors,
        said: &said,
        elapsed,
    };
    let written = if arguments.list { report.list(out) } else { report.write(out) };
    Ok((found, written))
}
