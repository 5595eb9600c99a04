//! The runtime file.
//!
//! # Invariants
//!
//! 1. `base` is a mapping of [`LENGTH`] bytes of a file of at least that length, for as
//!    long as the table lives. No process shortens
//!    the file.
//! 2. The mapping is only ever accessed by atomics.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::error::{ArbiterError, ENTRIES};
use super::wanted;

/// The size of an entry, and of the header: a cache line.
const LINE: usize = 64;
const LENGTH: usize = (ENTRIES + 1) * LINE;
/// `stanch` and the layout's version.
const VERSION: u64 = 0x7374_616e_6368_0001;

/// The mapped table, and this runtime's entry in it.
#[derive(Debug)]
pub(super) struct Table {
    /// The address of the mapping.
    base: NonNull<AtomicU64>,
    /// The entry of this runtime.
    entry: usize,
    /// The file, which holds the lock of the entry's byte.
    file: File,
    path: PathBuf,
}

// SAFETY: only atomics are reached through it (Invariant 2).
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

fn directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

fn lock(byte: usize) -> libc::flock {
    // SAFETY: all zeroes is a lock of nothing.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = byte as _;
    lock.l_len = 1;
    lock
}

impl Table {
    pub(super) fn open(name: &str) -> Result<Self, ArbiterError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !(1..=64).contains(&name.len()) || !name.chars().all(plain) {
            return Err(ArbiterError::Name { name: name.to_owned() });
        }
        // SAFETY: a question without arguments.
        let user = unsafe { libc::geteuid() };
        let path = directory().join(format!("stanchion-{user}-{name}"));
        let failed = |error| ArbiterError::File { path: path.clone(), error };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path)
            .map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.uid() != user || !about.is_file() || about.len() > LENGTH as u64 {
            return Err(ArbiterError::Foreign { path });
        }
        // Never shorter: other processes may have mapped it.
        if about.len() < LENGTH as u64 {
            file.set_len(LENGTH as u64).map_err(failed)?;
        }
        let base = map(&file).map_err(failed)?;
        let mut table = Self { base, entry: ENTRIES, file, path: path.clone() };
        // Relaxed: it is the first word, and nothing else hangs on it.
        let version =
            table.word(0).compare_exchange(0, VERSION, Ordering::Relaxed, Ordering::Relaxed);
        if version.is_err_and(|found| found != VERSION) {
            return Err(ArbiterError::Foreign { path });
        }
        match (0..ENTRIES).find(|&entry| table.acquire(entry)) {
            Some(entry) => table.entry = entry,
            None => return Err(ArbiterError::Full { path }),
        }
        table.request(0);
        Ok(table)
    }

    fn word(&self, line: usize) -> &AtomicU64 {
        assert!(line <= ENTRIES, "inside the mapping");
        // SAFETY: inside the mapping (Invariant 1).
        let word = unsafe { self.base.byte_add(line * LINE) };
        // SAFETY: mapped, aligned to a line, and touched by atomics only (Invariant 2).
        unsafe { word.as_ref() }
    }

    fn epoch_word(&self) -> &AtomicU64 {
        // SAFETY: inside the mapping (Invariant 1).
        let word = unsafe { self.base.add(1) };
        // SAFETY: as in `word`.
        unsafe { word.as_ref() }
    }

    /// Locks the entry's byte, if no process has. Returns whether it is locked now.
    fn acquire(&self, entry: usize) -> bool {
        let lock = lock(entry);
        // SAFETY: the descriptor is open, and the lock is read only.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) == 0 }
    }

    /// Returns whether another owner has locked the entry's byte.
    fn is_owned(&self, entry: usize) -> bool {
        let mut lock = lock(entry);
        // SAFETY: the descriptor is open, and the lock is live.
        let answer =
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        answer == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn entry(&self) -> usize {
        self.entry
    }

    pub(super) fn epoch(&self) -> u64 {
        wanted::epoch(self.epoch_word())
    }

    pub(super) fn request(&self, processors: usize) {
        wanted::request(self.epoch_word(), self.word(self.entry + 1), processors);
    }

    /// Returns the number that each entry wants, 0 for one without a live owner.
    pub(super) fn wanted(&self) -> Vec<usize> {
        let is_live = |entry: usize| entry == self.entry || self.is_owned(entry);
        (0..ENTRIES)
            .map(|entry| {
                let wanted = wanted::read(self.word(entry + 1));
                if wanted > 0 && is_live(entry) { wanted } else { 0 }
            })
            .collect()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.entry < ENTRIES {
            self.request(0);
        }
        // SAFETY: this mapping, of which no reference is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), LENGTH) };
    }
}

fn map(file: &File) -> io::Result<NonNull<AtomicU64>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choosing disturbs nothing.
    let address = unsafe {
        libc::mmap(core::ptr::null_mut(), LENGTH, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}
