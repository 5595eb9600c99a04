//! A payload that notices two holders, and a limit for what could hang.

use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use stanchion_competitive::PolicyMutex;
use stanchion_competitive::policy::Policy;

/// Two counters that agree whenever no thread is between them. Atomic, so that even a broken lock
/// has no undefined behaviour.
#[derive(Debug, Default)]
pub(crate) struct Pair(AtomicU64, AtomicU64);

impl Pair {
    /// Adds one to both, not atomically. Panics if another thread was here.
    pub(crate) fn bump(&self) {
        let first = self.0.load(Relaxed);
        assert_eq!(first, self.1.load(Relaxed), "two threads were inside at once");
        self.0.store(first + 1, Relaxed);
        if first.is_multiple_of(64) {
            // Now and then the holder loses its processor inside.
            thread::yield_now();
        }
        self.1.store(first + 1, Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

pub(crate) type Shared<P> = Arc<PolicyMutex<Pair, P>>;

pub(crate) fn shared<P: Policy>() -> Shared<P> {
    Arc::new(PolicyMutex::new(Pair::default()))
}

/// Fewer rounds under Miri, which takes a thousand times as long for each.
#[allow(dead_code, reason = "not every test counts")]
pub(crate) fn rounds(times: u64) -> u64 {
    if cfg!(miri) { times.div_ceil(100) } else { times }
}

/// Nothing here takes a hundredth of it, on a machine that is not busy.
pub(crate) const LONG: Duration = Duration::from_secs(if cfg!(miri) { 3_600 } else { 60 });

/// Runs `body`; a wait that never ends is a failure, and does not hang the tests.
pub(crate) fn in_time<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let runner = thread::spawn(move || drop(sender.send(body())));
    match receiver.recv_timeout(LONG) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("still waiting after {LONG:?}: a wake-up was lost")
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => panic!("it ended and said nothing"),
        },
    }
}
