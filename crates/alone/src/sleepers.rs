//! Threads that a test waits for until they sleep.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The threads that have said that they go to sleep.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// The kernel's number of each.
    arrived: Mutex<Vec<i32>>,
}

impl Sleepers {
    /// Makes an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { arrived: Mutex::new(Vec::new()) }
    }

    /// Adds the calling thread, which takes no other lock before it sleeps.
    pub fn arrive(&self) {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(number());
    }

    /// Waits for `count` arrivals, and until each thread that has arrived sleeps or has ended.
    /// Where the system does not tell, gives them the time to fall asleep.
    pub fn until_asleep(&self, count: usize) {
        let arrived = loop {
            let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if arrived.len() >= count {
                break arrived;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if cfg!(any(not(target_os = "linux"), miri)) {
            std::thread::sleep(Duration::from_millis(30));
            return;
        }
        for thread in arrived {
            while is_awake(thread) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Returns the kernel's number of the calling thread.
fn number() -> i32 {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the call has no preconditions.
    return unsafe { libc::gettid() };
    #[cfg(any(not(target_os = "linux"), miri))]
    return 0;
}

/// Returns whether that thread of this process is known to run, or to be ready to.
fn is_awake(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.starts_with(" S")))
}
