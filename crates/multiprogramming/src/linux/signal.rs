//! The signal that interrupts members.

use core::sync::atomic::{AtomicI32, Ordering};

use crate::Refused;
use stanchion_machine::control::signal::{self, Unclaimed};

pub(super) use stanchion_machine::control::signal::unblock;

/// The number of this process, for the thread that sends.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Has the handler installed for `wanted`, or for the first signal that is free; says which.
pub(super) fn claim(wanted: Option<i32>) -> Result<i32, Refused> {
    // SAFETY: cannot fail. Relaxed: read by the same process, after a lock or a thread's start.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    // SAFETY: the handler does only what a handler may, and nothing for a thread that is no member.
    let claimed = unsafe { signal::claim(interrupted, wanted) };
    claimed.map_err(|why| match why {
        Unclaimed::NotRealTime { from, to } => {
            Refused::NotRealTime { signal: wanted.unwrap_or_default(), from, to }
        }
        Unclaimed::Taken => Refused::Taken { signal: wanted.unwrap_or_default() },
        Unclaimed::NoneFree { from, to } => Refused::NoSignal { from, to },
        Unclaimed::Other { call, errno } => Refused::Other { call, errno },
    })
}

/// Calls nothing but `clock_gettime`, `futex` and this thread's thread-locals, which it has used
/// before it joined; keeps `errno`.
extern "C" fn interrupted(_signal: libc::c_int) {
    signal::keeping_errno(super::member::interrupted);
}

/// Interrupts thread `tid` of this process; says whether the signal was sent. If the thread has
/// ended, the number may be that of another thread of this process. That thread is no member, or
/// sees that its slice is not over.
pub(super) fn send(signal: i32, tid: i32) -> bool {
    // Relaxed: see `claim`.
    signal::send(signal, PROCESS.load(Ordering::Relaxed), tid)
}
