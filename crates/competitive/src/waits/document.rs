//! The form of this crate's files: JSON with a name and a version, and one lock on each line, so
//! that faults can be found.
//!
//! Why not leave it to `serde`: a recording is measured on one machine and read on another, years
//! later perhaps. A file may be cut, edited, of another kind or of a later version. It must be told
//! from a correct one.

use core::fmt;
use core::marker::PhantomData;
use core::str;
use std::collections::HashSet;

use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// The reason why a file cannot be read: the line, the expected content, and a mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The number of the line.
    line: usize,
    /// The fault, in words.
    problem: String,
}

/// More locks are refused.
const MOST_LOCKS: usize = 100_000;
/// A longer text of one lock is refused, in bytes.
const LONGEST_LOCK: usize = 1 << 20;
/// A longer name is refused, in bytes.
const LONGEST_NAME: usize = 1_000;

/// Says that a file is not whole.
const CUT: &str = "the file ends too early, it was cut off";

impl FileError {
    pub(super) fn new(line: usize, problem: impl Into<String>) -> Self {
        Self { line: line.max(1), problem: problem.into() }
    }

    /// The line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for FileError {}

/// A kind of file.
pub(super) struct Kind {
    /// The value of its `format`.
    pub(super) format: &'static str,
    /// The version that is written, and the only one there has been.
    pub(super) version: u64,
    /// A description of it, and of where it comes from.
    pub(super) what: &'static str,
    /// A longer file is refused, in bytes.
    pub(super) longest: usize,
}

/// A file of the right kind and version: the data at its top, and its locks, still text.
pub(super) struct Document<'t, H> {
    /// The data at its top.
    pub(super) head: H,
    /// The whole text.
    pub(super) text: &'t str,
    /// The text of each lock.
    locks: Vec<&'t RawValue>,
}

/// A list of which no more than `MOST` elements are read, so that a file cannot take much more
/// memory than it is long.
pub(super) struct AtMost<T, const MOST: usize>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
            type Value = AtMost<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MOST}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    if elements.len() == MOST {
                        return Err(A::Error::custom(format_args!("a list of more than {MOST}")));
                    }
                    elements.push(element);
                }
                Ok(AtMost(elements))
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

#[derive(Deserialize)]
struct Label {
    /// The kind, as the file has it.
    format: Option<serde_json::Value>,
    /// The version, as the file has it.
    version: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Locks<'t> {
    #[serde(borrow)]
    /// The text of each lock.
    locks: AtMost<&'t RawValue, MOST_LOCKS>,
}

impl Kind {
    /// Returns the text of a file: its kind, the data at its top, then its locks, each on one line
    /// as `write` adds it.
    pub(super) fn write<T>(
        &self,
        head: &str,
        locks: &[T],
        mut write: impl FnMut(&mut String, &T),
    ) -> String {
        let Self { format, version, .. } = self;
        let mut text =
            format!("{{\"format\": \"{format}\", \"version\": {version},\n{head},\n\"locks\": [");
        for (index, lock) in locks.iter().enumerate() {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            write(&mut text, lock);
        }
        text.push_str("\n]}\n");
        text
    }

    /// Reads as far as this can tell without knowing what a lock looks like.
    pub(super) fn open<'t, H: DeserializeOwned>(
        &self,
        bytes: &'t [u8],
    ) -> Result<Document<'t, H>, FileError> {
        if bytes.len() > self.longest {
            let Self { what, longest, .. } = self;
            let problem = format!("{} bytes: {what} has at most {longest}", bytes.len());
            return Err(FileError::new(1, problem));
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = 1 + newlines(&bytes[..error.valid_up_to()]);
            FileError::new(line, format!("not text: {}", self.expected()))
        })?;
        if text.trim_ascii().is_empty() {
            return Err(FileError::new(1, format!("the file is empty: {}", self.expected())));
        }
        self.check_label(text)?;
        let head = serde_json::from_str(text).map_err(|error| located(&error, 1))?;
        let Locks { locks: AtMost(locks) } =
            serde_json::from_str(text).map_err(|error| located(&error, 1))?;
        Ok(Document { head, text, locks })
    }

    fn check_label(&self, text: &str) -> Result<(), FileError> {
        let label: Label = serde_json::from_str(text).map_err(|error| {
            if !text.contains(&format!("\"{}\"", self.format)) {
                FileError::new(error.line(), self.expected())
            } else if error.is_syntax() && text.ends_with(['-', '.', 'e', 'E', '+']) {
                // A number that `serde` leaves out, and that was cut, is invalid to it.
                FileError::new(error.line(), CUT.to_owned())
            } else {
                located(&error, 1)
            }
        })?;
        let line_of = |key: &str| {
            let at = text.find(&format!("\"{key}\"")).unwrap_or(0);
            1 + newlines(&text.as_bytes()[..at])
        };
        match label.format {
            Some(format) if format == self.format => {}
            Some(other) => {
                let problem = format!("\"format\" is {}: {}", shown(&other), self.expected());
                return Err(FileError::new(line_of("format"), problem));
            }
            None => return Err(FileError::new(1, self.expected())),
        }
        match label.version {
            Some(version) if version == self.version => Ok(()),
            Some(version) if version.as_u64().is_some_and(|version| version > self.version) => {
                let problem = format!(
                    "version {version} of the format, where this stanchion reads {}: use a later one",
                    self.version
                );
                Err(FileError::new(line_of("version"), problem))
            }
            version => {
                let version = version.as_ref().map_or_else(|| "missing".to_owned(), shown);
                let problem =
                    format!("\"version\" is {version}: expected the number {}", self.version);
                Err(FileError::new(line_of("version"), problem))
            }
        }
    }

    fn expected(&self) -> String {
        let Self { format, version, what, .. } = self;
        format!("expected {what}, which begins {{\"format\": \"{format}\", \"version\": {version}")
    }
}

impl<H> Document<'_, H> {
    /// Returns the line on which a part of the text begins.
    pub(super) fn line_of(&self, part: &RawValue) -> usize {
        // The value is a part of the text, so its address says where it is.
        let at = (part.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        1 + newlines(&self.text.as_bytes()[..at.min(self.text.len())])
    }

    /// Reads each lock by `read`, which returns its name, or the fault. Each name may come once.
    pub(super) fn locks<L: DeserializeOwned, T>(
        &self,
        mut read: impl FnMut(L) -> Result<(String, T), String>,
    ) -> Result<Vec<(String, T)>, FileError> {
        let mut names = HashSet::new();
        let mut locks = Vec::with_capacity(self.locks.len());
        for raw in &self.locks {
            let line = self.line_of(raw);
            if raw.get().len() > LONGEST_LOCK {
                let problem =
                    format!("a lock of {} bytes: expected at most {LONGEST_LOCK}", raw.get().len());
                return Err(FileError::new(line, problem));
            }
            let lock = serde_json::from_str(raw.get()).map_err(|error| located(&error, line))?;
            let lock = read(lock).map_err(|problem| FileError::new(line, problem))?;
            if !names.insert(lock.0.clone()) {
                let problem = format!("a second lock `{}`: expected each name once", lock.0);
                return Err(FileError::new(line, problem));
            }
            locks.push(lock);
        }
        Ok(locks)
    }
}

/// Checks that a name can be one. The error tells why it cannot.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(format!(
            "the name of {what} has {} bytes: expected 1 to {LONGEST_NAME}",
            name.len()
        ));
    }
    match name.chars().find(|letter| letter.is_control()) {
        None => Ok(()),
        Some(letter) => Err(format!(
            "the name of {what} has the control character {}: expected text",
            letter.escape_unicode()
        )),
    }
}

/// `text` as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the error of `serde`, in terms of the file. The part began on `line`.
pub(super) fn located(error: &serde_json::Error, line: usize) -> FileError {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    let said = shortened(said, 200);
    let problem = match error.classify() {
        Category::Eof => format!("{CUT}: {said}"),
        _ => format!("{said}: the file was damaged or edited; take it from its source again"),
    };
    FileError::new(line + error.line().max(1) - 1, problem)
}

fn shown(value: &serde_json::Value) -> String {
    shortened(&value.to_string(), 60)
}

fn shortened(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}
