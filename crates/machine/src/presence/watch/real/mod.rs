//! Watching by a second ring of switch records on Linux; sleeping on the word alone elsewhere, and
//! where records are refused.

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Deadline;
use crate::park;
use crate::presence::watch::Slept;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod bell;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod eye;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub(crate) use eye::Eye;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
pub(crate) use elsewhere::Eye;

/// Sleeps until the word has another value.
fn sleep_blind(word: &AtomicU32, expected: u32, deadline: Deadline) -> Slept {
    // Relaxed: the caller that finds another value acquires it.
    while word.load(Ordering::Relaxed) == expected {
        if park::wait(word, expected, deadline) == park::Woken::TimedOut {
            return Slept::TimedOut;
        }
    }
    Slept::Changed
}
