//! Which orderings are weakened: those of the algorithms, not those of the machine's backends.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use super::{Mutant, misread};
use crate::failure::{Failure, Result};
use crate::orderings::sites::{Site, sites};
use crate::shell;
use crate::twins::IN_FILES;

/// The crates, lowest floor first: a model of one may be what needs an ordering of one below it.
pub(crate) const ROOMS: [&str; 10] = [
    "machine",
    "spin",
    "competitive",
    "lockfree",
    "threadpool",
    "gang",
    "activations",
    "applications",
    "watch",
    "preload",
];

/// The backends, of the seam and of each room above it: folders and files of these names. They run
/// on one machine each, and no model can tell anything about the real one.
const BACKENDS: [&str; 3] = ["real", "loom", "simulated"];

/// Returns whether the file is one machine's.
fn is_backend(path: &str) -> bool {
    path.strip_prefix("crates/machine/src/").is_some_and(|path| {
        path.split('/').any(|part| BACKENDS.contains(&part.strip_suffix(".rs").unwrap_or(part)))
    })
}

/// A source file with the number of its first site.
pub(crate) struct File {
    /// Its crate.
    pub(crate) room: &'static str,
    /// From the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) source: String,
    /// Its sites.
    pub(crate) sites: Vec<Site>,
    /// The number of its first site among those of all files.
    pub(crate) first: usize,
}

/// Returns the models of a crate the twin of which includes single files; `None` for others.
fn included(room: &str) -> Result<Option<String>> {
    if !IN_FILES.contains(&room) {
        return Ok(None);
    }
    let mut models = String::new();
    for path in shell::sources(&format!("crates/loom/{room}/tests"))? {
        let full = shell::root().join(&path);
        models += &std::fs::read_to_string(&full).map_err(Failure::file(&full))?;
    }
    Ok(Some(models))
}

/// Returns whether these models include the file.
fn includes(models: &str, path: &str) -> bool {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    models.contains(&format!("#[path = \"../../../../{path}\"]"))
}

/// The files with orderings, but for those that no twin has.
pub(crate) fn files() -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut first = 0;
    for room in ROOMS {
        let included = included(room)?;
        for path in shell::sources(&format!("crates/{room}/src"))? {
            if included.as_ref().is_some_and(|included| !includes(included, &path)) {
                continue;
            }
            // Neither the real machine's own orderings, nor those of a test that has a file.
            if is_backend(&path) || path.ends_with("/tests.rs") {
                continue;
            }
            let full = shell::root().join(&path);
            let source = std::fs::read_to_string(&full).map_err(Failure::file(&full))?;
            let sites = sites(&source).map_err(misread(&path))?;
            if !sites.is_empty() {
                let next = first + sites.len();
                files.push(File { room, path, source, sites, first });
                first = next;
            }
        }
    }
    Ok(files)
}

/// Every way to weaken one ordering of `files`.
pub(crate) fn mutants(files: &[File]) -> Vec<Mutant> {
    let sites = files
        .iter()
        .flat_map(|file| file.sites.iter().enumerate().map(move |(at, site)| (file, at, site)));
    sites
        .flat_map(|(file, at, site)| {
            site.weaker().iter().map(move |&weaker| Mutant {
                room: file.room.to_owned(),
                file: file.path.clone(),
                change: format!("{site} -> {weaker}"),
                line: site.line,
                site: file.first + at,
                weaker,
            })
        })
        .collect()
}

/// The folder of a crate, given by that name or by its package's.
pub(crate) fn room(name: &str) -> Result<&'static str> {
    let folder = name.strip_prefix("stanchion-").unwrap_or(name);
    ROOMS.into_iter().find(|room| *room == folder).ok_or_else(|| {
        Failure::verdict(format!("no crate `{name}` with models; there are: {}", ROOMS.join(", ")))
    })
}

/// Every so manieth mutant is tried when there is no history that says what changed.
const SAMPLE: usize = 8;

/// Returns the mutants in files that changed, and all of a crate if its models changed. Without
/// history, it returns a fixed sample.
pub(crate) fn changed(mutants: Vec<Mutant>) -> Result<Vec<Mutant>> {
    let Some(changed) = changed_files()? else {
        println!("no earlier commit to compare with: a fixed sample, every {SAMPLE}th");
        return Ok(mutants.into_iter().step_by(SAMPLE).collect());
    };
    let models = |room: &str| {
        let tests = format!("crates/loom/{room}/tests/");
        changed.iter().any(|path| path.starts_with(&tests))
    };
    let remodelled: Vec<_> = ROOMS.into_iter().filter(|room| models(room)).collect();
    Ok(mutants
        .into_iter()
        .filter(|mutant| {
            changed.contains(&mutant.file) || remodelled.contains(&mutant.room.as_str())
        })
        .collect())
}

/// Returns the files that differ from the merge base with main, or from the last commit but one;
/// `None` if there is no such commit.
fn changed_files() -> Result<Option<HashSet<String>>> {
    let head = git(&["rev-parse", "HEAD"]);
    let bases = ["origin/main", "main"]
        .into_iter()
        .filter_map(|branch| git(&["merge-base", "HEAD", branch]));
    let base = bases.into_iter().find(|base| Some(base) != head.as_ref());
    let Some(base) = base.or_else(|| git(&["rev-parse", "--verify", "--quiet", "HEAD~1"])) else {
        return Ok(None);
    };
    let text = git(&["diff", "--name-only", base.trim()])
        .ok_or_else(|| Failure::verdict(format!("git cannot compare with {}", base.trim())))?;
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

/// Returns the output of git; `None` if it refuses or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    let output = command.current_dir(Path::new(&shell::root())).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twin_of_single_files_has_those_that_its_models_include() {
        let models = included("preload").unwrap().unwrap();
        assert!(includes(&models, "crates/preload/src/linux/permits.rs"));
        assert!(!includes(&models, "crates/preload/src/linux/filter.rs"));
        assert_eq!(included("spin").unwrap(), None);
    }

    #[test]
    fn a_backend_is_told_by_its_folder_or_file() {
        for path in ["real/park/futex.rs", "presence/real/check.rs", "presence/watch/loom.rs"] {
            assert!(is_backend(&format!("crates/machine/src/{path}")), "{path}");
        }
        for path in ["machine/src/presence/watch/mod.rs", "gang/src/real/x.rs"] {
            assert!(!is_backend(&format!("crates/{path}")), "{path}");
        }
    }
}
