#![doc = include_str!("../README.md")]

mod sources;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sources::{
    EXPLANATION, FILES, MANIFESTS, ORDER_MANIFEST, PATH_IN_REPOSITORY, README, TITLE, WRITTEN_PATH,
};

/// A package that takes the place of one version of `lock_api` or `parking_lot_core`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patch {
    /// The name of the package, which is upstream's.
    pub package: &'static str,
    /// The versions of upstream that it takes the place of, as `0.4`.
    pub series: &'static str,
    /// Its own version, which is that of the upstream release that it was made from.
    pub version: &'static str,
    /// The name of its folder.
    pub folder: &'static str,
}

impl Patch {
    /// Returns true if the patch can take the place of this version of a package. Costs a
    /// comparison, and never panics.
    ///
    /// ```
    /// let [old, new, core, _] = stanchion_patch::PATCHES;
    /// assert!(old.replaces("lock_api", "0.4.12") && !old.replaces("lock_api", "0.40.1"));
    /// assert!(!new.replaces("lock_api", "0.4.12") && !core.replaces("lock_api", "0.9.1"));
    /// ```
    #[must_use]
    pub fn replaces(&self, package: &str, version: &str) -> bool {
        package == self.package
            && version.strip_prefix(self.series).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// The patches that [`write()`] writes.
///
/// ```
/// assert_eq!(stanchion_patch::PATCHES.map(|patch| patch.series), ["0.4", "0.5", "0.9", "0.10"]);
/// ```
pub const PATCHES: [Patch; 4] = [
    Patch { package: "lock_api", series: "0.4", version: "0.4.14", folder: "lock_api-0.4" },
    Patch { package: "lock_api", series: "0.5", version: "0.5.0", folder: "lock_api-0.5" },
    Patch {
        package: "parking_lot_core",
        series: "0.9",
        version: "0.9.12",
        folder: "parking_lot_core-0.9",
    },
    Patch {
        package: "parking_lot_core",
        series: "0.10",
        version: "0.10.0",
        folder: "parking_lot_core-0.10",
    },
];

/// The reason why the patches were not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The folder has files, and they are not an earlier copy.
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The path is that of a file, or lies in a file.
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A file or folder cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied { folder } => write!(
                f,
                "{} has files, and they are not an earlier copy of the patches: name a new folder, or empty it",
                folder.display()
            ),
            Self::NotAFolder { path } => write!(
                f,
                "{} is a file or lies in one: name a new folder for the patches",
                path.display()
            ),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Occupied { .. } | Self::NotAFolder { .. } => None,
        }
    }
}

/// Writes the patches and their recorder to `folder`, and returns the number of files that differed
/// from what was there.
///
/// The folder is made if it is missing. If it has an earlier copy, each file is replaced. A file
/// that is as it should be is left alone, so cargo does not build it again.
///
/// # Errors
///
/// [`Failure::Occupied`] or [`Failure::NotAFolder`], if something else is there: then nothing was
/// written. [`Failure::File`], if a file cannot be written: a later call goes on.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("write-{}", std::process::id()));
/// let written = stanchion_patch::write(&folder)?;
/// assert!(written > 30);
/// assert_eq!(stanchion_patch::write(&folder)?, 0);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), stanchion_patch::Failure>(())
/// ```
pub fn write(folder: &Path) -> Result<usize, Failure> {
    may_be_written(folder)?;
    let mut written = 0;
    for (path, text) in files() {
        written += usize::from(write_file(folder, path, &text)?);
    }
    Ok(written)
}

/// Returns each file, with its path in the folder. The first one makes the folder ours, so that a
/// write that was cut short can be repeated.
fn files() -> Vec<(&'static str, String)> {
    let order = ORDER_MANIFEST
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("RUST", env!("CARGO_PKG_RUST_VERSION"));
    let mut files = vec![
        (README, format!("{TITLE} {}\n{EXPLANATION}", env!("CARGO_PKG_VERSION"))),
        ("order/Cargo.toml", order),
    ];
    files.extend(
        MANIFESTS.map(|(path, text)| (path, text.replace(PATH_IN_REPOSITORY, WRITTEN_PATH))),
    );
    files.extend(FILES.iter().map(|&(path, text)| (path, text.to_owned())));
    files
}

/// Refuses a folder that has files which are not ours.
fn may_be_written(folder: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::File { path: folder.to_owned(), source };
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(Err(source)) => Err(failed(source)),
            Some(Ok(_)) if is_earlier_copy(folder) => Ok(()),
            Some(Ok(_)) => Err(Failure::Occupied { folder: folder.to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Failure::NotAFolder { path: folder.to_owned() })
        }
        Err(source) => Err(failed(source)),
    }
}

/// Returns true if the folder has the patches of this version or of another.
fn is_earlier_copy(folder: &Path) -> bool {
    fs::read(folder.join(README)).is_ok_and(|text| text.starts_with(TITLE.as_bytes()))
}

/// Writes one file, if its text differs, and returns true if it did.
fn write_file(folder: &Path, path: &str, text: &str) -> Result<bool, Failure> {
    let file = folder.join(path);
    if fs::read(&file).is_ok_and(|before| before == text.as_bytes()) {
        return Ok(false);
    }
    let above = file.parent().unwrap_or(folder);
    let written = fs::create_dir_all(above).and_then(|()| fs::write(&file, text));
    written.map_err(|source| Failure::File { path: file, source })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of its own for each test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("stanchion-patch-{test}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn versions_are_those_of_the_manifests() {
        for (patch, (path, text)) in PATCHES.iter().zip(MANIFESTS) {
            assert!(path.starts_with(&format!("{}/", patch.folder)));
            assert!(text.contains(&format!("\nversion = \"{}\"\n", patch.version)), "{path}");
            assert!(text.contains(&format!("\nname = \"{}\"\n", patch.package)), "{path}");
            assert!(patch.replaces(patch.package, patch.version));
        }
    }

    #[test]
    fn an_earlier_copy_is_replaced_file_by_file() {
        let folder = Folder::new("earlier");
        write(&folder.0).unwrap();
        let (changed, gone) = (folder.0.join("order/src/lib.rs"), "lock_api-0.4/Cargo.toml");
        fs::write(&changed, "older").unwrap();
        fs::remove_file(folder.0.join(gone)).unwrap();
        fs::write(folder.0.join(README), format!("{TITLE} 0.0.9\n")).unwrap();
        fs::write(folder.0.join("mine"), "kept").unwrap();
        assert_eq!(write(&folder.0).unwrap(), 3);
        for (path, text) in files() {
            assert_eq!(fs::read_to_string(folder.0.join(path)).unwrap(), text, "{path}");
        }
        assert_eq!(fs::read_to_string(folder.0.join("mine")).unwrap(), "kept");
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = Folder::new("other");
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join(README), "# Mine\n").unwrap();
        let refused = write(&folder.0).unwrap_err();
        assert!(matches!(&refused, Failure::Occupied { folder: named } if *named == folder.0));
        assert!(refused.to_string().contains("empty it"), "{refused}");
        let refused = write(&folder.0.join(README)).unwrap_err();
        assert!(matches!(&refused, Failure::NotAFolder { .. }), "{refused}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(folder.0.join(README)).unwrap(), "# Mine\n");
    }

    #[test]
    fn a_failed_write_names_the_file_and_can_be_repeated() {
        let folder = Folder::new("failed");
        fs::create_dir_all(&folder.0).unwrap();
        write(&folder.0).unwrap();
        let taken = folder.0.join("order/Cargo.toml");
        fs::remove_file(&taken).unwrap();
        fs::create_dir(&taken).unwrap();
        let failed = write(&folder.0).unwrap_err();
        assert!(failed.to_string().starts_with(&taken.display().to_string()), "{failed}");
        fs::remove_dir(&taken).unwrap();
        assert_eq!(write(&folder.0).unwrap(), 1);
    }
}
