//! The state of the monitor, and what has been seen of each worker.

use core::fmt;
use core::time::Duration;

use machine::asymmetric;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::clock::{self, Ticks};
use machine::thread::JoinHandle;
use machine::watch::Watch;
use stanchion_competitive::Mutex;

/// For how long a worker is seen blocked before a spare takes its place, in µs: a page fault that
/// is served from memory and a lock that is passed on are over by then; what takes longer is worth
/// a wake-up.
pub(crate) const BLOCKED_US: usize = 30;

/// How often the lookout looks where it is not told.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);

/// A worker that is back so soon, in µs, was compensated for nothing.
pub(super) const BRIEF_US: usize = 50;

/// What a pool that compensates has beside its workers.
pub(crate) struct Monitor {
    pub(crate) watch: Watch,
    pub(crate) off_duty: AtomicU32,
    ended: AtomicU32,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
    /// What times are counted from.
    origin: Ticks,
    pub(crate) compensations: AtomicUsize,
    pub(crate) brief: AtomicUsize,
}

/// What others have seen of a worker.
pub(crate) struct BlockObservation {
    /// How many reasons there are why its thread may sleep without being compensated. Written by
    /// its own thread.
    pub(crate) excuses: AtomicUsize,
    /// Since when it has been seen blocked, in µs and odd; 0 if it has not.
    since: AtomicUsize,
    /// How many tasks it had begun then.
    tasks: AtomicUsize,
    /// When a spare was lent, in µs.
    pub(crate) lent: AtomicUsize,
}

impl BlockObservation {
    pub(crate) fn new() -> Self {
        Self {
            excuses: AtomicUsize::fresh(0),
            since: AtomicUsize::fresh(0),
            tasks: AtomicUsize::fresh(0),
            lent: AtomicUsize::fresh(0),
        }
    }

    /// Nobody has seen anything.
    pub(crate) fn clear(&self) {
        // Relaxed: a hint.
        self.since.store(0, Ordering::Relaxed);
    }

    /// It is blocked, or not, at `now`: for how long it has been, in the same task, as far as
    /// anybody has looked.
    pub(crate) fn observe(&self, blocked: bool, now: usize, tasks: usize) -> Option<usize> {
        // Relaxed, all: hints. Two who look at once may both begin a suspicion, or one of them a
        // little late.
        if !blocked {
            if self.since.load(Ordering::Relaxed) != 0 {
                self.since.store(0, Ordering::Relaxed);
            }
            return None;
        }
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || self.tasks.load(Ordering::Relaxed) != tasks {
            self.tasks.store(tasks, Ordering::Relaxed);
            self.since.store(now | 1, Ordering::Relaxed);
            return Some(0);
        }
        // The odd one may lie ahead.
        Some((now | 1).wrapping_sub(since))
    }
}

/// While this is alive the worker may sleep, and is not compensated for it.
pub(crate) struct Excused<'s>(&'s AtomicUsize);

impl<'s> Excused<'s> {
    pub(crate) fn from(observed: &'s BlockObservation) -> Self {
        let excuses = &observed.excuses;
        // Relaxed: a hint, written by this thread alone; Invariant 2 is the lock's.
        excuses.store(excuses.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Self(excuses)
    }
}

impl Drop for Excused<'_> {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.store(self.0.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Self {
            watch: Watch::new(),
            off_duty: AtomicU32::fresh(0),
            ended: AtomicU32::fresh(0),
            thread: Mutex::new(None),
            origin: clock::now(),
            compensations: AtomicUsize::fresh(0),
            brief: AtomicUsize::fresh(0),
        }
    }

    pub(crate) fn micros(&self) -> usize {
        (clock::now().nanos_since(self.origin) / 1_000) as usize
    }

    /// A task was made ready, and nobody may be idle who would take it.
    #[inline]
    pub(crate) fn notify_work(&self) {
        asymmetric::light();
        // Relaxed: see the head of the file. The exchange lets one of many call.
        if self.off_duty.load(Ordering::Relaxed) != 0
            && self.off_duty.swap(0, Ordering::Relaxed) != 0
        {
            self.watch.wake();
        }
    }

    /// A thread has begun to take part.
    pub(crate) fn notify_thread(&self) {
        self.watch.wake();
    }

    /// The last worker has left.
    pub(crate) fn end(&self) {
        // Relaxed: the call is seen after it.
        self.ended.store(1, Ordering::Relaxed);
        self.watch.wake();
    }

    pub(crate) fn has_ended(&self) -> bool {
        // Relaxed: looked at after each wait; `wake` and `wait` order it.
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// Waits until the thread has ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Compensations so far, and how many of them were for nothing.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // Relaxed: statistics.
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        (of(&self.compensations), of(&self.brief))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (compensations, brief) = self.counts();
        f.debug_struct("Lookout")
            .field("refused", &self.watch.refused())
            .field("compensations", &compensations)
            .field("brief", &brief)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspicion_is_of_one_task_and_ends_when_the_thread_is_seen_to_run() {
        let observed = BlockObservation::new();
        assert_eq!(observed.observe(false, 10, 1), None);
        assert_eq!(observed.observe(true, 10, 1), Some(0));
        assert_eq!(observed.observe(true, 40, 1), Some(30));
        assert_eq!(observed.observe(true, 50, 2), Some(0), "another task");
        assert_eq!(observed.observe(false, 60, 2), None);
        assert_eq!(observed.observe(true, 100, 2), Some(0), "another block");
        assert_eq!(observed.observe(true, usize::MAX, 3), Some(0));
        assert_eq!(observed.observe(true, 20, 3), Some(22), "over the end of the count");
    }
}
