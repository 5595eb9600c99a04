//! Asking the kernel for the switch records of a thread, and understanding its refusals.

use crate::presence::Refused;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` as of Linux 4.1, which has all that is needed.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    /// The type of the event; `type` in C.
    kind: u32,
    /// The size of this structure.
    size: u32,
    /// The event of that type.
    config: u64,
    /// The events between two samples; 0 for no samples.
    sample_period: u64,
    /// The identification in each record.
    sample_type: u64,
    /// The layout of a read of the event, which is never read; 0.
    read_format: u64,
    /// The bit field, with the flags below.
    flags: u64,
    /// The bytes of records after which a thread that polls is woken.
    wakeup_watermark: u32,
    /// The kind of breakpoint; 0, as this is none.
    breakpoint_kind: u32,
    /// More of `config`; 0.
    config1: u64,
    /// More of `config`; 0.
    config2: u64,
    /// The branches in a sample; 0 for none.
    branch_sample_type: u64,
    /// The registers in a sample; 0 for none.
    sample_regs_user: u64,
    /// The bytes of the stack in a sample; 0 for none.
    sample_stack_user: u32,
    /// The clock of the records.
    clockid: i32,
}

const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
const SAMPLE_TIME: u64 = 1 << 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Opens an event that counts nothing and records the calling thread's switches. Records carry the
/// time, and no other identification (`sample_id_all`), so each is a header and a word, 16 bytes.
/// The kernel is excluded, and so the event is permitted without privilege.
pub(super) fn open() -> Result<OwnedFd, Refused> {
    // No thread polls it: wake as seldom as can be said.
    open_for(THIS_THREAD, i32::MAX as u32)
}

/// Opens an event as [`open`] does, for thread `tid` of this process. Its ring wakes the threads
/// that poll it at each record. It records once it is mapped.
pub(in crate::presence) fn open_to_wake(tid: u32) -> Result<OwnedFd, Refused> {
    open_for(tid as libc::pid_t, 1)
}

const THIS_THREAD: libc::pid_t = 0;

fn open_for(thread: libc::pid_t, wakeup_watermark: u32) -> Result<OwnedFd, Refused> {
    let descriptor =
        open_number(thread, wakeup_watermark).map_err(|errno| not_opened(errno, paranoia()))?;
    // SAFETY: the call has just made it, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Opens an event as [`open`] does, and maps its records. Returns the address, or the error number.
/// The descriptor, which is needed for a moment, must be below `descriptors`. Allocates nothing,
/// takes no lock, and is no place where a thread is cancelled.
pub(super) fn open_and_map(page: usize, descriptors: u32) -> Result<*mut libc::c_void, i32> {
    let descriptor = open_number(THIS_THREAD, i32::MAX as u32)?;
    let mapped = if descriptor.unsigned_abs() < descriptors {
        map_number(descriptor, page)
    } else {
        Err(libc::EMFILE)
    };
    // Why not `close`: a thread may be cancelled in it.
    // SAFETY: opened above, and no other code knows it.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
    mapped
}

/// Opens an event. Returns its descriptor, or the error number.
fn open_number(thread: libc::pid_t, wakeup_watermark: u32) -> Result<i32, i32> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: DUMMY,
        sample_type: SAMPLE_TIME,
        flags: EXCLUDE_KERNEL
            | EXCLUDE_HYPERVISOR
            | WATERMARK
            | SAMPLE_ID_ALL
            | USE_CLOCKID
            | CONTEXT_SWITCH,
        wakeup_watermark,
        // The clock of deadlines. The kernel's own for events cannot be read from here.
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    const ANY_PROCESSOR: libc::c_int = -1;
    const NO_GROUP: libc::c_int = -1;
    // SAFETY: the structure is live and of the size that it states; the other arguments are
    // numbers.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            ANY_PROCESSOR,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 { Err(last_error()) } else { Ok(descriptor as i32) }
}

/// Interprets a refusal to open.
fn not_opened(errno: i32, paranoia: Option<i32>) -> Refused {
    match (errno, paranoia) {
        (libc::EACCES | libc::EPERM, Some(level @ 3..)) => Refused::Paranoid { level },
        (libc::EACCES | libc::EPERM, _) => Refused::Filtered { errno },
        (libc::ENOSYS | libc::EINVAL | libc::ENOENT | libc::EOPNOTSUPP | libc::E2BIG, _) => {
            Refused::NoPerfEvents { errno }
        }
        (libc::EMFILE | libc::ENFILE, _) => Refused::Descriptors { errno },
        (errno, _) => Refused::Other { call: "perf_event_open", errno },
    }
}

/// Maps the records of an event, read-only: one page of state and one of records. Returns their
/// address.
pub(super) fn map(event: &OwnedFd, page: usize) -> Result<*mut libc::c_void, Refused> {
    map_number(event.as_raw_fd(), page).map_err(not_mapped)
}

/// Maps the records of the event with that descriptor. Returns the error number if it cannot.
fn map_number(event: i32, page: usize) -> Result<*mut libc::c_void, i32> {
    // SAFETY: a new mapping at an address of the kernel's choosing disturbs nothing.
    let address = unsafe {
        libc::mmap(core::ptr::null_mut(), 2 * page, libc::PROT_READ, libc::MAP_SHARED, event, 0)
    };
    if address == libc::MAP_FAILED { Err(last_error()) } else { Ok(address) }
}

/// Interprets a refusal to map.
fn not_mapped(errno: i32) -> Refused {
    match errno {
        libc::EPERM | libc::EAGAIN => Refused::MemoryLimit {
            mlock_kb: setting("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(0),
            memlock_kb: locked_memory_limit() / 1024,
        },
        errno => Refused::Other { call: "mmap of a perf ring", errno },
    }
}

/// Stops an event's ring from taking records, or lets it take them again. Returns whether it could.
/// Wakes and interrupts no thread.
pub(in crate::presence) fn pause(event: &OwnedFd, paused: bool) -> bool {
    // `_IOW('$', 9, __u32)`, Linux 4.7.
    const PAUSE_OUTPUT: libc::c_ulong = 0x4004_2409;
    // SAFETY: the argument is a number.
    unsafe { libc::ioctl(event.as_raw_fd(), PAUSE_OUTPUT as _, libc::c_ulong::from(paused)) == 0 }
}

fn paranoia() -> Option<i32> {
    setting("/proc/sys/kernel/perf_event_paranoid")
}

fn setting<T: core::str::FromStr>(path: &str) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn locked_memory_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable and of the type asked for.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    limit.rlim_cur
}

pub(in crate::presence) fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_structure_is_of_a_size_that_the_kernel_knows() {
        assert_eq!(size_of::<Attributes>(), 96);
        assert_eq!(core::mem::offset_of!(Attributes, flags), 40);
        assert_eq!(core::mem::offset_of!(Attributes, clockid), 92);
    }

    #[test]
    fn refusals_say_what_would_mend_them() {
        for (refused, says) in [
            (not_opened(libc::EACCES, Some(4)), "perf_event_paranoid is 4"),
            (not_opened(libc::EPERM, Some(2)), "seccomp"),
            (not_opened(libc::EACCES, None), "seccomp"),
            (not_opened(libc::ENOSYS, Some(2)), "CONFIG_PERF_EVENTS"),
            (not_opened(libc::EMFILE, Some(2)), "RLIMIT_NOFILE"),
            (not_opened(libc::EIO, Some(2)), "perf_event_open failed with error 5"),
            (not_mapped(libc::EPERM), "perf_event_mlock_kb"),
            (not_mapped(libc::ENOMEM), "mmap of a perf ring failed with error 12"),
        ] {
            assert!(refused.to_string().contains(says), "{refused}");
        }
    }
}
