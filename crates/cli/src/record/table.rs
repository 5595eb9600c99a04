//! The file that all processes of the program count in.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use stanchion_competitive::waits::shared::{self, Gathered, Shared};

use super::Refusal;

/// Removed when dropped.
pub(super) struct Table {
    /// The file that the program maps.
    path: PathBuf,
}

impl Table {
    pub(super) fn new(cost_ns: u64) -> Result<Self, Refusal> {
        // In memory if there is such a place, so that nothing is written to a disk.
        let memory = Path::new("/dev/shm");
        let in_memory = if memory.is_dir() { Some(Self::in_folder(memory, cost_ns)) } else { None };
        match in_memory {
            Some(Ok(table)) => Ok(table),
            // It may be full: a container has 64 MB there by default.
            _ => Self::in_folder(&std::env::temp_dir(), cost_ns),
        }
    }

    /// Makes one in that folder.
    fn in_folder(place: &Path, cost_ns: u64) -> Result<Self, Refusal> {
        let mut number = 0_u32;
        loop {
            let path = place.join(format!("stanchion-{}-{number}.waits", std::process::id()));
            match without_size_signal(|| make(&path, cost_ns)) {
                Ok(()) => return Ok(Self { path }),
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 =>
                {
                    number += 1;
                }
                Err(source) => return Err(Refusal::Table { path, source }),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn gather(&self) -> Result<Gathered, Refusal> {
        let damaged = |reason: String| Refusal::Damaged { path: self.path.clone(), reason };
        let bytes = fs::read(&self.path).map_err(|error| damaged(error.to_string()))?;
        // Aligned to 8.
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .collect();
        let mut words = words;
        // SAFETY: this copy is as long as said, and this function alone has it.
        let table = unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), bytes.len()) };
        let gathered = table.map_err(|foreign| damaged(foreign.to_string()))?.gather();
        drop(words);
        Ok(gathered)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn make(path: &Path, cost_ns: u64) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let filled = file
        .write_all(&shared::header(cost_ns))
        .and_then(|()| file.set_len(shared::SIZE as u64))
        .and_then(|()| reserve(&file));
    if filled.is_err() {
        let _ = fs::remove_file(path);
    }
    filled
}

/// Calls `write`, which then fails if a file becomes longer than this process may make it
/// (`RLIMIT_FSIZE`). By default a signal ends the process.
pub(super) fn without_size_signal<R>(write: impl FnOnce() -> R) -> R {
    // SAFETY: ignores a signal, which runs no code.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = write();
    // SAFETY: what was set before. The program that is run inherits it.
    unsafe { libc::signal(libc::SIGXFSZ, before) };
    result
}

/// Takes room on the disk for the whole table. If there were none for a page, a signal would end
/// the program at its first wait.
fn reserve(file: &File) -> std::io::Result<()> {
    // SAFETY: an open file.
    let result = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, shared::SIZE as libc::off_t) };
    match result {
        // The file system cannot, and has no bound then that is known before.
        0 | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_table_has_its_room_before_the_program_runs() {
        let table = Table::new(5_000).unwrap();
        let about = fs::metadata(table.path()).unwrap();
        assert_eq!(about.size(), shared::SIZE as u64);
        assert!(about.blocks() * 512 >= about.size(), "{about:?}");
    }
}
