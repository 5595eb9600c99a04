//! A recording as a file.
//!
//! ```json
//! {"format": "stanchion waits", "version": 1,
//! "program": "queues", "cost_ns": 5000, "unit_ns": 400, "elapsed_ns": 2000000000, "overflow": 0,
//! "locks": [
//! {"name": "queue", "waits": 3, "total_ns": 91000, "spun_ns": 1000, "max_ns": 90000,
//!  "holder_changes": 0, "arrivals": [2, 1],
//!  "spun": [[0, 1], [1, 1]], "blocked": [[83, 1]], "wake_latency": [[24, 1]]}
//! ]}
//! ```
//!
//! `"mutexes": "pthread"` after `program` says that `stanchion record` ran the program, and what
//! mutexes it had. `spun`, `blocked` and `wake_latency` are pairs of a bucket's number and a count.
//! Buckets are those of [`buckets`](super::buckets). In `arrivals`, the first number is of waits
//! that found no other waiter. In a file each lock stands on one line. After the locks may come
//! `paths`, which is not read here: `stanchion record` adds all waits by their paths of calls. Last
//! may come `events`, single waits ([`events_file`](super::events_file)).

use core::fmt::Write as _;

use serde::Deserialize;

use super::buckets::{self, ARRIVALS, MAX_UNIT_NS};
use super::distribution::{Counts, Distribution, MOST, sum};
use super::document::{FileError, Kind, check_name, quoted};
use super::recording::Recording;

/// The version stayed 1 when `paths` and `events` came, because no other had been released.
pub(super) const KIND: Kind = Kind {
    format: "stanchion waits",
    version: 1,
    what: "a recording of waits as stanchion writes it",
    // `record --limit` allows 1 GB of single waits; the rest is much less.
    longest: (1 << 30) + (64 << 20),
};

/// A longer C is refused.
const MOST_COST_NS: u64 = 1_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    #[serde(rename = "format")]
    /// The kind of file; checked before.
    _format: String,
    #[serde(rename = "version")]
    /// The version; checked before.
    _version: u64,
    /// The program.
    program: String,
    /// The mutexes of the program, if `stanchion record` ran it.
    mutexes: Option<String>,
    /// C, in nanoseconds.
    cost_ns: u64,
    /// The width of the buckets around C, in nanoseconds.
    unit_ns: u64,
    /// The length of the recording, in nanoseconds.
    elapsed_ns: u64,
    /// The number of locks that found the table of names full.
    overflow: u64,
    #[serde(rename = "locks")]
    /// The locks; read one by one.
    _locks: serde::de::IgnoredAny,
    #[serde(rename = "paths")]
    /// The waits by path of calls, which `stanchion record` adds; not read here.
    _paths: Option<serde::de::IgnoredAny>,
    #[serde(rename = "events")]
    /// Single waits; read for themselves.
    _events: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    /// The name.
    name: String,
    /// The number of waits.
    waits: u64,
    /// The sum of the waits, in nanoseconds.
    total_ns: u64,
    /// The part of that sum that was spun.
    spun_ns: u64,
    /// The longest wait, in nanoseconds.
    max_ns: u64,
    /// The number of times that a waiter saw the holder change.
    holder_changes: u64,
    /// The number of waits by how many others waited when they began.
    arrivals: Vec<u64>,
    /// The waits without blocking: bucket and count.
    spun: Vec<(u64, u64)>,
    /// The waits that blocked: bucket and count.
    blocked: Vec<(u64, u64)>,
    /// The wake-ups: bucket and count.
    wake_latency: Vec<(u64, u64)>,
}

impl Recording {
    /// The recording as text, one lock on a line.
    ///
    /// ```
    /// use stanchion_competitive::waits::{self, Observation, Record, Recording};
    /// Record::register("queue").add(&Observation { length_ns: 700, ..Observation::default() });
    /// let recording = waits::snapshot();
    /// assert_eq!(Recording::from_json(recording.to_json().as_bytes()), Ok(recording));
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let mutexes = self.mutexes.as_deref();
        let mutexes =
            mutexes.map_or_else(String::new, |of| format!(" \"mutexes\": {},", quoted(of)));
        let head = format!(
            "\"program\": {},{mutexes} \"cost_ns\": {}, \"unit_ns\": {}, \"elapsed_ns\": {}, \"overflow\": {}",
            quoted(&self.program),
            self.cost_ns,
            self.unit_ns,
            self.elapsed_ns,
            self.overflow
        );
        KIND.write(&head, &self.locks, |text, (name, waits)| write_lock(text, name, &waits.counts))
    }

    /// Reads a text that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the text is no recording, is of a later version, was cut, or if its counts
    /// do not agree with each other. It names the line and the content that was expected there.
    /// There is no checksum: an edit that keeps the counts in agreement goes unnoticed.
    ///
    /// ```
    /// use stanchion_competitive::waits::Recording;
    /// let error = Recording::from_json(b"not one").unwrap_err();
    /// assert_eq!(error.line(), 1);
    /// assert!(error.to_string().contains("expected a recording of waits"));
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Self, FileError> {
        let document = KIND.open::<Head>(bytes)?;
        let head = &document.head;
        let top = |problem: String| {
            // They stand together.
            let at = bytes.windows(9).position(|part| part == b"\"program\"").unwrap_or(0);
            let line = 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
            FileError::new(line, problem)
        };
        check_name("the program", &head.program).map_err(top)?;
        head.mutexes
            .iter()
            .try_for_each(|of| check_name("the kind of mutexes", of))
            .map_err(top)?;
        within("unit_ns", head.unit_ns, 1, MAX_UNIT_NS).map_err(top)?;
        within("cost_ns", head.cost_ns, 1, MOST_COST_NS).map_err(top)?;
        let mut locks = document.locks(|lock: Lock| lock.check(head.unit_ns))?;
        let waits = locks.iter().fold(0_u64, |sum, lock| sum.saturating_add(lock.1.count()));
        within("waits of all locks", waits, 0, MOST)
            .map_err(|problem| FileError::new(1, problem))?;
        locks.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Self {
            program: head.program.clone(),
            mutexes: head.mutexes.clone(),
            cost_ns: head.cost_ns,
            unit_ns: head.unit_ns,
            elapsed_ns: head.elapsed_ns,
            locks,
            overflow: head.overflow,
        })
    }
}

fn write_lock(text: &mut String, name: &str, counts: &Counts) {
    let arrivals = counts.arrivals.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{{\"name\": {}, \"waits\": {}, \"total_ns\": {}, \"spun_ns\": {}, \"max_ns\": {}, \"holder_changes\": {}, \"arrivals\": {:?}",
        quoted(name),
        counts.waits(),
        counts.total,
        counts.spun_time,
        counts.max,
        counts.holder_changes,
        &counts.arrivals[..arrivals]
    );
    let rows = [
        ("spun", &counts.spun[..]),
        ("blocked", &counts.blocked[..]),
        ("wake_latency", &counts.latencies[..]),
    ];
    for (name, row) in rows {
        let _ = write!(text, ", \"{name}\": [");
        let filled = row.iter().enumerate().filter(|&(_, &count)| count > 0);
        for (nth, (bucket, count)) in filled.enumerate() {
            let _ = write!(text, "{}[{bucket}, {count}]", if nth == 0 { "" } else { ", " });
        }
        text.push(']');
    }
    text.push('}');
}

impl Lock {
    /// Its distribution, if the invariants of [`distribution`](super::distribution) hold.
    fn check(self, unit: u64) -> Result<(String, Distribution), String> {
        check_name("a lock", &self.name)?;
        let name = self.name.clone();
        let counts = self.counts(unit).map_err(|problem| {
            format!("lock `{name}`: {problem}; the file was damaged or edited, take it from its source again")
        })?;
        Ok((name, Distribution { unit, counts }))
    }

    fn counts(self, unit: u64) -> Result<Counts, String> {
        let mut counts = Counts {
            total: self.total_ns,
            spun_time: self.spun_ns,
            max: self.max_ns,
            holder_changes: self.holder_changes,
            ..Counts::new()
        };
        within("holder_changes", self.holder_changes, 0, MOST)?;
        if self.arrivals.len() > ARRIVALS {
            return Err(format!(
                "arrivals has {} numbers: expected at most {ARRIVALS}",
                self.arrivals.len()
            ));
        }
        counts.arrivals[..self.arrivals.len()].copy_from_slice(&self.arrivals);
        fill("spun", &mut *counts.spun, &self.spun)?;
        fill("blocked", &mut *counts.blocked, &self.blocked)?;
        fill("wake_latency", &mut *counts.latencies, &self.wake_latency)?;
        let (blocked, waits) = (sum(&*counts.blocked), counts.waits());
        within("waits", self.waits, 0, MOST)?;
        if waits != self.waits {
            return Err(format!("\"waits\" is {}, but its buckets hold {waits}", self.waits));
        }
        at_most("arrivals", sum(&counts.arrivals), "waits", waits)?;
        at_most("wake latencies", sum(&*counts.latencies), "blocked waits", blocked)?;
        let bucket = counts.last();
        let fits = match bucket {
            None => self.max_ns == 0,
            Some(last) => buckets::holds(last, self.max_ns, unit),
        };
        if !fits {
            return Err(format!(
                "max_ns is {}, which the last of its buckets does not hold",
                self.max_ns
            ));
        }
        let bounds = counts.bounds(unit);
        if !bounds.contains(&self.total_ns.into()) {
            return Err(format!(
                "total_ns is {}, but waits in its buckets take from {} to {}",
                self.total_ns,
                bounds.start(),
                bounds.end()
            ));
        }
        at_most("spun_ns", self.spun_ns, "total_ns", self.total_ns)?;
        if waits == 0 && self.holder_changes > 0 {
            return Err("holder_changes without waits".to_owned());
        }
        Ok(counts)
    }
}

/// Pairs of a bucket and its count, buckets rising, into the counts of all buckets.
fn fill(what: &str, counts: &mut [u64], pairs: &[(u64, u64)]) -> Result<(), String> {
    let buckets = counts.len();
    let mut least = 0;
    for &(bucket, count) in pairs {
        let index = usize::try_from(bucket).ok().filter(|&index| index < buckets);
        let Some(index) = index.filter(|&index| index >= least) else {
            return Err(format!(
                "{what} has the bucket {bucket} where one from {least} to {} was expected",
                buckets - 1
            ));
        };
        within(&format!("the count of bucket {bucket} of {what}"), count, 1, MOST)?;
        counts[index] = count;
        least = index + 1;
    }
    Ok(())
}

fn within(what: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} is {value}: expected {least} to {most}"))
    }
}

fn at_most(what: &str, value: u64, of: &str, most: u64) -> Result<(), String> {
    if value <= most { Ok(()) } else { Err(format!("{value} {what}, but {most} {of}")) }
}
