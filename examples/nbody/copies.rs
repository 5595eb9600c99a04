//! `--copies`: several processes of this program at once, as in table V of the paper, each timed by
//! itself.
//!
//! A copy is started with the same arguments and `--copy` instead of `--copies N`, and prints a
//! line for each row: its name, the seconds and the checksum. The speed-up of a row is how long the
//! program takes on one thread alone, divided by the mean of its copies' times.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// A row of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name of the copy.
    pub name: String,
    /// The time that it took.
    pub seconds: f64,
    /// The checksum of its positions.
    pub checksum: u64,
}

impl Line {
    /// Writes the line that [`parse`](Self::parse) reads.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} {:.6} {:016x}", self.name, self.seconds, self.checksum)
    }

    /// Reads what a copy wrote. Returns `None` if it is no line of a copy.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, seconds, checksum] = words[..] else { return None };
        Some(Self {
            name: name.to_owned(),
            seconds: seconds.parse().ok()?,
            checksum: u64::from_str_radix(checksum, 16).ok()?,
        })
    }
}

/// Returns the arguments of a copy. Those of `--copies` are removed, in either form.
pub fn arguments(all: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = all.iter().skip(1);
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "--copies" {
            rest.next();
        } else if !text.starts_with("--copies=") {
            kept.push(argument.clone());
        }
    }
    kept.push("--copy".into());
    kept
}

/// Starts all of `commands`, waits for all, and returns the lines of each.
pub fn run(commands: Vec<Command>) -> Result<Vec<Vec<Line>>, String> {
    let start = |mut command: Command| -> Result<Child, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().map_err(|error| format!("a copy could not be started: {error}"))
    };
    let started: Vec<Result<Child, String>> = commands.into_iter().map(start).collect();
    // All are waited for, whatever became of the others.
    let ended: Vec<Result<Vec<Line>, String>> =
        started.into_iter().map(|child| child.and_then(lines)).collect();
    ended.into_iter().collect()
}

fn lines(child: Child) -> Result<Vec<Line>, String> {
    let output = child.wait_with_output().map_err(|error| format!("a copy was lost: {error}"))?;
    if !output.status.success() {
        return Err(format!("a copy failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Option<Vec<Line>> = text.lines().map(Line::parse).collect();
    lines.filter(|lines| !lines.is_empty()).ok_or_else(|| format!("a copy said: {}", text.trim()))
}

/// Writes the table. Returns whether all copies came to `checksum`.
pub fn report(out: &mut dyn Write, copies: &[Vec<Line>], alone: (f64, u64)) -> io::Result<bool> {
    let (alone, checksum) = alone;
    writeln!(out, "sequential   {alone:.3} s, one thread and no misses, alone")?;
    crate::report::write_checksum(out, checksum, None)?;
    writeln!(out, "\n{:<18} {:>9} {:>9}   each copy s", "runtime", "mean s", "speed-up")?;
    let rows = copies.first().map_or(&[][..], Vec::as_slice);
    let mut same = true;
    for (row, Line { name, .. }) in rows.iter().enumerate() {
        let of: Vec<&Line> = copies.iter().filter_map(|copy| copy.get(row)).collect();
        same &= of.iter().all(|line| line.checksum == checksum);
        let mean = of.iter().map(|line| line.seconds).sum::<f64>() / of.len() as f64;
        write!(out, "{name:<18} {mean:>9.3} {:>9.2}  ", alone / mean)?;
        of.iter().try_for_each(|line| write!(out, " {:.3}", line.seconds))?;
        writeln!(out)?;
    }
    Ok(same)
}
