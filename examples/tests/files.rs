//! The files that go with `--policy`: thresholds that are read, waits that are written.
//!
//! A program of its own, and one test records at a time: waits are counted for the whole process.

#[path = "common/scratch.rs"]
mod scratch;

use clap::Parser;
use examples::{Choice, Program};
use lock_api::{Mutex, RawMutex};
use scratch::Scratch;
use stanchion_competitive::waits::{Recording, Thresholds};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    lock: Choice,
}

fn choice(arguments: &[&str]) -> Choice {
    let arguments = ["test"].iter().chain(arguments);
    Arguments::try_parse_from(arguments).expect("good arguments").lock
}

/// A program in which two threads meet at two locks, and no thread waits for a third.
struct Contended;

impl Program for Contended {
    type Outcome = ();

    fn run<L: RawMutex + Send + Sync + 'static>(self, make: &dyn Fn(&str) -> L) {
        drop(make("quiet"));
        let locks = Arc::new(["short", "long"].map(|name| Mutex::from_raw(make(name), ())));
        for lock in 0..2 {
            let guard = locks[lock].lock();
            let coming = Arc::new(AtomicBool::new(false));
            let other = std::thread::spawn({
                let (locks, coming) = (locks.clone(), coming.clone());
                move || {
                    coming.store(true, Relaxed);
                    drop(locks[lock].lock());
                }
            });
            while !coming.load(Relaxed) {
                std::thread::yield_now();
            }
            // It is on a processor: it will have come by then.
            std::thread::sleep(Duration::from_millis(100));
            drop(guard);
            other.join().expect("it only locks");
        }
    }
}

#[test]
fn waits_are_written_and_thresholds_are_read() {
    let waits = Scratch::new("waits");
    // A longer file was there before.
    fs::write(&waits.0, "x".repeat(100_000)).expect("a scratch file");
    let arguments = ["--policy", "always-block", "--waits", waits.path()];
    let chosen = choice(&arguments);
    let mut out = Vec::new();
    let locks = chosen.open().expect("it can be written");
    locks.run(Contended);
    locks.finish(&mut out).expect("it can be written");
    let out = String::from_utf8(out).expect("text");
    let expected =
        format!("\n{}: the waits of 2 locks that had any; blocking costs ", waits.path());
    assert!(out.starts_with(&expected), "{out}");
    let recording = Recording::from_json(&fs::read(&waits.0).expect("written")).expect("whole");
    let names: Vec<&str> = recording.locks.iter().map(|lock| lock.0.as_str()).collect();
    assert_eq!(names, ["long", "short"]);
    assert!(recording.locks.iter().all(|lock| lock.1.count() == 1), "{}", recording.table());

    // The same run again is a recording of its own.
    let locks = chosen.open().expect("it can be written");
    locks.run(Contended);
    locks.finish(&mut Vec::new()).expect("it can be written");
    let again = Recording::from_json(&fs::read(&waits.0).expect("written")).expect("whole");
    assert_eq!(again.all().count(), 2);

    let file = Scratch::new("thresholds");
    let thresholds = Thresholds {
        program: "contended".to_owned(),
        cost_ns: 5_000,
        locks: vec![("short".to_owned(), 700), ("elsewhere".to_owned(), 9)],
    };
    fs::write(&file.0, thresholds.to_json()).expect("a scratch file");
    let policy = format!("optimal-online={}", file.path());
    let chosen = choice(&["--policy", &policy]);
    assert_eq!(chosen.to_string(), format!("policy {policy}"));
    let locks = chosen.open().expect("good thresholds");
    locks.run(Contended);
    let mut out = Vec::new();
    locks.finish(&mut out).expect("nothing to write");
    let expected = "\n1 of 3 locks have thresholds from the waits of contended; the others spin for what blocking costs\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn files_that_are_no_good_are_refused_before_the_run() {
    let refused =
        |arguments: &[&str]| choice(arguments).open().map(drop).expect_err("refused").to_string();
    let missing = Scratch::new("missing");
    let optimal = |file: &Scratch| format!("optimal-online={}", file.path());
    let message = refused(&["--policy", &optimal(&missing)]);
    assert!(message.starts_with(&format!("{}: cannot be read: ", missing.path())), "{message}");

    let bad = Scratch::new("bad");
    for (contents, expected) in [
        ("", "line 1: the file is empty: expected a file of thresholds"),
        ("{\n\"locks\": 7", "line 2: expected a file of thresholds"),
        (
            "{\"format\": \"stanchion waits\", \"version\": 1}",
            "line 1: \"format\" is \"stanchion waits\": expected a file of thresholds",
        ),
    ] {
        fs::write(&bad.0, contents).expect("a scratch file");
        let message = refused(&["--policy", &optimal(&bad)]);
        assert!(message.starts_with(&format!("{}: {expected}", bad.path())), "{message}");
    }
    let directory = env!("CARGO_TARGET_TMPDIR");
    let message = refused(&["--policy", "default", "--waits", directory]);
    assert!(message.starts_with(&format!("{directory}: cannot be written: ")), "{message}");
}

#[test]
fn waits_want_a_policy_and_a_policy_wants_its_file() {
    let refused = |arguments: &[&str]| {
        let arguments = ["test"].iter().chain(arguments);
        Arguments::try_parse_from(arguments).map(drop).expect_err("refused").to_string()
    };
    let message = refused(&["--waits", "x"]);
    assert!(message.contains("--policy <NAME>"), "{message}");
    let message = refused(&["--lock", "mcs", "--waits", "x"]);
    assert!(message.contains("cannot be used with"), "{message}");
    for policy in ["optimal-online", "optimal-online="] {
        let message = refused(&["--policy", policy]);
        assert!(message.contains("optimal-online=FILE"), "{message}");
    }
}
