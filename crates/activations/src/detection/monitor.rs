//! The monitor's place to sleep, and how the kernel comes to wake it there. Its loop is in
//! `upcalls/monitor.rs`.
//!
//! The monitor is a kernel thread that runs no user-level threads. It sleeps on a [`Watch`], which
//! the kernel wakes when a worker that is *armed* is switched out. If no worker can be armed, it
//! sleeps on a word.
//!
//! # Orderings
//!
//! Those of `watch_state.rs`.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;
use stanchion_machine::presence::Presence;
use stanchion_machine::presence::watch::Watch;

use super::watch_state::WatchState;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The thread that looks at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looker {
    /// A worker, at a scheduling point.
    Worker,
    /// The monitor, which a switch or its clock has woken.
    WokenMonitor,
    /// The monitor, where the kernel does not record switches.
    BlindMonitor,
}

/// The finding of a look at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is nothing to do.
    Fine,
    /// The owner is blocked, and there is no work that it keeps from running.
    Unneeded,
    /// The owner is blocked. Its slot will be taken if it still is after so many nanoseconds.
    Blocked(u64),
    /// The slot was taken.
    Taken,
}

/// A worker as the monitor sees it.
pub trait MonitoredWorker {
    /// Returns the worker's number with [`stanchion_machine::presence`], if it is registered.
    fn presence_index(&self) -> Option<usize>;

    /// Returns where the worker is, if that can be observed.
    fn presence(&self) -> Presence;

    /// Returns whether the worker is blocked in the middle of a thread, as far as is known.
    fn is_blocked(&self) -> bool;
}

/// A runtime as the monitor sees it.
pub trait Monitored {
    /// A worker of it.
    type Worker: MonitoredWorker;

    /// Returns the monitor's place to sleep.
    fn monitor(&self) -> &Monitor;

    /// Returns the owner of a slot, as far as is known.
    fn owner_of(&self, slot: usize) -> &Self::Worker;

    /// Returns the slots that are in use, as far as is known.
    fn slots_in_use(&self) -> impl Iterator<Item = usize>;

    /// Returns whether slots beyond the processors are open.
    fn is_overcommitted(&self) -> bool;
}

/// The monitor's place to sleep.
pub struct Monitor {
    /// The watch that the kernel wakes; `None` if there is no monitor.
    watch: Option<Watch>,
    /// The thread that would notice a blocked worker.
    pub(crate) watch_state: WatchState,
    /// `ASLEEP` while the monitor sleeps because no worker can be armed. Written by the monitor,
    /// and by the threads that wake it.
    word: AtomicU32,
}

impl Monitor {
    /// Returns the place of a monitor that has not been started, if there is to be one.
    pub fn new(is_wanted: bool) -> Self {
        Self {
            watch: is_wanted.then(Watch::new),
            watch_state: WatchState::new(),
            word: AtomicU32::fresh(AWAKE),
        }
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Watches a worker that has got a slot, or that wakes up on it, if workers are armed.
    pub fn worker_begins(&self, worker: &impl MonitoredWorker) {
        // The worker cannot be armed: the monitor may know only of others, so it has to be woken,
        // to look at this one every so often.
        if self.watch_state.worker_begins()
            && !self.arm(worker)
            && worker.presence_index().is_some()
        {
            self.wake();
        }
    }

    /// Stops watching a worker that goes to sleep.
    pub fn worker_pauses(&self, worker: &impl MonitoredWorker) {
        if self.watch_state.is_armed()
            && let (Some(watch), Some(index)) = (&self.watch, worker.presence_index())
        {
            watch.disarm(index);
        }
    }

    /// Has the kernel wake the monitor when the worker is switched. Returns whether it will.
    pub(crate) fn arm(&self, worker: &impl MonitoredWorker) -> bool {
        match (&self.watch, worker.presence_index()) {
            (Some(watch), Some(index)) => watch.arm(index),
            _ => false,
        }
    }

    /// Wakes the monitor wherever it sleeps.
    #[cold]
    pub fn wake(&self) {
        // Release: pairs with the Acquire in `sleep`.
        self.word.store(AWAKE, Ordering::Release);
        park::wake_one(&self.word);
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }

    /// Sleeps until the monitor is woken, unless `is_needed`. Called by the monitor.
    pub(crate) fn sleep(&self, is_needed: impl Fn() -> bool) {
        // Relaxed: the fence of `leave` orders it.
        self.word.store(ASLEEP, Ordering::Relaxed);
        self.watch_state.leave();
        if is_needed() {
            // Relaxed: no other thread reads it for anything but a wake-up.
            self.word.store(AWAKE, Ordering::Relaxed);
            return;
        }
        // Acquire: pairs with the Release in `wake`.
        while self.word.load(Ordering::Acquire) == ASLEEP {
            park::wait(&self.word, ASLEEP, Deadline::NEVER);
        }
    }
}

/// Sees to it that a blocked worker is noticed. Called after a fence by a thread that has made work
/// ready, for which no slot was free.
#[inline]
pub fn ensure_watched(runtime: &impl Monitored) {
    let monitor = runtime.monitor();
    if monitor.watch_state.is_unwatched() && monitor.watch.is_some() {
        start_watching(runtime);
    }
}

#[cold]
fn start_watching(runtime: &impl Monitored) {
    let monitor = runtime.monitor();
    // Blocks are too many for the kernel to report each: the monitor polls.
    if runtime.is_overcommitted() {
        monitor.watch_state.poll();
        return monitor.wake();
    }
    // From here on other threads that make work ready leave this to the caller.
    monitor.watch_state.arm();
    let mut is_unseen = false;
    for slot in runtime.slots_in_use() {
        let worker = runtime.owner_of(slot);
        let is_armed = monitor.arm(worker);
        // It has blocked before it was armed.
        is_unseen |= worker.is_blocked();
        // It cannot be armed. A worker that has not registered yet arms itself when it begins.
        is_unseen |= !is_armed && worker.presence_index().is_some();
    }
    if is_unseen {
        monitor.wake();
    }
}
