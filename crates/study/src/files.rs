//! Files that appear whole or not at all: each is written beside its place and renamed into it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Checks that `path` could be replaced: it is no directory, and a file can be made beside it.
fn probe(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    if is_device(path) {
        return fs::OpenOptions::new().write(true).open(path).map(drop);
    }
    let beside = beside(path);
    fs::write(&beside, b"")?;
    fs::remove_file(&beside)
}

/// Returns true if `path` exists and is neither a file nor a directory: a terminal, a pipe,
/// `/dev/null`. Such a path is written to, not replaced.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Makes the directory that `option` names, if it does not exist.
pub fn make_directory(path: &Path, option: &'static str) -> Result<(), Error> {
    let unwritable = |source| Error::Unwritable { path: path.to_owned(), option, source };
    fs::create_dir_all(path).map_err(unwritable)
}

/// Checks that the file that `option` names could be written.
pub fn probe_for(path: &Path, option: &'static str) -> Result<(), Error> {
    probe(path).map_err(|source| Error::Unwritable { path: path.to_owned(), option, source })
}

/// Puts `content` at `path` in one step: a reader finds either the old file or the new one. If the
/// disk is full, the old file stays.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    if is_device(path) {
        let device = fs::OpenOptions::new().write(true).open(path);
        return device
            .and_then(|mut device| device.write_all(content))
            .map_err(|source| Error::Write { path: path.to_owned(), source });
    }
    let beside = beside(path);
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // The rest of a failed attempt is of no use. If it cannot be removed either, the first
        // error says more.
        let _ = fs::remove_file(&beside);
        Error::Replace { path: path.to_owned(), source }
    })
}
