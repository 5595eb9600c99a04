//! The state of the monitor, and what other threads have seen of each worker. What the monitor does
//! is in `registry/monitor.rs`.
//!
//! # Off duty
//!
//! While no task is ready there is nothing to compensate. Then the monitor is *off duty*: no thread
//! is armed, and it sleeps until the creator of a task wakes it. The creator does so if it sees no
//! idle worker.
//!
//! ```text
//! creator of a task             the monitor
//! -----------------             -----------
//! (a) makes it ready            (1) off_duty = 1
//! (b) light                     (2) heavy
//! (c) off duty? wakes it        (3) is anything ready? Then it is on duty again;
//!                                   else it sleeps until it is woken
//! ```
//!
//! A worker that makes a fork does likewise. For (c) it looks at the word of idle workers
//! (`Sleep::watch_forks`), which it looks at anyway. Forks come and go by the million, so they wake
//! the monitor once in a [`HEARTBEAT`] at most.
//!
//! A worker that takes a task does (b) and (c) as well if others are ready. A strategy that moves
//! several tasks at once counts none of them on the way.
//!
//! If (c) does not see (1), then (2) makes (3) see what (a) made ready. Else the creator wakes the
//! monitor, and a wake-up that comes before the sleep is not lost. The fence must reach all
//! threads.

use core::fmt;
use core::time::Duration;

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::presence::watch::Watch;
use stanchion_machine::thread::JoinHandle;

use crate::sleep::Sleep;

/// The time for which a worker is seen blocked before a spare takes its place, in µs. A page fault
/// that is served from memory and a lock that is passed on are over by then. What takes longer is
/// worth a wake-up.
pub(crate) const BLOCKED_US: usize = 30;

/// The time between two looks of the monitor where the kernel does not wake it.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);

/// A worker that is back so soon, in µs, was compensated for nothing.
pub(super) const BRIEF_US: usize = 50;

/// Ready work against a monitor that goes off duty.
const OFF_DUTY: Handshake = Handshake::new("the queues", "Monitor::off_duty", Reach::AllThreads);

/// The monitor of a pool that compensates.
pub struct Monitor {
    /// Wakes the monitor when an armed worker is switched.
    pub(crate) watch: Watch,
    /// 1 while the monitor sleeps until a task is created. Written by the monitor, and by the
    /// creator that wakes it.
    off_duty: AtomicU32,
    /// 1 when the last worker has left. Written by that worker.
    ended: AtomicU32,
    /// The monitor's thread.
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
    /// The time from which others are counted.
    origin: Ticks,
    /// Compensations so far. Written under the lock of the thread table.
    pub(crate) compensations: AtomicUsize,
    /// Those of them that ended within [`BRIEF_US`]. Written under the same lock.
    pub(crate) brief: AtomicUsize,
}

/// The observation of a worker by other threads.
pub(crate) struct BlockObservation {
    /// The number of reasons why its thread may sleep without being compensated. Written by its own
    /// thread.
    pub(crate) excuses: AtomicUsize,
    /// The time since which it has been seen blocked, in µs and odd; 0 if it has not. Written by
    /// each thread that looks.
    since: AtomicUsize,
    /// The number of tasks that it had begun then. Written with `since`.
    tasks: AtomicUsize,
    /// The time at which a spare was leased, in µs. Written under the lock of the thread table.
    pub(crate) lent: AtomicUsize,
}

impl BlockObservation {
    /// Creates the observation of a worker that has not been seen blocked.
    pub(crate) fn new() -> Self {
        Self {
            excuses: AtomicUsize::fresh(0),
            since: AtomicUsize::fresh(0),
            tasks: AtomicUsize::fresh(0),
            lent: AtomicUsize::fresh(0),
        }
    }

    /// Forgets what was seen.
    pub(crate) fn clear(&self) {
        // Relaxed: a hint.
        self.since.store(0, Ordering::Relaxed);
    }

    /// Notes that the worker is blocked, or not, at `now`. Returns for how long it has been seen
    /// blocked in the same task.
    pub(crate) fn observe(&self, blocked: bool, now: usize, tasks: usize) -> Option<usize> {
        // Relaxed, all: hints. Two threads that look at once may both begin an observation, or one
        // of them a little late.
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
        // The odd time may lie ahead.
        Some((now | 1).wrapping_sub(since))
    }
}

/// An excuse: while this is alive the worker may sleep, and is not compensated for it.
pub(crate) struct Excused<'s>(&'s AtomicUsize);

impl<'s> Excused<'s> {
    pub(crate) fn from(observed: &'s BlockObservation) -> Self {
        let excuses = &observed.excuses;
        // Relaxed: a hint that only this thread writes. The decision is made under the lock.
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
    /// Creates a monitor without a thread.
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub fn new() -> Self {
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

    /// Returns the time in µs.
    pub(crate) fn micros(&self) -> usize {
        (clock::now().nanos_since(self.origin) / 1_000) as usize
    }

    /// Goes off duty, and waits until work is made ready or the last worker has left. It may come
    /// back for no reason. `has_ready` says whether tasks or forks are ready, `has_tasks` whether
    /// tasks are.
    pub fn go_off_duty(
        &self,
        sleep: &Sleep,
        has_ready: impl Fn() -> bool,
        has_tasks: impl Fn() -> bool,
    ) {
        // Relaxed, all accesses of this word: see the head of the file.
        self.off_duty.store(1, Ordering::Relaxed);
        sleep.watch_forks(true);
        OFF_DUTY.heavy();
        let waits = !has_ready() && !self.has_ended();
        if waits {
            self.watch.wait(Deadline::NEVER);
        }
        sleep.watch_forks(false);
        // Woken for forks that are gone: a task wakes the monitor at once, forks do not. Without a
        // fence this look may miss a task, which is then seen at the deadline.
        if waits && !has_ready() && !self.has_ended() {
            self.off_duty.store(1, Ordering::Relaxed);
            if !has_tasks() {
                self.watch.wait(Deadline::after(HEARTBEAT));
            }
        }
        self.off_duty.store(0, Ordering::Relaxed);
    }

    /// Wakes the monitor if it is off duty: work was made ready, and perhaps no worker is idle.
    #[inline]
    pub fn notify_work(&self) {
        OFF_DUTY.light();
        // Relaxed: see the head of the file. The exchange lets one of many creators wake it.
        if self.off_duty.load(Ordering::Relaxed) != 0
            && self.off_duty.swap(0, Ordering::Relaxed) != 0
        {
            self.watch.wake();
        }
    }

    /// Wakes the monitor: a thread has begun to take part.
    pub(crate) fn notify_thread(&self) {
        self.watch.wake();
    }

    /// Ends the monitor: the last worker has left.
    pub(crate) fn end(&self) {
        // Relaxed: the monitor looks after it is woken.
        self.ended.store(1, Ordering::Relaxed);
        self.watch.wake();
    }

    /// Returns whether the monitor is to end.
    pub(crate) fn has_ended(&self) -> bool {
        // Relaxed: looked at after each wait; `wake` and `wait` order it.
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// Waits until the monitor's thread has ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Returns the compensations so far, and how many of them were for nothing.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // Relaxed: statistics.
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        (of(&self.compensations), of(&self.brief))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (compensations, brief) = self.counts();
        f.debug_struct("Monitor")
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
    fn an_observation_is_of_one_task_and_ends_when_the_thread_is_seen_to_run() {
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
