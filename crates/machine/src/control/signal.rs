//! Signals for threads of this process: the choice of one, its handler, sending it. Linux only.
//!
//! [`Place::interrupt`](super::Place::interrupt) uses them. A scheduler inside the program that
//! needs more than that, such as a handler that stops the thread, claims a signal of its own.
//!
//! A handler is never taken away again: a signal may be under way when its last user ends, and
//! would then end the process. A thread that it is not meant for returns from it at once.
//!
//! Claims take no lock: a child of `fork` would find it held for ever if another thread of its
//! parent was in a claim. A claim that is cut short, or that two threads make at once, can be
//! repeated: it installs the same handler again.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::{fmt, ptr};

use crate::backend::errno::errno;

pub use crate::backend::errno::keeping_errno;

/// The code that a signal runs, between any two instructions. So it does only what a handler may,
/// and keeps `errno` ([`keeping_errno`]).
pub type Handler = extern "C" fn(libc::c_int);

/// The address of our handler for each signal, 0 for none. It is set before the handler is
/// installed, and does not change any more. Numbers are at most 64 on Linux.
static OURS: [AtomicUsize; 65] = [const { AtomicUsize::new(0) }; 65];

/// A reason why there is no signal.
#[derive(Debug)]
pub enum Unclaimed {
    /// The signal that was asked for is not a real-time signal.
    NotRealTime {
        /// The first real-time signal.
        from: i32,
        /// The last one.
        to: i32,
    },
    /// The program handles or ignores the signal that was asked for.
    Taken,
    /// The program handles or ignores each real-time signal.
    NoneFree {
        /// The first signal that was tried.
        from: i32,
        /// The last one.
        to: i32,
    },
    /// Any other error.
    Other {
        /// The system call.
        call: &'static str,
        /// The error number that it returned.
        errno: i32,
    },
}

impl fmt::Display for Unclaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRealTime { from, to } => {
                write!(f, "no real-time signal: these are {from} to {to}")
            }
            Self::Taken => f.write_str("the program handles or ignores that signal"),
            Self::NoneFree { from, to } => {
                write!(f, "the program handles or ignores each signal from {from} to {to}")
            }
            Self::Other { call, errno } => write!(f, "{call} failed with error {errno}"),
        }
    }
}

impl core::error::Error for Unclaimed {}

/// Installs `handler` for `wanted`, or for the first real-time signal that is free; returns which.
///
/// # Errors
///
/// [`Unclaimed`], if the wanted signal cannot be had, or none.
///
/// # Safety
///
/// From now on `handler` may run in each thread of the process, between any two instructions. So it
/// does only what a handler of signals may, for a thread that it is not meant for as well.
pub unsafe fn claim(handler: Handler, wanted: Option<i32>) -> Result<i32, Unclaimed> {
    let (from, to) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    if let Some(signal) = wanted {
        if !(from..=to).contains(&signal) {
            return Err(Unclaimed::NotRealTime { from, to });
        }
        return if take(handler, signal)? { Ok(signal) } else { Err(Unclaimed::Taken) };
    }
    for signal in from..=to {
        if take(handler, signal)? {
            return Ok(signal);
        }
    }
    Err(Unclaimed::NoneFree { from, to })
}

/// Returns whether `signal` has `handler` now: it had that, or none.
fn take(handler: Handler, signal: i32) -> Result<bool, Unclaimed> {
    let handler = handler as usize;
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks; `action` is writable.
    if unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } != 0 {
        return Err(failed("sigaction"));
    }
    if ![libc::SIG_DFL, handler].contains(&action.sa_sigaction) {
        return Ok(false);
    }
    let ours = usize::try_from(signal).ok().and_then(|number| OURS.get(number));
    let Some(ours) = ours else { return Ok(false) };
    if action.sa_sigaction == handler {
        // A handler at this address that was not installed here has other flags.
        // Relaxed: a number.
        return Ok(ours.load(Ordering::Relaxed) == handler);
    }
    // Relaxed, both: a number. The system call below orders what follows.
    match ours.compare_exchange(0, handler, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != handler => return Ok(false),
        // Ours, now or by a claim that has not installed it yet, or never will.
        _ => {}
    }
    action.sa_sigaction = handler;
    // On the alternate stack if the thread has one: it may run on a small stack just now.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and its handler does only what a handler may.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(failed("sigaction"));
    }
    Ok(true)
}

/// Returns whether `signal` has `handler` now. A program that installs its own handler later, or
/// ignores the signal, or gives it back to the system, takes it away. Async-signal-safe.
pub(crate) fn has(handler: Handler, signal: i32) -> bool {
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks; `action` is writable.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } == 0;
    asked && action.sa_sigaction == handler as usize
}

/// Lets the calling thread be interrupted by `signal`.
pub fn unblock(signal: i32) {
    mask(libc::SIG_UNBLOCK, signal);
}

/// Keeps `signal` pending for the calling thread; returns whether it was not kept before.
pub(crate) fn block(signal: i32) -> bool {
    let before = mask(libc::SIG_BLOCK, signal);
    // SAFETY: `before` is whole, and the signal exists.
    unsafe { libc::sigismember(&raw const before, signal) == 0 }
}

/// Changes the calling thread's mask for `signal`, and returns the mask from before.
fn mask(how: libc::c_int, signal: i32) -> libc::sigset_t {
    // SAFETY: all zeroes is a valid set.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    let mut before = set;
    // SAFETY: `set` is writable, and the signal exists.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: `set` is whole, `before` is writable; only the calling thread's mask changes.
    unsafe { libc::pthread_sigmask(how, &raw const set, &raw mut before) };
    before
}

/// Interrupts thread `tid` of this process by a signal that [`claim`] has returned. Returns whether
/// the signal was sent: not if it is no claimed one. If the thread has ended, the number may belong
/// to another thread of this process, for which the handler does nothing. Async-signal-safe.
pub fn send(signal: i32, process: i32, tid: i32) -> bool {
    let ours = usize::try_from(signal).ok().and_then(|number| OURS.get(number));
    // Relaxed: a number. A handler of the C library's own signals trusts its sender.
    if ours.is_none_or(|handler| handler.load(Ordering::Relaxed) == 0) {
        return false;
    }
    // SAFETY: in this process the signal runs a handler of ours, which may run in any thread
    // (`claim`), or ends the process. Nothing else of this process's memory is touched, whichever
    // thread the numbers name.
    unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) == 0 }
}

fn failed(call: &'static str) -> Unclaimed {
    Unclaimed::Other { call, errno: errno() }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn one(_signal: libc::c_int) {}
    /// Does something else than `one`, or both could have one address.
    extern "C" fn other(_signal: libc::c_int) {
        std::process::abort();
    }

    #[test]
    fn a_signal_that_was_not_claimed_is_not_sent() {
        let process = std::process::id().cast_signed();
        // SAFETY: asks for a number.
        let thread = unsafe { libc::gettid() };
        // It would end the process.
        assert!(!send(libc::SIGKILL, process, thread));
        assert!(!send(-1, process, thread));
        assert!(!send(1_000, process, thread));
    }

    #[test]
    fn a_claim_that_a_fork_has_cut_short_is_made_again() {
        let signal = libc::SIGRTMAX() - 1;
        // SAFETY: one handler does nothing, and the other is never installed.
        let claimed = |handler: Handler| unsafe { claim(handler, Some(signal)) };
        // As a child finds it: another thread of its parent was about to install the handler.
        OURS[usize::try_from(signal).unwrap()].store(one as *const () as usize, Ordering::Relaxed);
        assert!(matches!(claimed(other), Err(Unclaimed::Taken)));
        assert_eq!(claimed(one).unwrap(), signal);
        assert_eq!(claimed(one).unwrap(), signal);
        assert!(matches!(claimed(other), Err(Unclaimed::Taken)));
    }
}
