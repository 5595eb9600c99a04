//! The experiments of Karlin and others, as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Place, text};
use serde_json::Value;
use stanchion_competitive::waits::{Distribution, Observation, Recording};

fn study(arguments: &[&str], path: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.arg("study").args(arguments);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().expect("it can be started")
}

fn experiments(out: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(out).join("results.json")).expect("it was written");
    let results: Value = serde_json::from_str(&text).expect("it is JSON");
    results["experiments"].as_array().expect("a list").clone()
}

fn rows(table: &Value) -> Vec<Vec<String>> {
    let cell = |cell: &Value| cell.as_str().expect("text").to_owned();
    let row = |row: &Value| row.as_array().expect("a row").iter().map(cell).collect();
    table["rows"].as_array().expect("rows").iter().map(row).collect()
}

/// Nine short waits for one that is longer than C = 5 µs.
fn recording() -> Recording {
    let mut waits = Distribution::new(400);
    for wait in 0..1_000 {
        let length_ns = if wait % 10 == 0 { 90_000 } else { 400 };
        waits.add(&Observation { length_ns, ..Observation::default() });
    }
    Recording {
        program: "given".to_owned(),
        mutexes: None,
        cost_ns: 5_000,
        unit_ns: 400,
        elapsed_ns: 1_000_000_000,
        locks: vec![("queue".to_owned(), waits)],
        overflow: 0,
    }
}

#[test]
fn the_whole_paper_from_end_to_end() {
    build_shim();
    let place = Place::new("all");
    let (out, given) = (place.path("out"), place.path("given.json"));
    fs::write(&given, recording().to_json()).unwrap();
    let done = study(&["klmo91", "--quick", "--out", &out, "--waits", &given], None);
    assert_eq!(done.status.code(), Some(0), "{}{}", text(&done.stdout), text(&done.stderr));
    let experiments = experiments(&out);
    let ids: Vec<&str> = experiments.iter().filter_map(|one| one["id"].as_str()).collect();
    let expected = ["fig1", "fig2", "fig3", "fig4", "table1", "table2", "table3", "table4"];
    assert_eq!(ids, expected.map(|figure| format!("klmo91/{figure}")));
    for one in &experiments {
        assert_eq!(one["failed"], false, "{one}");
        assert!(one["seconds"].is_number(), "{one}");
        let (is, because) = (&one["verdict"]["is"], one["verdict"]["because"].as_str().unwrap());
        // On other systems there is no shim.
        let recorded = one["id"] == "klmo91/fig1" || one["id"] == "klmo91/fig2";
        assert!(recorded && !RECORDS || is != "not_run", "{one}");
        assert!(!because.is_empty(), "{one}");
    }
    let [.., table1, table2, table3, table4] = &experiments[..] else {
        panic!("eight were chosen");
    };

    // The given waits are judged whatever else could be recorded.
    let costs = rows(&table1["tables"][0]);
    let ours = costs.iter().find(|row| row[0] == "given").expect("the given waits");
    // Blocking: 1000·5000 ns against 900·400 + 100·5000.
    assert_eq!(ours[1], "5.814");
    // Best on-line: spin for 400 ns, which a hundred do in vain.
    assert_eq!(ours[5], "1.047");
    let offline = rows(&table2["tables"][0]);
    let ours = offline.iter().find(|row| row[0] == "given").expect("the given waits");
    assert_eq!(ours[1..4], ["10.0\u{a0}%", "400\u{a0}ns", "0.0800"]);
    for name in ["Galaxy", "Hanoi", "Regsim"] {
        let beside = costs.iter().position(|row| row[0] == format!("paper: {name}"));
        let noted = table1["notes"].to_string().contains(&format!("Left out: {name}"));
        match beside {
            Some(place) => assert_eq!(costs[place - 1][0], name, "ours stands above the paper's"),
            None => assert!(noted, "{name} is neither there nor left out"),
        }
    }
    for table in [table3, table4] {
        let rows = rows(&table["tables"][0]);
        assert_eq!(rows.len(), 11);
        assert_eq!(rows[0][0], "Always-block");
        assert_eq!(rows[0][6], "0\u{a0}%", "it is the measure");
        assert_eq!(rows[7][8], if table == table3 { "7930\u{a0}s" } else { "132\u{a0}s" });
    }
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    for part in ["klmo91-table4", "the paper&#39;s", "Holder-aware"] {
        assert!(page.contains(part) || page.contains(&part.replace("&#39;", "'")), "{part}");
    }
}

/// True on a system that has a shim.
const RECORDS: bool =
    cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"));

/// Builds the shim beside the command, so that the command finds it there.
fn build_shim() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    crate::record::built();
}

#[test]
fn programs_that_are_not_there_are_named_with_their_packages() {
    build_shim();
    let place = Place::new("absent");
    let out = place.path("out");
    let nowhere = place.path("nowhere");
    let done = study(&["klmo91/fig1", "klmo91/fig2", "--quick", "--out", &out], Some(&nowhere));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let expected =
        [("make, cc, ld.gold not found", "build (ours)"), ("memcached not found", "server (ours)")];
    for (one, (absent, ours)) in experiments(&out).iter().zip(expected) {
        let (is, because) = (&one["verdict"]["is"], one["verdict"]["because"].as_str().unwrap());
        assert_eq!(is, if RECORDS { "not_judged" } else { "not_run" });
        assert!(because.contains(absent) && because.contains("install Debian's"), "{because}");
        assert!(because.contains(ours), "{because}");
        // The number of waits is the machine's matter, and below 100 of them nothing is shown.
        let shown = one["pictures"].to_string().contains(ours);
        let few = one["notes"].to_string().contains(&format!("Left out: {ours}"));
        assert_eq!(shown || few, RECORDS, "{one}");
        // Others may see the page: no folder of this computer is in it.
        let whole = one.to_string();
        for folder in [std::env::temp_dir().to_str().unwrap(), env!("CARGO_BIN_EXE_stanchion")] {
            assert!(!whole.contains(folder), "{folder} in {whole}");
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
fn the_locks_of_our_programs_are_recorded_by_name() {
    build_shim();
    let place = Place::new("ours");
    let command = env!("CARGO_BIN_EXE_stanchion");
    for (program, amount, locks) in
        [("server", 5_000, &["TABLE", "LOG"][..]), ("build", 200, &["QUEUE", "CACHE", "SYMBOLS"])]
    {
        // On a busy computer the threads of a short run may never meet.
        let recorded = [amount, 4 * amount, 16 * amount].into_iter().any(|amount: u32| {
            let mut record = Command::new(command);
            record.args(["record", "--output", "waits.json", "--", command, "stand-in", program]);
            let done = record.arg(amount.to_string()).current_dir(&place.0).output().unwrap();
            assert!(done.status.success(), "{program}: {}", text(&done.stderr));
            let Ok(waits) = fs::read(place.path("waits.json")) else { return false };
            let recording = Recording::from_json(&waits).expect("it is a recording");
            for (name, _) in &recording.locks {
                let known = |lock: &&str| name.ends_with(&format!("stand_in::{program}::{lock}"));
                assert!(locks.iter().any(known), "{program}: {name}");
            }
            assert_eq!(recording.overflow, 0, "{program}");
            !recording.locks.is_empty()
        });
        assert!(recorded, "{program}");
    }
}

#[test]
fn recordings_that_nobody_wants_or_can_read_are_refused_before_anything_runs() {
    let place = Place::new("refused");
    let (out, given) = (place.path("out"), place.path("given.json"));
    fs::write(&given, "{\"format\": \"something else\"}").unwrap();
    for (filter, file, said) in [
        ("fig3.5", &given, "klmo91/table1 and klmo91/table2"),
        ("klmo91/table2", &given, "given.json"),
        ("klmo91/table2", &place.path("none.json"), "none.json"),
    ] {
        let refused = study(&[filter, "--quick", "--out", &out, "--waits", file], None);
        assert_eq!(refused.status.code(), Some(2), "{filter} {file}");
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
        assert!(refused.stdout.is_empty() && !Path::new(&out).exists());
    }
}
