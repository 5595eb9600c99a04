//! Stalls threads at any point: with a signal that has a sleeping handler.
//!
//! Preemption hits a lock between any two instructions, but rarely: a time slice has millions of
//! them. A handler that sleeps up to [`LONGEST_STALL`] does the same some thousand times a second.
//! It works on Linux only, because only Linux can send a signal to one thread by its number.
//! Elsewhere no stall is inflicted, and the output says `0 stalls`.

use std::time::Duration;

/// The longest sleep of a handler. The stalls are spread evenly from 0 to this time.
pub const LONGEST_STALL: Duration = Duration::from_millis(2);

/// Moves the calling thread to the first processor that this process may use.
pub fn share_one_processor() {
    let first = core_affinity::get_core_ids().and_then(|ids| ids.into_iter().next());
    // Without affinity this phase is one more crowd, which is a test too.
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

    /// Returns the kernel's number of the calling thread.
    #[must_use]
    pub fn this_thread() -> i32 {
        // SAFETY: the call takes nothing and cannot fail.
        unsafe { libc::gettid() }
    }

    /// Stalls the thread with this number, unless it is 0. Returns whether the signal was sent.
    #[must_use]
    pub fn stall(thread: i32) -> bool {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install);
        if thread == 0 {
            return false;
        }
        // SAFETY: cannot fail.
        let process = unsafe { libc::getpid() };
        // SAFETY: every thread of this process has a handler for the signal. If the thread has
        // ended, the call fails. If its number has passed to another thread of this process, that
        // thread is stalled, which is as good.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
        sent == 0
    }

    /// Installs the handler for `SIGUSR1`.
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

    /// The handler: sleeps for a random time and keeps `errno`.
    extern "C" fn sleep_a_while(_signal: libc::c_int) {
        static STALLS: AtomicU64 = AtomicU64::new(0);
        // Relaxed: a stream number, nothing more.
        let stream = STALLS.fetch_add(1, Relaxed);
        let nanos = Random::new(0, stream).below(LONGEST_STALL.as_nanos() as u64);
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos as libc::c_long };
        // SAFETY: the address of this thread's `errno`, which the interrupted code may be about to
        // read.
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
    /// Returns 0: threads have no number to which a signal could be sent.
    #[must_use]
    pub fn this_thread() -> i32 {
        0
    }

    /// Stalls no thread.
    #[must_use]
    pub fn stall(_thread: i32) -> bool {
        false
    }
}
