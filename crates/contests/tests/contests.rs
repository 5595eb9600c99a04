//! Contests, run as the program runs them, with little effort. The figures do not matter here.

use std::process::{Command, Output};

use stanchion_contests::statistics::{median, quantile};
use stanchion_contests::{CONTESTS, Row, Table, Value, find};

fn program(arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_stanchion-contests"));
    program.args(arguments).output().expect("the program of this package")
}

/// Runs one short round of the selected cells and returns the report.
fn run(contest: &str, only: &str) -> String {
    let arguments = [contest, "--rounds", "1", "--scale", "1", "--only", only];
    let output = program(&arguments);
    let report = String::from_utf8(output.stdout).expect("names and figures");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{contest}: {}\n{errors}", output.status);
    report
}

/// Returns the figures of a row. Its name begins with `name`.
fn row<'a>(report: &'a str, name: &str) -> Vec<&'a str> {
    let found = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    let figures = found.unwrap_or_else(|| panic!("no row {name} in\n{report}"));
    figures.split_whitespace().collect()
}

#[test]
fn list_names_every_contest_once() {
    let output = program(&["--list"]);
    let list = String::from_utf8(output.stdout).expect("names");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, CONTESTS.map(|contest| contest.name));
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len(), "two contests have one name");
    assert!(CONTESTS.iter().all(|contest| find(contest.name).is_some()));
}

#[test]
fn filter_without_a_match_and_unknown_name_are_refused() {
    let output = program(&["handover", "--only", "no such cell"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no cell contains no such cell"), "{errors}");

    let output = program(&["ballet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such contest"));
}

#[test]
fn structures_have_regret_against_the_only_peer() {
    let report = run("structures", "counters, 2 threads, 0 ns");
    // The title and names of columns, eight counters.
    assert_eq!(report.lines().count(), 10, "{report}");
    assert!(report.contains("least/most"), "{report}");
    let regrets: Vec<f64> = ["std AtomicU64 (peer)", "parking_lot Mutex<u64> (peer)"]
        .map(|peer| row(&report, peer).last().expect("columns").parse().expect("a figure"))
        .into();
    assert!(regrets.contains(&1.0), "the best peer has regret 1: {report}");
}

#[test]
fn pools_run_in_processes_of_their_own() {
    let report = run("pools", "join, Fibonacci, 2 threads");
    for name in ["Worker::join", "rayon (peer)", "chili (peer)", "forte (peer)"] {
        let figures = row(&report, name);
        assert!(figures[0].parse::<f64>().expect("ns/item") > 0.0, "{report}");
        assert_eq!(figures[1], "-", "a fork has no 99th percentile: {report}");
    }
}

#[test]
fn every_other_contest_measures_something() {
    for (contest, only) in [
        ("handover", "pipeline of 2, 2 and 1 threads, 64 places"),
        ("latencies", "outside, join, 2 threads"),
        ("idle", "gang executor"),
        ("barriers", "grid, 2 threads, grain 1 µs, 0 hogs/Co"),
        ("gangs", "2 groups of 2, grain 1 µs"),
        ("slots", "cooperative"),
        ("fork", "100 at a time, 1 processor/activations"),
        ("signal", "1 processor/activations"),
        ("blocked", "sleep"),
        ("upcall", "with `blocking`"),
        ("hogs", "beside"),
        ("waits", "sleepers"),
    ] {
        let report = run(contest, only);
        let digits = report.lines().skip(2).any(|line| line.contains(|c: char| c.is_ascii_digit()));
        assert!(digits, "{contest}: {report}");
    }
}

#[test]
fn quantiles_are_figures_of_the_nearest_rank() {
    let mut figures: Vec<f64> = (1..=101).rev().map(f64::from).collect();
    assert_eq!(quantile(&mut figures, 0.0), 1.0);
    assert_eq!(quantile(&mut figures, 0.99), 100.0);
    assert_eq!(quantile(&mut figures, 1.0), 101.0);
    assert_eq!(median(&mut figures), 51.0);
    assert_eq!(median(&mut [1.0, 2.0]), 2.0);
    assert!(median(&mut []).is_nan());
}

#[test]
fn table_aligns_its_columns() {
    let row = |name: &str, values: [Value; 2]| Row { name: name.to_owned(), values: values.into() };
    let table = Table {
        title: "a cell".to_owned(),
        columns: vec!["ns".to_owned(), "longest µs".to_owned()],
        rows: vec![
            row("one", [Value::number(1234.56, 1), Value::number(f64::NAN, 0)]),
            row("the other", [Value::number(7.0, 1), Value::number(12.0, 0)]),
        ],
    };
    let shown = "a cell\n                 ns  longest µs\n  one        1234.6           -\n  the other     7.0          12\n";
    assert_eq!(table.to_string(), shown);
}
