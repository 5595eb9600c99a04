//! Making the kernel forget the content of files, so that they are read from the disk again.
//!
//! `posix_fadvise` with `POSIX_FADV_DONTNEED`, which any process may call: it drops a file from the
//! page cache, as far as it has been written back. Names, attributes and the file system's own
//! blocks stay: to drop those needs privilege (`/proc/sys/vm/drop_caches`).

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Writes back and forgets the content of the files at or below `path`. A file that cannot be
/// opened is passed over: reading it will report the reason.
///
/// # Errors
///
/// Those of the system, if it refuses the advice.
pub fn forget(path: &Path) -> io::Result<()> {
    let (Ok(data), Ok(root)) = (fs::metadata(path), File::open(path)) else { return Ok(()) };
    // What has not been written back cannot be forgotten.
    write_back(&root)?;
    if data.is_file() {
        return forget_file(&root);
    }
    // Not recursion: a tree may be deep.
    let mut later = vec![path.to_owned()];
    while let Some(path) = later.pop() {
        let Ok(entries) = fs::read_dir(&path) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => later.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    if let Ok(file) = File::open(entry.path()) {
                        forget_file(&file)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Writes back the whole file system that the file is in: once, instead of once for each file.
#[cfg(target_os = "linux")]
fn write_back(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the file is open; a call that takes a number.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_os = "linux")]
fn forget_file(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the file is open; a call that takes numbers.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn write_back(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn forget_file(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
