//! The command line.

mod record;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use record::{LockPolicy, RecordOptions, StallsOptions, Switches};
use record::{RECORD_HELP, STALLS_HELP};

use crate::times::{simulate_quick, study_run};

/// Shows how each way of waiting for a lock behaves on this computer.
#[derive(Debug, Parser)]
#[command(name = "stanchion", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the papers' experiments here and write one report with pictures.
    #[command(after_help = STUDY_HELP)]
    Study(StudyOptions),
    /// Say what this machine is: processors, clock, costs of its primitives, what its kernel
    /// allows.
    #[command(after_help = MACHINE_HELP)]
    Machine(MachineOptions),
    /// Take every lock on this computer and on a simulated one with the times measured here, and
    /// compare.
    #[command(after_help = CALIBRATE_HELP)]
    Calibrate(CalibrateOptions),
    /// Say which mutex suits a program, from the waits that were recorded in it.
    #[command(after_help = ADVISE_HELP)]
    Advise(AdviseOptions),
    /// Run a program and record how long its threads wait: for pthread mutexes, and in the locks of
    /// Rust.
    #[command(after_help = RECORD_HELP)]
    Record(RecordOptions),
    /// Say where each thread of a program waits now that runs under `record`, and since when.
    #[command(after_help = STALLS_HELP)]
    Stalls(StallsOptions),
    /// Write the page of a study again from its results, or the page of a recording: where a
    /// program's threads waited.
    #[command(after_help = REPORT_HELP)]
    Report(ReportOptions),
    /// Say what is safe on several computers, from files that `study --share` wrote on them.
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareOptions),
    /// Write the packages with which a program over `lock_api`, parking_lot or dashmap names
    /// possible deadlocks, and print how to use them.
    #[command(after_help = PATCH_HELP)]
    Patch(PatchOptions),
    /// Compute on a processor until standard input ends: the company of some of `regret`'s cells.
    #[command(hide = true)]
    Hog {
        /// The number of the processor.
        processor: usize,
    },
    /// Run a program that stands in for one of a paper, to be recorded by `klmo91/fig1` or `fig2`.
    #[command(hide = true)]
    StandIn {
        /// The program.
        #[arg(value_parser = stanchion_paper_klmo91::stand_in::NAMES)]
        name: String,
        /// The amount of its input.
        amount: u32,
    },
}

// Paragraphs are single lines: clap breaks them at the width of the terminal.
const STUDY_HELP: &str = concat!(
    "\
Examples:
  stanchion study --list           every experiment by paper, and its time
  stanchion study                  all that are built: about 20 minutes
  stanchion study --quick          the same, coarsely: ",
    study_run!(),
    "
  stanchion study all89 regsim     one paper's, and the circuit
  stanchion study fig4.1 'fig3.*'  by part of an id, or with * and ?
  stanchion study --machine simulated
                                   on the papers' machines in virtual time: the same figures on every computer;
                                   with --quick ",
    simulate_quick!(),
    "
  stanchion study fig4.1 --machine modern-2s
                                   on a simulated server of 128 processors
  stanchion study table4 --machine simulated --counterfactuals
                                   what an experiment that differs finds with a piece that its model lacks
  stanchion study regret           which mutex is never far from the best: ten minutes
  stanchion study regret --full    the same over the whole grid: an hour
  stanchion study regret --cells 8t-hogs,phases --contestants ours,parking_lot --rounds 3
  stanchion study regret --random 60 --family locks
                                   60 random cells of mutexes: half an hour at most; with --quick
                                   five minutes; families: locks, rwlocks, spinlocks,
                                   barriers, bounded-queues, unbounded-queues, stacks, heaps,
                                   counters, pools
  stanchion study --share mine.json
                                   a file for `stanchion compare`: from what DIR has of this computer, without \
measuring; if it has nothing, the whole study runs first
  stanchion study regret --random 60 --share mine.json
                                   measure what is named, then share all that DIR has
  stanchion study --quick --resume go on with this study where it was interrupted

The file of --share has processor, counts, kernel, size class of the memory, and of each family's random grid the seed, the version and every figure; \
no name of a computer or a file, no time, nothing of a recording. Its whole content is printed first. A random number says which files are of one \
computer: it is made once and kept in DIR/share-number.txt, which may be deleted.

Writes DIR/report.html (one file, no network needed) and DIR/results.json, or DIR/simulated.json for simulated machines; the report shows what \
either of them has of the chosen experiments, side by side. Ctrl-C once stops after \
the running measurement and writes what is finished; twice stops at once. --resume goes on: it keeps the experiments that ran, and runs the rest. \
Version, options, seed and computer must be the same. If nothing is left, it says so and ends with 0.

Exit codes:
  0    all chosen experiments ran, whatever their verdicts
  1    one failed, or the report could not be written
  2    wrong command line, nothing chosen is built or runs on MACHINE, DIR
       or FILE cannot be written, or DIR has no study that --resume can go on with;
       nothing was run
  130  interrupted; --resume goes on"
);

/// Expands to a sentence on the figures of the default's policy, and on what they leave out.
macro_rules! lacks {
    () => {
        "`Adaptive`, the policy of the default mutex, is computed by running its own code, with the processors of this computer, on waits drawn from \
         those of each lock; a recording lacks the order of the waits, whether the lock's holder ran, which of the other waiters spun, and how often \
         a woken thread found the lock taken again."
    };
}
pub(crate) use lacks;

const ADVISE_HELP: &str = concat!(
    "\
Examples:
  stanchion advise --demo                records a small program with three locks first
  stanchion advise waits.json            one recording
  stanchion advise monday.json friday.json --thresholds thresholds.json
                                         the waits of both; the best threshold of each lock

A recording is made by `stanchion record`, or by a program with mutexes of the policy `waits::Recorder` of \
stanchion-competitive: `waits::snapshot().to_json()`.

Prints for each lock what each policy would have cost on its waits, in multiples of the cost of a policy that knows \
them beforehand (table 1 of Karlin, Li, Manasse and Owicki, 1991), with C as it was measured, half and 2.5 times \
that; which policy is best; and whether the paper's claims hold. C is the cost of blocking: from a release to the \
running of the thread that it woke. A lock with fewer than 100 waits gets no advice.

",
    lacks!(),
    "

The last lines say what to change: for a program in Rust the line of code of each lock, for another program the \
command to try; or \"no change\", if no policy would have cost less by more than 5 %.

With --demo the default mutex is also measured, in a second run, and its cost stands beside the computed one.

Writes DIR/report.html (one file, no network needed), a picture of the waits for each lock as \
DIR/waits-NN-NAME.svg, and DIR/waits.json with --demo. Locks of one name in several files are one lock, if the \
files are of one program.

Exit codes:
  0  advised, or there was nothing to advise on
  1  a result that is proven was not found, or the report could not be written
  2  wrong command line, a FILE cannot be read or is no recording (its line is
     named), or DIR cannot be written"
);

const MACHINE_HELP: &str = "\
Takes some seconds. Costs are the least of several runs, in nanoseconds; close other programs first.

FILE is then a machine for `stanchion study --machine FILE`. Of two sockets it knows nothing: what is measured lies between the first two processors.

Exit codes:
  0  printed
  1  could not be printed
  2  wrong command line";

const CALIBRATE_HELP: &str = "\
Examples:
  stanchion calibrate              every lock and policy: some minutes
  stanchion calibrate Ticket Mcs   those with one of these in their names
  stanchion calibrate --machine modern
                                   against the description that is built in
  stanchion calibrate --papers     what the papers' machines took, and what the simulated ones take

Prints what one lock and unlock takes one thread alone, and what each takes when two threads on two processors take the lock in turn as fast as it \
goes: here, simulated, and their ratio. A ratio beyond 30 % is marked; `stanchion_simulator::machines` says why there are some.

Close other programs first. Runs in which one of the threads lost its processor are not counted, so a busy computer only makes it slow; what a busy \
computer does to locks that sleep cannot be told from the lock.

Exit codes:
  0  compared, whatever came out
  1  the simulation failed, or this computer could not be measured
  2  wrong command line, or FILE describes no machine";

const REPORT_HELP: &str = "\
Examples:
  stanchion report                       study/results.json again, as study/report.html
  stanchion report server.json --output server
                                         what another computer has measured
  stanchion report waits.json            where the threads of a recorded program waited, as waits/report.html
  stanchion report waits.json --anonymous --folded stacks.txt
  stanchion report waits.json --perfetto trace.json
                                         also the single waits, for ui.perfetto.dev: an arrow leads from a thread to the wait that it ended
  stanchion report orders.txt            the orders in which locks were taken, with possible deadlocks in red, as orders/report.html
  stanchion report waits.json orders.txt both on one page

orders.txt is what a program with recorded locks has appended to the file of STANCHION_ORDERS: see `stanchion patch --help`.

Shows beside a study's results what DIR has of simulated machines.

Exit codes:
  0  written
  1  the page could not be written
  2  wrong command line, a FILE is cut, of another version, or none of these, two FILEs are not a recording and
     orders of locks, or DIR cannot be written";

const COMPARE_HELP: &str = "\
Examples:
  stanchion study --share mine.json      on each computer
  stanchion compare mine.json server.json
  stanchion compare --judge seed-11.json seed-12.json
                                         how right the answers of this computer are: each is
                                         chosen with one seed and judged with another

Prints for each family of random cells what to use on each computer, and which contestant is safe on all: the one with the smallest worst regret, over \
as many cells of each computer as the one with the fewest has. DIR/report.html has the same with all regrets; it does not name the files.

Files with the same random number are of one computer and count once. Files with equal processor, count and kernel are perhaps of one, and count once \
unless --distinct is given. The file with the most cells counts.

Exit codes:
  0  compared
  1  the page could not be written
  2  wrong command line, a FILE is cut, of another version or not from --share (its
     line is named), files are of different distributions, DIR cannot be written, or
     --judge gets other than two files of one computer and of different seeds";

const PATCH_HELP: &str = "\
Examples:
  stanchion patch recorded-locks   writes the packages, and prints the lines for Cargo.toml
  stanchion patch --check          says whether the program here is built with them

DIR must be missing, empty, or have an earlier copy, each file of which is replaced. The lines are for the versions of lock_api and parking_lot_core in the nearest \
Cargo.lock. Built with them, a program records while STANCHION_ORDERS=FILE is set.

Exit codes:
  0  written; with --check: each lock_api and parking_lot_core comes from a folder
  1  a file could not be written; with --check: one of them does not come from a folder, or there is none
  2  wrong command line, DIR has other files, or a Cargo.lock that cannot be read";

#[derive(Debug, clap::Args)]
pub(crate) struct StudyOptions {
    /// Which experiments: an id, a part of one, or a pattern with * and ?; all if none is given.
    #[arg(value_name = "FILTER")]
    pub(crate) filters: Vec<String>,

    // The time is a measured one, so this is no doc comment.
    #[arg(long, help = concat!("Shorter windows and fewer repeats: all of it in ", study_run!()))]
    pub(crate) quick: bool,

    /// Take regret's whole grid of 102 cells in five rounds: about an hour.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) full: bool,

    /// Run them on this computer (`real`), on the machines of their papers in virtual time
    /// (`simulated`), or all on one simulated machine, by name or by the FILE.json that describes
    /// it.
    #[arg(long, value_name = "MACHINE", default_value = "real")]
    pub(crate) machine: String,

    /// Print the experiments (those that match the filters) and stop.
    #[arg(long)]
    pub(crate) list: bool,

    /// Where the report goes; created if it is not there.
    #[arg(long, alias = "out", value_name = "DIR", default_value = "study")]
    pub(crate) output: PathBuf,

    /// Also write the results to this file ("-" is standard output).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    /// Write the figures of this computer's random grids to this file, for `stanchion compare`.
    /// Measures only if DIR has none, or if experiments are named.
    pub(crate) share: Option<PathBuf>,

    #[arg(long, conflicts_with = "list")]
    /// Go on with the interrupted study in DIR. Give the same filters, options and seed as then.
    pub(crate) resume: bool,

    /// Also write the timelines of simulated runs to DIR, for Perfetto (ui.perfetto.dev) or
    /// chrome://tracing.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Run only the simulated experiments of which a missing piece of the model is known. If one
    /// differs from the paper, run it also with that piece, at each size that the sources leave
    /// open.
    #[arg(long)]
    pub(crate) counterfactuals: bool,

    /// Seed of everything random in the experiments.
    #[arg(long, value_name = "N", default_value_t = 1989)]
    pub(crate) seed: u64,

    /// Also judge the waits recorded in this file in klmo91/table1 and klmo91/table2; may be given
    /// more than once.
    #[arg(long, value_name = "FILE")]
    pub(crate) waits: Vec<PathBuf>,

    /// Only these cells of the whole grid, by tokens of their names: 8t-hogs, 2t-1us-4x-quiet,
    /// phases.
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', help_heading = REGRET)]
    pub(crate) cells: Vec<String>,

    /// Only these contestants, by name or a part of it; also `ours` and `peers`.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = REGRET)]
    pub(crate) contestants: Vec<String>,

    /// The number of runs of each contestant in each cell; the figures are medians.
    #[arg(long, value_name = "N", help_heading = REGRET,
        value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) rounds: Option<u8>,

    /// The time for which acquisitions are counted in each run; without it as long as fits.
    #[arg(long, value_name = "N", help_heading = REGRET,
        value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) window_ms: Option<u64>,

    /// Enter our adaptive policies with other steps and limits as well; with --random, all our
    /// other policies too.
    #[arg(long, help_heading = REGRET)]
    pub(crate) sweep: bool,

    #[arg(long, value_name = "N", help_heading = REGRET, conflicts_with_all = ["cells", "full"],
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    /// Draw N cells at random from --seed, in place of the named ones. Each takes 12 to 30 seconds,
    /// so 60 take half an hour at most; with --quick 2 to 5 seconds.
    pub(crate) random: Option<u32>,

    #[arg(long, value_name = "FAMILY", help_heading = REGRET, requires = "random")]
    /// Draw the cells of --random for this family; `locks` if none is named.
    pub(crate) family: Option<String>,

    #[arg(long, value_name = "CELL", help_heading = REGRET,
        conflicts_with_all = ["random", "cells", "full"])]
    /// Measure one cell of --random again, by its name: FAMILY:SEED:INDEX, as in locks:1989:17.
    pub(crate) replay: Option<String>,
}

const REGRET: &str = "Options of the experiment `regret`";

impl StudyOptions {
    /// The first option given that only simulated machines have a use for.
    pub(crate) fn only_for_simulated(&self) -> Option<&'static str> {
        let given = [(self.trace, "--trace"), (self.counterfactuals, "--counterfactuals")];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }

    /// The first option given that only `regret` knows.
    pub(crate) fn only_for_regret(&self) -> Option<&'static str> {
        let given = [
            (self.full, "--full"),
            (!self.cells.is_empty(), "--cells"),
            (!self.contestants.is_empty(), "--contestants"),
            (self.rounds.is_some(), "--rounds"),
            (self.window_ms.is_some(), "--window-ms"),
            (self.sweep, "--sweep"),
            (self.random.is_some(), "--random"),
            (self.replay.is_some(), "--replay"),
        ];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportOptions {
    #[arg(value_name = "FILE", default_value = "study/results.json", num_args = 1..=2)]
    /// The results of a study (`results.json` or `simulated.json`, or what its --json wrote), a
    /// recording of `stanchion record`, or a file of STANCHION_ORDERS. Of the last two both may be
    /// given, for one page.
    pub(crate) files: Vec<PathBuf>,

    #[arg(long, alias = "out", value_name = "DIR")]
    /// Where the page goes; created if it is not there [default: study, waits for a recording, or
    /// orders for orders of locks alone].
    pub(crate) output: Option<PathBuf>,

    #[arg(long)]
    /// For a recording and orders of locks: leave out the names of the program, of its files and of
    /// its functions.
    pub(crate) anonymous: bool,

    #[arg(long, value_name = "FILE")]
    /// For a recording: also write folded stacks, which tools for flame graphs read.
    pub(crate) folded: Option<PathBuf>,

    #[arg(long, value_name = "FILE")]
    /// For a recording with single waits: also write a trace of them, which ui.perfetto.dev and
    /// chrome://tracing show.
    pub(crate) perfetto: Option<PathBuf>,
}

impl ReportOptions {
    /// The first option given that only a recording of waits has a use for.
    pub(crate) fn only_for_waits(&self) -> Option<&'static str> {
        let given = [(&self.folded, "--folded"), (&self.perfetto, "--perfetto")];
        given.into_iter().find_map(|(given, option)| given.is_some().then_some(option))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompareOptions {
    #[arg(value_name = "FILE", required = true)]
    /// Files that `stanchion study --share` wrote.
    pub(crate) files: Vec<PathBuf>,

    #[arg(long)]
    /// Count computers that look the same as different ones.
    pub(crate) distinct: bool,

    #[arg(long, conflicts_with = "distinct")]
    /// Judge the answers of the first of two files by the cells of the second, and the other way
    /// round. Writes no page.
    pub(crate) judge: bool,

    #[arg(long, alias = "out", value_name = "DIR", default_value = "comparison")]
    /// Where the page goes; created if it is not there.
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PatchOptions {
    /// Where the packages go; created if it is not there.
    #[arg(value_name = "DIR", required_unless_present = "check")]
    pub(crate) folder: Option<PathBuf>,

    /// Write nothing, and say from the Cargo.lock whether the patches are used.
    #[arg(long, conflicts_with = "folder")]
    pub(crate) check: bool,

    /// The Cargo.toml of the program [default: that of the current folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AdviseOptions {
    /// Recordings of waits.
    #[arg(value_name = "FILE", required_unless_present = "demo", conflicts_with = "demo")]
    pub(crate) files: Vec<PathBuf>,

    /// Record a small program with three locks for two seconds, advise on that, and measure it for
    /// two more with the default mutex.
    #[arg(long)]
    pub(crate) demo: bool,

    /// Write the best threshold of each lock to this file, for the policy `OptimalOnline`.
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,

    /// Where the report goes; created if it is not there.
    #[arg(long, alias = "out", value_name = "DIR", default_value = "advice")]
    pub(crate) output: PathBuf,

    /// Take C, the cost of blocking, to be this, in place of what was measured.
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) cost_ns: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MachineOptions {
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write this computer's description as a machine to simulate.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CalibrateOptions {
    /// Only locks and policies with one of these in their names.
    #[arg(value_name = "NAME")]
    pub(crate) filters: Vec<String>,

    /// Simulate this machine, by name or by the FILE.json that describes it, in place of one with
    /// the times measured now.
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,

    /// The number of undisturbed runs of two threads of which each figure is the median.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,

    /// Print in place of that the absolute figures that the papers state, beside those of the
    /// simulated machines.
    #[arg(long, conflicts_with_all = ["filters", "machine", "runs"])]
    pub(crate) papers: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Args::command().debug_assert();
    }
}
