//! `cargo xtask loom`: the models of the twins, and how much of their state spaces was explored.

use crate::explored;
use crate::failure::{Failure, Result};
use crate::shell;

/// Returns the packages with models as tests, lowest floor first: every package under
/// `crates/loom`.
pub(crate) fn twins() -> Result<Vec<String>> {
    let folder = shell::root().join("crates/loom");
    let entries = std::fs::read_dir(&folder).map_err(Failure::file(&folder))?;
    let mut twins: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            entry.path().join("Cargo.toml").is_file().then(|| format!("stanchion-{name}-loom"))
        })
        .collect();
    twins.sort();
    Ok(twins)
}

/// Asks the models that `stanchion_models::brief` makes brief for all that there is to explore.
const WHOLE: (&str, &str) = ("STANCHION_MODELS", "whole");

/// Runs the models with `filter` in their names, and compares (or with `update` commits) the
/// executions explored.
pub(crate) fn loom(filter: Option<&str>, whole: bool, update: bool) -> Result {
    if update && filter.is_some() {
        return Err(Failure::verdict("--update writes the whole table: leave the filter out"));
    }
    let mut command = shell::cargo(["test", "--tests"]);
    if whole {
        command.env(WHOLE.0, WHOLE.1);
    }
    for twin in twins()? {
        command.args(["-p", &twin]);
    }
    command.arg("--");
    command.args(filter);
    // Shown after the tests of a program, each report on a line of its own whatever runs at the
    // same time.
    command.arg("--show-output");
    let output = shell::run_teed(&mut command)?;
    let now = explored::reported(&output);
    if now.is_empty() {
        let which =
            filter.map_or("no model".to_owned(), |filter| format!("no model matching `{filter}`"));
        return Err(Failure::verdict(format!(
            "{which} reported `model NAME: N executions`; the models are the tests of crates/loom/*/tests"
        )));
    }
    if update {
        explored::print(&explored::committed()?, &now);
        return explored::commit(&now);
    }
    explored::check(&output, filter.is_none())
}
