//! What a run looks like on the terminal.

use crate::app::Verdict;
use stanchion_applications::regsim::{Netlist, Options, Run, Waits};
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
            "run          {} cycles, {} threads, lock {}, {} buckets, seed {}",
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
        writeln!(
            out,
            "{:<10} {:>13} {:>11} {:>8} {:>10} {:>10} {:>10} {:>12} {:>10}",
            "waits for",
            "acquisitions",
            "waited",
            "%",
            "mean ns",
            "median <=",
            "99 % <=",
            "longest ns",
            "all ms"
        )?;
        for (name, row) in rows {
            let share = 100.0 * row.contended() as f64 / row.acquisitions().max(1) as f64;
            writeln!(
                out,
                "{name:<10} {:>13} {:>11} {share:>8.3} {:>10.0} {:>10} {:>10} {:>12} {:>10.1}",
                row.acquisitions(),
                row.contended(),
                row.mean_ns(),
                row.quantile_ns(0.5),
                row.quantile_ns(0.99),
                row.max_ns(),
                row.total_ns() as f64 / 1e6,
            )?;
        }
        if self.histogram {
            write_histogram(out, &all)?;
        }
        Ok(())
    }
}

/// The widest bar.
const BAR: u64 = 50;

fn write_histogram(out: &mut dyn Write, waits: &Waits) -> io::Result<()> {
    writeln!(out, "\nwaits for locks, by length")?;
    let most = waits.histogram().map(|(_, count)| count).max().unwrap_or(1);
    for (from, count) in waits.histogram() {
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        writeln!(out, "from {from:>13} ns {count:>11} {bar}")?;
    }
    Ok(())
}
