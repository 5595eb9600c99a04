//! `cargo xtask twins`: the manifests of the twins, written from those of their crates.
//!
//! A twin is a package with the sources of a crate, built for loom (`crates/loom`) or for the
//! simulated machine (`crates/simulated`). Its features and dependencies are those of its crate,
//! but for two things: a dependency that has a twin too is that twin, and what only the real
//! machine has is left out. What the twin's own tests need is kept as it stands in the manifest.
//! The twin of a crate of [`IN_FILES`] has no library: its tests include single files of the crate.
//! `cargo xtask house` fails while a manifest differs.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::shell;

/// The feature and the dependency that only the real machine has: lines that begin so are left out.
const REAL: &str = "mpi";

/// The crates with unit tests that run in their twin too.
const TESTED: [&str; 1] = ["study-programs"];

/// The crates that need the real machine, but for the files that their twin's tests include.
pub(crate) const IN_FILES: [&str; 2] = ["watch", "preload"];

/// A machine that crates are built for a second time.
struct Machine {
    /// Its folder in `crates`, and the end of its packages' names.
    name: &'static str,
    /// The lines of a manifest before its library. `{crate}` stands for the crate's name,
    /// `{license}` for its licence, `{include}` for the folders of its package besides `src`.
    head: &'static str,
    /// Set if its packages are published: then a dependency on one states a version.
    is_published: bool,
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "loom",
        head: "\
description = \"crates/{crate} on loom's machine, and its models\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
{license}
publish = false
build = \"../build.rs\"
",
        is_published: false,
    },
    Machine {
        name: "simulated",
        head: "\
description = \"`stanchion-{crate}` on the simulated multiprocessor of `stanchion-simulator`, for \
the `stanchion` command\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
{license}
repository.workspace = true
categories = [\"simulation\", \"concurrency\"]
keywords = [\"simulation\", \"multiprocessor\", \"synchronization\"]
readme = \"../ABOUT.md\"
include = [\"/src\", {include}\"/build.rs\", \"/README.md\", \"/ABOUT.md\", \"/LICENSE-*\"]
# Its sources lie elsewhere. `cargo xtask package` puts them together and removes this line.
publish = false
build = \"../build.rs\"
",
        is_published: true,
    },
];

/// Writes every manifest anew.
pub(crate) fn twins() -> Result {
    for (path, text) in manifests()? {
        std::fs::write(&path, text).map_err(Failure::file(&path))?;
    }
    Ok(())
}

/// Returns a sentence for each manifest that is not what [`twins`] would write.
pub(crate) fn stale() -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for (path, text) in manifests()? {
        if read(&path)? != text {
            let path = path.strip_prefix(shell::root()).unwrap_or(&path).display();
            stale.push(format!("{path}: differs from its crate's: `cargo xtask twins` writes it"));
        }
    }
    Ok(stale)
}

/// Returns the path of each twin's manifest, and what it should be.
fn manifests() -> Result<Vec<(PathBuf, String)>> {
    let crates = shell::root().join("crates");
    let workspace = read(&shell::root().join("Cargo.toml"))?;
    let mut manifests = Vec::new();
    for machine in &MACHINES {
        let folder = crates.join(machine.name);
        let entries = std::fs::read_dir(&folder).map_err(Failure::file(&folder))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| crates.join(name).join("Cargo.toml").is_file())
            .collect();
        names.sort();
        for name in &names {
            let path = folder.join(name).join("Cargo.toml");
            let original = read(&crates.join(name).join("Cargo.toml"))?;
            let text = manifest(machine, name, &names, &original, &workspace);
            let committed = read(&path)?;
            let own = titled("dev-dependencies", &section(&committed, "dev-dependencies"));
            let text = text + &own + "\n[lints]\nworkspace = true\n";
            manifests.push((path, text));
        }
    }
    Ok(manifests)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(Failure::file(path))
}

/// Returns the manifest of the twin of the crate `name`, up to what its tests need. `twins` are
/// the names of all crates that have a twin.
fn manifest(
    machine: &Machine,
    name: &str,
    twins: &[String],
    original: &str,
    workspace: &str,
) -> String {
    let package = section(original, "package");
    let license = package.iter().position(|line| line.starts_with("license"));
    let license = license.map_or(Vec::new(), |at| {
        let told = at.checked_sub(1).map(|at| package[at]).filter(|line| line.starts_with('#'));
        told.into_iter().chain([package[at]]).collect()
    });
    let data = package.iter().any(|line| line.starts_with("include") && line.contains("/data"));
    let head = machine
        .head
        .replace("{crate}", name)
        .replace("{license}", &license.join("\n"))
        .replace("{include}", if data { "\"/data\", " } else { "" });
    let head = format!(
        "# Written by `cargo xtask twins`, but for the dev-dependencies.\n[package]\n\
         name = \"stanchion-{name}-{}\"\n{head}",
        machine.name
    );
    if IN_FILES.contains(&name) {
        return head;
    }
    let test = if TESTED.contains(&name) { "" } else { "test = false\n" };

    let features = section(original, "features");
    let features: Vec<&str> = features
        .into_iter()
        .filter(|line| !line.starts_with('#') && !line.starts_with(REAL))
        .collect();
    let sections =
        ["dependencies", "target.'cfg(unix)'.dependencies"].map(|title| section(original, title));
    let of_machine = format!("target.'cfg(stanchion_{})'.dependencies", machine.name);
    let dependencies: Vec<String> = sections
        .into_iter()
        .flatten()
        .chain(section(original, &of_machine))
        .filter(|line| !line.starts_with(REAL))
        .map(|line| dependency(machine, line, twins, workspace))
        .collect();
    let dependencies: Vec<&str> = dependencies.iter().map(String::as_str).collect();

    format!(
        "{head}\n[lib]\npath = \"../../{name}/src/lib.rs\"\n\
         {test}doctest = false\ndoc = false\nbench = false\n"
    ) + &titled("features", &features)
        + &titled("dependencies", &dependencies)
}

/// Returns a line of dependencies with the twin in the place of a crate that has one.
fn dependency(machine: &Machine, line: &str, twins: &[String], workspace: &str) -> String {
    let key = line.split(['.', ' ']).next().unwrap_or_default();
    let twin = key.strip_prefix("stanchion-").filter(|name| twins.iter().any(|twin| twin == name));
    let Some(twin) = twin else { return line.to_owned() };
    let features = line.find("features = [").map(|at| {
        let rest = &line[at..];
        format!(", {}", &rest[..=rest.find(']').unwrap_or(rest.len() - 1)])
    });
    let shared = workspace.lines().find(|line| line.starts_with(&format!("{key} = ")));
    let said = if line.contains("workspace = true") { shared.unwrap_or_default() } else { line };
    let bare = said.contains("default-features = false");
    let version = section(workspace, "workspace.package");
    let version = version.iter().find(|line| machine.is_published && line.starts_with("version"));
    format!(
        "{key} = {{ package = \"{key}-{}\", {}path = \"../{twin}\"{}{} }}",
        machine.name,
        version.map_or(String::new(), |version| format!("{version}, ")),
        if bare { ", default-features = false" } else { "" },
        features.unwrap_or_default()
    )
}

/// Returns the lines of a section of a manifest, without empty lines at its end.
fn section<'a>(manifest: &'a str, title: &str) -> Vec<&'a str> {
    let begin = format!("[{title}]");
    let lines = manifest.lines().skip_while(|line| **line != *begin).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty()).collect()
}

/// Returns a section, or nothing if it has no lines.
fn titled(title: &str, lines: &[&str]) -> String {
    if lines.is_empty() { String::new() } else { format!("\n[{title}]\n{}\n", lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATE: &str = "\
[package]
name = \"stanchion-a\"
# Why.
license = \"MIT\"
include = [\"/src\", \"/data\"]

[features]
# Told.
std = [\"stanchion-b/std\"]
mpi = [\"dep:mpi\"]

[dependencies]
stanchion-b = { workspace = true, features = [\"std\"] }
stanchion-c.workspace = true
mpi = { version = \"0.8\", optional = true }

[target.'cfg(stanchion_loom)'.dependencies]
loom.workspace = true
";

    #[test]
    fn a_twin_depends_on_twins_and_has_nothing_of_the_real_machine() {
        let twins = ["a", "b"].map(str::to_owned);
        let workspace = "[workspace.package]\nversion = \"1.2.3\"\n\n[workspace.dependencies]\n\
            stanchion-b = { path = \"crates/b\", default-features = false }";
        let text = manifest(&MACHINES[0], "a", &twins, CRATE, workspace);
        assert_eq!(section(&text, "features"), ["std = [\"stanchion-b/std\"]"]);
        let expected = [
            "stanchion-b = { package = \"stanchion-b-loom\", path = \"../b\", \
             default-features = false, features = [\"std\"] }",
            "stanchion-c.workspace = true",
            "loom.workspace = true",
        ];
        assert_eq!(section(&text, "dependencies"), expected);
        assert!(text.contains("# Why.\nlicense = \"MIT\"\n"), "{text}");

        let text = manifest(&MACHINES[1], "a", &twins, CRATE, workspace);
        assert!(text.contains("include = [\"/src\", \"/data\", \"/build.rs\""), "{text}");
        assert!(!text.contains("loom"), "{text}");
        assert!(text.contains("stanchion-b-simulated\", version = \"1.2.3\", path"), "{text}");
    }

    #[test]
    fn a_twin_of_single_files_has_no_library() {
        let text = manifest(&MACHINES[0], IN_FILES[0], &[], CRATE, "");
        assert!(text.contains("-loom\"\ndescription"), "{text}");
        for absent in ["lib", "features", "dependencies"] {
            assert_eq!(section(&text, absent), [""; 0], "{text}");
        }
    }
}
