//! Stalling threads wherever they are: a signal whose handler sleeps.
//!
//! Preemption hits a lock between any two instructions, but rarely: a time slice is millions of them. A handler that sleeps up to
//! [`LONGEST_STALL`] does the same some thousand times a second. Linux only, because only there can a signal be sent to
//! one thread by number; elsewhere nothing is inflicted and the figures say `0 stalls`.

use std::time::Duration;

/// The longest sleep of a handler. The stalls are spread evenly from 0 to this.
pub const LONGEST_STALL: Duration = Duration::from_millis(2);

/// Puts the calling thread on the first processor that this process may use.
pub fn share_one_processor() {
    let first = core_affinity::get_core_ids().and_then(|ids| ids.into_iter().next());
    // Where affinity cannot be had the phase is one more crowd, which is no less a test.
    if let Some(first) = first {
        core_affinity::set_for_current(first);
    }
}

#[cfg(target_os = "linux")]
pub use linux::{stall, this_thread};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{stall, this_thread};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::LONGEST_STALL;
    use crate::random::Random;

    /// The kernel's number of the calling thread.
    #[must_use]
    pub fn this_thread() -> i32 {
        // SAFETY: the call takes nothing and cannot fail.
        unsafe { libc::gettid() }
    }

    /// Stalls the thread of that number; says whether it was sent. 0 is nobody.
    #[must_use]
    pub fn stall(thread: i32) -> bool {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install);
        if thread == 0 {
            return false;
        }
        // SAFETY: cannot fail.
        let process = unsafe { libc::getpid() };
        // SAFETY: sends a signal that every thread of this process has a handler for. If the thread has ended, the call fails, or, if
        // its number is another thread's of this process by now, stalls that one, which is as good.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
        sent == 0
    }

    fn install() {
        // SAFETY: all zeroes is a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int) = sleep_a_while;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: `action` is whole, and its handler calls nothing that is not async-signal-safe.
        let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
        assert_eq!(installed, 0, "SIGUSR1 can be caught by every process");
    }

    extern "C" fn sleep_a_while(_signal: libc::c_int) {
        static STALLS: AtomicU64 = AtomicU64::new(0);
        // Relaxed: a stream number, nothing more.
        let stream = STALLS.fetch_add(1, Relaxed);
        let nanos = Random::new(0, stream).below(LONGEST_STALL.as_nanos() as u64);
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos as libc::c_long };
        // SAFETY: the place of this thread's `errno`, which the interrupted code may be about to read.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: valid while the thread lives.
        let before = unsafe { *errno };
        // SAFETY: async-signal-safe by POSIX; `time` outlives the call.
        unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { *errno = before };
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// Nobody: threads have no number that a signal could be sent to.
    #[must_use]
    pub fn this_thread() -> i32 {
        0
    }

    /// Stalls nobody.
    #[must_use]
    pub fn stall(_thread: i32) -> bool {
        false
    }
}
