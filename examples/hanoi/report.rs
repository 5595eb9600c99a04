//! The report of a run on the terminal.

use crate::table;
use stanchion_applications::hanoi::{Disk, Options, Run, Scene};
use std::fmt::Write as _;
use std::io::{self, Write};

/// A run and all that belongs to it.
pub struct Report<'a> {
    /// The name of the lock.
    pub(crate) lock: &'a str,
    /// The options of the run.
    pub(crate) options: Options,
    /// Its result.
    pub(crate) run: &'a Run,
    /// Set if each lock has a line.
    pub(crate) by_lock: bool,
    /// Set if there is a histogram.
    pub(crate) histogram: bool,
}

impl Report<'_> {
    /// Writes the lines of the report.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, run, .. } = self;
        writeln!(
            out,
            "towers       {} disks, {} pegs: {} moves a round, {} of them one after the other",
            options.disks, options.pegs, run.needed, run.chain,
        )?;
        writeln!(
            out,
            "run          {} rounds, {} threads, {}, {} locks, {} ns a move, {} ns a drawing",
            options.rounds,
            options.threads,
            self.lock,
            run.locks.len(),
            options.work_ns,
            options.draw_ns,
        )?;
        write!(out, "moves        {}", run.moves)?;
        match &run.fault {
            None => writeln!(out, ", and all disks on peg {}", run.goal)?,
            Some(fault) => writeln!(out, ", but {fault}")?,
        }
        let seconds = run.elapsed.as_secs_f64();
        writeln!(
            out,
            "elapsed      {seconds:.3} s, {:.2} us a move",
            1e6 * seconds / run.moves.max(1) as f64
        )?;
        let most = run.threads.iter().map(|share| share.moves).max().unwrap_or(0);
        let least = run.threads.iter().map(|share| share.moves).min().unwrap_or(0);
        write!(out, "threads      {least} to {most} moves each")?;
        let mut processors: Vec<usize> =
            run.threads.iter().filter_map(|share| share.processor).collect();
        processors.sort_unstable();
        processors.dedup();
        match processors.len() {
            0 => writeln!(out)?,
            processors => writeln!(out, ", dealt out to {processors} processors")?,
        }
        writeln!(out)?;
        table::write_locks(out, &run.locks, self.by_lock, ("turn", &run.turns), self.histogram)
    }
}

/// The pegs, a line each, from bottom to top.
pub fn picture(scene: &Scene) -> String {
    let mut picture = String::new();
    for (peg, disks) in scene.pegs.iter().enumerate() {
        line(&mut picture, &format!("peg {peg}"), disks);
    }
    line(&mut picture, "held", &scene.held);
    // Writing to a string does not fail.
    let _ = writeln!(picture, "moves  {} of {}", scene.moves, scene.of);
    picture
}

fn line(picture: &mut String, name: &str, disks: &[Disk]) {
    let words: Vec<String> = runs(disks)
        .into_iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
        .collect();
    let _ = writeln!(picture, "{name} | {}", words.join(" "));
}

/// Disks that follow one another, together.
fn runs(disks: &[Disk]) -> Vec<(Disk, Disk)> {
    let mut runs: Vec<(Disk, Disk)> = Vec::new();
    for &disk in disks {
        match runs.last_mut() {
            Some((_, to)) if to.checked_sub(1) == Some(disk) => *to = disk,
            _ => runs.push((disk, disk)),
        }
    }
    runs
}
