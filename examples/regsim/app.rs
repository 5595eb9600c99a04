//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::report;
use crate::{Choice, Program, at_least_one};
use clap::{Parser, value_parser};
use lock_api::RawMutex;
use stanchion_applications::regsim::{
    self, MAX_THREADS, Netlist, Options, ParseError, Run, sequential,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file read. s38417, the largest ISCAS'89 circuit but one, has half a megabyte.
const MAX_FILE: u64 = 256 << 20;

/// Simulates a sequential logic circuit on several threads, with locks of your choice, and says how
/// long they waited.
///
/// Reads an ISCAS'89 `.bench` netlist and gives it pseudo-random inputs. Gates are evaluated in
/// parallel until their values settle, then the flip-flops are clocked. The checksum is over all
/// outputs of all cycles; it depends on the circuit, --cycles and --seed, and on nothing else.
#[derive(Debug, Parser)]
#[command(
    name = "regsim",
    version,
    after_help = "Exit code 0: done; 1: --check found another checksum; 2: the arguments or a file are no good."
)]
struct Arguments {
    /// The netlist, an ISCAS'89 .bench file.
    file: PathBuf,

    /// Cycles of the circuit's clock.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1_000, value_parser = at_least_one)]
    cycles: u64,

    /// Threads, at most 64. More than there are processors is allowed, and hard on strict locks.
    #[arg(long, allow_negative_numbers = true, value_name = "T", default_value_t = 2, value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: u16,

    #[command(flatten)]
    lock: Choice,

    /// Seed of the pseudo-random inputs.
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Locks over which the objects are spread: the fewer, the more contention.
    #[arg(long, allow_negative_numbers = true, value_name = "B", default_value_t = 64, value_parser = value_parser!(u32).range(1..=65_536))]
    buckets: u32,

    /// Leaves the threads to the system. Without it each stays on a processor of its own, if there
    /// are enough.
    #[arg(long)]
    no_pin: bool,

    /// Compares the checksum with that of the sequential simulator.
    #[arg(long)]
    check: bool,

    /// Prints how many waits took how long.
    #[arg(long)]
    histogram: bool,
}

/// Why there is no run to report.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{}:{}: {}", .0.display(), .1.line, .1.reason)]
    Netlist(PathBuf, ParseError),
    #[error("{}: cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    #[error("{}: has more than {} MiB: is this a .bench netlist?", .0.display(), MAX_FILE >> 20)]
    TooLarge(PathBuf),
}

/// The value of the checksum of the parallel run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not asked for.
    Unchecked,
    /// The same as the sequential one.
    Same(sequential::Outcome),
    /// Another one.
    Other(sequential::Outcome),
}

impl Verdict {
    /// Compares a run with the sequential one.
    pub fn of(run: &Run, reference: sequential::Outcome) -> Self {
        if run.checksum == reference.checksum {
            Self::Same(reference)
        } else {
            Self::Other(reference)
        }
    }

    /// Returns the result of the sequential run, if there was one.
    pub fn reference(self) -> Option<sequential::Outcome> {
        match self {
            Self::Unchecked => None,
            Self::Same(reference) | Self::Other(reference) => Some(reference),
        }
    }

    /// Returns the exit code of the program.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Unchecked | Self::Same(_) => 0,
            Self::Other(_) => 1,
        }
    }
}

struct Simulate<'a> {
    /// The circuit.
    netlist: &'a Netlist,
    /// The options of the run.
    options: &'a Options,
}

impl Program for Simulate<'_> {
    type Outcome = Run;

    fn run<L: RawMutex + Send + Sync + 'static>(self, make: &dyn Fn(&str) -> L) -> Run {
        regsim::run_with(self.netlist, self.options, make)
    }
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let netlist = match read(&arguments.file) {
        Ok(netlist) => netlist,
        Err(refused) => {
            let _ = writeln!(err, "{refused}");
            return 2;
        }
    };
    let options = Options {
        cycles: arguments.cycles,
        threads: arguments.threads.into(),
        seed: arguments.seed,
        buckets: arguments.buckets as usize,
        pinned: !arguments.no_pin,
        ..Options::default()
    };
    let locks = match arguments.lock.open() {
        Ok(locks) => locks,
        Err(refused) => {
            let _ = writeln!(err, "{refused}");
            return 2;
        }
    };
    let run = locks.run(Simulate { netlist: &netlist, options: &options });
    let verdict = if arguments.check {
        Verdict::of(&run, sequential::run(&netlist, options.cycles, options.seed))
    } else {
        Verdict::Unchecked
    };
    let report = report::Report {
        file: &arguments.file,
        netlist: &netlist,
        lock: &arguments.lock.to_string(),
        options,
        run: &run,
        verdict,
        histogram: arguments.histogram,
    };
    crate::report::end("regsim", report.write(out), out, err);
    let finished = locks.finish(out);
    if let Err(refused) = &finished {
        let _ = writeln!(err, "{refused}");
    }
    if let Verdict::Other(reference) = verdict {
        let _ = writeln!(err, "{}", mismatch(&report, reference));
    }
    match verdict.exit_code() {
        0 if finished.is_err() => 2,
        code => code,
    }
}

/// Returns the message for checksums that differ.
pub fn mismatch(report: &report::Report<'_>, reference: sequential::Outcome) -> String {
    format!(
        "{}: checksum {:016x} with {} on {} threads, but {:016x} sequentially: \
         either the lock does not exclude or the simulator is wrong; please report it with this command line",
        report.file.display(),
        report.run.checksum,
        report.lock,
        report.options.threads,
        reference.checksum,
    )
}

fn read(path: &Path) -> Result<Netlist, Refused> {
    let unreadable = |error| Refused::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, be it endless.
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Refused::TooLarge(path.to_owned()));
    }
    Netlist::parse(&bytes).map_err(|error| Refused::Netlist(path.to_owned(), error))
}
