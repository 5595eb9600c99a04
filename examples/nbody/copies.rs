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
pub(crate) struct Line {
    /// The name of the copy.
    pub(crate) name: String,
    /// The time that it took.
    pub(crate) seconds: f64,
    /// The checksum of its positions.
    pub(crate) checksum: u64,
}

impl Line {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} {:.6} {:016x}", self.name, self.seconds, self.checksum)
    }

    fn parse(line: &str) -> Option<Self> {
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
pub(crate) fn arguments(all: &[OsString]) -> Vec<OsString> {
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
pub(crate) fn run(commands: Vec<Command>) -> Result<Vec<Vec<Line>>, String> {
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
pub(crate) fn report(
    out: &mut dyn Write,
    copies: &[Vec<Line>],
    alone: (f64, u64),
) -> io::Result<bool> {
    let (alone, checksum) = alone;
    writeln!(out, "sequential   {alone:.3} s, one thread and no misses, alone")?;
    examples::report::write_checksum(out, checksum, None)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, seconds: f64, checksum: u64) -> Line {
        Line { name: name.to_owned(), seconds, checksum }
    }

    #[test]
    fn a_copy_has_the_other_arguments() {
        let of = |text: &str| {
            let all: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            arguments(&all).join(OsString::from(" ").as_os_str())
        };
        assert_eq!(of("nbody --copies 2 --steps 3"), "--steps 3 --copy");
        assert_eq!(of("nbody --steps 3 --copies=2"), "--steps 3 --copy");
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut text = Vec::new();
        line("kernel", 1.25, 0xabc).write(&mut text).expect("a vector");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(Line::parse(text.trim_end()), Some(line("kernel", 1.25, 0xabc)));
        for bad in ["", "kernel", "kernel x 0", "kernel 1 z", "kernel 1 2 3"] {
            assert_eq!(Line::parse(bad), None, "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_copies_say_is_collected() {
        let says = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let both = run(vec![says("echo pool 1.0 a"), says("echo pool 2.0 a")]);
        assert_eq!(both, Ok(vec![vec![line("pool", 1.0, 10)], vec![line("pool", 2.0, 10)]]));
        for (script, why) in [
            ("exit 3", "a copy failed: exit status: 3"),
            ("echo hello", "a copy said: hello"),
            (":", "a copy said: "),
        ] {
            assert_eq!(run(vec![says("echo pool 1.0 a"), says(script)]), Err(why.to_owned()));
        }
        let error = run(vec![Command::new("/nowhere/nbody")]).expect_err("no such program");
        assert!(error.starts_with("a copy could not be started: "), "{error}");
    }

    #[test]
    fn speed_up_is_of_the_mean() {
        let mut text = Vec::new();
        let copies = [vec![line("pool", 1.0, 7)], vec![line("pool", 3.0, 7)]];
        assert!(report(&mut text, &copies, (4.0, 7)).expect("a vector"));
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("2.000      2.00   1.000 3.000"), "{text}");
        assert!(!report(&mut Vec::new(), &copies, (4.0, 8)).expect("a vector"));
    }
}
