//! Waiting for a condition: the calling thread parks, whether it is a user-level or a kernel
//! thread.

use stanchion_machine::clock::Deadline;

use super::context;
use crate::stats::live_threads::LiveThreads;

/// Waits until `is_over`, or the deadline. Returns whether it is over. The thread that ends the
/// wait notifies this one afterwards. The token of an unpark is kept.
pub fn wait_until(deadline: Deadline, mut is_over: impl FnMut() -> bool) -> bool {
    if is_over() {
        return true;
    }
    let mut owes_token = false;
    let over = loop {
        // Before the look: a notification after it is not forgotten.
        owes_token |= take_token();
        if is_over() {
            break true;
        }
        if deadline.passed() {
            break false;
        }
        pause(deadline);
    };
    if owes_token {
        context::with_current(|thread| thread.header().park_state().put_token());
    }
    over
}

/// Waits until the runtime with these threads has ended. Called by one thread.
pub fn wait_for_end(live_threads: &LiveThreads) {
    live_threads.set_waiter(context::current());
    wait_until(Deadline::NEVER, || live_threads.is_over());
}

/// Takes the calling thread's token. Without a reference to the thread, which costs more than the
/// rest.
pub(crate) fn take_token() -> bool {
    context::with_current(|thread| thread.header().park_state().take_token())
}

/// Pauses the calling thread until it is unparked or notified, or the deadline passes. May return
/// early.
pub(crate) fn pause(deadline: Deadline) {
    if !context::pause_thread(deadline) {
        context::with_current(|thread| thread.header().park_state().sleep(deadline));
    }
}
