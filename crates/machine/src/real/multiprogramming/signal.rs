//! The signal that interrupts members: which one, its handler, sending it.
//!
//! The handler is never taken away again: a signal may be under way when its scheduler ends, and would then end the process. A thread that is no
//! member returns from it at once.

use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::multiprogramming::Refused;

/// The signals that have our handler, a bit each.
static OURS: Mutex<u64> = Mutex::new(0);

/// The process that this is, for who sends.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Has the handler installed for `wanted`, or for the first signal that is free; says which.
pub(super) fn claim(wanted: Option<i32>) -> Result<i32, Refused> {
    let (from, to) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: cannot fail. Relaxed: read by the same process, after a lock or a thread's start.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    if let Some(signal) = wanted {
        if !(from..=to).contains(&signal) {
            return Err(Refused::NotRealTime { signal, from, to });
        }
        return if take(&mut ours, signal)? { Ok(signal) } else { Err(Refused::Taken { signal }) };
    }
    for signal in from..=to {
        if take(&mut ours, signal)? {
            return Ok(signal);
        }
    }
    Err(Refused::NoSignal { from, to })
}

/// Whether `signal` has our handler now: it had it, or nobody's.
fn take(ours: &mut u64, signal: i32) -> Result<bool, Refused> {
    // Numbers are at most 64 on Linux.
    let bit = 1_u64 << (signal - 1);
    if *ours & bit != 0 {
        return Ok(true);
    }
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks; `action` is writable.
    if unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } != 0 {
        return Err(failed("sigaction"));
    }
    if action.sa_sigaction != libc::SIG_DFL {
        return Ok(false);
    }
    let handler: extern "C" fn(libc::c_int) = interrupted;
    action.sa_sigaction = handler as usize;
    // On the alternate stack if the thread has one: it may run on a small stack just now.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and its handler does only what a handler may.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(failed("sigaction"));
    }
    *ours |= bit;
    Ok(true)
}

/// Calls nothing but `clock_gettime`, `futex` and this thread's thread-locals, which it has used before it joined; keeps `errno`.
extern "C" fn interrupted(_signal: libc::c_int) {
    // SAFETY: the place of this thread's `errno`, which the interrupted code may be about to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid while the thread lives.
    let before = unsafe { *errno };
    super::member::interrupted();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Lets the calling thread be interrupted by `signal`.
pub(super) fn unblock(signal: i32) {
    // SAFETY: all zeroes is a valid set.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: `set` is writable, and the signal exists.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: `set` is whole; only the calling thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
}

/// Interrupts thread `tid` of this process; says whether the signal was sent. If the thread has ended, the number may be another's of this process,
/// which is no member, or sees for itself that its slice is not over.
pub(super) fn send(signal: i32, tid: i32) -> bool {
    // Relaxed: see `claim`.
    let process = PROCESS.load(Ordering::Relaxed);
    // SAFETY: sends a signal that has a handler to a thread of this process; a number that is none is an error, which is as well.
    unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) == 0 }
}

pub(super) fn failed(call: &'static str) -> Refused {
    Refused::Other { call, errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}
