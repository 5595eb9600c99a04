//! Affinity masks and control groups.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod affinity;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "affinity_elsewhere.rs"]
mod affinity;
#[cfg(any(target_os = "linux", target_os = "android", all(test, unix)))]
mod control_group;
mod count;

pub(crate) use affinity::{Mask, affinity, pin, processors, processors_of, restore, unpin};
pub(crate) use count::usable;

/// Returns how many processors the machine has running.
pub(crate) fn online() -> usize {
    #[cfg(unix)]
    // SAFETY: `sysconf` reads no memory of ours.
    let online = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) });
    #[cfg(not(unix))]
    let online = std::thread::available_parallelism().map(core::num::NonZero::get);
    online.unwrap_or(1).max(1)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use control_group::quota;

#[cfg(all(target_os = "linux", not(miri)))]
#[inline]
pub(crate) fn current() -> Option<usize> {
    // SAFETY: a question without pointers.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Only Linux is asked.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn current() -> Option<usize> {
    None
}

/// Only Linux has control groups.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn quota() -> Option<crate::topology::Quota> {
    None
}
