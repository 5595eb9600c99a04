//! `stanchion advise` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::Place;
use stanchion_competitive::waits::{Distribution, Observation, Recording, Thresholds};
use stanchion_machine::topology;

fn advise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .arg("advise")
        .args(arguments)
        // So that commands are printed as those of an installed program.
        .env_remove("CARGO_PKG_NAME")
        .output()
        .expect("it can be started")
}

/// With ordinary spaces: numbers and their units are not parted.
fn text(bytes: &[u8]) -> String {
    crate::common::text(bytes).replace('\u{a0}', " ")
}

impl Place {
    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("a file for the test");
        path
    }
}

/// A recording with C = 5 µs of locks of the given waits: how many, how long.
fn recording(program: &str, locks: &[(&str, &[(usize, u64)])]) -> Recording {
    let of = |waits: &[(usize, u64)]| {
        let mut distribution = Distribution::new(400);
        for &(times, length_ns) in waits {
            for index in 0..times {
                distribution.add(&Observation {
                    length_ns,
                    spun_ns: length_ns.min(5_000),
                    blocked: length_ns > 5_000,
                    wake_latency_ns: Some(5_000),
                    others: u32::from(index % 20 == 0),
                    ..Observation::default()
                });
            }
        }
        distribution
    };
    Recording {
        program: program.to_owned(),
        mutexes: None,
        cost_ns: 5_000,
        unit_ns: 400,
        elapsed_ns: 1_000_000_000,
        locks: locks.iter().map(|&(name, waits)| (name.to_owned(), of(waits))).collect(),
        overflow: 0,
    }
}

fn queues() -> Recording {
    recording(
        "queues",
        &[("<log> & \"log\"", &[(300, 40_000)]), ("queue", &[(700, 800), (300, 90_000)])],
    )
}

#[test]
fn advice_from_end_to_end() {
    let place = Place::new("end-to-end");
    let file = place.file("waits.json", queues().to_json().as_bytes());
    let (out, thresholds) = (place.path("out"), place.path("thresholds.json"));
    let done = advise(&[&file, "--output", &out, "--thresholds", &thresholds]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);

    // 70 % at 0.16 C, 30 % far above C: the optimum pays 0.7·800 + 0.3·5000 = 2060 ns.
    let row = |name: &str| -> Vec<String> {
        let table = said.split("multiples of the off-line optimum").nth(1).expect("a table");
        let line = table.lines().find(|line| line.starts_with(name)).expect("a row");
        line[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    let expected = [5_000.0, 27_560.0, 2_810.0, 3_560.0, 2_300.0]
        .map(|cost: f64| format!("{:.3}", cost / 2_060.0));
    assert_eq!(row("queue")[..5], expected, "{said}");
    assert_eq!(
        row("<log> & \"log\"")[..5],
        ["1.000", "8.000", "1.500", "2.000", "1.000"],
        "{said}"
    );
    for part in [
        "queues: 1,300 waits for 2 locks in 1.00 s; C = 5.00 µs",
        "The same if C were 0.5 times that, 2.50 µs",
        "The same if C were 2.5 times that, 12.5 µs",
        "queue: Best: spin for what suits the last three waits. `LastThreeSamples` would have cost 1.15",
        " for the default, `Mutex<T>` (`Adaptive`). With these waits known",
        "`OptimalOnline` spinning for 800 ns",
        "holds      FixedSpin costs at most 2 and OptimalOnline at most 1.582",
        "of 1,300 waits, 95.0 % found no other waiter",
        "a recording lacks the order of the waits",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }

    // The default would spin to the end of the waits for the log, if it had a processor to do so.
    let adaptive = row("<log> & \"log\"").pop();
    let log = if topology::usable() == 1 {
        assert_eq!(adaptive.as_deref(), Some("1.000"), "{said}");
        "no change: <log> & \"log\"".to_owned()
    } else {
        assert!(adaptive.is_some_and(|times| times.parse::<f64>().unwrap() > 7.0), "{said}");
        format!("<log> & \"log\": {}", line_of_rust("AlwaysBlock"))
    };
    let queue = format!("queue: {}", line_of_rust("LastThreeSamples"));
    assert!(said.ends_with(&format!("\n\n{queue}\n{log}\n")), "{said}");

    let given = Thresholds::from_json(&fs::read(&thresholds).expect("thresholds")).expect("whole");
    assert_eq!(given.of("queue"), Some(800));
    assert_eq!(given.of("<log> & \"log\""), Some(0));

    let page = fs::read_to_string(place.path("out/report.html")).expect("a page");
    assert!(page.contains("Waits for &lt;log&gt; &amp; &quot;log&quot;; the last bar"), "escaped");
    assert!(!page.contains("<log>") && page.matches("<svg role=\"img\"").count() == 4);
    // The longest time waited comes first.
    let picture = fs::read_to_string(place.path("out/waits-01-queue.svg")).expect("a picture");
    assert!(picture.contains("spun through") && picture.contains("#0f0dce"));
    assert!(fs::exists(place.path("out/waits-02-log-log.svg")).unwrap());
}

fn line_of_rust(policy: &str) -> String {
    format!(
        "use stanchion_competitive::{{PolicyMutex, policy::{policy}}}; type Lock<T> = PolicyMutex<T, {policy}>;"
    )
}

#[test]
fn for_another_program_there_is_a_command_to_try() {
    let place = Place::new("command");
    let out = place.path("out");
    let end = |recording: Recording, mutexes: &str| {
        let recording = Recording { mutexes: Some(mutexes.to_owned()), ..recording };
        let file = place.file("waits.json", recording.to_json().as_bytes());
        let done = advise(&[&file, "--output", &out]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let said = text(&done.stdout);
        said.trim_end().rsplit_once("\n\n").expect("parts").1.to_owned()
    };
    let command = "queues: stanchion record --lock last-three-samples -- queues";
    assert_eq!(end(queues(), "pthread"), command);
    assert_eq!(end(queues(), "always-spin"), command);
    assert_eq!(end(queues(), "last-three-samples"), "no change");
    // The mutexes of the C library block at once.
    let long = || recording("log", &[("lock", &[(300, 40_000)])]);
    assert_eq!(end(long(), "pthread"), "no change");
    assert_eq!(end(long(), "fixed-spin"), "log: stanchion record --lock always-block -- log");
    let page = fs::read_to_string(place.path("out/report.html")).expect("a page");
    assert!(page.contains("stanchion record --lock always-block -- log"));
}

#[test]
fn a_lock_of_rust_in_a_recorded_program_has_a_line_of_code() {
    let place = Place::new("rust");
    let waits: &[(usize, u64)] = &[(700, 800), (300, 90_000)];
    let names = ["x: lock", "x: std Mutex in x::get", "x: std RwLock in x::get"];
    let recording = recording("x", &names.map(|name| (name, waits)));
    let recording = Recording { mutexes: Some("pthread".to_owned()), ..recording };
    let file = place.file("waits.json", recording.to_json().as_bytes());
    let said = text(&advise(&[&file, "--output", &place.path("out")]).stdout);
    let line = line_of_rust("LastThreeSamples");
    let end = format!(
        "\n\nx: std Mutex in x::get: {line}\nx: stanchion record --lock last-three-samples -- x\n\
         no change: x: std RwLock in x::get\n"
    );
    assert!(said.ends_with(&end), "{said}");
    assert!(said.contains("\nx: std RwLock in x::get: no mutex that could be replaced"), "{said}");
}

#[test]
fn few_waits_are_not_advised_on() {
    let place = Place::new("few");
    let out = place.path("out");
    let file = recording("few", &[("lock", &[(1, 700)])]);
    let said =
        text(&advise(&[&place.file("1.json", file.to_json().as_bytes()), "--output", &out]).stdout);
    for part in ["few: 1 wait for 1 lock in", "\nlock: too few waits (1) for advice\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.ends_with("\n\nno change\n"), "{said}");
    let file = recording("few", &[("one", &[(99, 700)]), ("other", &[(100, 90_000)])]);
    let said =
        text(&advise(&[&place.file("2.json", file.to_json().as_bytes()), "--output", &out]).stdout);
    assert!(said.contains("\none: too few waits (99) for advice\n"), "{said}");
    assert!(!said.contains("other: too few") && said.contains("\nno change: one"), "{said}");
}

#[test]
fn a_lock_without_a_symbol_gets_a_hint() {
    let place = Place::new("bare");
    let out = place.path("out");
    for (name, hint) in [("prog: in 0x5c10", true), ("prog: in work+0x14", false)] {
        let file = recording("prog", &[(name, &[(300, 700)])]);
        let file = place.file("waits.json", file.to_json().as_bytes());
        let said = text(&advise(&[&file, "--output", &out]).stdout);
        assert_eq!(said.contains("Install the debug symbols"), hint, "{said}");
        let page = fs::read_to_string(place.path("out/report.html")).expect("a page");
        assert_eq!(page.contains("Install the debug symbols"), hint);
    }
}

#[test]
fn files_are_put_together() {
    let place = Place::new("together");
    let one = place.file("one.json", queues().to_json().as_bytes());
    let two = place.file("two.json", queues().to_json().as_bytes());
    let other = recording("others", &[("queue", &[(60, 100)])]);
    let other = place.file("other.json", other.to_json().as_bytes());
    let out = place.path("out");
    let said = text(&advise(&[&one, &two, "--output", &out]).stdout);
    assert!(said.contains("queues: 2,600 waits for 2 locks in 2.00 s"), "{said}");
    let said = text(&advise(&[&one, &other, "--output", &out]).stdout);
    assert!(said.contains("others, queues: 1,360 waits for 3 locks"), "{said}");
    assert!(said.contains("\nothers: queue: too few waits (60) for advice\n"), "{said}");
    assert!(said.contains("\nqueues: queue: Best"), "{said}");
}

#[test]
fn another_cost_may_be_given() {
    let place = Place::new("cost");
    let file = place.file("waits.json", queues().to_json().as_bytes());
    let out = place.path("out");
    let said = text(&advise(&[&file, "--output", &out, "--cost-ns", "100000"]).stdout);
    // Now every wait is worth spinning for.
    assert!(
        said.contains("C = 100 µs")
            && said.contains("`FixedSpin` would have cost 1.00 times the optimum"),
        "{said}"
    );
}

#[test]
fn damaged_and_foreign_files_are_refused_with_their_line_and_nothing_is_written() {
    let place = Place::new("damaged");
    let good = queues().to_json();
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("cut", good.as_bytes()[..good.len() / 2].to_vec(), "it was cut off"),
        (
            "count",
            good.replace("\"waits\": 1000", "\"waits\": 1001").into_bytes(),
            "line 5: lock `queue`: \"waits\" is 1001, but its buckets hold 1000",
        ),
        (
            "unit",
            good.replace("\"unit_ns\": 400", "\"unit_ns\": 0").into_bytes(),
            "line 2: unit_ns is 0",
        ),
        (
            "later",
            good.replace("\"version\": 1", "\"version\": 9").into_bytes(),
            "line 1: version 9 of the format",
        ),
        (
            "thresholds",
            Thresholds::default().to_json().into_bytes(),
            "expected a recording of waits",
        ),
        ("binary", vec![0x7F, b'E', b'L', b'F', 0xFF], "line 1: not text"),
    ];
    let out = place.path("out");
    for (name, content, says) in cases {
        let file = place.file(name, &content);
        let whole = place.file("whole.json", good.as_bytes());
        let refused = advise(&[&whole, &file, "--output", &out]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        let said = text(&refused.stderr);
        assert!(said.contains(says) && said.contains(&file), "{name}: {said}");
        assert!(refused.stdout.is_empty() && !Path::new(&out).exists(), "{name}");
    }
}

#[test]
fn wrong_command_lines_are_refused() {
    let place = Place::new("wrong");
    let file = place.file("waits.json", queues().to_json().as_bytes());
    let (out, nowhere) = (place.path("out"), place.path("nowhere.json"));
    for arguments in [
        &[][..],
        &["--demo", &file],
        &[&file, "--cost-ns", "0"],
        &[&file, "--cost-ns", "10000000000"],
        &[&file, "--cost-ns", "-1"],
        &[&file, "--thresholds"],
        &[&nowhere, "--output", &out],
        &[&place.path(""), "--output", &out],
    ] {
        let refused = advise(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(!refused.stderr.is_empty() && refused.stdout.is_empty(), "{arguments:?}");
    }
    assert!(text(&advise(&[&nowhere]).stderr).contains("nowhere.json"));
    assert!(!Path::new(&out).exists());
    let help = text(&advise(&["--help"]).stdout);
    assert!(help.contains("Exit codes") && help.contains("Examples"), "{help}");
}

#[test]
fn unwritable_places_are_refused_by_option() {
    let place = Place::new("unwritable");
    let file = place.file("waits.json", queues().to_json().as_bytes());
    let (out, below) = (place.path("out"), format!("{file}/below"));
    let refused = advise(&[&file, "--output", &below]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--output DIR"));
    for thresholds in [&below, &place.path("")] {
        let refused = advise(&[&file, "--output", &out, "--thresholds", thresholds]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("--thresholds FILE"));
        assert!(refused.stdout.is_empty());
    }
}

#[test]
fn without_waits_there_is_nothing_to_advise() {
    let place = Place::new("none");
    let file = place.file("waits.json", recording("idle", &[]).to_json().as_bytes());
    let out = place.path("out");
    let done = advise(&[&file, "--output", &out]);
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stdout).contains("idle: no thread had to wait"));
    assert!(!Path::new(&out).exists());
}

#[test]
fn the_demo_records_and_advises() {
    let place = Place::new("demo");
    let out = place.path("out");
    let done = advise(&["--demo", "--output", &out]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    // Four threads hold it for 150 µs at a time.
    assert!(said.contains("\nlong sections") && said.contains("demo: "), "{said}");
    let recorded = fs::read(place.path("out/waits.json")).expect("a recording");
    let recorded = Recording::from_json(&recorded).expect("whole");
    assert!(recorded.lock("long sections").is_some_and(|waits| waits.count() > 10));
    assert!(recorded.elapsed_ns >= 2_000_000_000);
    // What it wrote it reads.
    let again = advise(&[&place.path("out/waits.json"), "--output", &place.path("again")]);
    assert_eq!(again.status.code(), Some(0));
    let tables = |said: &str| {
        let lines = said.lines().take_while(|line| !line.starts_with("report"));
        // It cannot measure again.
        lines.filter(|line| !line.starts_with("Adaptive for ")).collect::<Vec<_>>().join("\n")
    };
    assert!(said.contains("\nAdaptive for long sections: computed "), "{said}");
    assert_eq!(tables(&text(&again.stdout)), tables(&said));
}
