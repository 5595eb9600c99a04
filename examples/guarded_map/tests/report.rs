//! The report of the program: it did not deadlock, and its own line is named.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_guarded_map");

const SOURCE: &str = include_str!("../src/main.rs");

/// A file for a report that does not exist.
fn file(test: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("guarded-map-{}-{test}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    file
}

/// The place of the line of the program that contains a text.
fn place_of(text: &str) -> String {
    let line = SOURCE.lines().position(|line| line.contains(text)).expect("a line has the text");
    format!("src/main.rs:{}:", line + 1)
}

#[test]
fn one_run_without_a_deadlock_names_the_users_own_line() {
    let file = file("transfer");
    let output = Command::new(PROGRAM).env("STANCHION_ORDERS", &file).output().expect("it starts");
    assert!(output.status.success(), "the program ends: it has not deadlocked");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alice has 120\n");
    let report = std::fs::read_to_string(&file).expect("the patch was used");
    std::fs::remove_file(file).expect("the file can be removed");
    let (before, cycle) = report
        .split_once("possible deadlock of 2 threads")
        .unwrap_or_else(|| panic!("no cycle in:\n{report}"));
    // Shards have one place of creation. Two of them are no hint before another thread takes two.
    assert!(!before.contains("hint"), "{report}");
    let own = place_of("the user's own line");
    let named = cycle.lines().filter(|line| line.starts_with("    in "));
    let named: Vec<&str> = named.collect();
    assert_eq!(named.len(), 2, "both steps name the program:\n{report}");
    assert!(named.iter().all(|line| line.contains("transfer") && line.contains(&own)), "{report}");
    assert!(!report.contains("not recorded"), "{report}");
}

#[test]
fn without_the_variable_nothing_is_written() {
    let output = Command::new(PROGRAM).env_remove("STANCHION_ORDERS").output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alice has 120\n");
    assert!(output.stderr.is_empty());
}

#[test]
fn a_thread_that_blocks_itself_is_named_while_it_blocks() {
    let file = file("itself");
    let mut child = Command::new(PROGRAM)
        .arg("--read-own")
        .env("STANCHION_ORDERS", &file)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let report = loop {
        let report = std::fs::read_to_string(&file).unwrap_or_default();
        let ended = child.try_wait().expect("the child can be asked");
        if report.contains("a thread blocks itself") {
            assert_eq!(ended, None, "it blocks forever");
            break report;
        }
        assert_eq!(ended, None, "the program ended without a report:\n{report}");
        thread::sleep(Duration::from_millis(10));
    };
    child.kill().and_then(|()| child.wait()).expect("the child can be ended");
    std::fs::remove_file(file).expect("the file can be removed");
    let own = place_of("accounts.iter().map");
    let (_, itself) = report.split_once("a thread blocks itself").expect("seen above");
    assert!(itself.contains("read_own") && itself.contains(&own), "{report}");
}
