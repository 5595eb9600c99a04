//! Reports for tools: one line of JSON, which `stanchion report` draws.
//!
//! ```json
//! {"format": "stanchion orders", "version": 1, "process": 4711, "ended": true,
//!  "locks": 2, "live_pairs": 2, "losses": {"unseen_releases": 0, "too_deep": 0, "cut_searches": 0,
//!  "cut_contexts": 0, "cut_findings": 0, "cut_pairs": 0},
//!  "cycles": [{"needs_writer": false, "steps": [STEP, STEP]}], "hints": [], "recursions": [STEP],
//!  "pairs": [STEP, STEP]}
//! ```
//!
//! Each `STEP` is on one line with all others:
//!
//! ```json
//! {"thread": "2 `worker`", "held": {"number": 1, "place": "src/main.rs:7:15", "created": true},
//!  "held_mode": "exclusive", "held_at": "src/main.rs:20:5", "taken": {"number": 2, "place":
//!  "src/main.rs:8:15", "created": true}, "taken_mode": "exclusive", "taken_at":
//!  "src/main.rs:21:5", "calls": ["main::main at ./src/main.rs:9:5"]}
//! ```
//!
//! `calls` has the program's functions, the outermost first. In a recursion `taken` is the held
//! lock again. `pairs` and the counts are whole only in a line with `"ended": true`.

use std::fmt::{self, Write as _};

use crate::path::CallPath;
use crate::report::{Cycle, Lock, Recursion, Report, Short, Step};

/// The most functions of a call path that are written.
const CALLS: usize = 32;

/// The pairs of a held and a taken lock at the end of a process.
#[cfg_attr(test, derive(Default))]
pub(crate) struct Pairs {
    /// Each pair of a held and a taken lock, as it was seen first.
    pub(crate) seen: Vec<Step>,
    /// The number of pairs beyond those that are kept.
    pub(crate) cut: u64,
}

/// Returns the line for a report, without its end. `pairs` are given at the end of the process.
pub(crate) fn line(report: &Report, pairs: Option<&Pairs>) -> String {
    let mut text = String::new();
    let all = Line { report, pairs };
    // Writing to a string does not fail.
    let _ = write!(text, "{all}");
    text
}

/// A report and the pairs, to be shown as a line.
struct Line<'a> {
    /// The findings and the counts.
    report: &'a Report,
    /// The pairs, if the process ends.
    pairs: Option<&'a Pairs>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { cycles, hints, recursions, losses, locks, pairs, .. } = self.report;
        let (process, ended) = (std::process::id(), self.pairs.is_some());
        write!(
            f,
            "{{\"format\": \"stanchion orders\", \"version\": 1, \"process\": {process}, \
             \"ended\": {ended}, \"locks\": {locks}, \"live_pairs\": {pairs}, \"losses\": {{"
        )?;
        for (name, count) in [
            ("unseen_releases", losses.unseen_releases),
            ("too_deep", losses.too_deep),
            ("cut_searches", losses.cut_searches),
            ("cut_contexts", losses.cut_contexts),
            ("cut_findings", losses.cut_findings),
        ] {
            write!(f, "\"{name}\": {count}, ")?;
        }
        write!(f, "\"cut_pairs\": {}}}", self.pairs.map_or(0, |pairs| pairs.cut))?;
        list(f, "cycles", cycles, cycle)?;
        list(f, "hints", hints, cycle)?;
        list(f, "recursions", recursions, recursion)?;
        list(f, "pairs", self.pairs.map_or(&[], |pairs| &pairs.seen), step)?;
        f.write_char('}')
    }
}

/// Writes a field with a list.
fn list<T>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    all: &[T],
    each: fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    write!(f, ", \"{name}\": [")?;
    for (index, one) in all.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        each(f, one)?;
    }
    f.write_char(']')
}

fn cycle(f: &mut fmt::Formatter<'_>, cycle: &Cycle) -> fmt::Result {
    write!(f, "{{\"needs_writer\": {}", cycle.needs_writer)?;
    list(f, "steps", &cycle.steps, step)?;
    f.write_char('}')
}

fn step(f: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
    write!(f, "{{\"thread\": {}, \"held\": ", Quoted(&step.thread))?;
    lock(f, &step.held)?;
    write!(f, ", \"held_mode\": \"{}\", \"held_at\": ", step.held_mode)?;
    write!(f, "{}, \"taken\": ", Quoted(Short(step.held_place)))?;
    lock(f, &step.taken)?;
    write!(f, ", \"taken_mode\": \"{}\", \"taken_at\": ", step.taken_mode)?;
    write!(f, "{}", Quoted(Short(step.taken_place)))?;
    calls(f, &step.path)
}

/// Writes a recursion as a step from a lock to itself.
fn recursion(f: &mut fmt::Formatter<'_>, found: &Recursion) -> fmt::Result {
    let of_itself = Step {
        thread: found.thread.clone(),
        held: found.lock,
        held_mode: found.held_mode,
        held_place: found.held_place,
        taken: found.lock,
        taken_mode: found.taken_mode,
        taken_place: found.taken_place,
        path: found.path.clone(),
    };
    step(f, &of_itself)
}

fn lock(f: &mut fmt::Formatter<'_>, lock: &Lock) -> fmt::Result {
    let (number, place, created) = (lock.number, Quoted(Short(lock.place)), lock.created);
    write!(f, "{{\"number\": {number}, \"place\": {place}, \"created\": {created}}}")
}

/// Writes the functions of the program, and ends the step.
fn calls(f: &mut fmt::Formatter<'_>, path: &CallPath) -> fmt::Result {
    let mut calls: Vec<_> = path.outside().take(CALLS).collect();
    calls.reverse();
    list(f, "calls", &calls, |f, frame| write!(f, "{}", Quoted(frame)))?;
    f.write_char('}')
}

/// Shows a text as JSON writes it.
struct Quoted<T>(T);

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Escapes what it passes on.
        struct Escaped<'a, 'f>(&'a mut fmt::Formatter<'f>);

        impl fmt::Write for Escaped<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().try_for_each(|letter| match letter {
                    '"' | '\\' => write!(self.0, "\\{letter}"),
                    letter if (letter as u32) < 0x20 => write!(self.0, "\\u{:04x}", letter as u32),
                    letter => self.0.write_char(letter),
                })
            }
        }

        f.write_char('"')?;
        write!(Escaped(f), "{}", self.0)?;
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped() {
        let quoted = Quoted("1 `a\"b\\c\n\u{1b}ü`").to_string();
        assert_eq!(quoted, r#""1 `a\"b\\c\u000a\u001bü`""#);
    }

    #[test]
    fn a_report_without_findings_has_all_fields() {
        let text = line(&Report::default(), None);
        let process = std::process::id();
        assert_eq!(
            text,
            format!(
                "{{\"format\": \"stanchion orders\", \"version\": 1, \"process\": {process}, \
                 \"ended\": false, \"locks\": 0, \"live_pairs\": 0, \"losses\": {{\
                 \"unseen_releases\": 0, \"too_deep\": 0, \"cut_searches\": 0, \
                 \"cut_contexts\": 0, \"cut_findings\": 0, \"cut_pairs\": 0}}, \
                 \"cycles\": [], \"hints\": [], \"recursions\": [], \"pairs\": []}}"
            )
        );
        assert!(line(&Report::default(), Some(&Pairs::default())).contains("\"ended\": true"));
    }
}
