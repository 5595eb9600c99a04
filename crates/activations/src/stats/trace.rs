//! A record of what ran where and when, and of the upcalls, for a trace viewer.
//!
//! Each worker writes into a list of its own, up to a number of events. Later events are counted
//! and left out, so that tracing a server does not fill its memory. Without tracing the cost is a
//! look at a pointer.
//!
//! The format is the JSON of Chrome's "Trace Event Format", which
//! [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` read. It has a track for each
//! worker, with the user-level threads that it ran; an instant event for each upcall, with its
//! latency; and a track for each slot that had no worker while a processor was idle
//! (`detection/lost_time.rs`). Threads that have a name are shown by it, with their number. The
//! number of [`FORMAT`] goes up when a name in the JSON changes.

use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock;

use super::upcalls::Upcall;
use crate::thread::handle::Thread;
use crate::thread::id::ThreadId;

/// The version of the names in the JSON. Version 1 had no number, and called workers *carriers* and
/// slots *seats*.
const FORMAT: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum What {
    /// The thread runs from now on.
    Runs(ThreadId),
    /// The thread that ran runs no more.
    Leaves,
    /// An upcall came for the worker on this slot, so many nanoseconds after its cause, if that is
    /// known.
    Upcall(Upcall, usize, Option<u64>),
    /// From then on a thread was ready for this slot for so many nanoseconds, while the slot's
    /// owner was blocked.
    LostTime(usize, u64),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// The time, in ns since the tracer was made.
    at: u64,
    what: What,
}

/// The events of a runtime that is traced.
pub(crate) struct Tracer {
    /// The most events of a list.
    most: usize,
    /// The time at which the tracer was made, in ns of the monotonic clock.
    began: u64,
    /// One list for each worker, written by it. The last one is for the monitor and all others.
    lists: Box<[Mutex<Vec<Event>>]>,
    /// The names of threads, of as many as there may be events of a worker. Written by the worker
    /// on which a thread begins.
    names: Mutex<BTreeMap<ThreadId, Box<str>>>,
    /// Events that came when their list was full. Raised by their writers.
    dropped: AtomicU64,
}

impl Tracer {
    /// Returns a tracer for so many workers, each with so many events.
    pub(crate) fn new(workers: usize, most: usize) -> Self {
        Self {
            most,
            began: clock::monotonic(),
            lists: (0..=workers).map(|_| Mutex::new(Vec::new())).collect(),
            names: Mutex::new(BTreeMap::new()),
            dropped: AtomicU64::fresh(0),
        }
    }

    /// Records the name of a thread that begins.
    pub(crate) fn begins(&self, thread: &Thread) {
        let Some(name) = thread.name() else { return };
        let mut names = self.names.lock();
        if names.len() < self.most {
            names.insert(thread.id(), name.into());
        }
    }

    fn record(&self, at: u64, list: usize, what: What) {
        let at = at.saturating_sub(self.began);
        let mut list = self.lists[list].lock();
        if list.len() < self.most {
            list.push(Event { at, what });
        } else {
            // Relaxed: a statistic.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that a thread runs on this worker.
    pub(crate) fn runs(&self, worker: usize, thread: ThreadId) {
        self.record(clock::monotonic(), worker, What::Runs(thread));
    }

    /// Records that the thread on this worker runs no more.
    pub(crate) fn leaves(&self, worker: usize) {
        self.record(clock::monotonic(), worker, What::Leaves);
    }

    /// Records an upcall.
    pub(crate) fn upcall(&self, upcall: Upcall, slot: usize, latency: Option<u64>) {
        let list = self.lists.len() - 1;
        self.record(clock::monotonic(), list, What::Upcall(upcall, slot, latency));
    }

    /// Records processor time that was lost.
    pub(crate) fn lost_time(&self, slot: usize, since: u64, nanos: u64) {
        self.record(since, self.lists.len() - 1, What::LostTime(slot, nanos));
    }

    /// Returns a copy of what there is so far.
    pub(crate) fn trace(&self) -> Trace {
        Trace {
            lists: self.lists.iter().map(|list| list.lock().clone()).collect(),
            names: self.names.lock().clone(),
            // Relaxed: a statistic.
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

/// A record of what a runtime has done, from [`Runtime::trace`](crate::Runtime::trace).
///
/// ```
/// use stanchion_activations::{Builder, Runtime};
///
/// let runtime = Runtime::builder().processors(1).trace(1_000).build()?;
/// Builder::new().name("shown by its name").on(&runtime).spawn(|| ()).join().unwrap();
/// let trace = runtime.trace().expect("it was asked for");
/// println!("{} events, {} dropped", trace.len(), trace.dropped());
/// trace.write_chrome(&mut std::io::sink()).expect("nothing is written");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    /// As in the tracer.
    lists: Vec<Vec<Event>>,
    /// As in the tracer.
    names: BTreeMap<ThreadId, Box<str>>,
    /// As in the tracer.
    dropped: u64,
}

impl Trace {
    /// Returns the number of events that came when their kernel thread's list was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Returns whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the trace as trace-event JSON, to be opened with Perfetto or `chrome://tracing`.
    ///
    /// # Errors
    ///
    /// The error that writing to `out` fails with.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        let mut events = Vec::new();
        // The tracks of slots come after those of workers.
        let mut slots = BTreeSet::new();
        for (worker, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let is_last = worker + 1 == self.lists.len();
            let name = if is_last { "upcalls".into() } else { format!("worker {worker}") };
            events.push(track_name(worker, &name));
            let mut running: Option<(u64, ThreadId)> = None;
            for event in list {
                if let (What::Runs(_) | What::Leaves, Some((from, thread))) =
                    (event.what, running.take())
                {
                    events.push(span(worker, from, event.at, &self.name_of(thread)));
                }
                match event.what {
                    What::Runs(thread) => running = Some((event.at, thread)),
                    What::Leaves => {}
                    What::Upcall(upcall, slot, latency) => {
                        events.push(instant(worker, event.at, upcall, slot, latency));
                    }
                    What::LostTime(slot, nanos) => {
                        let track = self.lists.len() + slot;
                        if slots.insert(slot) {
                            events.push(track_name(track, &format!("slot {slot}")));
                        }
                        events.push(span(track, event.at, event.at + nanos, "no worker"));
                    }
                }
            }
        }
        let events = events.join(",\n");
        write!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"format\":{FORMAT}}},\"traceEvents\":[\n{events}\n]}}\n"
        )
    }

    /// Returns the name to show, in characters that a JSON string may have.
    fn name_of(&self, thread: ThreadId) -> String {
        let Some(name) = self.names.get(&thread) else { return format!("thread {thread}") };
        let mut text = String::new();
        for character in name.chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                character if character.is_control() => text.push('\u{fffd}'),
                character => text.push(character),
            }
        }
        format!("{text} ({thread})")
    }
}

/// Returns nanoseconds as the format's microseconds.
fn micros(nanos: u64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{}.{:03}", nanos / 1_000, nanos % 1_000);
    text
}

fn track_name(track: usize, name: &str) -> String {
    format!(r#"{{"name":"thread_name","ph":"M","pid":1,"tid":{track},"args":{{"name":"{name}"}}}}"#)
}

fn span(track: usize, from: u64, to: u64, name: &str) -> String {
    format!(
        r#"{{"name":"{name}","ph":"X","pid":1,"tid":{track},"ts":{},"dur":{}}}"#,
        micros(from),
        micros(to - from)
    )
}

fn instant(track: usize, at: u64, upcall: Upcall, slot: usize, latency: Option<u64>) -> String {
    let latency = latency.map_or(String::new(), |nanos| format!(r#","latency_ns":{nanos}"#));
    format!(
        r#"{{"name":"{upcall:?}","ph":"i","s":"p","pid":1,"tid":{track},"ts":{},"args":{{"slot":{slot}{latency}}}}}"#,
        micros(at)
    )
}
