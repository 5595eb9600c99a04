//! The operating system's threads.

pub use std::thread::{Builder, JoinHandle, sleep, spawn, yield_now};

mod ids;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(crate) use ids::before_reuse;
pub(crate) use ids::index;

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn wake_politely() {
    let parameters = libc::sched_param { sched_priority: 0 };
    const THIS_THREAD: libc::pid_t = 0;
    // SAFETY: the structure is live, and only read.
    unsafe { libc::sched_setscheduler(THIS_THREAD, libc::SCHED_BATCH, &raw const parameters) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn wake_politely() {}
