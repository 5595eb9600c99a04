//! Statistics as text: aligned tables for a person to read.

use super::{Activity, Statistics, WordStatistics};
use crate::Time;
use crate::memory::Accesses;
use core::fmt::{self, Display, Formatter};

/// Threads and words that have a line of their own.
const LINES: usize = 32;

/// Rows of cells, the first of them the heads of the columns. The first column is set left, and so
/// is the last if it is `prose`.
struct Table {
    /// The cells, by row.
    rows: Vec<Vec<String>>,
    /// Set if the last column is set left.
    prose: bool,
}

impl Table {
    fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { rows: vec![heads.map(str::to_owned).to_vec()], prose: false }
    }

    fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let long = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|column| long(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let left = column == 0 || (self.prose && column + 1 == columns);
                line.push_str(gap);
                if left {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn accesses(accesses: &Accesses) -> Vec<String> {
    let Accesses { all, misses, transfers, exchanges, invalidations, queued, .. } = accesses;
    let counts = [all, misses, transfers, exchanges, invalidations].map(u64::to_string);
    counts.into_iter().chain([queued.to_string()]).collect()
}

/// The rest of a long list.
fn more(out: &mut Formatter<'_>, count: usize, what: &str) -> fmt::Result {
    if count > LINES { writeln!(out, "and {} more {what}", count - LINES) } else { Ok(()) }
}

fn share(part: Time, whole: Time) -> String {
    let whole = whole.as_secs();
    format!("{:.1} %", if whole > 0.0 { part.as_secs() / whole * 100.0 } else { 0.0 })
}

/// Writes three tables: the activities of threads, their accesses to the memory, and the accesses
/// to words, if those were counted. Threads and words beyond the thirty-second have no line of
/// their own.
impl Display for Statistics {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let occupied: Time = self.processors.iter().copied().sum();
        let processors = self.processors.len();
        writeln!(
            out,
            "{} on {processors} processor{}, occupied {} of it; bus, links or memories busy {:.1} % of it",
            self.elapsed,
            if processors == 1 { "" } else { "s" },
            share(occupied, self.elapsed * processors as u64),
            self.bus_use() * 100.0
        )?;
        self.times_table(out)?;
        self.accesses_table(out)?;
        self.words_table(out)
    }
}

impl Statistics {
    fn times_table(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "thread",
            "life",
            "useful",
            "stalled",
            "spinning",
            "switching",
            "ready",
            "blocked",
            "preempted",
            "moved",
        ]);
        for (number, thread) in self.threads.iter().take(LINES).enumerate() {
            let life = thread.life.1 - thread.life.0;
            let times = Activity::ALL.map(|activity| share(thread.times.of(activity), life));
            let counts = [thread.preemptions, thread.migrations].map(|count| count.to_string());
            let head = [self.thread_name(number), life.to_string()];
            table.add(head.into_iter().chain(times).chain(counts).collect());
        }
        let lives = self.threads.iter().map(|thread| thread.life.1 - thread.life.0).sum();
        let times = Activity::ALL.map(|activity| share(self.times().of(activity), lives));
        let sum = |of: fn(&super::ThreadStatistics) -> u64| {
            self.threads.iter().map(of).sum::<u64>().to_string()
        };
        let counts = [sum(|thread| thread.preemptions), sum(|thread| thread.migrations)];
        let head = ["all".to_owned(), lives.to_string()];
        table.add(head.into_iter().chain(times).chain(counts).collect());
        write!(out, "\n{table}")?;
        more(out, self.threads.len(), "threads")
    }

    fn accesses_table(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "thread",
            "accesses",
            "misses",
            "transfers",
            "exchanges",
            "invalidated",
            "queued",
        ]);
        for (number, thread) in self.threads.iter().take(LINES).enumerate() {
            let cells = accesses(&thread.accesses);
            table.add([self.thread_name(number)].into_iter().chain(cells).collect());
        }
        let cells = accesses(&self.accesses);
        table.add(["all".to_owned()].into_iter().chain(cells).collect());
        write!(out, "\n{table}")?;
        more(out, self.threads.len(), "threads")
    }

    fn words_table(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.words.is_empty() {
            return Ok(());
        }
        let mut table = Table::new([
            "word",
            "accesses",
            "misses",
            "transfers",
            "exchanges",
            "invalidated",
            "queued",
            "stalled",
            "spun",
            "parked",
            "lines",
            "shares a line with",
        ]);
        table.prose = true;
        for word in self.words.iter().take(LINES) {
            let WordStatistics { stalled, spun, parked, lines, shares_line_with, .. } = word;
            let rest =
                [stalled.to_string(), spun.to_string(), parked.to_string(), lines.to_string()];
            let cells = [word.name.clone()].into_iter().chain(accesses(&word.accesses)).chain(rest);
            table.add(cells.chain([shares_line_with.join(", ")]).collect());
        }
        write!(out, "\n{table}")?;
        more(out, self.words.len(), "words")
    }
}
