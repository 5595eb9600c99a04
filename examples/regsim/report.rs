//! What a run looks like on the terminal.

use crate::app::Verdict;
use examples::table;
use stanchion_applications::regsim::{Netlist, Options, Run};
use std::io::{self, Write};
use std::path::Path;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    pub(crate) file: &'a Path,
    pub(crate) netlist: &'a Netlist,
    pub(crate) lock: &'a str,
    pub(crate) options: Options,
    pub(crate) run: &'a Run,
    pub(crate) verdict: Verdict,
    pub(crate) histogram: bool,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { netlist, options, run, .. } = self;
        writeln!(
            out,
            "circuit      {}: {} inputs, {} outputs, {} flip-flops, {} gates in {} levels",
            self.file.display(),
            netlist.inputs().count(),
            netlist.outputs().len(),
            netlist.flip_flops().count(),
            netlist.gates().count(),
            netlist.depth(),
        )?;
        writeln!(
            out,
            "run          {} cycles, {} threads, {}, {} buckets, seed {}",
            options.cycles, options.threads, self.lock, options.buckets, options.seed,
        )?;
        write!(out, "checksum     {:016x}", run.checksum)?;
        match self.verdict {
            Verdict::Unchecked => writeln!(out)?,
            Verdict::Same(_) => writeln!(out, ", the same as sequentially")?,
            Verdict::Other(reference) => {
                writeln!(out, ", but {:016x} sequentially", reference.checksum)?;
            }
        }
        write!(out, "elapsed      {:.3} s", run.elapsed.as_secs_f64())?;
        match self.verdict {
            Verdict::Unchecked => writeln!(out)?,
            Verdict::Same(reference) | Verdict::Other(reference) => {
                writeln!(out, ", {:.3} s sequentially", reference.elapsed.as_secs_f64())?;
            }
        }
        writeln!(
            out,
            "work         {} phases, {} gates evaluated, {} objects given away",
            run.phases,
            run.evaluations(),
            run.given,
        )?;
        for (who, share) in run.threads.iter().enumerate() {
            write!(
                out,
                "thread {who:<5} {} gates evaluated, {} objects in the end",
                share.evaluations, share.objects,
            )?;
            match share.processor {
                Some(processor) => writeln!(out, ", on processor {processor}")?,
                None => writeln!(out)?,
            }
        }
        writeln!(out)?;
        self.write_waits(out)
    }

    fn write_waits(&self, out: &mut dyn Write) -> io::Result<()> {
        let waits = &self.run.waits;
        let all = waits.locks();
        let rows = [
            ("objects", &waits.objects),
            ("lists", &waits.lists),
            ("phase", &waits.phase),
            ("all locks", &all),
            ("barrier", &waits.barrier),
        ];
        table::write_waits(out, &rows)?;
        if self.histogram {
            table::write_histogram(out, &all)?;
        }
        Ok(())
    }
}
