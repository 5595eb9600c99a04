//! Single waits as a part of a recording's file.
//!
//! ```json
//! "events": {"kept": 2, "seen": 5,
//! "threads": [
//! [4711, 4711, "server"],
//! [4711, 4712, "worker"]
//! ],
//! "rows": [
//! [1000, 90000, 0, 0, 1, 10000, 0, 80000, 3],
//! [2500, 700, 1, -1, -1, -1, -1, -1, 4]
//! ]}
//! ```
//!
//! A thread is its process, its number and its name. A row is one wait:
//!
//! | | |
//! | --- | --- |
//! | start | nanoseconds from the recording's beginning to the wait's |
//! | length | nanoseconds |
//! | thread | index into `threads` |
//! | lock | index into the file's `locks`, -1 if the thread waited for something else |
//! | waker | index into `threads`, -1 if it is not known |
//! | ran, preempted, blocked | what the waker did meanwhile, in nanoseconds; -1 if not known |
//! | path | index into the waits of the file's `paths`, -1 if there is none |

use core::fmt::Write as _;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::distribution::MOST;
use super::document::{AtMost, FileError, located, quoted};
use super::events::{Event, Events, Meanwhile, Thread};
use super::recording_file::{Head, KIND};

/// A longer name of a thread is refused, in bytes.
const LONGEST_NAME: usize = 64;

/// The parts of a recording that an event may name.
#[derive(Deserialize)]
struct File<'t> {
    /// The locks, of which only the number counts.
    locks: Vec<IgnoredAny>,
    /// The paths of calls.
    paths: Option<Paths>,
    #[serde(borrow)]
    /// The section, still text.
    events: Option<&'t RawValue>,
}

/// The waits by path of calls, of which only the number counts.
#[derive(Deserialize)]
struct Paths {
    /// The paths.
    waits: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// The number of rows.
    kept: u64,
    /// The number of waits that were seen.
    seen: u64,
    /// The threads.
    threads: AtMost<(u32, u32, String), { Events::MOST_THREADS }>,
    /// The waits.
    rows: AtMost<Row, { Events::MOST_WAITS }>,
}

/// A wait as the file has it.
#[derive(Clone, Copy, Deserialize)]
struct Row(u64, u64, u32, i64, i64, i64, i64, i64, i64);

/// The rows and threads again, each still text: to find the line of one.
#[derive(Deserialize)]
struct Lines<'t> {
    #[serde(borrow)]
    /// The threads.
    threads: Vec<&'t RawValue>,
    /// The waits.
    rows: Vec<&'t RawValue>,
}

/// The numbers of things that a row may name.
struct Numbers {
    /// The threads.
    threads: usize,
    /// The locks.
    locks: usize,
    /// The paths of calls.
    paths: usize,
}

impl Events {
    /// Returns the text of the section `events` of a recording's file, one wait on a line.
    ///
    /// The waits have to be in the order of their beginnings, or the text is not read again.
    #[must_use]
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Reads the section `events` of a recording's file; `None` if it has none. Takes about 80
    /// bytes of memory for each wait.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file is no recording, is of a later version, was cut, or if a wait
    /// cannot be: its thread, lock or path does not exist, its times exceed its length, or it
    /// begins before the one on the line above. It names the line and the content that was expected
    /// there. The locks themselves are checked by
    /// [`Recording::from_json`](super::Recording::from_json).
    ///
    /// ```
    /// use stanchion_competitive::waits::events::Events;
    ///
    /// let file = br#"{"format": "stanchion waits", "version": 1,
    ///     "program": "p", "cost_ns": 5000, "unit_ns": 400, "elapsed_ns": 9, "overflow": 0,
    ///     "locks": [], "events": {"kept": 1, "seen": 4,
    ///     "threads": [[7, 8, "worker"]],
    ///     "rows": [[1000, 90000, 0, -1, -1, -1, -1, -1, -1]]}}"#;
    /// let events = Events::from_json(file)?.expect("it has the section");
    /// assert_eq!((events.seen, events.threads[0].name.as_str()), (4, "worker"));
    /// # Ok::<(), stanchion_competitive::waits::FileError>(())
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Option<Self>, FileError> {
        read(bytes)
    }
}

fn write(events: &Events) -> String {
    let Events { seen, threads, waits } = events;
    let mut text = format!("{{\"kept\": {}, \"seen\": {seen},\n\"threads\": [", waits.len());
    for (index, Thread { process, thread, name }) in threads.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a string does not fail, here and below.
        let _ = write!(text, "{comma}\n[{process}, {thread}, {}]", quoted(name));
    }
    text.push_str("\n],\n\"rows\": [");
    let index = |index: Option<u32>| index.map_or(-1, i64::from);
    for (nth, wait) in waits.iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let Event { start_ns, length_ns, thread, .. } = wait;
        let [lock, waker, path] = [wait.lock, wait.waker, wait.path].map(index);
        let _ = write!(text, "{comma}\n[{start_ns}, {length_ns}, {thread}, {lock}, {waker}, ");
        let _ = match wait.meanwhile {
            None => write!(text, "-1, -1, -1, {path}]"),
            Some(Meanwhile { ran_ns, preempted_ns, blocked_ns }) => {
                write!(text, "{ran_ns}, {preempted_ns}, {blocked_ns}, {path}]")
            }
        };
    }
    text.push_str("\n]}");
    text
}

fn read(bytes: &[u8]) -> Result<Option<Events>, FileError> {
    let document = KIND.open::<Head>(bytes)?;
    let file: File<'_> = serde_json::from_str(document.text).map_err(|error| located(&error, 1))?;
    let Some(text) = file.events else { return Ok(None) };
    let paths = file.paths.map_or(0, |paths| paths.waits.len());
    let line = document.line_of(text);
    let Section { kept, seen, threads: AtMost(threads), rows: AtMost(rows) } =
        serde_json::from_str(text.get()).map_err(|error| located(&error, line))?;
    if kept != rows.len() as u64 {
        let problem = format!("\"kept\" is {kept}, but there are {} rows", rows.len());
        return Err(FileError::new(line, problem));
    }
    if !(kept..=MOST).contains(&seen) {
        let problem = format!("\"seen\" is {seen}: expected {kept} to {MOST}");
        return Err(FileError::new(line, problem));
    }
    // The line of a bad one is looked for only if there is one.
    let place = |list: fn(Lines<'_>) -> Vec<&RawValue>, index: usize| {
        let lines = serde_json::from_str(text.get()).map(list);
        let part = lines.ok().and_then(|lines| lines.get(index).copied());
        part.map_or(line, |part| document.line_of(part))
    };
    for (index, (_, _, name)) in threads.iter().enumerate() {
        check_name(name)
            .map_err(|problem| FileError::new(place(|lines| lines.threads, index), problem))?;
    }
    let threads: Vec<_> = threads
        .into_iter()
        .map(|(process, thread, name)| Thread { process, thread, name })
        .collect();
    let numbers = Numbers { threads: threads.len(), locks: file.locks.len(), paths };
    let mut waits = Vec::with_capacity(rows.len());
    let mut last = 0;
    for (index, row) in rows.into_iter().enumerate() {
        let wait = row.check(&numbers, last).map_err(|problem| {
            FileError::new(place(|lines| lines.rows, index), format!("a wait: {problem}"))
        })?;
        last = wait.start_ns;
        waits.push(wait);
    }
    Ok(Some(Events { seen, threads, waits }))
}

fn check_name(name: &str) -> Result<(), String> {
    if name.len() > LONGEST_NAME {
        return Err(format!(
            "the name of a thread has {} bytes: expected at most {LONGEST_NAME}",
            name.len()
        ));
    }
    match name.chars().find(|letter| letter.is_control()) {
        None => Ok(()),
        Some(letter) => Err(format!(
            "the name of a thread has the control character {}: expected text",
            letter.escape_unicode()
        )),
    }
}

impl Row {
    /// Returns the wait, if it can be one that follows a wait which began at `last`.
    fn check(self, numbers: &Numbers, last: u64) -> Result<Event, String> {
        let Self(start_ns, length_ns, thread, lock, waker, ran, preempted, blocked, path) = self;
        if !(last..=MOST).contains(&start_ns) {
            return Err(format!("it begins at {start_ns}: expected {last} to {MOST}"));
        }
        if length_ns > MOST {
            return Err(format!("its length is {length_ns}: expected at most {MOST}"));
        }
        let lock = checked("lock", lock, numbers.locks)?;
        let waker = checked("waker", waker, numbers.threads)?;
        let path = checked("path", path, numbers.paths)?;
        let thread = checked("thread", thread.into(), numbers.threads)?.unwrap_or(0);
        let times = [ran, preempted, blocked];
        let meanwhile = if times == [-1; 3] {
            None
        } else {
            let [ran_ns, preempted_ns, blocked_ns] = times.map(|time| u64::try_from(time).ok());
            let (Some(ran_ns), Some(preempted_ns), Some(blocked_ns)) =
                (ran_ns, preempted_ns, blocked_ns)
            else {
                return Err(format!(
                    "its waker's times are {times:?}: expected three times, or -1 for all"
                ));
            };
            let sum = ran_ns.saturating_add(preempted_ns).saturating_add(blocked_ns);
            if sum > length_ns {
                return Err(format!(
                    "its waker's times add up to {sum}: expected at most its length, {length_ns}"
                ));
            }
            if waker.is_none() {
                return Err("it has times of its waker, and no waker".to_owned());
            }
            Some(Meanwhile { ran_ns, preempted_ns, blocked_ns })
        };
        Ok(Event { start_ns, length_ns, thread, lock, path, waker, meanwhile })
    }
}

/// Returns the index, or `None` for -1, if there are so many.
fn checked(what: &str, index: i64, number: usize) -> Result<Option<u32>, String> {
    match u32::try_from(index) {
        _ if index == -1 => Ok(None),
        Ok(index) if (index as usize) < number => Ok(Some(index)),
        _ => Err(format!("{what} {index}, where the file has {number}")),
    }
}
