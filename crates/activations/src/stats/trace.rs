//! What ran where and when, and what the kernel told: for a trace viewer.
//!
//! Each worker writes into a list of its own, up to a number of events; what comes later is counted and left out, so that tracing a server does not fill
//! its memory. Without tracing it costs a look at a pointer.
//!
//! The format is the JSON of Chrome's "Trace Event Format", which [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` read: a track for each kernel
//! thread, on which the user-level threads are that it ran, an instant event for each upcall, with its latency, and a track for each slot that was short of a
//! worker (`slot_times.rs`). Threads that have a name are shown by it, with their number.

use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock;
use stanchion_competitive::Mutex;

use crate::thread::header::{Thread, ThreadId};
use crate::stats::upcalls::Upcall;

#[derive(Clone, Copy, Debug)]
enum What {
    /// The thread runs from now on.
    Runs(ThreadId),
    /// It does not any more.
    Leaves,
    /// The kernel has told something of the worker on this slot, so many nanoseconds after it happened, if that is known.
    Told(Upcall, usize, Option<u64>),
    /// Something was ready for this slot, whose owner was blocked, for so many nanoseconds from then on.
    Short(usize, u64),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    what: What,
}

/// The lists of a runtime that is traced.
pub(crate) struct Tracer {
    most: usize,
    began: u64,
    /// One a worker, and one for the monitor and everybody else.
    lists: Box<[Mutex<Vec<Event>>]>,
    /// Of threads that have one, as many as there may be events of a worker.
    names: Mutex<BTreeMap<ThreadId, Box<str>>>,
    left_out: AtomicU64,
}

impl Tracer {
    /// For so many workers, each with so many events.
    pub(crate) fn new(workers: usize, most: usize) -> Self {
        Self {
            most,
            began: clock::monotonic(),
            lists: (0..=workers).map(|_| Mutex::new(Vec::new())).collect(),
            names: Mutex::new(BTreeMap::new()),
            left_out: AtomicU64::fresh(0),
        }
    }

    /// A thread runs for the first time.
    pub(crate) fn begins(&self, thread: &Thread) {
        let Some(name) = thread.name() else { return };
        let mut names = self.names.lock();
        if names.len() < self.most {
            names.insert(thread.id(), name.into());
        }
    }

    fn note(&self, list: usize, what: What) {
        self.note_at(clock::monotonic(), list, what);
    }

    fn note_at(&self, at: u64, list: usize, what: What) {
        let at = at.saturating_sub(self.began);
        let mut list = self.lists[list].lock();
        if list.len() < self.most {
            list.push(Event { at, what });
        } else {
            // Relaxed: a statistic.
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn runs(&self, worker: usize, thread: ThreadId) {
        self.note(worker, What::Runs(thread));
    }

    pub(crate) fn leaves(&self, worker: usize) {
        self.note(worker, What::Leaves);
    }

    pub(crate) fn told(&self, upcall: Upcall, slot: usize, latency: Option<u64>) {
        self.note(self.lists.len() - 1, What::Told(upcall, slot, latency));
    }

    pub(crate) fn short(&self, slot: usize, since: u64, nanos: u64) {
        self.note_at(since, self.lists.len() - 1, What::Short(slot, nanos));
    }

    /// What there is so far.
    pub(crate) fn trace(&self) -> Trace {
        Trace {
            lists: self.lists.iter().map(|list| list.lock().clone()).collect(),
            names: self.names.lock().clone(),
            // Relaxed: a statistic.
            left_out: self.left_out.load(Ordering::Relaxed),
        }
    }
}

/// What a runtime has done, from [`Runtime::trace`](crate::Runtime::trace).
///
/// ```
/// use stanchion_activations::{Builder, Runtime};
///
/// let runtime = Runtime::builder().processors(1).trace(1_000).build()?;
/// Builder::new().name("shown by its name").on(&runtime).spawn(|| ()).join().unwrap();
/// let trace = runtime.trace().expect("it was asked for");
/// println!("{} events, {} left out", trace.len(), trace.left_out());
/// trace.write_chrome(&mut std::io::sink()).expect("nothing is written");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    lists: Vec<Vec<Event>>,
    names: BTreeMap<ThreadId, Box<str>>,
    left_out: u64,
}

impl Trace {
    /// Events that came when their kernel thread's list was full.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes it as trace-event JSON, to be opened with Perfetto or `chrome://tracing`.
    ///
    /// # Errors
    ///
    /// What writing to `out` fails with.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        let mut events = Vec::new();
        // Tracks of slots come after those of workers.
        let mut slots = BTreeSet::new();
        for (worker, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let others = worker + 1 == self.lists.len();
            let name = if others { "upcalls".into() } else { format!("worker {worker}") };
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
                    What::Told(upcall, slot, latency) => {
                        events.push(instant(worker, event.at, upcall, slot, latency));
                    }
                    What::Short(slot, nanos) => {
                        let track = self.lists.len() + slot;
                        if slots.insert(slot) {
                            events.push(track_name(track, &format!("slot {slot}")));
                        }
                        events.push(span(track, event.at, event.at + nanos, "short of a worker"));
                    }
                }
            }
        }
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
    }

    /// As it is to be shown, in what may stand in a JSON string.
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

/// Nanoseconds as the format's microseconds.
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
