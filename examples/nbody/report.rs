//! The report of a run on the terminal.

use super::app::Course;
use super::disk::Miss;
use stanchion_applications::nbody::{Body, ForceError, Options};
use std::io::{self, Write};
use std::path::Path;

/// One strategy of the pool, or another runtime.
pub struct Row {
    /// The name of the runtime or strategy.
    pub name: String,
    /// Its result.
    pub course: Course,
    /// Its metrics.
    pub metrics: String,
}

/// All runs and what belongs to them.
pub struct Report<'a> {
    /// The bodies at the start.
    pub(crate) bodies: &'a [Body],
    /// The options of the simulation.
    pub(crate) options: Options,
    /// The seed of the bodies.
    pub(crate) seed: u64,
    /// The number of threads.
    pub(crate) threads: usize,
    /// The part that fits, and the cost of a miss.
    pub(crate) memory: Option<(u32, Miss)>,
    /// At least one.
    pub(crate) rows: &'a [Row],
    /// The result of one thread alone, if it was asked for.
    pub(crate) alone: Option<&'a Course>,
    /// The error of the forces, if it was asked for.
    pub(crate) error: Option<ForceError>,
    /// The number of frames, and their directory.
    pub(crate) frames: Option<(u64, &'a Path)>,
}

impl Report<'_> {
    /// Writes the lines of the report.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, rows, .. } = self;
        let Some(Row { course, .. }) = rows.first() else { return Ok(()) };
        let (simulation, spent) = (&course.simulation, course.simulation.spent());
        writeln!(
            out,
            "cluster      {} bodies, seed {}; angle {}, softening {}",
            self.bodies.len(),
            self.seed,
            options.theta,
            options.softening,
        )?;
        write!(
            out,
            "run          {} steps of {}, {} threads",
            simulation.steps(),
            options.dt,
            self.threads,
        )?;
        match self.memory {
            None => writeln!(out)?,
            Some((percent, miss)) => writeln!(out, ", {percent} % in memory, a miss is {miss}")?,
        }
        // The start needs forces too.
        let pulls = (simulation.steps() + 1) as f64 * self.bodies.len() as f64;
        writeln!(
            out,
            "end          time {}, {} nodes in the tree, {:.0} pulls on a body in a step",
            simulation.time(),
            simulation.nodes(),
            spent.interactions as f64 / pulls,
        )?;
        writeln!(
            out,
            "energy       {:.6} at the first step, {:.6} at the last: drift {:.1e}",
            course.start.total(),
            course.end.total(),
            course.end.drift(course.start),
        )?;
        if let Some(error) = self.error {
            writeln!(
                out,
                "forces       off by {:.1e} in the mean, by {:.1e} at most, of those by each pair; the energy is then {:.6}",
                error.mean,
                error.largest,
                error.exact.total(),
            )?;
        }
        let alone = self.alone;
        crate::report::write_checksum(out, course.checksum, alone.map(|alone| alone.checksum))?;
        if let Some((frames, directory)) = self.frames {
            writeln!(out, "frames       {frames} in {}", directory.display())?;
        }
        writeln!(out, "\n{:<18} {:>9} {:>9} {:>9}", "runtime", "all s", "trees s", "forces s")?;
        for Row { name, course, metrics } in *rows {
            write_row(out, name, course)?;
            writeln!(out, "   {metrics}")?;
        }
        if let Some(alone) = alone {
            write_row(out, "(no pool)", alone)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, name: &str, course: &Course) -> io::Result<()> {
    let spent = course.simulation.spent();
    write!(
        out,
        "{name:<18} {:>9.3} {:>9.3} {:>9.3}",
        course.seconds,
        spent.tree_ns as f64 / 1e9,
        spent.force_ns as f64 / 1e9,
    )
}
