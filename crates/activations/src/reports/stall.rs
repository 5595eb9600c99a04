//! Whether anybody inside a runtime could still go on.
//!
//! If every worker sleeps for want of work, nothing is ready and no time is awaited, then the
//! threads that have not ended all wait for each other, or for something outside of the runtime: a
//! kernel thread, or a thread of another runtime, that unparks one of them, releases a lock, sends
//! a message, or spawns. Nobody in here can know whether there is such a one; its user may.
//!
//! Why it is asked for, and not told: that a program which waits for its users looks like this half
//! of the time. Why no list of waiting threads: the price would be each park's, and names lie at
//! the bases of stacks already, for the report of an overflow.
//!
//! # How it is seen
//!
//! Who sleeps has its slot's bit set, and takes nothing before it has taken that away: also who is
//! about to sleep, and looks once more, only looks. So one collects who sleeps, looks at all else,
//! and collects once more: if as many sleep as have slots, both times, and nobody has lain down
//! anew in between (`parked.rs`, Invariant 3), then all have slept all the while, and nothing was
//! taken. What they had made before they slept is seen in between, because the first collecting is
//! an Acquire.
//!
//! Carriers without a slot are counted by how they stand; one that blocks in the kernel with a
//! thread stands otherwise. The monitor does not sleep in those words, and may take a slot and give
//! it to one that has none: each time that is told, so the number of what was told is the same
//! before and after.
//!
//! Why not one look at the words, between two at the rest: what is made ready and taken between
//! those two, by one that was about to sleep when the other slept already, is in neither.

use core::fmt;

use crate::processors::worker_record::WorkerRecord;
use crate::runtime::state::RuntimeState;

/// As many names as are told.
const NAMES: usize = 16;

/// Threads that wait while nothing in their runtime could wake them, from
/// [`Runtime::stalled`](crate::Runtime::stalled). Its `Display` says it in a sentence.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(2)?;
/// // A watchdog: asks twice, so that what is just being woken is not taken for stuck.
/// let stuck = runtime.stalled().and_then(|_| {
///     std::thread::sleep(std::time::Duration::from_millis(10));
///     runtime.stalled()
/// });
/// assert_eq!(stuck, None, "there is no thread");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    waiting: usize,
    names: Vec<String>,
    /// The names of those whose kernel threads they wait for, if they are ready.
    blocked: Option<Vec<String>>,
}

impl Stalled {
    /// So many threads are ready, and wait for kernel threads that others block.
    pub(crate) fn behind_blocks(
        waiting: usize,
        mut names: Vec<String>,
        mut blocked: Vec<String>,
    ) -> Self {
        names.truncate(NAMES);
        blocked.truncate(NAMES);
        Self { waiting, names, blocked: Some(blocked) }
    }

    /// Returns the names of the threads that block the kernel threads for which the others wait, of
    /// those that have a name; `None` if the threads wait for each other instead.
    #[must_use]
    pub fn blocked_by(&self) -> Option<&[String]> {
        self.blocked.as_deref()
    }

    /// How many threads wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The names of those that have one, up to 16 of them, each cut after 56 bytes. Threads of the
    /// same name are told as often.
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
        match &self.blocked {
            None => {
                write!(f, "{threads}, and only something outside of the runtime can wake them")?;
            }
            Some(blocked) => {
                let what = "for a kernel thread that is blocked in the kernel";
                write!(f, "{threads} {what} (by {})", blocked.join(", "))?;
            }
        }
        let mut before = ": ";
        for name in &self.names {
            write!(f, "{before}{name}")?;
            before = ", ";
        }
        if self.names.len() < self.waiting {
            write!(f, "{before}{} whose names are not known", self.waiting - self.names.len())?;
        }
        Ok(())
    }
}

/// What changes when anything goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    ended: u64,
    created: u64,
    /// Seats that changed hands.
    assignments: u64,
}

impl RuntimeState {
    /// The threads that wait, if nobody in here could go on.
    pub(crate) fn stalled(&self) -> Option<Stalled> {
        let first = self.waits_for_others()?;
        // Once would do, but for who spawns from outside and counts the thread before it is ready.
        machine::thread::yield_now();
        if self.waits_for_others()? != first {
            return None;
        }
        let waiting = usize::try_from(first.created - first.ended).unwrap_or(usize::MAX);
        let mut names = self.stacks().names();
        names.truncate(NAMES);
        Some(Stalled { waiting, names, blocked: None })
    }

    /// What was counted, if all waited for others while that was looked at.
    pub(crate) fn waits_for_others(&self) -> Option<Snapshot> {
        let parked = self.parked();
        let (naps, asleep) = (parked.naps(), parked.count());
        let before = self.count();
        if before.ended == before.created {
            return None;
        }
        let mut with_slot = 0;
        for index in 0..self.started() {
            let ownership = self.worker(index).ownership();
            if ownership.is_in_scheduler() {
                with_slot += 1;
            } else if !ownership.is_spare() && !self.worker(index).awaits_mail() {
                return None;
            }
        }
        // After the workers: what the monitor takes a slot for is ready until one is with_slot there,
        // and that is told.
        let nothing = !self.has_any_work() && self.count() == before;
        // In this order: who has lain down anew has counted that before it is counted as one that
        // sleeps.
        let still = parked.count() == asleep && parked.naps() == naps;
        (asleep == with_slot && nothing && still).then_some(before)
    }

    fn count(&self) -> Snapshot {
        let (ended, created) = self.ended_and_created();
        Snapshot { ended, created, assignments: self.counters().assignments() }
    }

    /// Also of the kind that only one worker can do, or that comes with time.
    fn has_any_work(&self) -> bool {
        self.has_work()
            || self.awaits_time()
            || (0..self.started()).map(|index| self.worker(index)).any(WorkerRecord::has_mail)
    }
}
