//! `cargo xtask package`: the crates as they would be published, used as a stranger would.
//!
//! Inside the workspace a crate sees files that it will not have once it is packaged, and features that another member switched on. So:
//! package each published crate, unpack the packages into a workspace of their own in which nothing else is, let
//! `[patch]` stand for the registry, and there check every set of features and run the stranger's tests. The command is not published.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::ci::FEATURES;
use crate::failure::{Failure, Result};
use crate::shell;

/// The crate of `examples/downstream`.
const STRANGER: &str = "journal";

/// Packages, unpacks, checks.
pub(crate) fn package() -> Result {
    let published = published()?;
    let mut pack = shell::cargo(["package", "--no-verify", "--allow-dirty"]);
    for (name, _) in &published {
        pack.args(["-p", name]);
    }
    shell::run(&mut pack)?;

    let folder = shell::target().join("package-check");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    for (name, version) in &published {
        let package = shell::target().join("package").join(format!("{name}-{version}.crate"));
        shell::run(Command::new("tar").arg("-xzf").arg(&package).arg("-C").arg(&folder))?;
    }
    stranger(&folder)?;
    write(&folder.join("Cargo.toml"), &workspace(&published))?;
    // The versions that everything else was tested with.
    let lock = shell::root().join("Cargo.lock");
    fs::copy(&lock, folder.join("Cargo.lock")).map_err(Failure::file(&lock))?;

    for (name, sets) in FEATURES {
        for set in *sets {
            let mut check = inside(&folder, &["check", "-p", name, "--no-default-features"]);
            if !set.is_empty() {
                check.args(["--features", set]);
            }
            shell::run(&mut check)?;
        }
    }
    for (name, _) in &published {
        shell::run(&mut inside(&folder, &["check", "-p", name]))?;
    }
    shell::run(&mut inside(&folder, &["test", "-p", STRANGER]))
}

/// Names and versions of the members that may be published.
fn published() -> Result<Vec<(String, String)>> {
    let text =
        shell::output(&mut shell::cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::verdict(format!("cargo metadata: {error}")))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // `publish = false` is an empty list of registries.
    let open = packages.filter(|package| package["publish"].is_null());
    let named = |package: &serde_json::Value, field: &str| {
        package[field].as_str().unwrap_or_default().to_owned()
    };
    let published: Vec<_> =
        open.map(|package| (named(package, "name"), named(package, "version"))).collect();
    if published.is_empty() {
        return Err(Failure::verdict(
            "no member may be published: look for `publish = false` in the manifests",
        ));
    }
    Ok(published)
}

/// Copies the stranger's crate, which then asks the registry for us and no path.
fn stranger(folder: &Path) -> Result {
    let from = shell::root().join("examples/downstream");
    let to = folder.join(STRANGER);
    for part in ["src", "tests"] {
        let (from, to) = (from.join(part), to.join(part));
        fs::create_dir_all(&to).map_err(Failure::file(&to))?;
        for entry in fs::read_dir(&from).map_err(Failure::file(&from))? {
            let entry = entry.map_err(Failure::file(&from))?;
            fs::copy(entry.path(), to.join(entry.file_name()))
                .map_err(Failure::file(&entry.path()))?;
        }
    }
    let manifest = from.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(Failure::file(&manifest))?;
    let published =
        text.replace(", path = \"../../crates/stanchion\"", "").replace("\n[workspace]\n", "");
    if published.contains("path =") || published.contains("[workspace]") {
        return Err(Failure::verdict(
            "examples/downstream/Cargo.toml: expected `path = \"../../crates/stanchion\"` last in its dependency, and an empty `[workspace]`",
        ));
    }
    write(&to.join("Cargo.toml"), &published)
}

fn workspace(published: &[(String, String)]) -> String {
    let folders = || published.iter().map(|(name, version)| (name, format!("{name}-{version}")));
    let members: String = folders().map(|(_, folder)| format!("{folder:?}, ")).collect();
    let patches: String =
        folders().map(|(name, folder)| format!("{name} = {{ path = {folder:?} }}\n")).collect();
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}{STRANGER:?}]\n\n[patch.crates-io]\n{patches}"
    )
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(Failure::file(path))
}

/// `cargo` in the stranger's workspace, with our target folder: what comes from the registry is built already.
fn inside(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = shell::cargo(arguments);
    command.current_dir(folder).env("CARGO_TARGET_DIR", shell::target());
    command
}
