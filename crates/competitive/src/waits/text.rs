//! A distribution and a recording as plain text.

use core::fmt::Write as _;

use super::distribution::{Bucket, Distribution};
use super::recording::Recording;

/// No more lines than this for the buckets of one lock: neighbours are put together.
const LINES: usize = 24;
/// The longest bar.
const BAR: u64 = 40;

/// A time in nanoseconds with its unit: three digits or so, at most 8 characters.
fn time(nanos: u64) -> String {
    let nanos = nanos as f64;
    let (value, unit) = match nanos {
        ..1e3 => return format!("{nanos} ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

impl Distribution {
    /// Returns the waits as lines of text: a summary, and how many of each length were spun through
    /// (`*`) and blocked (`#`).
    ///
    /// ```
    /// use stanchion_competitive::waits::{Distribution, Observation};
    /// let mut waits = Distribution::new(400);
    /// waits.add(&Observation { length_ns: 900, ..Observation::default() });
    /// let line = "1 wait: 1 spun through, 0 blocked; mean 900 ns, median 900 ns, longest 900 ns";
    /// assert!(waits.table().starts_with(line));
    /// ```
    #[must_use]
    pub fn table(&self) -> String {
        let count = self.count();
        let Some(median) = self.quantile_ns(0.5) else { return String::from("no waits\n") };
        let mean = self.mean_ns().unwrap_or_default() as u64;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{count} {}: {} spun through, {} blocked; mean {}, median {}, longest {}",
            if count == 1 { "wait" } else { "waits" },
            self.spun(),
            self.blocked(),
            time(mean),
            time(median),
            time(self.max_ns()),
        );
        if let Some(share) = self.share_of_two() {
            let _ = writeln!(text, "{:.1} % found no other thread waiting", 100.0 * share);
        }
        if let [Some(tenth), Some(half)] = [0.1, 0.5].map(|q| self.wake_latency_quantile_ns(q)) {
            let _ = writeln!(
                text,
                "woken after a release within {} (a tenth) and {} (half)",
                time(tenth),
                time(half)
            );
        }
        let lines = self.lines();
        let most = lines.iter().map(|line| line.spun + line.blocked).max().unwrap_or(1).max(1);
        // A wait is shown, however few there are of its length.
        let bar = |count: u64| (u128::from(count) * u128::from(BAR)).div_ceil(most.into()) as usize;
        for line in lines {
            let _ = writeln!(
                text,
                "{:>8} to {:>8} {:>10} {}{}",
                time(line.from_ns),
                time(line.to_ns),
                line.spun + line.blocked,
                "*".repeat(bar(line.spun)),
                "#".repeat(bar(line.blocked)),
            );
        }
        text
    }

    /// Buckets that are not empty, put together in twos, fours, … until they are few.
    fn lines(&self) -> Vec<Bucket> {
        let buckets: Vec<Bucket> = self.buckets().collect();
        let together = buckets.len().div_ceil(LINES).max(1);
        let joined = buckets.chunks(together).map(|chunk| Bucket {
            from_ns: chunk.first().map_or(0, |bucket| bucket.from_ns),
            to_ns: chunk.last().map_or(0, |bucket| bucket.to_ns.min(self.max_ns())),
            spun: chunk.iter().map(|bucket| bucket.spun).sum(),
            blocked: chunk.iter().map(|bucket| bucket.blocked).sum(),
        });
        joined.collect()
    }
}

impl Recording {
    /// One line for each lock, most time waited first.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{}: waits recorded for {}, C = {}",
            self.program,
            time(self.elapsed_ns),
            time(self.cost_ns)
        );
        let name = |name: &str| name.chars().count();
        let width = self.locks.iter().map(|lock| name(&lock.0)).max().unwrap_or(0).clamp(4, 80);
        let heads = ["waits", "blocked", "median", "p99", "longest", "waited"];
        let heads = heads.map(|head| format!("{head:>10}")).concat();
        let _ = writeln!(text, "{:width$}{heads}", "lock");
        let mut locks: Vec<_> = self.locks.iter().collect();
        locks.sort_by_key(|lock| core::cmp::Reverse(lock.1.total_ns()));
        for (name, waits) in locks {
            let quantile = |q| waits.quantile_ns(q).map_or_else(String::new, time);
            let _ = writeln!(
                text,
                "{name:width$}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
                waits.count(),
                waits.blocked(),
                quantile(0.5),
                quantile(0.99),
                time(waits.max_ns()),
                time(waits.total_ns()),
            );
        }
        if self.overflow > 0 {
            let (locks, are) = if self.overflow == 1 { ("lock", "is") } else { ("locks", "are") };
            let _ = writeln!(
                text,
                "{} {locks} found the table of names full and {are} counted as {}",
                self.overflow,
                super::OTHERS
            );
        }
        text
    }
}
