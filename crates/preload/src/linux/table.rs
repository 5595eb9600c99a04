//! The shared table of this process, in which its waits are recorded, and the counts of processes
//! there.

use core::ffi::CStr;
use core::ptr;

use stanchion_competitive::waits::Loss;
use stanchion_competitive::waits::shared::{self, Shared};
use stanchion_machine::atomic::{AtomicPtr, AtomicU32, Ordering};
use stanchion_machine::fork::generation;

use super::errno;

/// The shared table, or null. The first thread that opens it writes it.
static TABLE: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
/// The [`generation`] of the process when it was counted as a process that records, or 0 before
/// that.
static COUNTED: AtomicU32 = AtomicU32::new(0);
/// The [`generation`] of the process when it was counted as a process that locks, or 0 before that.
/// A child of a fork inherits its parent's value, which is not its own generation.
static LOCKED: AtomicU32 = AtomicU32::new(0);

/// Returns the table, if waits are recorded.
#[inline]
pub(super) fn recorded() -> Option<&'static Shared> {
    // Relaxed: the caller has seen the mode, which was stored after the table.
    let table = TABLE.load(Ordering::Relaxed);
    // SAFETY: null, or a mapping that stays for good.
    unsafe { table.as_ref() }
}

/// Notes a loss, if waits are recorded.
pub(super) fn lose(loss: Loss) {
    if let Some(table) = recorded() {
        table.lose(loss);
    }
}

/// Maps the table in the file at `path`, and counts this process as one that records.
pub(super) fn open(path: &CStr) -> Result<(), &'static [u8]> {
    let start = map(path, shared::SIZE)?;
    // SAFETY: mapped for good. All processes use it only through tables like this one.
    let table = unsafe { Shared::at(start, shared::SIZE) }
        .map_err(|_| &b"it is not a table of waits of this version"[..])?;
    COUNTED.store(generation(), Ordering::Relaxed);
    table.process_begins();
    clear_waits(table);
    let table = ptr::from_ref(table).cast_mut();
    // Release: shows the table. The first thread stores the one that all threads use.
    let _ = TABLE.compare_exchange(ptr::null_mut(), table, Ordering::Release, Ordering::Relaxed);
    Ok(())
}

/// The most processes that are looked for when this one begins.
const LOOKED_FOR: u32 = 64;

/// Clears the waits that other processes have left behind. Processes end with threads that wait,
/// and each of them would keep a slot for good. That is done here because a process must not make
/// such system calls later.
fn clear_waits(table: &Shared) {
    // SAFETY: asks for a number.
    let own = unsafe { libc::getpid() }.unsigned_abs();
    let mut last = (0, true);
    let mut looked_for = 0;
    errno::kept(|| {
        table.clear_waits(|process| {
            if process != last.0 && looked_for < LOOKED_FOR {
                looked_for += 1;
                last = (process, is_gone(process));
            }
            // A wait of this process is of the program that it ran before an `exec`.
            process == own || process == last.0 && last.1
        });
    });
}

/// Returns whether there is no process of that number.
fn is_gone(process: u32) -> bool {
    match libc::pid_t::try_from(process) {
        // SAFETY: sends no signal.
        Ok(id) if id > 0 => (unsafe { libc::kill(id, 0) }) != 0 && errno::last() == libc::ESRCH,
        _ => true,
    }
}

/// Counts this process, at its first lock, as a process that locks. So a program without any lock
/// can be told from a program without contention.
#[inline]
pub(super) fn count_locking_process(table: &Shared) {
    // Relaxed, here and below: the words are numbers by themselves.
    if LOCKED.load(Ordering::Relaxed) != generation() {
        count_first_lock(table);
    }
}

/// Counts this process as one that locks. If it is the child of a fork, counts it as one that
/// records too. Of several threads that lock first at the same time, one counts it.
#[cold]
fn count_first_lock(table: &Shared) {
    if LOCKED.swap(generation(), Ordering::Relaxed) == generation() {
        return;
    }
    // The child of a fork does not decide again, so it is counted here.
    if COUNTED.swap(generation(), Ordering::Relaxed) != generation() {
        table.process_begins();
    }
    table.process_locks();
}

/// Maps a table of `size` bytes in the file at `path`, for good.
pub(super) fn map(path: &CStr, size: usize) -> Result<*const u8, &'static [u8]> {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(b"it cannot be opened");
    }
    // SAFETY: an open file. If it does not have the size of the table, it is refused below.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let fits = usize::try_from(length).is_ok_and(|length| length == size);
    let start = if fits {
        // SAFETY: new memory anywhere, over the whole of an open file.
        unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
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
        return Err(b"it is not a table of this version's size");
    }
    if start == libc::MAP_FAILED {
        return Err(b"it cannot be mapped");
    }
    Ok(start.cast_const().cast())
}
