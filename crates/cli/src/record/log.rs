//! The file of single waits that all processes of the program write, and its memory.
//!
//! A program that writes to a mapped file of a full disk is ended by a signal. So the program
//! writes only where this process has reserved memory for the file. A thread reserves more as the
//! program uses it, in steps, and never more than half of what the file system had left.
//!
//! A wild program may cut the file or make holes in it. So this process reads it by calls, which
//! then fail, and not where it is mapped.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stanchion_competitive::waits::log::{self, Header, Log, Logged};

use stanchion_study::output::Output;

use super::{Refusal, table};

/// The length of a wait in a recording's file, in bytes, and rarely more.
const ROW: u64 = 80;
/// The number of entries that are reserved at first, and at least with each step: 1 MB.
const STEP: usize = 1 << 14;
/// The time between two looks at how much the program has used.
const LOOK: Duration = Duration::from_millis(20);

/// The log while the program runs. Its file is removed when it is dropped.
pub(super) struct Events {
    /// The file that the program maps.
    path: PathBuf,
    /// Ends the thread that reserves memory, when it is dropped.
    end: Option<Sender<()>>,
    /// The thread that reserves memory.
    thread: Option<JoinHandle<Memory>>,
}

impl Events {
    /// Makes a log for a recording of so many bytes. Returns `None` if it would have no wait, and
    /// if there is no room for it, after a message.
    pub(super) fn new(limit: u64) -> Option<Self> {
        let entries = usize::try_from(limit / ROW).unwrap_or(usize::MAX);
        if entries == 0 {
            return None;
        }
        Self::with_entries(entries).inspect_err(|error| say(error)).ok()
    }

    fn with_entries(entries: usize) -> Result<Self, Refusal> {
        let (path, mut memory) = table::file("log", |path| Memory::new(path, entries))?;
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && memory.keep_ahead()
            {
            }
            memory
        });
        Ok(Self { path, end: Some(end), thread: Some(thread) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the program has written, or `None` after a message if that cannot be read.
    pub(super) fn gather(mut self) -> Option<Logged> {
        // The thread does not panic.
        let memory = self.stop()?;
        memory.gather().inspect_err(|error| say(error)).ok()
    }

    /// Ends the thread that reserves memory, and returns the memory.
    fn stop(&mut self) -> Option<Memory> {
        self.end.take();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_file(&self.path);
    }
}

/// Says why there are no single waits.
fn say(reason: &dyn Display) {
    Output::Stderr.line(format_args!("stanchion: single waits are not kept: {reason}"));
}

/// The memory of a log.
struct Memory {
    /// Its file.
    file: File,
    /// The length of the file, in bytes.
    length: usize,
    /// The log, mapped into this process.
    log: Log<'static>,
    /// The number of entries that have memory.
    ready: usize,
    /// The number of entries that were used at the last look.
    used: usize,
    /// The length of the file that may have memory, in bytes.
    most: u64,
}

impl Memory {
    /// Makes the file of a log, and reserves its first memory.
    fn new(path: &Path, entries: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Self::fill(file, entries).inspect_err(|_| {
            let _ = fs::remove_file(path);
        })
    }

    /// Makes an empty file a log.
    fn fill(mut file: File, entries: usize) -> io::Result<Self> {
        let length = log::size(entries);
        file.write_all(&log::header(entries))?;
        file.set_len(length as u64)?;
        let most = most(space(&file)?, length as u64)?;
        let ready = reserve(&file, 0, STEP, most)?;
        // SAFETY: new memory anywhere, over the whole of an open file.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mapped for good, and the recorded processes use it by logs like this one. Entries
        // are written only once they have memory.
        let log = unsafe { Log::at(start.cast_const().cast(), length) };
        let log = log.map_err(io::Error::other)?;
        log.grow(ready);
        Ok(Self { file, length, log, ready, used: 0, most })
    }

    /// Reserves more if the program is about to need it. Returns false once there is no more to
    /// reserve.
    fn keep_ahead(&mut self) -> bool {
        let Some(used) = self.used() else { return false };
        // As much as it used since the last look, eight times.
        let ahead = (used - self.used.min(used)).saturating_mul(8).max(STEP);
        self.used = used;
        if self.ready - self.ready.min(used) >= ahead / 2 {
            return true;
        }
        let wanted = used.saturating_add(ahead);
        // Without more, the program makes do with what it has.
        let ready = reserve(&self.file, self.ready, wanted, self.most).unwrap_or(self.ready);
        self.ready = ready;
        self.log.grow(ready);
        if ready < wanted {
            self.log.limit(ready);
        }
        ready >= wanted
    }

    /// Returns the number of entries that were used so far, unless the file was cut.
    fn used(&self) -> Option<usize> {
        if self.file.metadata().ok()?.len() < self.length as u64 {
            return None;
        }
        let mut next = [0; 8];
        self.file.read_exact_at(&mut next, log::USED_AT as u64).ok()?;
        let entries = log::entries(self.length);
        Some(usize::try_from(u64::from_ne_bytes(next)).map_or(entries, |next| next.min(entries)))
    }

    /// Returns what a copy of the file has.
    fn gather(&self) -> io::Result<Logged> {
        const ALIGNMENT: usize = mem::align_of::<Header>();
        let mut words = vec![0_u64; (self.length + ALIGNMENT).div_ceil(8)];
        let skipped = words.as_ptr().align_offset(ALIGNMENT);
        let copy = words[skipped..].as_mut_ptr().cast::<u8>();
        let length = log::size(self.ready).min(self.length);
        // SAFETY: the words have `self.length` bytes from there on, and this function alone has
        // them.
        let bytes = unsafe { slice::from_raw_parts_mut(copy, length) };
        // What is missing remains 0, as an entry without a wait.
        read(&self.file, bytes)?;
        // SAFETY: as above, and the bytes are not used any more.
        let log = unsafe { Log::at(copy, self.length) }.map_err(io::Error::other)?;
        // The program may have written another number there.
        log.grow(self.ready);
        Ok(log.gather())
    }
}

/// Reads a file from its beginning, until the bytes are full or it ends.
fn read(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the length that a log of `length` bytes may have in a file system with `space` bytes
/// left: half of them, because the program may need the others itself. The names of threads are
/// written from the beginning, so there has to be room for all of them.
fn most(space: u64, length: u64) -> io::Result<u64> {
    let most = (space / 2).min(length);
    if most < log::size(1) as u64 {
        return Err(io::Error::from_raw_os_error(libc::ENOSPC));
    }
    Ok(most)
}

/// Returns the bytes that the file system of a file has left.
fn space(file: &File) -> io::Result<u64> {
    // SAFETY: plain numbers, for which zeros are a value.
    let mut space: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: an open file; writes to `space`.
    let failed = unsafe { libc::fstatvfs(file.as_raw_fd(), &mut space) };
    if failed == 0 {
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reserves memory for the first `wanted` entries of a log that has it for `ready`, and for no more
/// than the first `most` bytes. Returns the number of entries that have it now.
fn reserve(file: &File, ready: usize, wanted: usize, most: u64) -> io::Result<usize> {
    let from = if ready == 0 { 0 } else { log::size(ready) as u64 };
    let end = (log::size(wanted) as u64).min(most);
    if end <= from {
        return Ok(ready);
    }
    loop {
        // SAFETY: an open file.
        let failed = unsafe {
            libc::posix_fallocate(
                file.as_raw_fd(),
                from as libc::off_t,
                (end - from) as libc::off_t,
            )
        };
        match failed {
            0 => return Ok(log::entries(usize::try_from(end).unwrap_or(usize::MAX))),
            libc::EINTR => {}
            _ => return Err(io::Error::from_raw_os_error(failed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use stanchion_competitive::waits::log::Wait;

    use super::*;

    fn wait(start_ns: u64) -> Wait {
        Wait {
            process: 1,
            thread: 2,
            start_ns,
            length_ns: 3,
            name: None,
            waker: 0,
            meanwhile: None,
        }
    }

    /// A log of so many entries.
    fn memory(name: &str, entries: usize) -> (PathBuf, Memory) {
        let path = std::env::temp_dir().join(format!("stanchion-{name}-{}", std::process::id()));
        (path.clone(), Memory::new(&path, entries).unwrap())
    }

    #[test]
    fn memory_is_reserved_as_it_is_used() {
        let (path, mut memory) = memory("reserved", 1 << 20);
        let length = |memory: &Memory| memory.file.metadata().unwrap().blocks() * 512;
        let first = length(&memory);
        assert!(first >= log::size(STEP) as u64, "{first}");
        assert!(memory.keep_ahead() && length(&memory) == first, "an idle program costs nothing");
        (0..STEP as u64).for_each(|start| memory.log.add(&wait(start)));
        assert!(memory.keep_ahead());
        assert!(length(&memory) > first);
        (0..100).for_each(|start| memory.log.add(&wait(start)));
        let logged = memory.gather().unwrap();
        assert_eq!((logged.waits.len(), logged.late), (STEP + 100, 0));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_file_system_makes_the_log_smaller() {
        let (path, mut memory) = memory("full", 1 << 20);
        // As if there were no more.
        memory.most = log::size(STEP) as u64;
        (0..STEP as u64).for_each(|start| memory.log.add(&wait(start)));
        assert!(!memory.keep_ahead());
        (0..3 * STEP as u64).for_each(|start| memory.log.add(&wait(start)));
        let logged = memory.gather().unwrap();
        assert_eq!(logged.seen, 4 * STEP as u64);
        assert!((STEP / 4..=STEP).contains(&logged.waits.len()), "{}", logged.waits.len());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_log_without_room_for_the_names_is_refused() {
        let (whole, least) = (log::size(100) as u64, log::size(1) as u64);
        assert_eq!(most(2 * least - 1, whole).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(most(2 * least, whole).unwrap(), least);
        assert_eq!(most(u64::MAX, whole).unwrap(), whole);
    }

    #[test]
    fn a_log_that_the_program_has_damaged_is_no_end_of_the_recorder() {
        let (path, mut memory) = memory("damaged", 1 << 20);
        memory.log.add(&wait(1));
        memory.log.grow(1 << 20);
        assert_eq!((memory.used(), memory.gather().unwrap().waits.len()), (Some(1), 1));
        memory.file.write_all_at(&[0xFF; 8], log::USED_AT as u64).unwrap();
        assert_eq!(memory.used(), Some(1 << 20));
        memory.file.write_all_at(&[0xFF; 8], 8).unwrap();
        assert!(memory.gather().is_err());
        memory.file.set_len(0).unwrap();
        assert!(!memory.keep_ahead() && memory.gather().is_err());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_recording_without_room_has_no_log() {
        assert!(Events::new(ROW - 1).is_none());
        let events = Events::new(ROW).unwrap();
        let path = events.path().to_owned();
        assert!(path.exists());
        drop(events);
        assert!(!path.exists());
    }
}
