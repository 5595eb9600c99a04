//! `cargo xtask house`: rules of the project that no other tool can check.
//!
//! 1. An algorithm names no real primitive. In the crates of [`ALGORITHMS`] no path through `std`
//!    or `core` leads to one. Tests may name them, also those in a `tests.rs` of their own. Clippy
//!    cannot say this, because on the real machine `machine`'s atomics are core's.
//! 2. An algorithm reads no clock but `machine::clock`'s: `Instant::now` stands nowhere in these
//!    crates, tests apart. `Instant` itself may be named, and `machine` re-exports it: `lock_api`
//!    wants deadlines of that type.
//! 3. No file has more than [`LONGEST`] lines.
//! 4. Nothing is left for later: none of the words of [`UNFINISHED`] in code or comments.
//! 5. The comments of the crates of [`PLAIN`] are in plain language, as far as a program can tell:
//!    at most [`WIDEST`] columns, none of the words of [`PERSONS`], no doc comment that opens with a
//!    word of [`OPENERS`].

use crate::failure::{Failure, Result};
use crate::orderings::sites::File;
use crate::shell;

/// Crates written against `machine`. `machine` itself has the real primitives. The front ends need
/// no other machine.
const ALGORITHMS: [&str; 7] = [
    "crates/spin/src",
    "crates/competitive/src",
    "crates/lockfree/src",
    "crates/threadpool/src",
    "crates/gang/src",
    "crates/activations/src",
    "crates/applications/src",
];

/// The names that such a crate takes from `machine`.
const PRIMITIVES: [&str; 9] = [
    "atomic",
    "UnsafeCell",
    "spin_loop",
    "thread",
    "thread_local",
    "Instant",
    "Mutex",
    "RwLock",
    "Condvar",
];

const LONGEST: usize = 600;

/// Macros that stand for code to come, and marks of work to be done. They are in two parts here, so
/// that this file has none.
const UNFINISHED: [(&str, &str); 5] =
    [("to", "do!("), ("unimple", "mented!("), ("db", "g!("), ("FIX", "ME"), ("XX", "X")];

/// Folders that rule 5 holds for. A folder is added when its comments have been rewritten.
const PLAIN: [&str; 13] = [
    "benches/",
    "crates/applications/",
    "crates/competitive/",
    "crates/linearizability/",
    "crates/lockfree/",
    "crates/model/",
    "crates/preload/",
    "crates/simulator/",
    "crates/spin/",
    "crates/stanchion/",
    "examples/",
    "fuzz/",
    "torture/",
];

/// The most columns of a comment.
const WIDEST: usize = 100;

/// Words that stand for an actor without naming it.
const PERSONS: [&str; 5] = ["who", "whoever", "nobody", "somebody", "anybody"];

/// First words of a doc comment that says neither what an item is nor what it does.
const OPENERS: [&str; 6] = ["What", "How", "Whether", "That", "Who", "Whose"];

/// Folders with sources of ours.
const FOLDERS: [&str; 7] = ["crates", "twins", "benches", "examples", "fuzz", "torture", "xtask"];

/// Checks all rules, and lists everything against them.
pub(crate) fn house() -> Result {
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        for path in shell::sources(folder)? {
            let full = shell::root().join(&path);
            let source = std::fs::read_to_string(&full).map_err(Failure::file(&full))?;
            let tests = path.ends_with("/tests.rs");
            let algorithm = !tests && ALGORITHMS.iter().any(|room| path.starts_with(room));
            let plain = PLAIN.iter().any(|folder| path.starts_with(folder));
            let spoken = plain.then(|| dialect(&source)).into_iter().flatten();
            let found = unfinished(&source).into_iter().chain(long(&source)).chain(spoken);
            let asked = algorithm.then(|| primitives(&source).into_iter().chain(clocks(&source)));
            let found = found.chain(asked.into_iter().flatten());
            wrong.extend(found.map(|why| format!("{path}:{why}")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::verdict(wrong.join("\n"))) }
}

fn long(source: &str) -> Option<String> {
    let lines = source.lines().count();
    (lines > LONGEST)
        .then(|| format!("{LONGEST}: {lines} lines; a second idea wants a second file"))
}

fn unfinished(source: &str) -> Vec<String> {
    let marks = UNFINISHED.map(|(head, tail)| format!("{head}{tail}"));
    let lines = source.lines().enumerate();
    lines
        .filter_map(|(number, line)| {
            let mark = marks.iter().find(|mark| line.contains(mark.as_str()))?;
            Some(format!("{}: `{mark}`: finish it or leave it out", number + 1))
        })
        .collect()
}

/// Finds comments that are against rule 5.
fn dialect(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in source.lines().enumerate() {
        let mut tell = |why: String| found.push(format!("{}: {why}", number + 1));
        let line = line.trim_end();
        let comment = line.trim_start();
        let kind = ["///", "//!", "//"].into_iter().find(|kind| comment.starts_with(kind));
        let Some(kind) = kind else {
            before = "";
            continue;
        };
        let columns = line.chars().count();
        if columns > WIDEST {
            tell(format!("a comment of {columns} columns: {WIDEST} are the most"));
        }
        let text = &comment[kind.len()..];
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let mut words = words.filter(|word| !word.is_empty());
        if let Some(person) = words.clone().find(|word| is_one_of(word, &PERSONS)) {
            tell(format!("`{person}`: name the thread, the caller or the reader instead"));
        }
        let opens = kind != "//" && before != kind;
        if let Some(opener) = words.next().filter(|word| opens && OPENERS.contains(word)) {
            tell(format!("`{opener}` opens a doc comment: open with a verb, or with the thing"));
        }
        before = kind;
    }
    found
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// Finds where code outside of tests names a real primitive.
fn primitives(source: &str) -> Vec<String> {
    let file = File::new(source);
    let found =
        file.paths_from(&["std", "core", "alloc"]).into_iter().filter_map(|(line, path)| {
            let primitive = path.iter().find(|segment| PRIMITIVES.contains(segment))?;
            Some(format!(
                "{line}: `{primitive}` of {}: an algorithm asks `machine` for it",
                path[0]
            ))
        });
    found.collect()
}

/// Finds where code outside of tests reads the system's clock.
fn clocks(source: &str) -> Vec<String> {
    let lines = File::new(source).members("Instant", "now");
    let why = |line| {
        format!(
            "{line}: `Instant::now`: an algorithm asks `machine::clock`: `now`, `moment_after` or a `Deadline`"
        )
    };
    lines.into_iter().map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_primitive_is_found_however_it_is_named() {
        let named = |source: &str| primitives(source).len();
        assert_eq!(named("use core::sync::atomic::AtomicU32;"), 1);
        assert_eq!(named("use std::{fmt, sync::{Arc, Mutex}};"), 1);
        assert_eq!(named("fn f() { std::thread::yield_now(); ::core::hint::spin_loop() }"), 2);
        assert_eq!(named("std::thread_local! { static A: u8 = 0; }"), 1);
    }

    #[test]
    fn what_machine_offers_and_what_is_harmless_pass() {
        let source = "
            //! use std::sync::Mutex;
            use machine::{atomic::AtomicU32, thread}; use core::{fmt, mem::ManuallyDrop, time::Duration};
            fn f() { machine::thread::spawn(g); let atomic = core::ptr::null(); }
            #[cfg(test)] mod tests { use std::thread; }
        ";
        assert_eq!(primitives(source), Vec::<String>::new());
    }

    #[test]
    fn a_reading_of_the_clock_is_found_and_a_deadline_passes() {
        let found = |source: &str| clocks(source).len();
        assert_eq!(found("fn f() { Instant::now().checked_add(d) }"), 1);
        assert_eq!(found("fn f() { g(machine::clock::Instant :: now) }"), 1);
        assert_eq!(
            clocks("\nfn f() {\n    crate::clock::Instant::now();\n}")[0].split(':').next(),
            Some("3")
        );
        let harmless = "
            // Instant::now() is for `machine`.
            use machine::clock::{self, Instant, moment_after};
            fn f(until: Instant) -> u64 { clock::now(); Now::Instant; moment_after(d); h(\"Instant::now\") }
            #[cfg(test)] mod tests { fn g() { Instant::now(); } }
        ";
        assert_eq!(clocks(harmless), Vec::<String>::new());
    }

    #[test]
    fn unfinished_work_is_found_by_line() {
        let source = format!("fn f() {{\n    {}{})\n}}", UNFINISHED[0].0, UNFINISHED[0].1);
        assert!(unfinished(&source)[0].starts_with("2: "), "{source}");
    }

    #[test]
    fn a_comment_that_names_no_actor_or_is_too_wide_is_found() {
        let lines = |source: &str| {
            let found = dialect(source);
            found.iter().map(|why| why[..1].parse().unwrap()).collect::<Vec<u32>>()
        };
        assert_eq!(lines("/// Whether it is there.\n/// What follows is fine.\nfn f() {}"), [1]);
        assert_eq!(lines("fn f() {\n    // Nobody sees it.\n    // What it is.\n}"), [2]);
        assert_eq!(lines("//! A list.\n\n/// How it goes, for who asks.\n"), [3, 3]);
        let wide = format!("    // {}", "x".repeat(WIDEST - 7));
        assert!(lines(&wide).is_empty());
        assert_eq!(lines(&format!("{wide}x")), [1]);
        assert!(lines("let who = \"nobody\"; let whole = 1;").is_empty());
    }

    #[test]
    fn length_has_a_limit() {
        assert_eq!(long(&"\n".repeat(LONGEST)), None);
        assert!(long(&"\n".repeat(LONGEST + 1)).is_some());
    }
}
