//! The copy of the workspace in which every ordering asks a seam what to be.
//!
//! In the copy, `Ordering::Acquire` reads
//! `::stanchion_machine::__weaken::order(17, Ordering::Acquire)`, and `fence(…)` reads
//! `::stanchion_machine::__weaken::fence(18, …)`. A call on a handshake, `SLEEP.light()`, reads
//! `::stanchion_machine::__weaken::handshake(19, || SLEEP.light())`. The environment then names one
//! site and what it asks for instead. Lines stay where they were. The user's own tree is only read.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::scope::File;
use crate::failure::{Failure, Result};
use crate::orderings::sites::{Role, Site};
use crate::shell;

/// The environment variable that names the site and its ordering: `17:Relaxed`.
pub(crate) const WEAKEN: &str = "STANCHION_WEAKEN";
/// The environment variable that names a file to which the reached sites are written.
pub(crate) const REACHED: &str = "STANCHION_WEAKEN_REACHED";

/// The folder of what this task builds and runs.
pub(crate) fn folder() -> PathBuf {
    shell::target().join("weaken")
}

/// Makes or refreshes the copy, and says where it is. Files that did not change keep their times,
/// so builds stay warm.
pub(crate) fn make(files: &[File]) -> Result<PathBuf> {
    let copy = folder().join("tree");
    let mut kept = HashSet::new();
    mirror(&shell::root(), &copy, Path::new(""), files, &mut kept)?;
    prune(&copy, &kept)?;
    Ok(copy)
}

fn mirror(
    root: &Path,
    copy: &Path,
    folder: &Path,
    files: &[File],
    kept: &mut HashSet<PathBuf>,
) -> Result {
    let from = root.join(folder);
    for entry in fs::read_dir(&from).map_err(Failure::file(&from))? {
        let entry = entry.map_err(Failure::file(&from))?;
        let name = entry.file_name();
        let path = folder.join(&name);
        // The folder of reports is at the root; the crate has the same name.
        if name == "target" || name == ".git" || path == Path::new("study") {
            continue;
        }
        if entry.path().is_dir() {
            mirror(root, copy, &path, files, kept)?;
            continue;
        }
        let mut bytes = fs::read(entry.path()).map_err(Failure::file(&entry.path()))?;
        if let Some(file) = files.iter().find(|file| Path::new(&file.path) == path) {
            bytes = with_seams(file).into_bytes();
        }
        if path == Path::new("crates/machine/src/lib.rs") {
            bytes.extend_from_slice(SEAM.as_bytes());
        }
        write_if_changed(&copy.join(&path), &bytes)?;
        kept.insert(copy.join(&path));
    }
    Ok(())
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Failure::file(parent))?;
    }
    fs::write(path, bytes).map_err(Failure::file(path))
}

/// Takes away what the tree no longer has: a test file left behind would be one more model.
fn prune(folder: &Path, kept: &HashSet<PathBuf>) -> Result {
    for entry in fs::read_dir(folder).map_err(Failure::file(folder))? {
        let path = entry.map_err(Failure::file(folder))?.path();
        if path.is_dir() {
            prune(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).map_err(Failure::file(&path))?;
        }
    }
    Ok(())
}

/// The file's text with every site asking the seam.
fn with_seams(file: &File) -> String {
    let machine = if file.room == "machine" { "crate" } else { "::stanchion_machine" };
    let mut text = String::with_capacity(file.source.len() * 2);
    let mut done = 0;
    for (at, site) in file.sites.iter().enumerate() {
        let Site { role, place, value, .. } = site;
        let (number, asked) = (file.first + at, &file.source[value.clone()]);
        let call = match role {
            Role::Fence => format!("fence({number}, {asked})"),
            Role::Handshake => format!("handshake({number}, || {asked})"),
            Role::SymmetricHandshake => {
                format!("fence({number}, {machine}::atomic::Ordering::SeqCst)")
            }
            _ => format!("order({number}, {asked})"),
        };
        text.push_str(&file.source[done..place.start]);
        text.push_str(&format!("{machine}::__weaken::{call}"));
        done = place.end;
    }
    text.push_str(&file.source[done..]);
    text
}

/// Appended to the copy's `machine` crate.
const SEAM: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, clippy::all)]
pub mod __weaken {
    extern crate std;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::io::Write;
    use std::string::String;
    use std::sync::OnceLock;

    struct Plan {
        // The number of the site that is weakened.
        site: usize,
        // `None`: a fence, or a handshake's, that is to be removed.
        weaker: Option<Ordering>,
        // The file to which the model writes the sites that it reaches.
        reached: Option<String>,
    }

    fn plan() -> &'static Plan {
        static PLAN: OnceLock<Plan> = OnceLock::new();
        PLAN.get_or_init(|| {
            let reached = std::env::var("STANCHION_WEAKEN_REACHED").ok();
            let Ok(entry) = std::env::var("STANCHION_WEAKEN") else {
                return Plan { site: usize::MAX, weaker: None, reached };
            };
            let (site, weaker) = entry.split_once(':').expect("SITE:ORDERING");
            let weaker = match weaker {
                "Relaxed" => Some(Ordering::Relaxed),
                "Acquire" => Some(Ordering::Acquire),
                "Release" => Some(Ordering::Release),
                "AcqRel" => Some(Ordering::AcqRel),
                "Removed" => None,
                _ => panic!("no ordering"),
            };
            Plan { site: site.parse().expect("a number"), weaker, reached }
        })
    }

    fn note(plan: &Plan, site: usize) {
        const MOST: usize = 4096;
        static SEEN: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
        let Some(path) = &plan.reached else { return };
        if !SEEN[site].swap(true, Ordering::Relaxed) {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("writable");
            std::writeln!(file, "{site}").expect("writable");
        }
    }

    pub fn order(site: usize, asked: Ordering) -> Ordering {
        let plan = plan();
        note(plan, site);
        if plan.site == site { plan.weaker.expect("only fences are removed") } else { asked }
    }

    pub fn fence(site: usize, asked: Ordering) {
        let plan = plan();
        note(plan, site);
        let order = if plan.site == site { plan.weaker } else { Some(asked) };
        if let Some(order) = order {
            crate::atomic::fence(order);
        }
    }

    pub fn handshake(site: usize, call: impl FnOnce()) {
        let plan = plan();
        note(plan, site);
        if plan.site != site {
            call();
        }
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orderings::sites::sites;

    #[test]
    fn every_kind_of_site_asks_the_seam() {
        let source = "fn f() { x.load(Ordering::Acquire); fence(Ordering::SeqCst); a::S.light(); T.fence() }";
        let seams = |room| {
            with_seams(&File {
                room,
                path: String::new(),
                source: source.to_owned(),
                sites: sites(source).unwrap(),
                first: 7,
            })
        };
        assert_eq!(
            seams("spin"),
            "fn f() { x.load(::stanchion_machine::__weaken::order(7, Ordering::Acquire)); \
             ::stanchion_machine::__weaken::fence(8, Ordering::SeqCst); \
             ::stanchion_machine::__weaken::handshake(9, || a::S.light()); \
             ::stanchion_machine::__weaken::fence(10, ::stanchion_machine::atomic::Ordering::SeqCst) }"
        );
        assert!(seams("machine").contains("crate::__weaken::handshake(9, || a::S.light())"));
    }
}
