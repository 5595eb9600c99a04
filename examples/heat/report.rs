//! The report of a run on the terminal.

use super::plate::{Plate, Warm};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// One gang.
pub struct Row {
    /// The task.
    pub plate: Plate,
    /// The plate in the end.
    pub warm: Warm,
    /// From the start of the first gang to the end of this one.
    pub elapsed: Duration,
}

/// All gangs and what belongs to them.
pub struct Report<'a> {
    /// The way in which the gangs took turns.
    pub(crate) how: &'a str,
    /// The plates of the gangs.
    pub(crate) rows: &'a [Row],
    /// The same plates on one thread, or nothing.
    pub(crate) alone: &'a [Warm],
    /// The metrics of the gangs, if they were asked for.
    pub(crate) metrics: Option<&'a str>,
    /// The file of the picture, if there is one.
    pub(crate) picture: Option<&'a Path>,
}

impl Report<'_> {
    /// Writes the lines of the report.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(Row { plate, .. }) = self.rows.first() else { return Ok(()) };
        writeln!(out, "plate        {0} x {0} cells, {1} steps", plate.side, plate.steps)?;
        writeln!(out, "members      {}", self.how)?;
        for (number, Row { plate, warm, elapsed }) in self.rows.iter().enumerate() {
            writeln!(
                out,
                "gang {number:<7} {:.3} s, {:.2} us a step; last change {:.1e}",
                elapsed.as_secs_f64(),
                elapsed.as_secs_f64() * 1e6 / plate.steps as f64,
                warm.change
            )?;
            let alone = self.alone.get(number).map(Warm::checksum);
            crate::report::write_checksum(out, warm.checksum(), alone)?;
        }
        if let Some(metrics) = self.metrics {
            writeln!(out, "executor     {metrics}")?;
        }
        if let Some(picture) = self.picture {
            writeln!(out, "picture      {}", picture.display())?;
        }
        Ok(())
    }
}
