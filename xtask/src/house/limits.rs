//! The constants of time in waiting policies: each is listed in `xtask/limits.txt` with a reason.
//!
//! A policy that counts in nanoseconds fits one computer. So it counts in transfers and calls
//! (`machine::wait`) and in the cost of blocking (`competitive::cost`), which are measured. What is
//! left are limits, and times of the operating system.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::{Failure, Result};
use crate::shell;

const TABLE: &str = "xtask/limits.txt";

/// The folders with waiting policies.
const WAITING: [&str; 6] = [
    "crates/machine/src/wait/",
    "crates/spin/src/",
    "crates/competitive/src/",
    "crates/lockfree/src/",
    "crates/threadpool/src/",
    "crates/gang/src/barrier/",
];

/// Recorded waits are no policy.
const RECORDS: &str = "crates/competitive/src/waits/";

/// A constant, by file and name.
type Constant = (String, String);

/// Returns what is against the rule: a constant of time that is not listed, and a listed one that
/// does not exist.
pub(super) fn against(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let path = shell::root().join(TABLE);
    let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
    let listed = listed(&text).map_err(|why| Failure::verdict(format!("{TABLE}: {why}")))?;
    let waits = |path: &&String| {
        WAITING.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(RECORDS)
    };
    let found: BTreeSet<Constant> = files
        .keys()
        .filter(waits)
        .flat_map(|path| times(&files[path]).into_iter().map(|name| (path.clone(), name)))
        .collect();
    let missing = found.difference(&listed).map(|(path, name)| {
        format!(
            "{path}: `{name}`: a policy counts in measured times; a limit has its reason in {TABLE}"
        )
    });
    let stale =
        listed.difference(&found).map(|(path, name)| format!("{TABLE}: {path} has no `{name}`"));
    Ok(missing.chain(stale).collect())
}

/// Reads the table: a path, a name and a reason on each line.
fn listed(text: &str) -> std::result::Result<BTreeSet<Constant>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let rows = lines.filter(|(_, line)| !line.trim().is_empty()).map(|(number, line)| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(path), Some(name), Some(_)) => Ok((path.to_owned(), name.to_owned())),
            _ => Err(format!("line {}: not a path, a name and a reason", number + 1)),
        }
    });
    rows.collect()
}

/// Returns the names of a file's constants that are times, up to its tests.
fn times(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let constants = code.lines().filter_map(|line| {
        let (before, after) = line.split_once("const ")?;
        let before = before.trim();
        let is_item = before.is_empty() || before.starts_with("pub") && !before.contains('<');
        let (name, rest) = after.split_once(':')?;
        let is_time = ["_NS", "_US", "_MS"].iter().any(|unit| name.ends_with(unit))
            || rest.split('=').next()?.contains("Duration");
        // One that is made of another is listed by that one.
        let has_figure = rest.split_once('=')?.1.contains(|c: char| c.is_ascii_digit());
        (is_item && is_time && has_figure).then(|| name.to_owned())
    });
    constants.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_time_are_found() {
        let source = "
const PATIENCE_NS: u64 = 5;
pub(crate) const PAUSES_NS: [u64; 2] = [1, 2];
    pub const STALE_NS: u64 = STALE_NS;
const LONGEST: Duration = Duration::from_millis(1);
const LOOKS: u64 = 5;
impl<const SLOT_NS: u64> Sealed for Ethernet<SLOT_NS> {}
pub struct Polling<const SLOT_NS: u64 = 0, const CAP_NS: u64 = 0>;
#[cfg(test)]
mod tests {
    const SLICE_NS: u64 = 3;
}
";
        assert_eq!(times(source), ["PATIENCE_NS", "PAUSES_NS", "LONGEST"]);
    }

    #[test]
    fn a_row_has_a_reason() {
        assert_eq!(listed("# text\n\na/b.rs X_NS why not\n").unwrap().len(), 1);
        assert!(listed("a/b.rs X_NS\n").unwrap_err().contains("line 1"));
    }
}
