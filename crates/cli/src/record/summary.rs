//! The summary at the end. It goes to standard error, because standard output is the program's.

use std::path::Path;

use stanchion_competitive::waits::Recording;
use stanchion_competitive::waits::shared::Gathered;

use super::run::Ended;
use stanchion_study::command::stanchion;
use stanchion_study::output::Output;
use stanchion_study::units::{count, grouped};

/// Why there is nothing to write, if there is nothing.
pub(super) fn nothing(gathered: &Gathered, program: &Path) -> Option<String> {
    let program = program.display();
    if gathered.processes == 0 {
        Some(format!(
            "the shim was not loaded into {program}; has it file capabilities, or does it or a wrapper clear the environment?"
        ))
    } else if gathered.lockers == 0 {
        Some(format!(
            "{program} took no pthread mutex. Programs in Rust and Go, and those that use GLib's locks, have locks of their own, which the shim does not see; \
             `stanchion_competitive::waits` records them from within"
        ))
    } else if gathered.locks.is_empty() && gathered.nameless == 0 {
        Some(format!(
            "{program} took pthread mutexes and never had to wait for one. Give it more threads or more work"
        ))
    } else {
        None
    }
}

fn processes(number: u64) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{} processes", grouped(number)) }
}

/// The busiest locks, and where the rest is.
pub(super) fn print(recording: &Recording, gathered: &Gathered, output: &Path, ended: Ended) {
    const SHOWN: usize = 12;
    let all = recording.all();
    let line = |text: std::fmt::Arguments<'_>| Output::Stderr.line(text);
    if let Some(signal) = ended.signal() {
        line(format_args!("stanchion: {} was ended by signal {signal}", recording.program));
    }
    line(format_args!(
        "stanchion: {} {} for {} of {}, in {}; {} blocked",
        grouped(all.count()),
        if all.count() == 1 { "wait" } else { "waits" },
        count(recording.locks.len(), "lock"),
        recording.program,
        processes(gathered.lockers),
        grouped(all.blocked()),
    ));
    let mut busiest = recording.clone();
    busiest.locks.sort_by_key(|lock| std::cmp::Reverse(lock.1.total_ns()));
    let more = busiest.locks.len().saturating_sub(SHOWN);
    busiest.locks.truncate(SHOWN);
    for text in busiest.table().lines() {
        line(format_args!("{text}"));
    }
    if more > 0 {
        line(format_args!("and {more} more"));
    }
    line(format_args!(
        "written to {output}; `{stanchion} advise {output}` says what each policy would have cost",
        output = output.display(),
        stanchion = stanchion()
    ));
}
