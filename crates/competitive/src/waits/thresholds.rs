//! Thresholds computed from recorded waits, by the names of locks: what
//! [`OptimalOnline`](crate::policy::OptimalOnline) is to be given.
//!
//! ```json
//! {"format": "stanchion thresholds", "version": 1,
//! "program": "queues", "cost_ns": 5000,
//! "locks": [
//! {"name": "queue", "threshold_ns": 800}
//! ]}
//! ```

use core::fmt::Write as _;

use serde::Deserialize;

use super::document::{FileError, Kind, check_name, quoted};

const KIND: Kind = Kind {
    format: "stanchion thresholds",
    version: 1,
    what: "a file of thresholds as `stanchion advise --thresholds` writes it",
    longest: 64 << 20,
};

/// The time to spin for each named lock, in nanoseconds: the row *Opt-known* of the paper's tables
/// 3 and 4.
///
/// ```
/// use stanchion_competitive::policy::OptimalOnline;
/// use stanchion_competitive::waits::Thresholds;
///
/// let file = br#"{"format": "stanchion thresholds", "version": 1,
///     "program": "queues", "cost_ns": 5000,
///     "locks": [{"name": "queue", "threshold_ns": 800}]}"#;
/// let thresholds = Thresholds::from_json(file)?;
/// assert_eq!(thresholds.of("queue"), Some(800));
/// let policy = match thresholds.of("stack") {
///     Some(nanos) => OptimalOnline::with_threshold(nanos),
///     None => <OptimalOnline as stanchion_competitive::Policy>::INIT, // spins for C
/// };
/// # drop(policy);
/// # Ok::<(), stanchion_competitive::waits::FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// The program. The thresholds were computed from its waits.
    pub program: String,
    /// The C that they are best for, in nanoseconds.
    pub cost_ns: u64,
    /// Names with thresholds in nanoseconds, each name once.
    pub locks: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    #[serde(rename = "format")]
    /// The kind of file; checked before.
    _format: String,
    #[serde(rename = "version")]
    /// The version; checked before.
    _version: u64,
    /// The program.
    program: String,
    /// C, in nanoseconds.
    cost_ns: u64,
    #[serde(rename = "locks")]
    /// The locks; read one by one.
    _locks: serde::de::IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    /// The name of the lock.
    name: String,
    /// The time to spin, in nanoseconds.
    threshold_ns: u64,
}

impl Thresholds {
    /// The threshold of the lock of that name, in nanoseconds.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<u64> {
        self.locks.iter().find(|lock| lock.0 == name).map(|lock| lock.1)
    }

    /// The thresholds as text, one lock on a line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = format!("\"program\": {}, \"cost_ns\": {}", quoted(&self.program), self.cost_ns);
        KIND.write(&head, &self.locks, |text, (name, nanos)| {
            // Writing to a string does not fail.
            let _ = write!(text, "{{\"name\": {}, \"threshold_ns\": {nanos}}}", quoted(name));
        })
    }

    /// Reads a text that [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the text is no file of thresholds, is of a later version, or was cut. It
    /// names the line and the content that was expected there.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FileError> {
        let document = KIND.open::<Head>(bytes)?;
        check_name("the program", &document.head.program)
            .map_err(|problem| FileError::new(1, problem))?;
        let locks = document.locks(|lock: Lock| {
            check_name("a lock", &lock.name)?;
            Ok((lock.name, lock.threshold_ns))
        })?;
        let Head { program, cost_ns, .. } = document.head;
        Ok(Self { program, cost_ns, locks })
    }
}
