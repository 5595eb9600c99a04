//! The report of a run on the terminal.

use super::app::Verdict;
use crate::{report, table};
use stanchion_applications::regsim::{Netlist, Options, Run};
use std::io::{self, Write};
use std::path::Path;

/// A run and all that belongs to it.
pub struct Report<'a> {
    /// The file of the circuit.
    pub file: &'a Path,
    /// The circuit.
    pub netlist: &'a Netlist,
    /// The name of the lock.
    pub lock: &'a str,
    /// The options of the run.
    pub options: Options,
    /// The result.
    pub run: &'a Run,
    /// The value of the checksum.
    pub verdict: Verdict,
    /// Set if there is a histogram.
    pub histogram: bool,
}

impl Report<'_> {
    /// Writes the lines of the report.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
        let reference = self.verdict.reference();
        report::write_checksum(out, run.checksum, reference.map(|reference| reference.checksum))?;
        report::write_elapsed(out, run.elapsed, reference.map(|reference| reference.elapsed))?;
        writeln!(
            out,
            "work         {} phases, {} gates evaluated, {} objects given away",
            run.phases,
            run.evaluations(),
            run.given,
        )?;
        for (who, share) in run.threads.iter().enumerate() {
            let done = format!(
                "{} gates evaluated, {} objects in the end",
                share.evaluations, share.objects,
            );
            report::write_thread(out, who, &done, share.processor)?;
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
