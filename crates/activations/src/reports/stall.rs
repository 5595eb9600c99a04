//! The stall report: whether any thread inside a runtime could still go on.
//!
//! If every worker sleeps for want of work, no thread is ready and none waits for a time, then the
//! threads that have not ended all wait for each other, or for something outside of the runtime: a
//! kernel thread, or a thread of another runtime, that unparks one of them, releases a lock, sends
//! a message, or spawns. The runtime cannot know whether there is such a thread. Its user may.
//!
//! Why the user asks for the report: a program that waits for its users looks like this half of the
//! time. Why there is no list of waiting threads: the price would be each park's, and names are at
//! the bases of stacks already, for the report of an overflow.
//!
//! # How a stall is seen
//!
//! A sleeping worker's bit is set. It clears the bit before it takes any work. A worker about to
//! sleep has already set its bit, so its last check only looks. So the report counts the bits,
//! looks at all else, and counts the bits once more. If as many workers sleep as have slots, both
//! times, and no epoch has gone up in between (Invariant 3 of `processors/parking.rs`), then all
//! have slept all the while, and no work was taken. What they made ready before they slept is seen
//! in between, because the first count is an Acquire.
//!
//! Workers without a slot are counted by their ownership. A worker that blocks in the kernel with
//! a thread has another one. The monitor does not sleep in those words, and may take a slot and
//! give it to a worker that has none. Each time that is counted as an upcall. So the number of
//! these upcalls must be the same before and after.
//!
//! Why not one look at the bits, between two at the rest: a thread that is made ready and taken
//! between those two, by a worker that was about to sleep when the other one slept already, is in
//! neither.

use core::fmt;

use crate::processors::ownership::Ownership;
use crate::processors::parking::ParkedSlots;
use crate::runtime::state::RuntimeState;

/// The most names in a report.
const NAMES: usize = 16;

/// Threads that wait while no thread of their runtime could wake them, from
/// [`Runtime::stalled`](crate::Runtime::stalled). Its `Display` says it in a sentence.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(2)?;
/// // A watchdog: asks twice, so that a thread that is just being woken is not taken for stuck.
/// let stuck = runtime.stalled().and_then(|_| {
///     std::thread::sleep(std::time::Duration::from_millis(10));
///     runtime.stalled()
/// });
/// assert_eq!(stuck, None, "there is no thread");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// The number of threads that wait.
    waiting: usize,
    /// The names of those that have one, at most [`NAMES`].
    names: Vec<String>,
    /// The names of the threads that block their kernel threads, if the waiting threads are ready.
    blocked_by: Option<Vec<String>>,
}

impl Stalled {
    /// Returns the report of so many ready threads that wait for kernel threads that others block.
    pub(crate) fn behind_blocks(
        waiting: usize,
        mut names: Vec<String>,
        mut blockers: Vec<String>,
    ) -> Self {
        names.truncate(NAMES);
        blockers.truncate(NAMES);
        Self { waiting, names, blocked_by: Some(blockers) }
    }

    /// Returns the names of the threads that block the kernel threads for which the others wait, of
    /// those that have a name; `None` if the threads wait for each other instead.
    #[must_use]
    pub fn blocked_by(&self) -> Option<&[String]> {
        self.blocked_by.as_deref()
    }

    /// Returns the number of threads that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the names of those that have one, up to 16 of them, each cut after 56 bytes. A name
    /// that several threads have is there as often.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.waiting == 1 {
            "1 thread waits"
        } else {
            &format!("{} threads wait", self.waiting)
        };
        match &self.blocked_by {
            None => {
                write!(f, "{threads}, and only something outside of the runtime can wake them")?;
            }
            Some(blockers) => {
                let what = "for a kernel thread that is blocked in the kernel";
                write!(f, "{threads} {what} (by {})", blockers.join(", "))?;
            }
        }
        let mut before = ": ";
        for name in &self.names {
            write!(f, "{before}{name}")?;
            before = ", ";
        }
        if self.names.len() < self.waiting {
            write!(f, "{before}{} without a known name", self.waiting - self.names.len())?;
        }
        Ok(())
    }
}

/// Counts that change when anything goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Threads that have ended.
    pub ended: u64,
    /// Threads that have been created.
    pub created: u64,
    /// Slots that were given to a worker.
    pub assignments: u64,
}

/// A runtime as the stall report sees it. A trait, so that a model can have a small runtime of its
/// own.
pub trait StallView {
    /// Returns the counts.
    fn snapshot(&self) -> Snapshot;

    /// Returns the parkers of the slots.
    fn parked(&self) -> &ParkedSlots;

    /// Returns the number of workers that have been started.
    fn started(&self) -> usize;

    /// Returns the ownership of a worker.
    fn ownership(&self, worker: usize) -> &Ownership;

    /// Returns whether a worker sleeps on its mailbox, which is empty.
    fn awaits_mail(&self, worker: usize) -> bool;

    /// Returns whether there is work, also of the kind that only one worker can do, or that comes
    /// with time.
    fn has_any_work(&self) -> bool;
}

impl StallView for RuntimeState {
    fn snapshot(&self) -> Snapshot {
        let (ended, created) = self.ended_and_created();
        Snapshot { ended, created, assignments: self.detection.counters.upcalls.assignments() }
    }

    fn parked(&self) -> &ParkedSlots {
        &self.processors.parked
    }

    fn started(&self) -> usize {
        self.workers.started()
    }

    fn ownership(&self, worker: usize) -> &Ownership {
        self.workers.record(worker).ownership()
    }

    fn awaits_mail(&self, worker: usize) -> bool {
        self.workers.record(worker).mailbox.is_awaited()
    }

    fn has_any_work(&self) -> bool {
        self.has_work()
            || self.ready.timers.any()
            || self.workers.started_records().any(|worker| worker.mailbox.is_full())
    }
}

/// Returns the threads that wait, if no thread of the runtime could go on.
pub(crate) fn stalled(runtime: &RuntimeState) -> Option<Stalled> {
    let first = all_wait(runtime)?;
    // One look would do, but for a thread that spawns from outside and counts the new thread before
    // it is ready.
    stanchion_machine::thread::yield_now();
    if all_wait(runtime)? != first {
        return None;
    }
    let waiting = usize::try_from(first.created - first.ended).unwrap_or(usize::MAX);
    let mut names = runtime.fibers.stacks.names();
    names.truncate(NAMES);
    Some(Stalled { waiting, names, blocked_by: None })
}

/// Returns the counts, if there are threads and all of them wait while this looks.
pub fn all_wait(runtime: &impl StallView) -> Option<Snapshot> {
    let parked = runtime.parked();
    let (epochs, asleep) = (parked.epochs(), parked.count());
    let before = runtime.snapshot();
    if before.ended == before.created {
        return None;
    }
    let mut with_slot = 0;
    for worker in 0..runtime.started() {
        let ownership = runtime.ownership(worker);
        if ownership.is_in_scheduler() {
            with_slot += 1;
        } else if !ownership.is_idle() && !runtime.awaits_mail(worker) {
            return None;
        }
    }
    // After the workers: work for which the monitor takes a slot is ready until a worker has the
    // slot, and that is counted.
    let nothing = !runtime.has_any_work() && runtime.snapshot() == before;
    // In this order: a worker that has gone to sleep again has raised its epoch before it is
    // counted as asleep.
    let still_asleep = parked.count() == asleep && parked.epochs() == epochs;
    (asleep == with_slot && nothing && still_asleep).then_some(before)
}
