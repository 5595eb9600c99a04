//! `cargo xtask costs`: the cost of each public operation on the simulated machine, and the
//! committed table of it.
//!
//! The numbers are the same on every computer, so the table is compared byte for byte: a change
//! that adds one cache miss or one read-modify-write to a hot path shows in review as a changed
//! line of `crates/simulated/costs.txt`.
//!
//! It checks that the defaults do not depend on the accuracy of what they measure of the machine
//! (`costs --mismeasured`).
//!
//! It also compares what `stanchion calibrate --papers` prints, the papers' absolute figures beside
//! those of the simulated machines, with `crates/simulated/papers.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

const HEADER: &str = "\
# What an operation costs on the simulated machine `modern`, on the average: nanoseconds as its caller sees them, cache misses, lines that came from
# another processor's cache, atomic read-modify-writes, and instructions between the accesses (from the table of `cargo xtask instructions`; they take
# no time on `modern`, since its measured times contain them), and interrupts of other processors by asymmetric fences. All processors do nothing else; with
# more than one, locks are held for 25 ns and left alone for 25 ns. Written by `cargo xtask costs --update`; a different number fails `cargo xtask costs`.
";

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only operations with this in their names, printed and compared
    filter: Option<String>,
    /// Accept the numbers of this run as the committed table
    #[arg(long)]
    update: bool,
    #[arg(long, conflicts_with = "update")]
    /// Print the costs where both sides of an asymmetric fence are fences, and compare nothing
    symmetric_fences: bool,
    #[arg(long, value_name = "N", conflicts_with = "update")]
    /// Print the costs with this number of processors, 1 to 128, and compare nothing
    processors: Option<u8>,
}

const PAPERS: &str = "\
# The absolute figures that the papers state beside those of the simulated machines, as `cargo stanchion calibrate --papers` prints them. Written by
# `cargo xtask costs --update`; a different figure fails `cargo xtask costs`.
";

fn table() -> PathBuf {
    shell::root().join("crates/simulated/costs.txt")
}

/// Measures all, and compares.
pub(crate) fn all() -> Result {
    costs(&Options { filter: None, update: false, symmetric_fences: false, processors: None })
}

/// Measures, prints, and compares with the committed table or replaces it.
///
/// With symmetric fences, or another number of processors, it only prints.
pub(crate) fn costs(options: &Options) -> Result {
    if options.update && options.filter.is_some() {
        return Err(Failure::verdict("--update writes the whole table: leave the filter out"));
    }
    let mut command =
        shell::cargo(["run", "--quiet", "--package", "stanchion-costs", "--bin", "costs", "--"]);
    command.args(&options.filter);
    if options.symmetric_fences {
        command.arg("--symmetric-fences");
    }
    if let Some(processors) = options.processors {
        command.args(["--processors", &processors.to_string()]);
    }
    if options.symmetric_fences || options.processors.is_some() {
        return shell::run_teed(&mut command).map(drop);
    }
    let mut found = compare(&table(), HEADER, &mut command, options)?;
    if options.filter.is_none() {
        let mut defaults = shell::cargo(["run", "--quiet", "--package", "stanchion-costs"]);
        defaults.args(["--bin", "costs", "--", "--mismeasured"]);
        shell::run_teed(&mut defaults)?;
        let mut papers = shell::cargo(["run", "--quiet", "--package", "stanchion-cli", "--"]);
        papers.args(["calibrate", "--papers"]);
        let path = shell::root().join("crates/simulated/papers.txt");
        found.extend(compare(&path, PAPERS, &mut papers, options)?);
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!(
        "the costs differ from crates/simulated/costs.txt, or the papers' figures from papers.txt (- committed, + now):\n{}\n\
         if that is meant, `cargo xtask costs --update` accepts it; say why in the commit",
        found.join("\n")
    )))
}

/// Returns the changes of a committed table, or replaces it.
fn compare(
    path: &Path,
    header: &str,
    command: &mut Command,
    options: &Options,
) -> Result<Vec<String>> {
    let now = shell::run_teed(command)?;
    if options.update {
        std::fs::write(path, format!("{header}{now}")).map_err(Failure::file(path))?;
        return Ok(Vec::new());
    }
    let then = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    Ok(changes(&then, &now, options.filter.as_deref().unwrap_or_default()))
}

/// Returns the lines that are only in one of the two, of operations with `filter` in their names.
fn changes(then: &str, now: &str, filter: &str) -> Vec<String> {
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| !line.starts_with('#') && line.contains(filter));
        rows.map(str::to_owned).collect()
    };
    let (then, now) = (rows(then), rows(now));
    let gone = then.iter().filter(|row| !now.contains(row)).map(|row| format!("- {row}"));
    let new = now.iter().filter(|row| !then.contains(row)).map(|row| format!("+ {row}"));
    let mut changes: Vec<_> = gone.chain(new).collect();
    // The two of one operation stand together.
    changes.sort_by(|a, b| a[2..].split("  ").next().cmp(&b[2..].split("  ").next()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_has_no_changes_whatever_its_comments_say() {
        assert!(changes("# a\nlock   1 2.58\n", "# b\nlock   1 2.58\n", "").is_empty());
    }

    #[test]
    fn one_more_exchange_is_a_change_that_shows_both_rows() {
        let said = changes("lock   1 2.58\nread   1 1.00\n", "lock   1 4.00\nread   1 1.00\n", "");
        assert_eq!(said, ["- lock   1 2.58", "+ lock   1 4.00"]);
    }

    #[test]
    fn a_missing_and_a_new_operation_are_changes() {
        assert_eq!(changes("lock   1\n", "", ""), ["- lock   1"]);
        assert_eq!(changes("", "lock   1\n", ""), ["+ lock   1"]);
    }

    #[test]
    fn a_filtered_run_is_compared_with_its_part_of_the_table() {
        assert!(changes("lock   1\nread   1\n", "read   1\n", "read").is_empty());
    }
}
