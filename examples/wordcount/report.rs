//! The report of a run on the terminal.

use super::walk::{Found, Passed};
use std::io::{self, Write};
use std::time::Duration;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    /// The result.
    pub(crate) found: &'a Found,
    /// The name of the strategy.
    pub(crate) strategy: &'a str,
    /// The number of threads.
    pub(crate) threads: usize,
    /// The number of words that are listed.
    pub(crate) top: usize,
    /// The time that the run took.
    pub(crate) elapsed: Duration,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Found { tally, directories, passed, faults, metrics } = self.found;
        writeln!(
            out,
            "counted      {} lines, {} words, {} bytes in {} files and {directories} directories",
            tally.lines, tally.words, tally.bytes, tally.files,
        )?;
        let Passed { hidden, links, special } = passed;
        let harmless = faults.iter().filter(|(_, fault)| fault.is_harmless()).count();
        writeln!(
            out,
            "left out     {harmless} not text, {hidden} hidden, {links} links, {special} that are no files; {} could not be read",
            faults.len() - harmless,
        )?;
        writeln!(out, "run          {}, {} threads: {metrics}", self.strategy, self.threads)?;
        writeln!(out, "elapsed      {:.3} s", self.elapsed.as_secs_f64())?;
        let top = tally.top(self.top);
        if !top.is_empty() {
            writeln!(out, "\n{} of {} different words", top.len(), tally.each.len())?;
        }
        for (word, count) in top {
            writeln!(out, "{count:>12} {word}")?;
        }
        Ok(())
    }
}
