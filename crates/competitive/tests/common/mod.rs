//! Common parts of the tests with real threads.

use std::sync::mpsc;
use std::time::Duration;

/// Runs `body` in a thread of its own and fails if it takes longer than `limit`: a lost wake-up is
/// a failure, not a test that hangs.
pub(crate) fn within(limit: Duration, body: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let runner = std::thread::spawn(move || {
        body();
        // The receiver may have given up.
        let _ = done.send(());
    });
    match is_done.recv_timeout(limit) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = runner.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("not done after {limit:?}: a thread sleeps that should have been woken")
        }
    }
}
