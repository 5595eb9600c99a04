//! `stanchion report` for recordings that are made up: all of their texts are hostile, and there
//! is a lot of them.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output};

use serde_json::json;
use stanchion_competitive::waits::events::{Event, Events, Meanwhile, Thread};
use stanchion_competitive::waits::{Distribution, Observation, Recording};

use crate::common::{Place, text};
use crate::page::{browser, measured};

/// A file of `STANCHION_ORDERS` with two locks in both orders.
const ORDERS: &str = include_str!("orders.txt");

/// A text that breaks out of whatever it is put into without care.
const HOSTILE: &str = "secret</title></style>\"'><script>alert(1)</script>&<b>";

impl Place {
    /// Runs `stanchion report` in it.
    fn report(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        command.arg("report").args(arguments).current_dir(&self.0);
        command.output().expect("it can be started")
    }

    /// Returns the text of a file in it.
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it was written")
    }
}

/// A recording of two locks with so many waits, by so many threads, each of which is ended by the
/// next thread. All names are hostile.
fn recording(waits: u64, threads: u32) -> String {
    let lock = |number: u64| format!("{HOSTILE}: std Mutex in {HOSTILE}::lock_{number}");
    let waits_of = |number: u64| {
        let mut all = Distribution::new(400);
        let wait = Observation { length_ns: 20_000, blocked: true, ..Observation::default() };
        (0..waits).filter(|nth| nth % 2 == number).for_each(|_| all.add(&wait));
        all
    };
    let locks: Vec<_> = (0..2).map(|number| (lock(number), waits_of(number))).collect();
    let path = |(name, waits): &(String, Distribution)| {
        json!({"class": "lock", "name": name, "way": "std Mutex", "calls": [HOSTILE, name],
            "waits": waits.count(), "blocked": waits.count(), "total_ns": waits.total_ns(),
            "median_ns": 20_000, "p99_ns": 20_000, "max_ns": 20_000})
    };
    let paths = json!({"unwalked": 0, "waits": locks.iter().map(path).collect::<Vec<_>>()});
    let thread = |thread| Thread { process: 71, thread, name: HOSTILE.to_owned() };
    let wait = |nth: u64| Event {
        start_ns: nth * 1_000,
        length_ns: 20_000,
        thread: nth as u32 % threads,
        lock: None,
        path: Some(nth as u32 % 2),
        waker: Some((nth as u32 + 1) % threads),
        meanwhile: Some(Meanwhile { ran_ns: 12_000, preempted_ns: 6_000, blocked_ns: 2_000 }),
    };
    let threads = (0..threads).map(thread).collect();
    let events = Events { seen: waits, threads, waits: (0..waits).map(wait).collect() };
    let recording = Recording {
        program: HOSTILE.to_owned(),
        mutexes: Some(Recording::PTHREAD.to_owned()),
        cost_ns: 5_000,
        unit_ns: 400,
        elapsed_ns: waits * 1_000,
        locks,
        overflow: 0,
    };
    let text = recording.to_json();
    let text = text.trim_end().strip_suffix('}').expect("as a recording ends");
    format!("{text},\n\"paths\": {paths},\n\"events\": {}}}\n", events.to_json())
}

#[test]
fn a_hundred_thousand_waits_of_hostile_names_are_a_small_page_and_a_sound_trace() {
    let place = Place::new("many");
    fs::write(place.path("waits.json"), recording(100_000, 200)).unwrap();
    fs::write(place.path("orders.txt"), ORDERS).unwrap();
    let files = ["--perfetto", "trace.json", "--folded", "stacks.txt"];
    let done = place.report(&[&["orders.txt", "waits.json"], &files[..]].concat());
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let covers = "the waker ran 60.0\u{a0}%, was preempted 30.0\u{a0}%, blocked 10.0\u{a0}%; covers 100\u{a0}% of the waits";
    assert_eq!(said.matches(covers).count(), 2, "{said}");
    let page = place.read("waits/report.html");
    assert!(page.len() < 2 << 20, "{}", page.len());
    for part in [
        "When each thread waited",
        "Of 200 threads the 64",
        "What is best",
        "Possible deadlock",
        "1 possible deadlock in the <a href=\"#orders\">",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<title>").count(), page.matches("</title>").count());
    assert!(!page.contains("<script") && !page.contains("<b>"), "a name is markup");

    let trace = place.read("trace.json");
    serde_json::from_str::<serde::de::IgnoredAny>(&trace).expect("it is JSON");
    let count = |phase: &str| trace.matches(&format!("{{\"ph\": \"{phase}\", ")).count();
    assert_eq!((count("X"), count("s"), count("f")), (200_000, 100_000, 100_000));

    let hidden = ["--anonymous", "--output", "hidden"];
    fs::write(place.path("waits.json"), recording(1_000, 200)).unwrap();
    let done = place.report(&[&["waits.json", "orders.txt"], &hidden[..], &files].concat());
    let texts = [text(&done.stdout), place.read("hidden/report.html"), place.read("trace.json")];
    for text in texts.iter().chain([&place.read("stacks.txt")]) {
        for name in ["secret", "lock_1", "script>", "transfer", "dashmap"] {
            assert!(!text.contains(name), "{name}: {}", &text[..text.len().min(4_000)]);
        }
        assert!(text.contains("function 2") || text.contains("traceEvents"));
    }
}

#[test]
fn orders_of_locks_are_drawn_alone_and_refused_beside_others_of_their_kind() {
    let place = Place::new("orders");
    fs::write(place.path("orders.txt"), ORDERS).unwrap();
    let done = place.report(&["orders.txt"]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(said.contains("Possible deadlock of 2 threads"), "{said}");
    assert_eq!(said.matches("\n      secret::transfer at ./src/secret.rs:").count(), 2, "{said}");
    let page = place.read("orders/report.html");
    assert_eq!(page.matches("class=\"sred\"").count(), 4, "two arrows at two widths: {page}");

    let whole = recording(10, 2);
    let without = whole.split_once(",\n\"events\"").expect("it has the section").0;
    fs::write(place.path("waits.json"), format!("{without}}}\n")).unwrap();
    for (arguments, why) in [
        (&["orders.txt", "orders.txt"][..], "is neither, or of the same kind"),
        (&["orders.txt", "missing.json"], "missing.json is neither"),
        (&["missing.json", "--perfetto", "trace.json"], "cannot read the results missing.json"),
        (&["waits.json", "waits.json"], "is neither, or of the same kind"),
        (&["orders.txt", "--folded", "stacks.txt"], "--folded is for a recording"),
        (&["orders.txt", "--perfetto", "trace.json"], "--perfetto is for a recording"),
        (
            &["orders.txt", "waits.json", "--perfetto", "t.json"],
            "waits.json: it has no single waits",
        ),
    ] {
        let done = place.report(arguments);
        let said = text(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(why), "{said}");
    }
    fs::write(place.path("orders.txt"), &ORDERS[..ORDERS.len() - 40]).unwrap();
    let done = place.report(&["orders.txt"]);
    let said = text(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("orders.txt: line "), "{said}");
}

/// Thirty locks with every order of a lower before a higher one, and a cycle through all.
fn thirty_locks() -> String {
    let lock = |number: u64| {
        let place = format!("crates/server/src/a_folder/of_a_long/name/table.rs:{number}:15");
        json!({"number": number, "place": place, "created": true})
    };
    let step = |held: u64, taken: u64| {
        json!({
            "thread": HOSTILE, "held": lock(held), "held_mode": "exclusive", "held_at": HOSTILE,
            "taken": lock(taken), "taken_mode": "shared", "taken_at": HOSTILE,
            "calls": [HOSTILE, "server::a_long_name::of_a_function::without::any_blank::in_it"],
        })
    };
    let pairs = (1..=30).flat_map(|held| (held + 1..=30).map(move |taken| (held, taken)));
    let pairs: Vec<_> = pairs.map(|(held, taken)| step(held, taken)).collect();
    let around: Vec<_> = (1..=30).map(|held| step(held, held % 30 + 1)).collect();
    let line = json!({
        "version": 1, "process": 71, "ended": true, "locks": 30,
        "losses": {"unseen_releases": 1, "too_deep": 0, "cut_searches": 0, "cut_contexts": 0,
            "cut_findings": 0, "cut_pairs": 0},
        "cycles": [{"needs_writer": true, "steps": around}], "hints": [],
        "recursions": [step(7, 7)], "pairs": pairs,
    });
    format!("{{\"format\": \"stanchion orders\", {}\n", &line.to_string()[1..])
}

#[test]
fn the_page_of_a_recording_and_of_orders_fits_both_windows() {
    let Some(browser) = browser() else {
        // The harness captures `eprintln!`, and this must be seen.
        let said = b"SKIPPED: the page of a recording in a browser: no Chromium is installed\n";
        std::io::stderr().write_all(said).unwrap();
        return;
    };
    let place = Place::new("windows");
    fs::write(place.path("waits.json"), recording(2_000, 70)).unwrap();
    fs::write(place.path("orders.txt"), thirty_locks()).unwrap();
    let done = place.report(&["waits.json", "orders.txt"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    for found in measured(browser, &place, &place.path("waits/report.html"), &[""]) {
        assert!(found.contains(" 1 charts"), "{found}");
    }
}
