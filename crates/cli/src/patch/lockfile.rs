//! The packages of a `Cargo.lock` for which there are patches.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stanchion_patch::PATCHES;

use super::Refusal;

/// The patchable packages of a `Cargo.lock`.
#[derive(Debug)]
pub(super) struct LockFile {
    /// Its absolute path.
    pub(super) path: PathBuf,
    /// Each version of them that the program is built with.
    pub(super) locked: Vec<Locked>,
    /// The names and versions of patches of them that cargo does not use.
    pub(super) unused: Vec<(&'static str, String)>,
}

/// One version of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Locked {
    /// The name of the package, which is that of a patch.
    pub(super) name: &'static str,
    pub(super) version: String,
    /// True if it comes from a folder, as that of a patch does.
    pub(super) is_patched: bool,
}

/// Reads the nearest `Cargo.lock` in `folder` or above it, if there is one. A member of a workspace
/// has that of the workspace.
pub(super) fn nearest(folder: &Path) -> Result<Option<LockFile>, Refusal> {
    for folder in folder.ancestors() {
        let path = folder.join("Cargo.lock");
        match fs::read_to_string(&path) {
            Ok(text) => return parse(path, &text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Refusal::LockFile { path, source }),
        }
    }
    Ok(None)
}

/// Reads the text of a `Cargo.lock`. Cargo writes each field of a package in a line of its own.
fn parse(path: PathBuf, text: &str) -> Result<LockFile, Refusal> {
    let (mut locked, mut unused, mut packages) = (Vec::new(), Vec::new(), 0);
    for table in text.split("\n[").skip(usize::from(!text.starts_with('['))) {
        let table = table.trim_start_matches('[');
        let field = |name: &str| {
            let values = table.lines().filter_map(|line| line.strip_prefix(name));
            values.filter_map(|rest| rest.trim().strip_prefix('=')).next().map(unquoted)
        };
        let is_package = table.starts_with("package]]");
        packages += usize::from(is_package);
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        let Some(patch) = PATCHES.iter().find(|patch| patch.package == name) else { continue };
        let name = patch.package;
        if is_package {
            let is_patched = field("source").is_none();
            locked.push(Locked { name, version: version.to_owned(), is_patched });
        } else if table.starts_with("patch.unused]]") {
            unused.push((name, version.to_owned()));
        }
    }
    if packages == 0 {
        return Err(Refusal::NotALockFile { path });
    }
    Ok(LockFile { path, locked, unused })
}

/// Returns the text between the quotes.
fn unquoted(value: &str) -> &str {
    value.trim().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";

    /// A table of a lock file.
    fn table(head: &str, name: &str, version: &str, source: &str) -> String {
        format!("[[{head}]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}\n")
    }

    fn parsed(tables: &[String]) -> LockFile {
        parse("Cargo.lock".into(), &format!("# by cargo\nversion = 4\n\n{}", tables.concat()))
            .unwrap()
    }

    #[test]
    fn a_package_without_a_source_is_patched() {
        let file = parsed(&[
            table("package", "app", "0.1.0", "dependencies = [\n \"lock_api 0.4.12\",\n]\n"),
            table("package", "lock_api", "0.4.12", REGISTRY),
            table("package", "lock_api", "0.5.0", "dependencies = [\n \"scopeguard\",\n]\n"),
            table("package", "lock_api_of_others", "1.0.0", REGISTRY),
            table("package", "parking_lot_core", "0.9.10", REGISTRY),
        ]);
        let locked = |name, version: &str, is_patched| Locked {
            name,
            version: version.to_owned(),
            is_patched,
        };
        let expected = [
            locked("lock_api", "0.4.12", false),
            locked("lock_api", "0.5.0", true),
            locked("parking_lot_core", "0.9.10", false),
        ];
        assert_eq!(file.locked, expected);
        assert!(file.unused.is_empty());
    }

    #[test]
    fn an_unused_patch_is_no_package() {
        let file = parsed(&[
            table("package", "lock_api", "0.4.15", REGISTRY),
            table("patch.unused", "lock_api", "0.4.14", ""),
            table("patch.unused", "another", "1.0.0", ""),
        ]);
        assert_eq!(file.locked.len(), 1);
        assert!(!file.locked[0].is_patched);
        assert_eq!(file.unused, [("lock_api", "0.4.14".to_owned())]);
    }

    #[test]
    fn text_without_packages_is_refused() {
        for text in ["", "version = 4\n", "<html>\n[x]\n", "name = \"lock_api\"\n"] {
            let refused = parse("here/Cargo.lock".into(), text).unwrap_err().to_string();
            assert!(refused.contains("here/Cargo.lock"), "{refused}");
        }
        let windows = table("package", "lock_api", "0.4.12", REGISTRY).replace('\n', "\r\n");
        assert_eq!(parse("l".into(), &windows).unwrap().locked[0].version, "0.4.12");
    }
}
