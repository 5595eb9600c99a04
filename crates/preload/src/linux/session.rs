//! What this process is asked to do, by the environment that `stanchion record` sets.
//!
//! | variable | |
//! | --- | --- |
//! | `STANCHION_RECORD` | the file with the shared table ([`shared`]) |
//! | `STANCHION_LOCK` | the policy of the locks that replace the program's, if they are to be replaced |
//!
//! Decided once, at the first call of ours: a lock that was taken as the C library's own must be released so. Several threads may decide at once, to
//! the same end.

use core::ffi::CStr;
use core::ptr;

use machine::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use machine::fork::generation;
use stanchion_competitive::waits::shared::{self, Shared};

use super::replace::{self, Operations};

const UNDECIDED: u8 = 0;
const OFF: u8 = 1;
const RECORD: u8 = 2;
const REPLACE: u8 = 3;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);
static TABLE: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static OPERATIONS: AtomicPtr<Operations> = AtomicPtr::new(ptr::null_mut());
/// The [`generation`] of the process that was counted as one that records; 0 before that.
static COUNTED: AtomicU32 = AtomicU32::new(0);
/// The [`generation`] of the process that was counted as one that locks; 0 before that. A child of
/// a fork inherits its parent's, which is not its own.
static LOCKED: AtomicU32 = AtomicU32::new(0);

/// What is to be done.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    /// Nothing: every call is passed on.
    Off,
    /// Waits are recorded.
    Record(&'static Shared),
    /// Waits are recorded, and the locks are ours.
    Replace(&'static Shared, &'static Operations),
}

#[inline]
pub(super) fn mode() -> Mode {
    // Acquire: pairs with the Release of `decide`.
    match MODE.load(Ordering::Acquire) {
        UNDECIDED => decide(),
        mode => decided(mode),
    }
}

#[inline]
fn decided(mode: u8) -> Mode {
    // SAFETY: null, or a mapping that stays.
    let table = unsafe { TABLE.load(Ordering::Relaxed).as_ref() };
    // SAFETY: null, or a static.
    let operations = unsafe { OPERATIONS.load(Ordering::Relaxed).as_ref() };
    match (mode, table, operations) {
        (RECORD, Some(table), _) => Mode::Record(table),
        (REPLACE, Some(table), Some(operations)) => Mode::Replace(table, operations),
        _ => Mode::Off,
    }
}

/// Counts this process, at its first lock, as one that locks: so a program without any lock can be
/// told from one without contention.
#[inline]
pub(super) fn locks(table: &Shared) {
    // Relaxed, here and below: two threads that both count the process do no harm.
    if LOCKED.load(Ordering::Relaxed) != generation() {
        locks_first(table);
    }
}

#[cold]
fn locks_first(table: &Shared) {
    LOCKED.store(generation(), Ordering::Relaxed);
    // A child of a fork begins no session of its own.
    if COUNTED.swap(generation(), Ordering::Relaxed) != generation() {
        table.process_begins();
    }
    table.process_locks();
}

#[cold]
fn decide() -> Mode {
    let mut mode = OFF;
    if let Some(path) = variable(c"STANCHION_RECORD") {
        match map(path) {
            Ok(table) => {
                COUNTED.store(generation(), Ordering::Relaxed);
                table.process_begins();
                // The first to decide has the table that all use.
                let table = ptr::from_ref(table).cast_mut();
                let _ = TABLE.compare_exchange(
                    ptr::null_mut(),
                    table,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                mode = RECORD;
            }
            Err(why) => {
                say(&[b"waits of this process are not recorded: ", path.to_bytes(), b": ", why])
            }
        }
    }
    if let (RECORD, Some(policy)) = (mode, variable(c"STANCHION_LOCK")) {
        match replace::operations(policy.to_bytes()) {
            Ok(operations) => {
                let operations = ptr::from_ref(operations).cast_mut();
                OPERATIONS.store(operations, Ordering::Relaxed);
                mode = REPLACE;
            }
            Err(why) => say(&[b"locks of this process are not replaced: ", why]),
        }
    }
    // Release: pairs with the Acquire of `mode`, and shows what was stored above.
    MODE.store(mode, Ordering::Release);
    decided(mode)
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero; before `main` nobody changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: null, or a string that ends with a zero and stays.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

fn map(path: &CStr) -> Result<&'static Shared, &'static [u8]> {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(b"it cannot be opened");
    }
    // SAFETY: a file of our own making, of that size or refused below.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let fits = usize::try_from(length).is_ok_and(|length| length == shared::SIZE);
    let start = if fits {
        // SAFETY: new memory anywhere, over the whole of an open file.
        unsafe {
            libc::mmap(
                ptr::null_mut(),
                shared::SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        }
    } else {
        libc::MAP_FAILED
    };
    // SAFETY: opened above; the mapping stays.
    unsafe { libc::close(file) };
    if !fits {
        return Err(b"it is not a table of waits of this version's size");
    }
    if start == libc::MAP_FAILED {
        return Err(b"it cannot be mapped");
    }
    // SAFETY: mapped for good, and used by all processes through tables like this one.
    unsafe { Shared::at(start.cast_const().cast(), shared::SIZE) }
        .map_err(|_| &b"it is not a table of waits of this version"[..])
}

/// Says something on standard error, before the program begins.
pub(super) fn say(parts: &[&[u8]]) {
    let mut line = [0; 512];
    let mut length = 0;
    for part in [&[b"stanchion: ".as_slice()], parts, &[b"\n".as_slice()]].into_iter().flatten() {
        let part = &part[..part.len().min(line.len() - length)];
        line[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    // SAFETY: writes bytes of `line`. If it cannot be said, there is nobody to tell.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
}
