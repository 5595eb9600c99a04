//! What a run looks like on the terminal.

use examples::table;
use stanchion_applications::galaxy::{Options, Run, sequential};
use std::io::{self, Write};
use std::path::Path;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    pub(crate) lock: &'a str,
    pub(crate) options: Options,
    pub(crate) run: &'a Run,
    pub(crate) reference: Option<sequential::Outcome>,
    pub(crate) frames: Option<(u64, &'a Path)>,
    pub(crate) by_lock: bool,
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
        write!(out, "checksum     {:016x}", run.checksum)?;
        match self.reference {
            None => writeln!(out)?,
            Some(reference) if reference.checksum == run.checksum => {
                writeln!(out, ", the same as sequentially")?;
            }
            Some(reference) => writeln!(out, ", but {:016x} sequentially", reference.checksum)?,
        }
        if let Some(fault) = run.fault {
            writeln!(out, "fault        {fault}")?;
        }
        write!(out, "elapsed      {:.3} s", run.elapsed.as_secs_f64())?;
        match self.reference {
            None => writeln!(out)?,
            Some(reference) => {
                writeln!(out, ", {:.3} s sequentially", reference.elapsed.as_secs_f64())?;
            }
        }
        if let Some((frames, directory)) = self.frames {
            writeln!(out, "frames       {frames} in {}", directory.display())?;
        }
        for (who, share) in run.threads.iter().enumerate() {
            write!(out, "thread {who:<5} {} times {} stars", share.chunks, options.chunk)?;
            match share.processor {
                Some(processor) => writeln!(out, ", on processor {processor}")?,
                None => writeln!(out)?,
            }
        }
        writeln!(out)?;
        table::write_locks(out, &run.locks, self.by_lock, ("barrier", &run.barrier), self.histogram)
    }
}
