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

/// Starts the program in a mode in which it blocks forever, and returns the report as soon as it
/// has the title of a finding.
fn report_while_blocked(mode: &str, title: &str) -> String {
    let file = file(mode);
    let mut child = Command::new(PROGRAM)
        .arg(mode)
        .env("STANCHION_ORDERS", &file)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let report = loop {
        // The order matters: the end of the program comes after its report.
        let ended = child.try_wait().expect("the child can be asked");
        let report = std::fs::read_to_string(&file).unwrap_or_default();
        // The counts come last.
        let is_whole = report.lines().any(|line| line.starts_with("locks recorded: "));
        if report.contains(title) && is_whole && report.ends_with('\n') {
            break report;
        }
        assert_eq!(ended, None, "the program ended without a report:\n{report}");
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(child.try_wait().expect("the child can be asked"), None, "it blocks forever");
    child.kill().and_then(|()| child.wait()).expect("the child can be ended");
    std::fs::remove_file(file).expect("the file can be removed");
    report
}

#[test]
fn threads_that_block_each_other_are_named_while_they_block() {
    let title = "possible deadlock of 2 threads";
    let report = report_while_blocked("--meet", title);
    let (_, cycle) = report.split_once(title).expect("it was waited for");
    let own = place_of("the user's own line");
    let in_own = cycle.lines().filter(|line| line.starts_with("    in ") && line.contains(&own));
    assert_eq!(in_own.count(), 2, "{report}");
}

#[test]
fn a_thread_that_blocks_itself_is_named_while_it_blocks() {
    let title = "a thread blocks itself";
    let report = report_while_blocked("--read-own", title);
    let (_, itself) = report.split_once(title).expect("it was waited for");
    let own = place_of("accounts.iter().map");
    assert!(itself.contains("read_own") && itself.contains(&own), "{report}");
}
