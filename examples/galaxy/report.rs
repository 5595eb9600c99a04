//! The report of a run on the terminal.

use crate::{report, table};
use stanchion_applications::galaxy::{Options, Run, sequential};
use std::io::{self, Write};
use std::path::Path;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    /// The name of the lock.
    pub(crate) lock: &'a str,
    /// The options of the run.
    pub(crate) options: Options,
    /// Its result.
    pub(crate) run: &'a Run,
    /// The result of the sequential program, if it was asked for.
    pub(crate) reference: Option<sequential::Outcome>,
    /// The number of frames, and their directory.
    pub(crate) frames: Option<(u64, &'a Path)>,
    /// Set if each lock has a line.
    pub(crate) by_lock: bool,
    /// Set if there is a histogram.
    pub(crate) histogram: bool,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, run, .. } = self;
        writeln!(
            out,
            "galaxies     {} stars, masses 1 and {}, {} steps, seed {}",
            options.stars, options.ratio, run.steps, options.seed,
        )?;
        writeln!(
            out,
            "run          {} threads, {}, {} locks, {} stars at once",
            options.threads,
            self.lock,
            run.locks.len(),
            options.chunk,
        )?;
        writeln!(
            out,
            "end          the centres are {:.2} apart, {} stars are in view",
            run.centres.distance(),
            run.shown,
        )?;
        let reference = self.reference;
        report::write_checksum(out, run.checksum, reference.map(|reference| reference.checksum))?;
        if let Some(fault) = run.fault {
            writeln!(out, "fault        {fault}")?;
        }
        report::write_elapsed(out, run.elapsed, reference.map(|reference| reference.elapsed))?;
        if let Some((frames, directory)) = self.frames {
            writeln!(out, "frames       {frames} in {}", directory.display())?;
        }
        for (who, share) in run.threads.iter().enumerate() {
            let done = format!("{} times {} stars", share.chunks, options.chunk);
            report::write_thread(out, who, &done, share.processor)?;
        }
        writeln!(out)?;
        table::write_locks(out, &run.locks, self.by_lock, ("barrier", &run.barrier), self.histogram)
    }
}
