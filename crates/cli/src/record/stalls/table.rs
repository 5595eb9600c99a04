//! Finds the table of waits of a recorded program, and reads it while the program writes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::ptr;

use stanchion_competitive::waits::shared::{SIZE, Shared};

use super::Refusal;
use crate::watch::procfs::Process;

/// A table that is mapped into this process to be read.
pub(super) struct Table(&'static Shared);

impl Table {
    /// Maps the table in that file. It stays mapped.
    pub(super) fn open(path: &Path) -> Result<Self, Refusal> {
        let wrong = |reason: String| Refusal::Table { path: path.to_owned(), reason };
        let failed = |error: io::Error| wrong(error.to_string());
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length != SIZE as u64 {
            return Err(wrong(format!("it has {length} bytes, one of this version has {SIZE}")));
        }
        // SAFETY: new memory anywhere, over the whole of an open file.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SIZE,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: mapped for good. Nothing here counts in it. The recorded processes write to it
        // by tables like this one.
        let table = unsafe { Shared::at(start.cast_const().cast(), SIZE) };
        table.map(Self).map_err(|foreign| wrong(foreign.to_string()))
    }

    pub(super) fn shared(&self) -> &'static Shared {
        self.0
    }
}

/// Returns the table of a process that is recorded, or records, and true if it is recorded.
pub(super) fn of(process: &Process) -> Result<(PathBuf, bool), Refusal> {
    let name = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let is_table = |path: &Path| {
        let name = name(path);
        name.starts_with("stanchion-") && name.ends_with(".waits")
    };
    // The name of the file has the number of the process that records.
    let prefix = format!("stanchion-{}-", process.id);
    let mapped = process.mapped_files();
    if let Some(path) = mapped.iter().find(|path| is_table(path)) {
        return Ok((path.clone(), !name(path).starts_with(&prefix)));
    }
    if mapped.iter().any(|path| path.to_string_lossy().ends_with(".waits (deleted)")) {
        return Err(Refusal::Over(process.id));
    }
    Err(Refusal::NotRecorded(process.id))
}
