//! Checks by tools that not every machine has: cargo-deny, cargo-semver-checks, typos, and other
//! versions of the compiler.
//!
//! If its tool is missing, a task prints `SKIPPED: …`, which `cargo xtask ci` repeats at its end,
//! and passes. `cargo install cargo-deny cargo-semver-checks typos-cli` installs the three tools.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::failure::Result;
use crate::package::members::{Member, published};
use crate::shell;

/// With which commit interfaces are compared.
#[derive(Args)]
pub(crate) struct Semver {
    /// The commit or tag to compare with; the last tag of a version, if none is given
    #[arg(long, value_name = "REV")]
    pub(crate) baseline_rev: Option<String>,
}

/// Checks licences, duplicates and sources, and the advisories if their database can be had.
pub(crate) fn deny() -> Result {
    if missing(&["deny", "--version"], "cargo-deny") {
        return Ok(());
    }
    let check = ["licenses", "bans", "sources"];
    shell::run(shell::cargo(["deny", "--locked", "check", "--hide-inclusion-graph"]).args(check))?;
    // The database is a git repository, which not every network lets through.
    let fetched = shell::cargo(["deny", "fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: advisories: their database cannot be fetched");
        return Ok(());
    }
    shell::run(&mut shell::cargo(["deny", "--locked", "--offline", "check", "advisories"]))
}

/// Compares the interfaces with those of the last tag.
pub(crate) fn semver() -> Result {
    semver_against(None)
}

/// Compares the interface of each published library with that of `revision`, or of the last tag.
pub(crate) fn semver_against(revision: Option<&str>) -> Result {
    if missing(&["semver-checks", "--version"], "cargo-semver-checks") {
        return Ok(());
    }
    let revision = match revision {
        Some(revision) => revision.to_owned(),
        None => match last_tag() {
            Some(tag) => tag,
            None => {
                println!(
                    "SKIPPED: no version has been tagged: name a commit, `--baseline-rev REV`"
                );
                return Ok(());
            }
        },
    };
    // A twin has the interface of its crate.
    let library = |member: &Member| member.library && member.twin_of.is_none();
    let mut command = shell::cargo(["semver-checks", "--baseline-rev", &revision]);
    for member in published()?.into_iter().filter(library) {
        command.args(["--package", &member.name]);
    }
    shell::run(&mut command)
}

/// Returns the last tag before this commit that names a version.
fn last_tag() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let output = git.current_dir(shell::root()).output().ok()?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !tag.is_empty()).then_some(tag)
}

/// Looks for misspelt words, as typos.toml says.
pub(crate) fn typos() -> Result {
    let installed = Command::new("typos").arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: typos is not installed: `cargo install typos-cli --locked`");
        return Ok(());
    }
    shell::run(Command::new("typos").current_dir(shell::root()))
}

/// Checks the published members with the oldest versions of what they depend on directly.
///
/// Of direct dependencies only: what these in turn admit is theirs to test.
pub(crate) fn minimal() -> Result {
    let workspace = crate::package::assembled("minimal")?;
    // Only the compiler's own developers have this option in a stable cargo.
    let mut update = shell::cargo(["update", "-Zdirect-minimal-versions"]);
    shell::run(update.env("RUSTC_BOOTSTRAP", "1").current_dir(&workspace))?;
    for more in [&[][..], &["--all-features"]] {
        let mut check = shell::cargo(["check", "--workspace", "--locked"]);
        check.args(more).current_dir(&workspace).env("CARGO_TARGET_DIR", room().join("minimal"));
        // Binding to MPI needs an MPI library, whatever the versions are.
        if !more.is_empty() {
            check.args(["--exclude", "stanchion-gang"]);
        }
        shell::run(&mut check)?;
    }
    Ok(())
}

/// Checks the workspace with the Rust that its manifest names as the oldest.
pub(crate) fn msrv() -> Result {
    let members = published()?;
    let oldest = members[0].metadata["rust_version"].as_str().unwrap_or_default().to_owned();
    let mut check = shell::cargo(["check", "--workspace", "--all-targets", "--locked"]);
    if !ours(&oldest)? {
        let toolchain = format!("+{oldest}");
        let there = Command::new("cargo").args([&toolchain, "--version"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            println!(
                "SKIPPED: Rust {oldest} is not installed: `rustup toolchain install {oldest}`"
            );
            return Ok(());
        }
        check = Command::new("cargo");
        check.arg(toolchain).args(["check", "--workspace", "--all-targets", "--locked"]);
        check.current_dir(shell::root()).env("CARGO_TARGET_DIR", room().join("msrv"));
    }
    shell::run(&mut check)
}

/// Returns whether the compiler of this build is of version `wanted`, whatever its last number.
fn ours(wanted: &str) -> Result<bool> {
    let version = shell::output(Command::new("rustc").arg("--version").current_dir(shell::root()))?;
    let number = version.split_whitespace().nth(1).unwrap_or_default().to_owned();
    Ok(number == wanted || number.starts_with(&format!("{wanted}.")))
}

/// Returns whether cargo has no such subcommand. If so, it prints that.
fn missing(arguments: &[&str], tool: &str) -> bool {
    let installed = shell::cargo(arguments).output();
    let missing = !installed.is_ok_and(|output| output.status.success());
    if missing {
        println!("SKIPPED: {tool} is not installed: `cargo install {tool} --locked`");
    }
    missing
}

/// The folder of the target folder for builds with other versions.
fn room() -> PathBuf {
    let room = shell::target().join("external");
    // If it cannot be made, then cargo says so.
    let _ = fs::create_dir_all(&room);
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_is_known_by_its_first_two_numbers() {
        assert!(!ours("1.9").unwrap());
        assert!(!ours("").unwrap());
        let version = shell::output(Command::new("rustc").arg("--version")).unwrap();
        let number = version.split_whitespace().nth(1).unwrap();
        assert!(ours(number.rsplit_once('.').unwrap().0).unwrap(), "{number}");
    }

    #[test]
    fn a_missing_tool_is_missing() {
        assert!(missing(&["no-such-subcommand"], "cargo-no-such-subcommand"));
        assert!(!missing(&["--version"], "cargo"));
    }
}
