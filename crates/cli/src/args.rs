//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// How each way of waiting for a lock behaves on this computer.
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
    /// Say what this machine is: processors, clock, costs of its primitives, what its kernel allows.
    #[command(after_help = MACHINE_HELP)]
    Machine(MachineOptions),
}

// Paragraphs are single lines: clap breaks them at the width of the terminal.
const STUDY_HELP: &str = "\
Examples:
  stanchion study --list           every experiment, and which are built
  stanchion study                  all that are built: about ten minutes
  stanchion study --quick          the same, coarsely: under 3 minutes
  stanchion study all89 regsim     one paper's, and the circuit
  stanchion study fig4.1 'fig3.*'  by part of an id, or with * and ?

Writes DIR/report.html (one file, no network needed) and DIR/results.json. Ctrl-C once stops after \
the running measurement and writes what is finished; twice stops at once.

Exit codes:
  0    all chosen experiments ran, whatever their verdicts
  1    one failed, or the report could not be written
  2    wrong command line, nothing chosen is built, or DIR or FILE cannot be
       written; nothing was run
  130  interrupted";

const MACHINE_HELP: &str = "\
Takes some seconds. Costs are the least of several runs, in nanoseconds; close other programs first.

Exit codes:
  0  printed
  1  could not be printed
  2  wrong command line";

#[derive(Debug, clap::Args)]
pub(crate) struct StudyOptions {
    /// Which experiments: an id, a part of one, or a pattern with * and ?; all if none is given.
    #[arg(value_name = "FILTER")]
    pub(crate) filters: Vec<String>,

    /// Shorter windows and fewer repeats: all of it in under 3 minutes.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print the experiments (those that match the filters) and stop.
    #[arg(long)]
    pub(crate) list: bool,

    /// Where the report goes; created if it is not there.
    #[arg(long, value_name = "DIR", default_value = "study")]
    pub(crate) out: PathBuf,

    /// Also write the results to this file ("-" is standard output).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Seed of everything random in the experiments.
    #[arg(long, value_name = "N", default_value_t = 1989)]
    pub(crate) seed: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MachineOptions {
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Args::command().debug_assert();
    }
}
