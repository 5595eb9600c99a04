//! Preference by `SCHED_FIFO`.
//!
//! `SCHED_RESET_ON_FORK` is set: threads and processes that a preferred thread starts are ordinary.
//! But a trial leaves that flag as it is. A process without privilege can set it and never clear
//! it. A policy that is set without the flag is then refused, also the one that the thread had.
//! These are system calls, and not the C library's functions, because those of musl refuse.

use crate::backend::errno::errno;
use crate::control::{Preference, Refused};

/// Has thread `tid`, 0 for the calling one, chosen so; or what the system said. Async-signal-safe.
pub(super) fn set(tid: i32, preference: Preference) -> Result<(), i32> {
    let (policy, level) = match preference {
        Preference::Ordinary => (libc::SCHED_OTHER, 0),
        Preference::Before(level) => (libc::SCHED_FIFO, level),
    };
    set_policy(tid, policy | libc::SCHED_RESET_ON_FORK, level)
}

fn set_policy(tid: i32, policy: i32, level: u8) -> Result<(), i32> {
    let level = i32::from(level);
    // SAFETY: a number, a number and a structure that outlives the call; an `int` is all of it in
    // the kernel.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const level) };
    if result == 0 { Ok(()) } else { Err(errno()) }
}

pub(crate) fn prefer(preference: Preference) -> bool {
    set(0, preference).is_ok()
}

/// Of the calling thread, with the flag.
fn policy() -> i32 {
    // SAFETY: only asks.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    i32::try_from(policy).unwrap_or(-1)
}

pub(crate) fn can_prefer(level: u8) -> Result<(), Refused> {
    let before = policy();
    let flag = before & libc::SCHED_RESET_ON_FORK;
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&(before ^ flag)) {
        // This thread has been given a policy of its own, which a trial might be unable to restore.
        return by_limit(level);
    }
    match set_policy(0, libc::SCHED_FIFO | flag, level) {
        // From this policy to that one, with the flag as it is, is always allowed.
        Ok(()) => set_policy(0, before, 0)
            .map_err(|errno| Refused::Other { call: "sched_setscheduler", errno }),
        Err(libc::EPERM) => Err(Refused::NoPermission { level, limit: limit() }),
        Err(errno) => Err(Refused::Other { call: "sched_setscheduler", errno }),
    }
}

/// Answers by the limit on real-time priorities, without a trial.
fn by_limit(level: u8) -> Result<(), Refused> {
    let limit = limit();
    if limit >= u64::from(level) { Ok(()) } else { Err(Refused::NoPermission { level, limit }) }
}

fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut limit) };
    limit.rlim_cur
}
