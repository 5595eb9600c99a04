//! The waits of a program by path of calls, as a part of a recording's file.
//!
//! `stanchion record` adds it behind the locks, one path on a line:
//!
//! ```json
//! "paths": {"unwalked": 0, "waits": [
//! {"class": "lock", "name": "server: std Mutex in get (cache.rs:7)", "way": "std Mutex",
//!  "calls": ["serve (main.rs:20)", "get (cache.rs:7)"], "waits": 3, "blocked": 3,
//!  "total_ns": 9000, "median_ns": 3000, "p99_ns": 3500, "max_ns": 3400}
//! ]}
//! ```
//!
//! Behind it come single waits (`stanchion_competitive::waits::events`), which have indices into
//! these paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use stanchion_competitive::waits::{Distribution, Recording};

/// The waits of a program.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The program's name.
    pub(crate) program: String,
    /// The length of the recording, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// The number of waits with the name of an earlier one.
    pub(crate) unwalked: u64,
    /// The waits by path of calls.
    pub(crate) paths: Vec<Waits>,
}

/// A recording's file, as far as it is read here.
#[derive(Deserialize)]
struct File {
    /// The version of the format.
    #[serde(default)]
    version: Option<u64>,
    /// The program's name.
    program: String,
    /// The length of the recording, in nanoseconds.
    elapsed_ns: u64,
    /// The waits by path of calls.
    #[serde(default)]
    paths: Paths,
}

/// The waits of a file by path of calls.
#[derive(Default, Deserialize)]
struct Paths {
    /// The number of waits with the name of an earlier one.
    unwalked: u64,
    /// The waits.
    waits: Vec<Waits>,
}

/// The waits by one path of calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Waits {
    /// The kind, as `record` prints it.
    pub(crate) class: String,
    /// The name, as `record` prints it.
    pub(crate) name: String,
    /// The library's way to wait, without the function.
    pub(crate) way: String,
    /// The program's calls, the outermost first.
    pub(crate) calls: Vec<String>,
    /// The number of waits.
    pub(crate) waits: u64,
    /// The number of these that blocked.
    pub(crate) blocked: u64,
    /// The sum of their lengths, in nanoseconds.
    pub(crate) total_ns: u64,
    /// The median length.
    pub(crate) median_ns: u64,
    /// The length that one in a hundred exceeds.
    pub(crate) p99_ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
}

/// The waits of several paths together.
#[derive(Default)]
pub(crate) struct Sum {
    /// The number.
    pub(crate) waits: u64,
    /// The sum of their lengths, in nanoseconds.
    pub(crate) total_ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
    /// The length that one in a hundred exceeds.
    pub(crate) p99_ns: u64,
    /// True if that is only known to be no longer: the greatest of several paths.
    pub(crate) is_bound: bool,
}

/// The kinds of waits, as `record` prints them.
const CLASSES: [&str; 7] = ["lock", "condition", "park", "join", "sleep", "idle", "unknown"];

/// The most calls of a path that is read. The inlined ones of each recorded call are among them.
const DEEPEST: usize = 1_000;

/// The reason why a file cannot be reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRead {
    #[error(
        "it is of version {0} of the format, and this command reads version 1: use the command that wrote it"
    )]
    Version(u64),

    #[error("{0}. The file was cut or edited: record again")]
    Damaged(serde_json::Error),

    #[error(
        "it has no paths of calls. `stanchion record` writes them; for a recording of a `Recorder` there is `stanchion advise`"
    )]
    NoPaths,

    #[error("its paths have more waits than can be, or longer ones: it was edited")]
    TooLong,

    #[error("a path has {0} calls, and at most {DEEPEST} can be recorded: it was edited")]
    TooDeep(usize),

    #[error("a name in it has a control character: it was edited")]
    NoText,

    #[error(transparent)]
    File(stanchion_competitive::waits::FileError),

    #[error(
        "it has no single waits, of which --perfetto makes a trace: record again by this version's `stanchion record`"
    )]
    NoEvents,
}

impl Waits {
    pub(crate) fn new(
        class: &str,
        name: &str,
        way: &str,
        calls: Vec<String>,
        waits: &Distribution,
    ) -> Self {
        Self {
            class: class.to_owned(),
            name: name.to_owned(),
            way: way.to_owned(),
            calls,
            waits: waits.count(),
            blocked: waits.blocked(),
            total_ns: waits.total_ns(),
            median_ns: waits.quantile_ns(0.5).unwrap_or(0),
            p99_ns: waits.quantile_ns(0.99).unwrap_or(0),
            max_ns: waits.max_ns(),
        }
    }
}

/// Returns the text of a recording's file with the waits by path of calls, and with the section of
/// single waits, if there is one.
pub(crate) fn write(
    recording: &Recording,
    paths: &[Waits],
    unwalked: u64,
    events: Option<&str>,
) -> String {
    const END: &str = "\n]}\n";
    let mut text = recording.to_json();
    debug_assert!(text.ends_with(END), "as `Recording` writes it");
    text.truncate(text.len() - END.len());
    // Writing to a string does not fail.
    let _ = write!(text, "\n],\n\"paths\": {{\"unwalked\": {unwalked}, \"waits\": [");
    for (index, waits) in paths.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        // Text and integers do not fail.
        text.push_str(&serde_json::to_string(waits).unwrap_or_default());
    }
    text.push_str("\n]}");
    if let Some(events) = events {
        text.push_str(",\n\"events\": ");
        text.push_str(events);
    }
    text.push_str("}\n");
    text
}

impl Profile {
    /// Reads the part of a recording's file.
    pub(crate) fn read(text: &str) -> Result<Self, NotRead> {
        let File { version, program, elapsed_ns, paths } =
            serde_json::from_str(text).map_err(NotRead::Damaged)?;
        if let Some(version) = version.filter(|&version| version != 1) {
            return Err(NotRead::Version(version));
        }
        let Paths { unwalked, waits: paths } = paths;
        let profile = Self { program, elapsed_ns, unwalked, paths };
        let total = |sum: u64, waits: &Waits| sum.checked_add(waits.total_ns);
        profile.paths.iter().try_fold(0, total).ok_or(NotRead::TooLong)?;
        let number = |sum: u64, waits: &Waits| sum.checked_add(waits.waits);
        profile.paths.iter().try_fold(0, number).ok_or(NotRead::TooLong)?;
        if profile.paths.is_empty() {
            return Err(NotRead::NoPaths);
        }
        for waits in &profile.paths {
            if waits.calls.len() > DEEPEST {
                return Err(NotRead::TooDeep(waits.calls.len()));
            }
            let texts = [&profile.program, &waits.class, &waits.name, &waits.way];
            if texts.into_iter().chain(&waits.calls).any(|text| text.contains(char::is_control)) {
                return Err(NotRead::NoText);
            }
        }
        Ok(profile)
    }

    /// The time of all waits, in nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        self.paths.iter().map(|waits| waits.total_ns).sum()
    }

    /// Returns each kind with the number and time of its waits, the longest together first.
    pub(crate) fn classes(&self) -> Vec<(&str, u64, u64)> {
        let mut classes = BTreeMap::<&str, (u64, u64)>::new();
        for waits in &self.paths {
            let class = classes.entry(&waits.class).or_default();
            class.0 = class.0.saturating_add(waits.waits);
            class.1 += waits.total_ns;
        }
        let mut classes: Vec<_> =
            classes.into_iter().map(|(class, (waits, total))| (class, waits, total)).collect();
        classes.sort_by_key(|&(_, _, total)| std::cmp::Reverse(total));
        classes
    }

    /// Returns the kind, the name and the waits of each name, the longest together first.
    pub(crate) fn named(&self) -> Vec<(&str, &str, Sum)> {
        let mut names = BTreeMap::<(&str, &str), Sum>::new();
        for waits in &self.paths {
            let sum = names.entry((&waits.class, &waits.name)).or_default();
            sum.waits = sum.waits.saturating_add(waits.waits);
            sum.total_ns += waits.total_ns;
            sum.max_ns = sum.max_ns.max(waits.max_ns);
            sum.is_bound = sum.waits > waits.waits;
            sum.p99_ns = sum.p99_ns.max(waits.p99_ns);
        }
        let mut names: Vec<_> =
            names.into_iter().map(|((class, name), sum)| (class, name, sum)).collect();
        names.sort_by_key(|(.., sum)| std::cmp::Reverse(sum.total_ns));
        names
    }

    /// Returns the paths, the longest together first.
    pub(crate) fn longest(&self) -> Vec<&Waits> {
        let mut paths: Vec<_> = self.paths.iter().collect();
        paths.sort_by_key(|waits| std::cmp::Reverse(waits.total_ns));
        paths
    }

    /// Replaces the names of the program and of its functions by numbers. Returns the new name of
    /// each kind and name.
    pub(crate) fn hide_names(&mut self) -> BTreeMap<(String, String), String> {
        let mut names = BTreeMap::new();
        let mut numbers = BTreeMap::<String, usize>::new();
        "program".clone_into(&mut self.program);
        for (index, waits) in self.paths.iter_mut().enumerate() {
            let name = (waits.class.clone(), waits.name.clone());
            // A file that was edited may have any text there.
            if !CLASSES.contains(&waits.class.as_str()) {
                "unknown".clone_into(&mut waits.class);
            }
            // The name of a library's function may have types of the program.
            if waits.way.starts_with("futex by ") {
                "futex".clone_into(&mut waits.way);
            }
            for call in &mut waits.calls {
                let next = numbers.len() + 1;
                let number = *numbers.entry(call.clone()).or_insert(next);
                *call = format!("function {number}");
            }
            let last = waits.calls.last().map_or_else(String::new, |call| format!(" in {call}"));
            // A way that is not a library's is the name of a static or a function.
            if waits.way.is_empty() {
                waits.name = format!("{} {}", waits.class, index + 1);
            } else {
                waits.name = format!("{}{last}", waits.way);
            }
            // Paths of one name stay paths of one name.
            waits.name.clone_from(names.entry(name).or_insert(waits.name.clone()));
        }
        names
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stanchion_competitive::waits::Observation;
    use stanchion_competitive::waits::events::{Event, Events, Thread};

    /// Two ways to wait for a lock, and a sleep.
    pub(crate) fn example() -> Profile {
        Profile::read(&example_text()).unwrap()
    }

    /// The text of its file.
    pub(crate) fn example_text() -> String {
        let waits = |number: u64, length_ns| {
            let mut waits = Distribution::new(400);
            let wait = Observation { length_ns, blocked: true, ..Observation::default() };
            (0..number).for_each(|_| waits.add(&wait));
            waits
        };
        let calls = |calls: &[&str]| calls.iter().map(|&call| call.to_owned()).collect();
        let lock = |calls| {
            Waits::new("lock", "s: std Mutex in get", "std Mutex", calls, &waits(3, 20_000))
        };
        let recording = Recording {
            program: "s".to_owned(),
            mutexes: Some(Recording::PTHREAD.to_owned()),
            cost_ns: 5_000,
            unit_ns: 400,
            elapsed_ns: 1_000_000,
            locks: vec![
                ("s: STATIC".to_owned(), waits(1, 1_000)),
                ("s: std Mutex in get".to_owned(), waits(6, 20_000)),
            ],
            overflow: 0,
        };
        let paths = [
            lock(calls(&["main", "<secret>::serve", "get"])),
            lock(calls(&["main", "get"])),
            Waits::new("sleep", "s: sleep in main", "sleep", calls(&["main"]), &waits(1, 40_000)),
            Waits::new("lock", "s: STATIC", "", Vec::new(), &waits(1, 1_000)),
        ];
        let wait = Event {
            start_ns: 1,
            length_ns: 2,
            thread: 0,
            lock: Some(0),
            path: Some(3),
            waker: None,
            meanwhile: None,
        };
        let thread = Thread { process: 7, thread: 8, name: "t".to_owned() };
        let events = Events { seen: 9, threads: vec![thread], waits: vec![wait] };
        let text = write(&recording, &paths, 2, Some(&events.to_json()));
        assert_eq!(Recording::from_json(text.as_bytes()), Ok(recording), "it is a recording still");
        assert_eq!(Events::from_json(text.as_bytes()), Ok(Some(events)));
        text
    }

    #[test]
    fn what_is_written_is_read() {
        let profile = example();
        assert_eq!((profile.program.as_str(), profile.unwalked), ("s", 2));
        assert_eq!(profile.total_ns(), 161_000);
        assert_eq!(profile.classes(), [("lock", 7, 121_000), ("sleep", 1, 40_000)]);
        assert_eq!(profile.longest()[0].calls[1], "<secret>::serve");
        assert_eq!(profile.longest()[3].name, "s: STATIC");
    }

    #[test]
    fn names_can_be_hidden() {
        let mut profile = example();
        profile.paths[2].way = "futex by lib::wait::<secret::Type>".to_owned();
        "secret".clone_into(&mut profile.paths[0].class);
        profile.hide_names();
        let text = format!("{profile:?}");
        assert!(!text.contains("secret") && !text.contains("STATIC") && !text.contains("get"));
        assert_eq!(
            profile.paths[0].calls[2], profile.paths[1].calls[1],
            "one function, one number"
        );
        assert_eq!(profile.paths[0].class, "unknown");
        assert_eq!(profile.paths[1].name, "std Mutex in function 3");
        assert_eq!(profile.paths[3].name, "lock 4");
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        assert!(matches!(Profile::read("{\"program\": \"s\""), Err(NotRead::Damaged(_))));
        let waits = r#"{"class": "lock", "name": "a", "way": "b", "calls": [], "waits": 1, "blocked": 1,
            "total_ns": 18446744073709551615, "median_ns": 1, "p99_ns": 1, "max_ns": 1}"#;
        let text = format!(
            r#"{{"program": "s", "elapsed_ns": 1, "paths": {{"unwalked": 0, "waits": [{waits}, {waits}]}}}}"#
        );
        assert!(matches!(Profile::read(&text), Err(NotRead::TooLong)));
        let one = |calls: &str, name: &str| {
            let waits = waits.replace("18446744073709551615", "1").replace("[]", calls);
            let waits = waits.replace("\"a\"", name);
            Profile::read(&format!(
                r#"{{"program": "s", "elapsed_ns": 1, "paths": {{"unwalked": 0, "waits": [{waits}]}}}}"#
            ))
        };
        assert!(one("[\"main\"]", "\"a\"").is_ok());
        let deep = format!("[{}\"b\"]", "\"a\",".repeat(DEEPEST));
        assert!(matches!(one(&deep, "\"a\""), Err(NotRead::TooDeep(1_001))));
        assert!(matches!(one("[]", r#""\u001b[2J""#), Err(NotRead::NoText)));
        assert!(matches!(one(r#"["a\nb"]"#, "\"a\""), Err(NotRead::NoText)));
    }
}
