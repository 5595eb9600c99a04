//! Helpers for tests that change their process (its user, its filters, its limits, a fork) and
//! therefore need one of their own.

use std::fs::File;

pub(crate) use stanchion_alone::{alone, in_a_fork};
use stanchion_alone::{filter, is_child, refusal};

/// The user's account of locked memory. The kernel keeps one for all of a user's processes. So
/// tests that exhaust it must not run beside tests that take from it, in any process: a lock on a
/// file keeps them apart.
pub(crate) struct Account {
    /// The locked file, in the process that holds the lock.
    _locked: Option<File>,
}

impl Account {
    /// Takes the account for a test that needs little of it.
    pub(crate) fn shared() -> Self {
        Self::locked(File::lock_shared)
    }

    /// Takes the account for a test that exhausts it.
    pub(crate) fn to_ourselves() -> Self {
        Self::locked(File::lock)
    }

    fn locked(how: impl FnOnce(&File) -> std::io::Result<()>) -> Self {
        // A process that was started for one test does not lock: the test that started it holds the
        // lock.
        if is_child() {
            return Self { _locked: None };
        }
        // SAFETY: the call takes no pointer.
        let user = unsafe { libc::geteuid() };
        let path = std::env::temp_dir().join(format!("stanchion-locked-memory-{user}"));
        let file = File::options().create(true).append(true).open(path).unwrap();
        how(&file).unwrap();
        Self { _locked: Some(file) }
    }
}

/// Gives up all privilege, if the process has any.
pub(crate) fn become_nobody() {
    const NOBODY: u32 = 65534;
    // SAFETY: the call takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    // SAFETY: no groups are read, because the count is 0.
    assert_eq!(unsafe { libc::setgroups(0, std::ptr::null()) }, 0);
    // SAFETY: the call takes a number.
    assert_eq!(unsafe { libc::setgid(NOBODY) }, 0);
    // SAFETY: the call takes a number.
    assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
}

/// Allows no locked memory beyond what the system grants each user for rings.
pub(crate) fn lock_no_memory() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is live.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }, 0);
}

/// Makes `perf_event_open` fail with `errno`, as a container's filter does.
pub(crate) fn refuse_perf_events(errno: i32) {
    assert!(filter(libc::SYS_perf_event_open, refusal(errno)));
}
