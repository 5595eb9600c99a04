//! The waits of threads, as a table and as a histogram.

use stanchion_applications::{LockWaits, Waits, groups};
use std::io::{self, Write};

/// Writes a line for each row: the number and the length of the waits for the named lock.
///
/// # Errors
///
/// Those of `out`.
pub fn write_waits(out: &mut dyn Write, rows: &[(&str, &Waits)]) -> io::Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(10);
    writeln!(
        out,
        "{:<width$} {:>13} {:>11} {:>8} {:>10} {:>10} {:>10} {:>12} {:>10}",
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
            "{name:<width$} {:>13} {:>11} {share:>8.3} {:>10.0} {:>10} {:>10} {:>12} {:>10.1}",
            row.acquisitions(),
            row.contended(),
            row.mean_ns(),
            row.quantile_ns(0.5),
            row.quantile_ns(0.99),
            row.max_ns(),
            row.total_ns() as f64 / 1e6,
        )?;
    }
    Ok(())
}

/// Writes a line for each lock, or for each group of locks that share a name, then one for all,
/// then one for the waits in `more` that are not for locks. With `histogram`, also writes how many
/// of all waits for locks took how long.
///
/// # Errors
///
/// Those of `out`.
pub fn write_locks(
    out: &mut dyn Write,
    locks: &[LockWaits],
    by_lock: bool,
    more: (&str, &Waits),
    histogram: bool,
) -> io::Result<()> {
    let mut all = Waits::default();
    locks.iter().for_each(|lock| all.merge(&lock.waits));
    let named: Vec<(String, Waits)> = if by_lock {
        locks.iter().map(|lock| (lock.name.clone(), lock.waits.clone())).collect()
    } else {
        let groups = groups(locks).into_iter();
        groups.map(|(name, locks, waits)| (format!("{name} ({locks})"), waits)).collect()
    };
    let named = named.iter().map(|(name, waits)| (name.as_str(), waits));
    let rows: Vec<_> = named.chain([("all locks", &all), more]).collect();
    write_waits(out, &rows)?;
    if histogram {
        write_histogram(out, &all)?;
    }
    Ok(())
}

/// The widest bar.
const BAR: u64 = 50;

/// Writes how many waits took how long.
///
/// # Errors
///
/// Those of `out`.
pub fn write_histogram(out: &mut dyn Write, waits: &Waits) -> io::Result<()> {
    writeln!(out, "\nwaits for locks, by length")?;
    let most = waits.histogram().map(|(_, count)| count).max().unwrap_or(1);
    for (from, count) in waits.histogram() {
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        writeln!(out, "from {from:>13} ns {count:>11} {bar}")?;
    }
    Ok(())
}
