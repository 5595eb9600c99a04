//! `cargo xtask instructions`: the instructions that the algorithms execute between their accesses,
//! counted on this processor, and the committed table of them.
//!
//! Simulated machines charge the numbers of the table. So a run takes the same virtual time
//! wherever it runs, and code that has changed shows here as a changed row. A count depends on the
//! compiler: another one is not compared.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::shell;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Accept the numbers of this run as the committed table
    #[arg(long)]
    update: bool,
}

fn table() -> PathBuf {
    shell::root().join("crates/machine/src/simulated/instructions/table.rs")
}

/// Counts, and compares.
pub(crate) fn all() -> Result {
    instructions(&Options { update: false })
}

/// Counts, and compares with the committed table or replaces it.
pub(crate) fn instructions(options: &Options) -> Result {
    let compiler = shell::output(std::process::Command::new("rustc").arg("--version"))?;
    let compiler = compiler.trim();
    let path = table();
    let then = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("SKIPPED: instructions are counted by the trap flag of x86-64, on Linux");
        return Ok(());
    }
    let same = then.lines().any(|line| line == counted_by(compiler));
    if !same && !options.update {
        println!("SKIPPED: the table was not counted in a build of {compiler}, which is used here");
        return Ok(());
    }
    let mut command = shell::cargo(["run", "--quiet", "--profile", "instructions"]);
    command.args(["--package", "stanchion-costs", "--bin", "costs", "--", "--instructions"]);
    let now = text(compiler, &shell::output(&mut command)?)?;
    if options.update {
        std::fs::write(&path, now).map_err(Failure::file(&path))?;
        return shell::run(&mut shell::cargo(["fmt", "--package", "stanchion-machine"]));
    }
    let changes = changes(&then, &now);
    if changes.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!(
        "the instructions differ from {} (- committed, + now):\n{}\nif that is meant, `cargo xtask \
         instructions --update` accepts it, and then `cargo xtask costs --update`; say why in the \
         commit",
        path.display(),
        changes.join("\n")
    )))
}

fn counted_by(compiler: &str) -> String {
    format!("//! Counted in a build of {compiler}.")
}

/// Returns the table's file.
fn text(compiler: &str, counts: &str) -> Result<String> {
    let mut rows: Vec<(&str, &str, u64)> =
        counts.lines().map(row).collect::<Option<_>>().ok_or_else(|| {
            Failure::verdict("a line of `costs --instructions` is no file and two numbers")
        })?;
    // Those of the program that counts.
    rows.retain(|(package, ..)| *package != "costs");
    rows.sort_unstable();
    let sum: u64 = rows.iter().map(|(.., instructions)| instructions).sum();
    let average = sum / rows.len().max(1) as u64;
    let mut text = format!(
        "//! Written by `cargo xtask instructions --update`.\n//!\n{}\n\n/// The average of the files, \
         in hundredths of an instruction.\npub(super) const AVERAGE: u32 = {average};\n\n/// The \
         crate, the file in its sources, and the average number of instructions before its\n/// \
         accesses, in hundredths.\npub(super) const FILES: &[(&str, &str, u32)] = &[\n",
        counted_by(compiler)
    );
    for (package, path, instructions) in rows {
        _ = writeln!(text, "    ({package:?}, {path:?}, {instructions}),");
    }
    text.push_str("];\n");
    Ok(text)
}

/// Splits a line of the counts into crate, path and hundredths of an instruction an access.
fn row(line: &str) -> Option<(&str, &str, u64)> {
    let mut words = line.split(' ');
    let (folder, path) = words.next()?.rsplit_once("/src/")?;
    let accesses: u64 = words.next()?.parse().ok()?;
    let instructions: u64 = words.next()?.parse().ok()?;
    let package = folder.rsplit('/').next()?;
    Some((package, path, (instructions * 100 + accesses / 2).checked_div(accesses)?))
}

/// Returns the rows that are only in one of the two.
fn changes(then: &str, now: &str) -> Vec<String> {
    // rustfmt may break a long row.
    let rows = |text: &str| -> Vec<String> {
        let table = text.split_once("= &[").map_or("", |(_, table)| table);
        let words = table.replace(['\n', ' '], "").replace(",)", ")");
        let rows = words.split("),").filter(|row| row.starts_with('('));
        rows.map(|row| row.trim_matches(['(', ')', ']', ';', ',']).to_owned()).collect()
    };
    let (then, now) = (rows(then), rows(now));
    let gone = then.iter().filter(|row| !now.contains(row)).map(|row| format!("- {row}"));
    let new = now.iter().filter(|row| !then.contains(row)).map(|row| format!("+ {row}"));
    let mut changes: Vec<_> = gone.chain(new).collect();
    // The two of one file stand together.
    let file = |row: &str| row[2..].rsplit_once(',').map(|(file, _)| file.to_owned());
    changes.sort_by_key(|row| file(row));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: &str = "crates/simulated/spin/../../spin/src/mcs.rs 24 228\n\
                          crates/simulated/costs/src/operations.rs 8 78\n\
                          crates/simulated/gang/../../gang/src/barrier/bit_mask.rs 4 44\n";

    #[test]
    fn a_row_has_the_average_and_the_counting_program_has_none() {
        let text = text("rustc 1", COUNTS).unwrap();
        assert!(text.contains("(\"spin\", \"mcs.rs\", 950),"), "{text}");
        assert!(text.contains("AVERAGE: u32 = 1025"), "{text}");
        assert!(!text.contains("costs\""), "{text}");
    }

    #[test]
    fn a_line_that_is_no_count_is_refused() {
        assert!(text("rustc 1", "crates/spin/src/mcs.rs 24\n").is_err());
    }

    #[test]
    fn one_instruction_more_is_a_change_and_a_broken_line_is_none() {
        let then = text("rustc 1", COUNTS).unwrap();
        let broken =
            then.replace("(\"spin\", \"mcs.rs\", 950),", "(\n \"spin\",\n \"mcs.rs\",\n 950,\n),");
        assert!(changes(&then, &broken).is_empty(), "{:?}", changes(&then, &broken));
        let now = text("rustc 1", &COUNTS.replace("228", "252")).unwrap();
        assert_eq!(
            changes(&then, &now),
            ["- \"spin\",\"mcs.rs\",950", "+ \"spin\",\"mcs.rs\",1050"]
        );
    }
}
