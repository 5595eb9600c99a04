//! The threads of a round, one of which is stalled now and then until the round has ended.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::phase::Torture;
use crate::random::Random;
use crate::tormentor;

/// The threads of a round that may be stalled.
#[derive(Default)]
pub(crate) struct Victims {
    /// The threads, by the kernel's numbers. Each adds itself. The number of a thread that has
    /// ended does no harm: a stall of it fails.
    threads: Mutex<Vec<i32>>,
    /// True once no thread is stalled any more.
    spared: AtomicBool,
}

impl Victims {
    fn threads(&self) -> MutexGuard<'_, Vec<i32>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the calling thread, if it is not there.
    pub(crate) fn add(&self) {
        let here = tormentor::this_thread();
        let mut threads = self.threads();
        if !threads.contains(&here) {
            threads.push(here);
        }
    }

    /// Removes the calling thread.
    pub(crate) fn remove(&self) {
        let here = tormentor::this_thread();
        self.threads().retain(|&other| other != here);
    }

    /// Ends the stalls. The round goes on.
    pub(crate) fn spare(&self) {
        self.spared.store(true, Relaxed);
    }

    /// Stalls a thread after each `pause` until `runner` has ended. Returns the number of stalls,
    /// or `None` if `steps` has not changed for as long as `torture` allows.
    pub(crate) fn stall_until_end<R>(
        &self,
        runner: &JoinHandle<R>,
        torture: &Torture,
        pause: Duration,
        steps: impl Fn() -> u64,
    ) -> Option<u64> {
        let mut random = Random::new(torture.seed, u64::MAX);
        let mut last = (0, Instant::now());
        let mut stalls = 0;
        while !runner.is_finished() {
            // Do not wait: a thread that is stopped may hold this lock.
            if !self.spared.load(Relaxed)
                && let Ok(threads) = self.threads.try_lock()
                && !threads.is_empty()
            {
                let victim = threads[random.below(threads.len() as u64) as usize];
                stalls += u64::from(tormentor::stall(victim));
            }
            thread::sleep(pause);
            let done = steps();
            if done != last.0 {
                last = (done, Instant::now());
            } else if last.1.elapsed() >= torture.stuck_after {
                return None;
            }
        }
        Some(stalls)
    }
}
