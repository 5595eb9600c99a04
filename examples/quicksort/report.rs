//! The report of a run on the terminal.

use super::pool::Structure;
use crate::level::Shared;
use crate::report::write_thread;
use stanchion_applications::quicksort::{Options, Run};
use stanchion_lockfree::Progress;
use std::io::{self, Write};

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    /// The structure that was chosen.
    pub(crate) structure: &'a Structure,
    /// Its lock or its memory.
    pub(crate) with: &'a str,
    /// The promise of the structure.
    pub(crate) progress: Progress,
    /// The options of the run.
    pub(crate) options: Options,
    /// The other applications, and the processor time of the threads.
    pub(crate) shared: &'a Shared,
    /// The result.
    pub(crate) run: &'a Run,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, run, .. } = self;
        writeln!(
            out,
            "numbers      {}, seed {}; insertion sort from {} down",
            options.numbers, options.seed, options.cutoff,
        )?;
        let (kind, name) = match self.structure {
            Structure::Queue(name) => ("queue", name),
            Structure::Stack(name) => ("stack", name),
        };
        let promise = if self.progress.is_non_blocking() { "non-blocking" } else { "blocking" };
        writeln!(
            out,
            "run          {kind} {name} ({promise}, {}), {} threads, level {}",
            self.with,
            options.threads,
            self.shared.level(),
        )?;
        match &run.fault {
            None => writeln!(out, "sorted       all, each once")?,
            Some(fault) => writeln!(out, "sorted       no: {fault}")?,
        }
        let kept: u64 = run.threads.iter().map(|share| share.kept).sum();
        write!(out, "intervals    {} through the {kind}", run.intervals())?;
        match kept {
            0 => writeln!(out)?,
            kept => writeln!(out, ", {kept} for which it had no room")?,
        }
        writeln!(out, "elapsed      {:.4} s", run.elapsed.as_secs_f64())?;
        for (who, share) in run.threads.iter().enumerate() {
            let done = format!("{} intervals, {} numbers", share.intervals, share.sorted);
            write_thread(out, who, &done, share.processor)?;
        }
        self.shared.write(out)
    }
}
