//! The published members in a workspace of their own, each with all its sources in its folder.
//!
//! The folders are those of our workspace, so that paths between members stay right. Three things
//! are not as they are here:
//!
//! - A twin gets the sources, data and READMEs of its crate, its build script, and a manifest that
//!   names them there. Its own README says what it is for.
//! - A member with a program gets a release profile. Cargo builds an installed program by the
//!   profile in its own package, and ignores it in a member. It is the profile of `cargo study`, so
//!   that an installed command measures what `cargo study` measures.
//! - The manifest of the workspace lists only these members.

use std::fs;
use std::path::Path;

use super::members::Member;
use crate::failure::{Failure, Result};
use crate::shell;

/// Copies `members` to `to`, which must not exist.
pub(crate) fn assemble(members: &[Member], to: &Path) -> Result {
    let root = shell::root();
    let manifest = read(&root.join("Cargo.toml"))?;
    for member in members {
        let folder = to.join(&member.folder);
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        let mut own = read(&root.join(&member.folder).join("Cargo.toml"))?;
        if let Some(source) = &member.twin_of {
            copy(&root.join(source), &folder)?;
            for stays in ["tests", "examples"].map(|name| folder.join(name)) {
                if stays.exists() {
                    fs::remove_dir_all(&stays).map_err(Failure::file(&stays))?;
                }
            }
            let above = root.join(&member.folder).join("..");
            for file in ["build.rs", "ABOUT.md"] {
                let from = above.join(file);
                fs::copy(&from, folder.join(file)).map_err(Failure::file(&from))?;
            }
            own = twin_manifest(&own)?;
        } else {
            copy(&root.join(&member.folder), &folder)?;
            own = without_unpublished(&own, &manifest);
        }
        if !member.programs.is_empty() {
            own = format!("{own}\n{}", installed_profile(&manifest));
        }
        write(&folder.join("Cargo.toml"), &own)?;
    }
    let folders: Vec<_> =
        members.iter().map(|member| member.folder.to_string_lossy().replace('\\', "/")).collect();
    write(&to.join("Cargo.toml"), &workspace_manifest(&manifest, &folders)?)?;
    // The versions that everything here was tested with.
    let lock = root.join("Cargo.lock");
    fs::copy(&lock, to.join("Cargo.lock")).map_err(Failure::file(&lock)).map(|_| ())
}

/// Rewrites the manifest of a twin for a folder that has its sources.
fn twin_manifest(manifest: &str) -> Result<String> {
    let mut changed = String::new();
    let (mut published, mut library, mut section) = (false, false, String::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.to_owned();
        }
        match line {
            "publish = false" => published = true,
            _ if section == "[lib]" && line.starts_with("path = \"../") => library = true,
            // The tests stay here.
            _ if section == "[dev-dependencies]" => {}
            "build = \"../build.rs\"" => changed += "build = \"build.rs\"\n",
            "readme = \"../ABOUT.md\"" => changed += "readme = \"ABOUT.md\"\n",
            _ if line.starts_with("# Its sources lie elsewhere.") => {}
            _ => changed = changed + line + "\n",
        }
    }
    if published && library {
        return Ok(changed);
    }
    Err(Failure::verdict(format!(
        "expected `publish = false`, and `path = \"../…\"` in [lib], in the manifest of a twin:\n{manifest}"
    )))
}

/// Removes from `own` the dependencies that the workspace's `manifest` gives a path and no version.
/// Only tests have such, and `cargo package` removes them too, but asks for their folders before.
fn without_unpublished(own: &str, manifest: &str) -> String {
    let unpublished = |line: &str| {
        let name = line.strip_suffix(".workspace = true");
        name.is_some_and(|name| manifest.contains(&format!("\n{name} = {{ path = ")))
    };
    own.lines().filter(|line| !unpublished(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Rewrites the manifest of the workspace for the members in `folders`.
fn workspace_manifest(manifest: &str, folders: &[String]) -> Result<String> {
    let kept =
        sections(manifest, &|section| section.starts_with("[workspace") || is_profile(section));
    let (start, rest) = kept
        .split_once("members = [")
        .ok_or_else(|| Failure::verdict("Cargo.toml has no `members = [`"))?;
    let (_, rest) = rest
        .split_once("]\n")
        .ok_or_else(|| Failure::verdict("Cargo.toml: the list of members has no end"))?;
    let rest: String = rest
        .lines()
        .filter(|line| !line.starts_with("exclude = "))
        .flat_map(|line| [line, "\n"])
        .collect();
    Ok(format!("{start}members = {folders:?}\n{rest}"))
}

/// Returns whether `section` is a whole profile, and not a part of it for one package.
fn is_profile(section: &str) -> bool {
    section.starts_with("[profile.") && section.matches('.').count() == 1
}

/// Returns the release profile of an installed program: what `[profile.release]` says in the
/// manifest of the workspace, and `[profile.study]` in its place where it says something else.
fn installed_profile(manifest: &str) -> String {
    let mut settings: Vec<(String, String)> = Vec::new();
    for profile in ["[profile.release]", "[profile.study]"] {
        let section = sections(manifest, &|section| section == profile);
        let lines = section.lines().filter(|line| !line.starts_with(['[', '#']));
        for (name, value) in lines.filter_map(|line| line.split_once(" = ")) {
            settings.retain(|(before, _)| before != name);
            if name != "inherits" {
                settings.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    let lines = settings.iter().map(|(name, value)| format!("{name} = {value}\n"));
    format!("[profile.release]\n{}", lines.collect::<String>())
}

/// Returns the sections of `manifest` with a first line that `wanted` admits.
fn sections(manifest: &str, wanted: &dyn Fn(&str) -> bool) -> String {
    let mut kept = String::new();
    let mut keep = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            keep = wanted(line.trim_end());
        }
        if keep {
            kept = kept + line + "\n";
        }
    }
    kept
}

/// Copies what is in `from`, except what was built. What a link points to is copied, not the link.
pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to).map_err(Failure::file(to))?;
    for entry in fs::read_dir(from).map_err(Failure::file(from))? {
        let entry = entry.map_err(Failure::file(from))?;
        let (source, copied) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            if entry.file_name() != "target" {
                copy(&source, &copied)?;
            }
        } else {
            fs::copy(&source, &copied).map_err(Failure::file(&source))?;
        }
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Failure::file(path))
}

pub(crate) fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(Failure::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_a_twin_names_what_is_in_its_folder() {
        let manifest = "[package]\nreadme = \"../ABOUT.md\"\npublish = false\nbuild = \"../build.rs\"\n\n[lib]\n\
            path = \"../../../crates/x/src/lib.rs\"\ntest = false\n\n[dependencies]\na = { path = \"../a\" }\n\n[dev-dependencies]\nb = \"1\"\n\n[lints]\nworkspace = true\n";
        assert_eq!(
            twin_manifest(manifest).unwrap(),
            "[package]\nreadme = \"ABOUT.md\"\nbuild = \"build.rs\"\n\n[lib]\ntest = false\n\n[dependencies]\na = { path = \"../a\" }\n\n[lints]\nworkspace = true\n"
        );
        assert!(twin_manifest("[lib]\ntest = false\n").is_err());
    }

    #[test]
    fn what_only_tests_need_is_left_out() {
        let workspace = "[workspace.dependencies]\na = { path = \"a\" }\nb = { version = \"1\", path = \"b\" }\n";
        let own = "[dev-dependencies]\na.workspace = true\nb.workspace = true\n";
        let left = without_unpublished(own, workspace);
        assert_eq!(left, "[dev-dependencies]\nb.workspace = true\n");
    }

    #[test]
    fn an_installed_program_has_the_profile_of_the_study() {
        let release = "[profile.release]\nlto = \"thin\"\ncodegen-units = 1\n\n";
        assert_eq!(installed_profile(release).trim_end(), release.trim_end());
        let study =
            format!("{release}# Why.\n[profile.study]\ninherits = \"release\"\nlto = false\n");
        assert_eq!(
            installed_profile(&study),
            "[profile.release]\ncodegen-units = 1\nlto = false\n"
        );
    }

    #[test]
    fn the_workspace_has_only_the_members_asked_for() {
        let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\n    \"a\",\n]\nexclude = [\"e\"]\n\n[workspace.package]\nedition = \"2024\"\n\n\
            [profile.release]\nlto = \"thin\"\n\n[profile.dev.package.loom]\nopt-level = 3\n[alias]\n";
        assert_eq!(
            workspace_manifest(manifest, &["b".to_owned()]).unwrap(),
            "[workspace]\nresolver = \"3\"\nmembers = [\"b\"]\n\n[workspace.package]\nedition = \"2024\"\n\n[profile.release]\nlto = \"thin\"\n\n"
        );
    }
}
