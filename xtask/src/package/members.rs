//! The members of the workspace that are published, as `cargo metadata` describes them.
//!
//! A member is published if its manifest does not say `publish = false`. A twin says that, because
//! its sources lie outside of its folder. It is published all the same if a published member links
//! it: [`assemble`](super::assemble) puts its sources into its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::shell;

/// A member that is published.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its folder, from the root of the workspace.
    pub(crate) folder: PathBuf,
    /// For a twin, the folder of the crate that it has the sources of, from the root.
    pub(crate) twin_of: Option<PathBuf>,
    /// The programs that it installs.
    pub(crate) programs: Vec<String>,
    /// True if it has a library with documentation tests.
    pub(crate) doc_tests: bool,
    /// True if it has a library.
    pub(crate) library: bool,
    /// All that `cargo metadata` says of it.
    pub(crate) metadata: Value,
}

impl Member {
    /// Returns `NAME-VERSION`, which its package and the folder in it are called.
    pub(crate) fn full_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// Returns the published members, each after the members that it depends on.
pub(crate) fn published() -> Result<Vec<Member>> {
    let text =
        shell::output(&mut shell::cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::verdict(format!("cargo metadata: {error}")))?;
    let root = shell::root();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let members: BTreeMap<PathBuf, &Value> =
        packages.map(|package| (folder(package), package)).collect();

    let mut order = Vec::new();
    for (folder, package) in &members {
        // `publish = false` is an empty list of registries.
        if package["publish"].is_null() {
            visit(folder, &members, &mut order)?;
        }
    }
    if order.is_empty() {
        return Err(Failure::verdict(
            "no member may be published: look for `publish = false` in the manifests",
        ));
    }
    order.into_iter().map(|folder| member(members[&folder], &root)).collect()
}

/// Appends the member in `folder` to `order`, after the members that it depends on.
fn visit(folder: &Path, members: &BTreeMap<PathBuf, &Value>, order: &mut Vec<PathBuf>) -> Result {
    if order.iter().any(|before| before == folder) {
        return Ok(());
    }
    let Some(package) = members.get(folder) else {
        return Err(Failure::verdict(format!(
            "{}: a published member depends on it, and it is no member",
            folder.display()
        )));
    };
    if !package["publish"].is_null() && twin_of(package).is_none() {
        return Err(Failure::verdict(format!(
            "{}: a published member links it, and its manifest says `publish = false`",
            text(package, "name")
        )));
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        if dependency["kind"] == "dev" {
            continue;
        }
        let Some(path) = dependency["path"].as_str() else { continue };
        if dependency["req"] == "*" {
            return Err(Failure::verdict(format!(
                "{} depends on {} without a version: write `version = \"…\"` beside the path",
                text(package, "name"),
                text(dependency, "name")
            )));
        }
        visit(Path::new(path), members, order)?;
    }
    order.push(folder.to_owned());
    Ok(())
}

fn member(package: &Value, root: &Path) -> Result<Member> {
    let from_root = |path: &Path| {
        let relative = path.strip_prefix(root).map(Path::to_owned);
        relative.map_err(|_| {
            Failure::verdict(format!("{} lies outside of the workspace", path.display()))
        })
    };
    let targets = || package["targets"].as_array().into_iter().flatten();
    let is = |target: &Value, kind: &str| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    let library = targets().find(|target| is(target, "lib"));
    Ok(Member {
        name: text(package, "name"),
        version: text(package, "version"),
        folder: from_root(&folder(package))?,
        twin_of: twin_of(package).map(|folder| from_root(&folder)).transpose()?,
        programs: targets()
            .filter(|target| is(target, "bin"))
            .map(|target| text(target, "name"))
            .collect(),
        doc_tests: library.is_some_and(|library| library["doctest"] == true),
        library: library.is_some(),
        metadata: package.clone(),
    })
}

/// Returns the folder of the crate that has the library of `package`, if that is another crate.
fn twin_of(package: &Value) -> Option<PathBuf> {
    let own = folder(package);
    let targets = package["targets"].as_array()?;
    let library = targets.iter().find(|target| target["kind"][0] == "lib")?;
    let source = normal(Path::new(library["src_path"].as_str()?));
    if source.starts_with(&own) {
        return None;
    }
    source.ancestors().find(|folder| folder.join("Cargo.toml").is_file()).map(Path::to_owned)
}

fn folder(package: &Value) -> PathBuf {
    let manifest = PathBuf::from(text(package, "manifest_path"));
    manifest.parent().unwrap_or(Path::new("")).to_owned()
}

/// Returns `path` without `..`, which `cargo metadata` leaves in the paths of targets.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// Returns the text of a field, or nothing.
pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_first_and_twins_are_among_them() {
        let members = published().unwrap();
        let position = |name: &str| members.iter().position(|member| member.name == name);
        let umbrella = position("stanchion").expect("the umbrella is published");
        assert!(position("stanchion-machine").expect("so is the machine") < umbrella);
        for member in &members {
            assert_eq!(member.twin_of.is_some(), member.folder.starts_with("crates/simulated"));
        }
        assert!(members.iter().any(|member| member.twin_of.is_some()));
    }

    #[test]
    fn a_path_loses_its_parents() {
        assert_eq!(normal(Path::new("/a/b/../../c/d.rs")), Path::new("/c/d.rs"));
    }
}
