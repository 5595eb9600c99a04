//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::pool::{Needs, QUEUES, STACKS, Sorting, Structure, values};
use super::report::Report;
use crate::{Level, Memory, bar, locks};
use clap::{Parser, value_parser};
use stanchion_applications::quicksort::{CUTOFF, MAX_THREADS, NUMBERS, Options, numbers};
use std::ffi::OsString;
use std::io::Write;

/// Sorts pseudo-random numbers on several threads, which share a queue or a stack of your choice,
/// and checks them.
///
/// Each thread takes an interval from the structure, cuts it in two around a pivot, and puts the
/// parts back, until they are short. The intervals depend on the numbers and the seed alone, so
/// every structure has the same work.
#[derive(Debug, Parser)]
#[command(
    name = "quicksort",
    version,
    after_help = "Exit code 0: sorted; 1: not sorted; 2: the arguments are no good."
)]
struct Arguments {
    /// The queue that holds the intervals.
    #[arg(long, value_name = "NAME", default_value = QUEUES[0].name, value_parser = values(QUEUES), conflicts_with = "stack")]
    queue: String,

    /// Instead of a queue, the stack that holds them.
    #[arg(long, value_name = "NAME", value_parser = values(STACKS))]
    stack: Option<String>,

    /// The memory of the nodes of a structure without locks.
    #[arg(long, value_name = "NAME", default_value = "counted")]
    memory: Memory,

    /// The lock of a structure with locks.
    #[arg(long, value_name = "NAME", default_value = locks::DEFAULT, value_parser = locks::values())]
    lock: String,

    /// Numbers, at most 268435456.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 500_000, value_parser = value_parser!(u32).range(*NUMBERS.start() as i64..=*NUMBERS.end() as i64))]
    numbers: u32,

    /// Intervals of at most so many numbers are sorted by insertion.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(*CUTOFF.start() as i64..=*CUTOFF.end() as i64))]
    cutoff: u32,

    /// Threads, at most 64. More than there are processors is allowed, and hard on locks.
    #[arg(long, allow_negative_numbers = true, value_name = "T", default_value_t = 2, value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: u16,

    #[command(flatten)]
    level: Level,

    /// Seed of the numbers and of the pivots.
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Leaves the threads to the system. Without it each stays on one processor, and these are
    /// dealt out in turn.
    #[arg(long)]
    no_pin: bool,
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

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, streams: Streams<'_>) -> u8 {
    let Streams { out, err, err_is_terminal } = streams;
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let options = Options {
        numbers: arguments.numbers as usize,
        cutoff: arguments.cutoff as usize,
        threads: arguments.threads.into(),
        seed: arguments.seed,
        pinned: !arguments.no_pin,
        ..Options::default()
    };
    let Arguments { queue, stack, memory, lock, level, .. } = arguments;
    let structure = stack.map_or(Structure::Queue(queue), Structure::Stack);
    let shared = match level.start() {
        Ok(shared) => shared,
        Err(refused) => {
            let _ = writeln!(err, "quicksort: --level: {refused}");
            return 2;
        }
    };
    let bar = bar(err_is_terminal, Some(options.numbers as u64), "numbers");
    let sorting = Sorting {
        options: &options,
        numbers: numbers(options.numbers, options.seed),
        around: shared.around(),
        watch: &mut |sorted| bar.set_position(sorted as u64),
    };
    let outcome = sorting.run(&structure, memory, &lock);
    bar.finish_and_clear();
    let (run, progress) = match outcome {
        Ok(outcome) => outcome,
        Err(refused) => {
            let _ = writeln!(err, "quicksort: {refused}");
            return 2;
        }
    };
    let with = match structure.needs() {
        Needs::Lock => format!("lock {lock}"),
        Needs::Memory => memory.name().to_owned(),
        Needs::Nothing => "no nodes".to_owned(),
    };
    let report = Report {
        structure: &structure,
        with: &with,
        progress,
        options,
        shared: &shared,
        run: &run,
    };
    crate::report::end("quicksort", report.write(out), out, err);
    match &run.fault {
        None => 0,
        Some(fault) => {
            let _ = writeln!(
                err,
                "quicksort: {fault}: either the structure is out of order or the program is wrong; please report it with this command line"
            );
            1
        }
    }
}
