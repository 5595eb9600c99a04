//! The files that all processes of the program write to.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use stanchion_competitive::waits::shared::{self, Gathered, Shared};
use stanchion_order::foreign::{self, Findings};

use super::Refusal;

/// A table for the program, removed when dropped.
pub(super) struct Table {
    /// The file that the program maps.
    path: PathBuf,
    /// Its length, in bytes.
    size: usize,
}

/// The contents of a new file.
struct Contents {
    /// The end of its name.
    kind: &'static str,
    /// The first bytes.
    header: Vec<u8>,
    /// The length.
    size: usize,
}

impl Table {
    /// Makes a table of waits.
    pub(super) fn of_waits(cost_ns: u64) -> Result<Self, Refusal> {
        let header = shared::header(cost_ns).to_vec();
        Self::new(&Contents { kind: "waits", header, size: shared::SIZE })
    }

    /// Makes a table of lock orders.
    pub(super) fn of_orders() -> Result<Self, Refusal> {
        let header = foreign::header().to_vec();
        Self::new(&Contents { kind: "orders", header, size: foreign::SIZE })
    }

    fn new(contents: &Contents) -> Result<Self, Refusal> {
        let (path, ()) = file(contents.kind, |path| make(path, contents))?;
        Ok(Self { path, size: contents.size })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn gather(&self) -> Result<Gathered, Refusal> {
        let (mut words, length) = self.words()?;
        // SAFETY: this copy is as long as said, and this function alone has it.
        let table = unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), length) };
        Ok(table.map_err(|foreign| self.damaged(&foreign))?.gather())
    }

    /// Returns the findings in a table of lock orders.
    pub(super) fn orders(&self) -> Result<Findings, Refusal> {
        let (mut words, length) = self.words()?;
        // SAFETY: as above.
        let table = unsafe { foreign::Table::at(words.as_mut_ptr().cast::<u8>(), length) };
        Ok(table.map_err(|foreign| self.damaged(&foreign))?.findings())
    }

    /// Returns a copy of the file that is aligned to 8, and its length.
    fn words(&self) -> Result<(Vec<u64>, usize), Refusal> {
        let mut bytes = Vec::new();
        // A wild program may have made it longer. One byte more tells that.
        let most = self.size as u64 + 1;
        let read = File::open(&self.path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        read.map_err(|error| self.damaged(&error))?;
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        };
        Ok((bytes.chunks(8).map(word).collect(), bytes.len()))
    }

    fn damaged(&self, reason: &dyn std::fmt::Display) -> Refusal {
        Refusal::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a new file with that ending, which programs map.
pub(super) fn file<T>(
    ending: &str,
    make: impl Fn(&Path) -> std::io::Result<T>,
) -> Result<(PathBuf, T), Refusal> {
    // In memory if there is such a place, so that nothing is written to a disk.
    let memory = Path::new("/dev/shm");
    let in_memory = if memory.is_dir() { Some(file_in(memory, ending, &make)) } else { None };
    match in_memory {
        Some(Ok(made)) => Ok(made),
        // It may be full: a container has 64 MB there by default.
        _ => file_in(&std::env::temp_dir(), ending, &make),
    }
}

/// Makes one in that folder.
fn file_in<T>(
    place: &Path,
    ending: &str,
    make: impl Fn(&Path) -> std::io::Result<T>,
) -> Result<(PathBuf, T), Refusal> {
    let mut number = 0_u32;
    loop {
        let path = place.join(format!("stanchion-{}-{number}.{ending}", std::process::id()));
        match without_size_signal(|| make(&path)) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            Err(source) => return Err(Refusal::Table { path, source }),
        }
    }
}

fn make(path: &Path, contents: &Contents) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let filled = file
        .write_all(&contents.header)
        .and_then(|()| file.set_len(contents.size as u64))
        .and_then(|()| reserve(&file, contents.size));
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
fn reserve(file: &File, size: usize) -> std::io::Result<()> {
    // SAFETY: an open file.
    let result = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) };
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
    fn a_table_that_the_program_made_longer_is_damaged() {
        let table = Table::of_waits(5_000).unwrap();
        assert!(table.gather().is_ok());
        let file = OpenOptions::new().write(true).open(table.path()).unwrap();
        file.set_len(3 * shared::SIZE as u64).unwrap();
        let refused = table.gather().err().unwrap().to_string();
        let read = format!("{} bytes", shared::SIZE + 1);
        assert!(refused.contains(&read), "{refused}");
    }

    #[test]
    fn a_table_has_its_room_before_the_program_runs() {
        let tables = [Table::of_waits(5_000), Table::of_orders()];
        for (table, size) in tables.into_iter().zip([shared::SIZE, foreign::SIZE]) {
            let about = fs::metadata(table.unwrap().path()).unwrap();
            assert_eq!(about.size(), size as u64);
            assert!(about.blocks() * 512 >= about.size(), "{about:?}");
        }
    }
}
