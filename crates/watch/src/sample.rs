//! A sample: the state of each worker, and the parts of its time since the last sample.

use std::fmt;
use std::time::Duration;

use crate::polls::Task;
use crate::system::{self, BlockedIn};
use crate::worker::Pool;

/// The state of a worker at the moment of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Waits for work, as its pool tells. Workers of pools that do not tell are never parked.
    Parked,
    /// On a processor.
    Running,
    /// Could run and has no processor, or is stopped by a signal or a debugger.
    Ready,
    /// Waits in the kernel, and is not parked.
    Blocked(BlockedIn),
    /// Awake, and no more is known: the system tells nothing, or it parked during the look.
    Awake,
}

/// The reason why a worker does not get back to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A task waits in the kernel, for at least half of the time.
    Blocked,
    /// Tasks compute: the worker runs for at least a quarter of the time in which it could.
    Computing,
    /// Other threads have the processors: the worker runs for less than a quarter of the time in
    /// which it could.
    Preempted,
    /// The system tells nothing.
    Unknown,
}

/// The means by which the parts of a worker's time are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Means {
    /// The kernel's records of each switch.
    SwitchRecords,
    /// The kernel's counts for each thread.
    Counts,
    /// The system tells nothing.
    Nothing,
}

/// The parts of the time in which a worker was awake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parts {
    /// On a processor.
    pub running: Duration,
    /// Ready to run, without a processor.
    pub ready: Duration,
    /// Off its processor to wait for something.
    pub blocked: Duration,
}

/// A worker that has been awake, without parking, for longer than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The cause, by the parts.
    pub cause: Cause,
    /// The time since it was last parked, at the last look at it.
    pub awake: Duration,
    /// The parts of the time without a park that lies between the first and the last look at it
    /// since the last sample. None if it ended before the first one.
    pub parts: Parts,
    /// The place where it was last seen blocked, if it was.
    pub blocked_in: Option<BlockedIn>,
    /// The task that was polled at the last look, if the runtime tells it.
    pub task: Option<Task>,
    /// True if it has parked since. A stall that was told as lasting is told as over once.
    pub is_over: bool,
}

/// A worker in a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSample {
    /// Its pool.
    pub pool: Pool,
    /// Its index in the pool, if the pool tells it.
    pub index: Option<usize>,
    /// The name of its thread.
    pub name: String,
    /// The kernel's number of its thread, if there is one.
    pub thread: Option<u32>,
    /// Its state at the moment of the sample.
    pub state: State,
    /// The time since it was last parked. `None` if it is parked, or if its pool does not tell.
    pub awake: Option<Duration>,
    /// The time parked since the last sample.
    pub parked: Duration,
    /// The parts of the time awake since the last sample.
    pub parts: Parts,
    /// The number of parks since the last sample.
    pub parks: u64,
    /// The number of polls since the last sample; 0 if the runtime does not tell.
    pub polls: u64,
    /// The task that it polls, if the runtime tells it.
    pub task: Option<Task>,
    /// The means by which the parts are known.
    pub means: Means,
    /// The stalls since the last sample: those that are over, then the one that lasts.
    pub stalls: Vec<Stall>,
}

/// The workers of a watch at a moment, and what they did since the last sample.
///
/// Its [`Display`](fmt::Display) is one line for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The time since the last sample.
    pub interval: Duration,
    /// The workers, in the order in which they came.
    pub workers: Vec<WorkerSample>,
}

impl Cause {
    /// Returns the cause that the parts of a time show.
    pub(crate) fn of(parts: Parts) -> Self {
        let Parts { running, ready, blocked } = parts;
        let could_run = running + ready;
        if parts.total().is_zero() {
            Self::Unknown
        } else if blocked >= could_run {
            Self::Blocked
        } else if running * 4 >= could_run {
            Self::Computing
        } else {
            Self::Preempted
        }
    }

    /// Returns a word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Computing => "computing",
            Self::Preempted => "preempted",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl State {
    /// Returns a word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Blocked(_) => "blocked",
            Self::Awake => "awake",
        }
    }
}

impl Parts {
    /// Returns the whole.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.running + self.ready + self.blocked
    }

    /// Returns the shares of the whole, in per cent: running, ready, blocked. All are 0 if there is
    /// nothing to share.
    #[must_use]
    pub fn percent(&self) -> [u32; 3] {
        let total = self.total().as_secs_f64();
        let share = |part: Duration| match total {
            0.0 => 0,
            total => (part.as_secs_f64() / total * 100.0).round() as u32,
        };
        [self.running, self.ready, self.blocked].map(share)
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [running, ready, blocked] = self.percent();
        write!(f, "{running} % running, {ready} % without a processor, {blocked} % blocked")
    }
}

impl BlockedIn {
    /// Returns the name of the system call, if it is one that often waits.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::SystemCall(number) => system::name(number),
            Self::Kernel | Self::Unknown => None,
        }
    }
}

impl fmt::Display for BlockedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.name()) {
            (_, Some(name)) => f.pad(name),
            (Self::SystemCall(number), None) => write!(f, "system call {number}"),
            (Self::Kernel, None) => f.pad("the kernel, outside a system call"),
            (Self::Unknown, None) => f.pad("an unknown place"),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.cause)?;
        if let (Cause::Blocked, Some(place)) = (self.cause, self.blocked_in) {
            write!(f, "in {place} ")?;
        }
        write!(f, "for {:.1} s", self.awake.as_secs_f64())?;
        if let Some(task) = self.task {
            write!(f, ", task {} of {}", task.id, task.spawned_at)?;
        }
        if !self.parts.total().is_zero() {
            write!(f, " ({})", self.parts)?;
        }
        if self.is_over { f.write_str(", over") } else { Ok(()) }
    }
}

impl Sample {
    /// Returns the stalls of all workers, with the worker of each.
    pub fn stalls(&self) -> impl Iterator<Item = (&WorkerSample, &Stall)> {
        self.workers
            .iter()
            .flat_map(|worker| worker.stalls.iter().map(move |stall| (worker, stall)))
    }

    /// Returns the pools of the workers, each once, with the number of its workers in each state.
    pub(crate) fn pools(&self) -> Vec<(Pool, Vec<(&'static str, usize)>)> {
        let mut pools: Vec<Pool> = self.workers.iter().map(|worker| worker.pool).collect();
        pools.sort_unstable();
        pools.dedup();
        let counted = |pool: Pool| {
            let of_pool = || self.workers.iter().filter(move |worker| worker.pool == pool);
            let count = |name| (name, of_pool().filter(|one| one.state.name() == name).count());
            (pool, STATES.map(count).to_vec())
        };
        pools.into_iter().map(counted).collect()
    }
}

/// The names of all states.
const STATES: [&str; 5] = ["parked", "running", "ready", "blocked", "awake"];

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (pool, states) in self.pools() {
            write!(f, "{separator}{pool}:")?;
            let mut comma = "";
            for (state, count) in states.into_iter().filter(|&(_, count)| count > 0) {
                write!(f, "{comma} {count} {state}")?;
                comma = ",";
            }
            separator = "; ";
        }
        if self.workers.is_empty() {
            f.write_str("no workers")?;
        }
        for (worker, stall) in self.stalls() {
            write!(f, " | {}", worker.name)?;
            if let Some(thread) = worker.thread {
                write!(f, " ({thread})")?;
            }
            write!(f, " {stall}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(running: u64, ready: u64, blocked: u64) -> Parts {
        let [running, ready, blocked] = [running, ready, blocked].map(Duration::from_millis);
        Parts { running, ready, blocked }
    }

    fn worker(pool: Pool, state: State, stalls: Vec<Stall>) -> WorkerSample {
        WorkerSample {
            pool,
            index: None,
            name: "worker".to_owned(),
            thread: Some(7),
            state,
            awake: None,
            parked: Duration::ZERO,
            parts: Parts::default(),
            parks: 0,
            polls: 0,
            task: None,
            means: Means::Counts,
            stalls,
        }
    }

    #[test]
    fn the_parts_show_the_cause() {
        assert_eq!(Cause::of(parts(0, 0, 0)), Cause::Unknown);
        assert_eq!(Cause::of(parts(1, 3, 1)), Cause::Computing);
        assert_eq!(Cause::of(parts(1, 4, 1)), Cause::Preempted);
        assert_eq!(Cause::of(parts(1, 4, 4)), Cause::Preempted);
        assert_eq!(Cause::of(parts(1, 4, 5)), Cause::Blocked);
        assert_eq!(parts(1, 1, 2).percent(), [25, 25, 50]);
        assert_eq!(parts(0, 0, 0).percent(), [0, 0, 0]);
    }

    #[test]
    fn a_sample_is_one_line() {
        let stall = Stall {
            cause: Cause::Blocked,
            awake: Duration::from_millis(1_250),
            parts: parts(10, 0, 990),
            blocked_in: Some(BlockedIn::SystemCall(-5)),
            task: None,
            is_over: false,
        };
        let unknown = Parts::default();
        let over = Stall { cause: Cause::Unknown, parts: unknown, is_over: true, ..stall };
        let workers = vec![
            worker(Pool::Tokio, State::Parked, Vec::new()),
            worker(Pool::Tokio, State::Blocked(BlockedIn::Unknown), vec![over, stall]),
            worker(Pool::Rayon, State::Ready, Vec::new()),
        ];
        let sample = Sample { interval: Duration::from_secs(1), workers };
        assert_eq!(
            sample.to_string(),
            "tokio: 1 parked, 1 blocked; rayon: 1 ready | worker (7) unknown for 1.2 s, over \
             | worker (7) blocked in system call -5 for 1.2 s \
             (1 % running, 0 % without a processor, 99 % blocked)"
        );
        let empty = Sample { interval: Duration::ZERO, workers: Vec::new() };
        assert_eq!(empty.to_string(), "no workers");
    }
}
