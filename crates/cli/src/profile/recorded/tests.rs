//! A recording that is made up.

use std::path::Path;

use stanchion_competitive::waits::events::{Events, Meanwhile, Thread};

use super::*;
use crate::paths;

/// Reads the text of a recording.
pub(crate) fn read(text: &str) -> Recorded {
    Recorded::read(Path::new("waits.json"), text).unwrap()
}

/// The text of the recording of [`paths::tests::example_text`] with single waits.
pub(crate) fn text(events: &Events) -> String {
    let text = paths::tests::example_text();
    let without = text.split_once(",\n\"events\"").map(|(without, _)| without);
    let without = without.or(text.trim_end().strip_suffix('}')).unwrap();
    format!("{without},\n\"events\": {}}}\n", events.to_json())
}

/// Two waits for a lock, one of which has its waker's times, and a sleep. A fifth of the waits was
/// kept.
pub(crate) fn events() -> Events {
    let thread = |thread, name: &str| Thread { process: 71, thread, name: name.to_owned() };
    let wait = |start_ns, length_ns, thread, path| Event {
        start_ns,
        length_ns,
        thread,
        lock: None,
        path: Some(path),
        waker: None,
        meanwhile: None,
    };
    let meanwhile = Some(Meanwhile { ran_ns: 12_000, preempted_ns: 6_000, blocked_ns: 2_000 });
    let waits = vec![
        Event { lock: Some(1), waker: Some(0), meanwhile, ..wait(100_000, 20_000, 1, 0) },
        Event { lock: Some(1), ..wait(200_000, 20_000, 1, 1) },
        wait(300_000, 40_000, 0, 2),
    ];
    let threads = vec![thread(71, "secret-main"), thread(72, "<b>secret</b>")];
    Events { seen: 15, threads, waits }
}

/// Two ways to wait for a lock, and a sleep, with single waits.
pub(crate) fn example() -> Recorded {
    read(&text(&events()))
}

#[test]
fn the_state_of_wakers_is_told_for_each_name() {
    let recorded = example();
    let wakers = recorded.wakers();
    assert_eq!(wakers.len(), 1);
    let lock = wakers[&("lock", "s: std Mutex in get")];
    assert_eq!((lock.shares(), lock.covered()), ([0.6, 0.3, 0.1], 0.5));
}

#[test]
fn a_name_of_several_paths_has_a_bound_unless_it_is_a_lock() {
    let mut recorded = example();
    let named = recorded.named();
    assert_eq!((named[0].1, named[0].2.is_bound), ("s: std Mutex in get", false));
    recorded.advice = None;
    let named = recorded.named();
    assert!(named[0].2.is_bound && !named[1].2.is_bound);
}

#[test]
fn without_names_all_parts_have_the_same_numbers() {
    let mut recorded = example();
    recorded.hide_names();
    let text = format!("{recorded:?}");
    for name in ["secret", "STATIC", "in get", "\"s\"", ": 71,", ": 72,"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let (_, name, _) = recorded.named()[0];
    assert_eq!(name, "std Mutex in function 3");
    let advised = recorded.advice.as_ref().unwrap().each().next().unwrap().0;
    assert_eq!(advised.name, name);
    assert_eq!(recorded.of(&recorded.events.as_ref().unwrap().waits[0]), ("lock", name));
    let threads: Vec<_> = recorded.events.as_ref().unwrap().threads.iter().collect();
    assert_eq!(
        (threads[0].process, threads[1].thread, threads[1].name.as_str()),
        (1, 2, "thread 2")
    );
}

#[test]
fn a_recording_that_cannot_be_is_refused_with_its_line() {
    let good = text(&events());
    let row = "[100000, 20000, 1, 1, 0, 12000, 6000, 2000, 0]";
    assert_eq!(good.matches(row).count(), 1);
    let refused = |text: &str| match Recorded::read(Path::new("waits.json"), text) {
        Err(error) => (error.exit_code(), error.to_string()),
        Ok(_) => panic!("it was read: {text}"),
    };
    for wrong in [
        "[-1, 20000, 1, 1, 0, 12000, 6000, 2000, 0]",
        "[1e400, 20000, 1, 1, 0, 12000, 6000, 2000, 0]",
        "[NaN, 20000, 1, 1, 0, 12000, 6000, 2000, 0]",
        "[100000.5, 20000, 1, 1, 0, 12000, 6000, 2000, 0]",
        "[100000, 18446744073709551616, 1, 1, 0, 12000, 6000, 2000, 0]",
        "[100000, 20000, 2, 1, 0, 12000, 6000, 2000, 0]",
        "[100000, 20000, 1, 1, 0, 12000, 6000, 2001, 0]",
        "[100000, 20000, 1, 1, 0, 12000, 6000, 2000, 4]",
        "[100000, 20000, 1]",
        "null",
    ] {
        let (code, said) = refused(&good.replace(row, wrong));
        assert!(code == 2 && said.contains("waits.json: ") && said.contains("line "), "{said}");
    }
    for (field, wrong) in
        [("\"total_ns\":60000", "\"total_ns\":-1"), ("\"cost_ns\": ", "\"cost_ns\": 1e99")]
    {
        assert!(good.contains(field));
        assert_eq!(refused(&good.replacen(field, wrong, 1)).0, 2, "{wrong}");
    }
    for length in (1..good.len() - 2).step_by(97) {
        assert_eq!(refused(&good[..length]).0, 2, "cut after {length}");
    }
}
