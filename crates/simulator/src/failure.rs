//! The reasons why a run did not come to its end, in words that name the thread, its state and a
//! remedy.

use crate::arena;
use crate::machine::Invalid;
use crate::scheduler::{Status, Thread, Threads, Wait};
use crate::{ThreadId, Time};
use core::any::Any;
use core::fmt::Write;

/// Why a run did not come to its end.
///
/// What the run's threads owned is leaked, except where a panic has unwound it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The description of the machine is impossible.
    #[error("the machine cannot be built: {0}")]
    Machine(#[from] Invalid),
    /// A simulation was begun inside another.
    #[error(
        "a simulation was begun inside a simulation: run one after the other, each from the program itself"
    )]
    Nested,
    /// The body panicked, or another thread did and its panic was not caught, or the destructor of
    /// a static of the run did.
    #[error("{thread} panicked at {at}: {message}")]
    Panicked {
        /// "the body", or the thread's number and name, or "the destructor of a static of the run".
        thread: String,
        /// The panic's message.
        message: String,
        /// The virtual time of the panic.
        at: Time,
    },
    /// Nothing can happen any more, and some threads have not ended.
    #[error("deadlock at {at}: nothing can happen any more, and {} not ended\n{waiting}", threads(*.count))]
    Deadlock {
        /// The number of threads that wait.
        count: usize,
        /// The waiting threads and their waits, a line each.
        waiting: String,
        /// The time of the last event.
        at: Time,
    },
    /// The run went beyond its time.
    #[error(
        "the run is at {limit} of virtual time and has not ended: if it does not spin for ever, raise the limit with `Simulation::time`\n{doing}"
    )]
    Time {
        /// The limit.
        limit: Time,
        /// The actions of the threads, a line each.
        doing: String,
    },
    /// The run made too many shared accesses.
    #[error(
        "the run has made {limit} shared accesses and has not ended: if it does not spin for ever, raise the limit with `Simulation::accesses`\n{doing}"
    )]
    Accesses {
        /// The limit.
        limit: u64,
        /// The actions of the threads, a line each.
        doing: String,
    },
    /// The program made too many threads.
    #[error(
        "the program made more than {limit} threads: join some first, or raise the limit with `Simulation::threads`"
    )]
    Threads {
        /// The limit.
        limit: usize,
    },
    /// There is no memory for the run or for another thread's stack.
    #[error("no memory for thread {threads} of the run: {error}; lower `Simulation::stack_size`")]
    Memory {
        /// The number of threads.
        threads: usize,
        /// The message of the system.
        error: String,
    },
}

fn message(payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

fn threads(count: usize) -> String {
    if count == 1 { "1 thread has".to_owned() } else { format!("{count} threads have") }
}

/// Threads that a report names one by one.
const NAMED: usize = 24;

impl Failure {
    /// A thread panicked, and did not catch it.
    pub(crate) fn panicked(threads: &Threads, id: ThreadId, payload: &dyn Any) -> Self {
        let panicked = &threads[id];
        let thread = match id.index() {
            0 => "the body".to_owned(),
            index => format!("thread {index}{}", quoted(panicked)),
        };
        Self::Panicked { thread, message: message(payload), at: panicked.time }
    }

    /// The destructor of a static of the run panicked, when all threads had ended.
    pub(crate) fn of_a_static(threads: &Threads, payload: &dyn Any) -> Self {
        let thread = "the destructor of a static of the run".to_owned();
        Self::Panicked { thread, message: message(payload), at: threads.elapsed() }
    }

    /// Nothing can happen any more.
    pub(crate) fn deadlock(threads: &Threads) -> Self {
        let count = threads.iter().filter(|thread| thread.status != Status::Ended).count();
        let at = threads.iter().map(|thread| thread.since).max().unwrap_or_default();
        Self::Deadlock { count, waiting: describe(threads), at }
    }

    /// The run goes on beyond `limit`.
    pub(crate) fn time(limit: Time, threads: &Threads) -> Self {
        Self::Time { limit, doing: describe(threads) }
    }

    /// The run makes more than `limit` shared accesses.
    pub(crate) fn accesses(limit: u64, threads: &Threads) -> Self {
        Self::Accesses { limit, doing: describe(threads) }
    }
}

fn quoted(thread: &Thread) -> String {
    thread.name.as_deref().map(|name| format!(" '{name}'")).unwrap_or_default()
}

/// A line for each thread that has not ended.
fn describe(threads: &Threads) -> String {
    let mut lines = String::new();
    let left = || threads.iter().enumerate().filter(|(_, thread)| thread.status != Status::Ended);
    for (index, thread) in left().take(NAMED) {
        let name = quoted(thread);
        let doing = doing(thread, threads);
        writeln!(lines, "  thread {index}{name} {doing}, since {}", thread.since)
            .expect("a string takes all");
    }
    let more = left().count().saturating_sub(NAMED);
    if more > 0 {
        writeln!(lines, "  and {more} more").expect("a string takes all");
    }
    lines.truncate(lines.trim_end().len());
    lines
}

fn doing(thread: &Thread, threads: &Threads) -> String {
    let processor = thread.processor;
    if thread.frozen {
        return "is frozen".to_owned();
    }
    match (thread.status, thread.wait) {
        (Status::Spinning, Wait::Word(word)) => {
            format!("spins on processor {processor} until {} changes", arena::name(word))
        }
        (Status::Running | Status::Spinning, _) => format!("runs on processor {processor}"),
        (Status::Ready, _) => "waits for a processor".to_owned(),
        (Status::Stopped, _) => "is stopped, and its address space does not resume it".to_owned(),
        (_, Wait::Parked(word)) => format!("is parked on {}", arena::name(word)),
        (_, Wait::Join(other)) => {
            let name = quoted(&threads[other]);
            format!("waits for the end of thread {}{name}", other.index())
        }
        (_, Wait::Sleep) => "sleeps".to_owned(),
        (_, Wait::Nothing | Wait::Word(_)) => "waits".to_owned(),
    }
}
