//! Waits for all other threads of this process at once.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::asleep;

/// The longest time that threads may need until they sleep, on a busy machine with many of them.
const LIMIT: Duration = Duration::from_secs(300);

/// Waits until each other thread of this process sleeps or has ended. The threads named `busy` are
/// left out.
pub(crate) fn until_others_sleep(busy: &str) {
    let began = Instant::now();
    // SAFETY: asks for a number.
    let me = unsafe { libc::gettid() };
    for task in fs::read_dir("/proc/self/task").expect("Linux has /proc") {
        let name = task.expect("the list goes on").file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok()).expect("a number");
        let may_sleep = || asleep::look(thread).is_some_and(|(name, _)| name != busy);
        while thread != me && may_sleep() && !asleep::sleeps(thread) {
            assert!(began.elapsed() < LIMIT, "thread {thread}: {:?}", asleep::look(thread));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
