//! What a run looks like on the terminal.

use crate::walk::{Found, Passed};
use std::io::{self, Write};
use std::time::Duration;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    pub(crate) found: &'a Found,
    pub(crate) strategy: &'a str,
    pub(crate) threads: usize,
    /// How many words are listed.
    pub(crate) top: usize,
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
