//! `cargo xtask check-targets`: the crates compile for other systems.
//!
//! Types are checked, nothing is linked or run. std is built from its source, so no toolchain of
//! the other system is needed; the source and the compiler that fits it are Debian's, see
//! [`debian`].

use clap::Args;

use crate::debian;
use crate::failure::{Failure, Result};
use crate::shell;

/// The systems.
const TARGETS: [&str; 4] = [
    "x86_64-pc-windows-gnu",
    "aarch64-apple-darwin",
    "x86_64-unknown-freebsd",
    "aarch64-unknown-linux-gnu",
];

/// The crates that a user of another system may depend on, with their default features.
const PACKAGES: [&str; 12] = [
    "stanchion-machine",
    "stanchion-multiprogramming",
    "stanchion-spin",
    "stanchion-competitive",
    "stanchion-lockfree",
    "stanchion-threadpool",
    "stanchion-gang",
    "stanchion-activations",
    "stanchion-order",
    "stanchion-checked",
    "stanchion-watch",
    "stanchion",
];

/// The targets to check.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these targets
    #[arg(value_name = "TARGET", value_parser = TARGETS)]
    targets: Vec<String>,
    /// Fail where the packages cannot be had, instead of skipping
    #[arg(long)]
    required: bool,
}

/// Checks for all targets, where the packages can be had.
pub(crate) fn whole() -> Result {
    check_targets(&Options { targets: Vec::new(), required: false })
}

/// Checks all packages for each target, and says what came of each.
pub(crate) fn check_targets(options: &Options) -> Result {
    let Some(debian) = debian::provide_or_skip("other systems", options.required)? else {
        return Ok(());
    };
    let chosen = |target: &&str| {
        options.targets.is_empty() || options.targets.iter().any(|chosen| chosen == target)
    };
    let mut wrong = Vec::new();
    let mut said = Vec::new();
    for target in TARGETS.into_iter().filter(chosen) {
        let mut command = debian.cargo(&["check", "-Zbuild-std=std,panic_unwind"]);
        command.args(["--target", target]);
        PACKAGES.iter().for_each(|package| _ = command.args(["--package", package]));
        command.env("CARGO_TARGET_DIR", shell::target().join("check-targets"));
        // Admits `-Zbuild-std`.
        command.env("RUSTC_BOOTSTRAP", "1");
        // At the end, for the `dlltool` of Windows.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs = debian.root().join("usr/bin");
        let path = std::env::join_paths(std::env::split_paths(&path).chain([programs]));
        command.env("PATH", path.map_err(|error| Failure::verdict(format!("PATH: {error}")))?);
        let result = shell::run(&mut command);
        said.push(format!("{target:28} {}", if result.is_ok() { "ok" } else { "FAILED" }));
        if result.is_err() {
            wrong.push(target);
        }
    }
    println!("\n{}", said.join("\n"));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::verdict(format!("not all crates compile for {}", wrong.join(", "))))
}
