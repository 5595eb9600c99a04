//! Signals for threads of our own: which one, its handler, sending it.
//!
//! A handler is never taken away again: a signal may be under way when its last user ends, and would then end the process. A thread that it is not
//! meant for returns from it at once.

use core::ptr;
use std::sync::{Mutex, PoisonError};

/// What a signal runs: between any two instructions, so it does what a handler may; it keeps `errno` ([`keeping_errno`]).
pub(super) type Handler = extern "C" fn(libc::c_int);

/// What is under way by signal, by its number: the address of our handler, 0 for none. Numbers are at most 64 on Linux.
static OURS: Mutex<[usize; 65]> = Mutex::new([0; 65]);

/// Why there is no signal.
#[derive(Debug)]
pub(super) enum Unclaimed {
    NotRealTime { from: i32, to: i32 },
    Taken,
    NoneFree { from: i32, to: i32 },
    Other { call: &'static str, errno: i32 },
}

/// Has `handler` installed for `wanted`, or for the first real-time signal that is free; says which.
pub(super) fn claim(handler: Handler, wanted: Option<i32>) -> Result<i32, Unclaimed> {
    let (from, to) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(signal) = wanted {
        if !(from..=to).contains(&signal) {
            return Err(Unclaimed::NotRealTime { from, to });
        }
        return if take(&mut ours, handler, signal)? { Ok(signal) } else { Err(Unclaimed::Taken) };
    }
    for signal in from..=to {
        if take(&mut ours, handler, signal)? {
            return Ok(signal);
        }
    }
    Err(Unclaimed::NoneFree { from, to })
}

/// Whether `signal` has `handler` now: it had it, or nobody's.
fn take(ours: &mut [usize; 65], handler: Handler, signal: i32) -> Result<bool, Unclaimed> {
    let handler = handler as usize;
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks; `action` is writable.
    if unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } != 0 {
        return Err(failed("sigaction"));
    }
    let known = usize::try_from(signal).ok().and_then(|number| ours.get_mut(number));
    let Some(known) = known else { return Ok(false) };
    if *known == handler && action.sa_sigaction == handler {
        return Ok(true);
    }
    if *known != 0 || action.sa_sigaction != libc::SIG_DFL {
        return Ok(false);
    }
    action.sa_sigaction = handler;
    // On the alternate stack if the thread has one: it may run on a small stack just now.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and its handler does only what a handler may.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(failed("sigaction"));
    }
    *known = handler;
    Ok(true)
}

/// Runs the body of a handler, and leaves `errno` to the code that was interrupted. Async-signal-safe if `body` is.
pub(super) fn keeping_errno(body: impl FnOnce()) {
    // SAFETY: the place of this thread's `errno`, which the interrupted code may be about to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid while the thread lives.
    let before = unsafe { *errno };
    body();
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
/// for which the handler does nothing. Async-signal-safe.
pub(super) fn send(signal: i32, process: i32, tid: i32) -> bool {
    // SAFETY: sends a signal that has a handler to a thread of this process; a number that is none is an error, which is as well.
    unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) == 0 }
}

/// What the system has just said.
pub(super) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn failed(call: &'static str) -> Unclaimed {
    Unclaimed::Other { call, errno: errno() }
}
