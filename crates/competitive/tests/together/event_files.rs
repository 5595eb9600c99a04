//! Single waits in files of recordings. A written section reads the same again. One that was cut,
//! damaged or edited is refused with its line.

use proptest::prelude::*;
use stanchion_competitive::waits::events::{Event, Events, Meanwhile, Thread};
use stanchion_competitive::waits::{FileError, Recording};

/// A recording of two locks and two paths, up to its single waits.
const HEAD: &str = r#"{"format": "stanchion waits", "version": 1,
"program": "queues", "cost_ns": 5000, "unit_ns": 400, "elapsed_ns": 2000000000, "overflow": 0,
"locks": [
{"name": "list", "waits": 1, "total_ns": 300, "spun_ns": 300, "max_ns": 300, "holder_changes": 0, "arrivals": [1], "spun": [[0, 1]], "blocked": [], "wake_latency": []},
{"name": "queue", "waits": 1, "total_ns": 300, "spun_ns": 300, "max_ns": 300, "holder_changes": 0, "arrivals": [1], "spun": [[0, 1]], "blocked": [], "wake_latency": []}
],
"paths": {"unwalked": 0, "waits": [
{"any": 1},
{"any": 2}
]},
"events": "#;

const GOOD: &str = r#"{"kept": 3, "seen": 5,
"threads": [
[4711, 4711, "server"],
[4711, 4712, "worker"]
],
"rows": [
[1000, 90000, 0, 1, 1, 10000, 0, 80000, 1],
[1000, 700, 1, -1, 0, -1, -1, -1, 0],
[2500, 0, 1, 0, -1, -1, -1, -1, -1]
]}"#;

/// The number of lines before the section's second.
const BEFORE: usize = 11;

fn file(section: &str) -> String {
    format!("{HEAD}{section}}}\n")
}

fn read(section: &str) -> Result<Option<Events>, FileError> {
    Events::from_json(file(section).as_bytes())
}

prop_compose! {
    /// A wait after the one before it, by so much, and with indices of two each.
    fn wait()(
        after in 0_u64..1 << 40,
        times in prop::array::uniform3(0_u64..1 << 40),
        rest in 0_u64..1 << 40,
        thread in 0_u32..2,
        lock in prop::option::of(0_u32..2),
        path in prop::option::of(0_u32..2),
        waker in prop::option::of(0_u32..2),
        is_covered: bool,
    ) -> Event {
        let [ran_ns, preempted_ns, blocked_ns] = times;
        let meanwhile = Meanwhile { ran_ns, preempted_ns, blocked_ns };
        Event {
            start_ns: after,
            length_ns: times.iter().sum::<u64>() + rest,
            thread,
            lock,
            path,
            waker,
            meanwhile: waker.filter(|_| is_covered).map(|_| meanwhile),
        }
    }
}

prop_compose! {
    fn events()(
        mut waits in prop::collection::vec(wait(), 0..40),
        left_out in 0_u64..1 << 40,
        names in prop::array::uniform2("[a-zäö\"\\\\ ]{0,15}"),
        numbers: [(u32, u32); 2],
    ) -> Events {
        let mut last = 0;
        for wait in &mut waits {
            last += wait.start_ns;
            wait.start_ns = last;
        }
        let threads = numbers.into_iter().zip(names);
        let threads = threads.map(|((process, thread), name)| Thread { process, thread, name });
        Events { seen: waits.len() as u64 + left_out, threads: threads.collect(), waits }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(events in events()) {
        prop_assert_eq!(read(&events.to_json()), Ok(Some(events)));
    }

    #[test]
    fn a_file_that_was_cut_is_refused(events in events(), share in 0.0..1.0) {
        let text = file(&events.to_json());
        // Without the line's end it is whole.
        let end = text.floor_char_boundary(((text.len() - 1) as f64 * share) as usize);
        let error = Events::from_json(&text.as_bytes()[..end]).unwrap_err();
        prop_assert!(error.line() <= 1 + text[..end].matches('\n').count());
    }

    #[test]
    fn a_byte_that_was_changed_is_refused_or_means_something_whole(events in events(), share in 0.0..1.0, byte: u8) {
        let section = events.to_json();
        let mut bytes = file(&section).into_bytes();
        let at = HEAD.len() + (section.len() as f64 * share) as usize;
        bytes[at] = byte;
        match Events::from_json(&bytes) {
            Ok(Some(other)) => prop_assert_eq!(read(&other.to_json()), Ok(Some(other))),
            Ok(None) => prop_assert!(false, "the section is still there"),
            Err(error) => {
                prop_assert!(error.to_string().len() < 3_000);
                prop_assert!(error.line() >= 1 && error.line() <= bytes.len());
            }
        }
    }
}

#[test]
fn the_example_is_good() {
    let events = read(GOOD).unwrap().unwrap();
    assert_eq!(events.to_json(), GOOD);
    assert_eq!(events.share_kept(), 0.6);
    let [first, second, third] = events.waits[..] else { panic!("{events:?}") };
    assert_eq!(events.waker_of(&first).unwrap().name, "worker");
    assert_eq!(events.thread_of(&second).unwrap().thread, 4712);
    assert_eq!((second.lock, second.path, second.meanwhile), (None, Some(0), None));
    assert_eq!(events.waker_of(&third), None);
}

#[test]
fn a_recording_is_read_with_and_without_the_section() {
    let with = file(GOOD);
    let without = HEAD.replace(",\n\"events\": ", "}");
    let recording = Recording::from_json(with.as_bytes()).unwrap();
    assert_eq!(Recording::from_json(without.as_bytes()), Ok(recording));
    assert_eq!(Events::from_json(without.as_bytes()), Ok(None));
}

#[test]
fn a_file_that_was_cut_anywhere_after_its_kind_says_so() {
    let text = file(GOOD);
    for end in text.find(',').unwrap()..text.trim_end().len() {
        let error = Events::from_json(&text.as_bytes()[..end]).unwrap_err().to_string();
        assert!(error.contains("it was cut off"), "{}: {error}", &text[..end]);
    }
}

/// The text to replace, its replacement, the line that is to be named (from the section's first),
/// and a part of the message.
const DAMAGES: &[(&str, &str, usize, &str)] = &[
    ("\"kept\": 3", "\"kept\": 4", 0, "\"kept\" is 4, but there are 3 rows"),
    ("\"seen\": 5", "\"seen\": 2", 0, "\"seen\" is 2: expected 3 to"),
    ("\"seen\": 5", "\"seen\": -5", 0, "expected u64"),
    ("\"seen\": 5", "\"seen\": 5, \"more\": 1", 0, "unknown field `more`"),
    ("\"server\"", "\"ser\\u001bver\"", 2, "control character"),
    ("\"worker\"", "\"worker\", 1", 3, "trailing characters"),
    ("4712", "4294967296", 3, "expected u32"),
    ("[1000, 90000", "[1000, 90000, 1", 6, "trailing characters"),
    ("[1000, 90000", "[9007199254740993, 90000", 6, "it begins at 9007199254740993"),
    ("[1000, 90000", "[1001, 90000", 7, "it begins at 1000: expected 1001 to"),
    ("[1000, 90000", "[1000, 9007199254740993", 6, "its length is"),
    ("[1000, 90000", "[1000, 89999", 6, "its waker's times add up to 90000"),
    ("80000, 1]", "-1, 1]", 6, "three times, or -1 for all"),
    ("80000, 1]", "80000, 2]", 6, "path 2, where the file has 2"),
    ("1, 1, 10000", "1, -1, 10000", 6, "no waker"),
    ("1, 1, 10000", "1, 2, 10000", 6, "waker 2, where the file has 2"),
    ("1, 1, 10000", "2, 1, 10000", 6, "lock 2, where the file has 2"),
    ("0, 1, 1, 10000", "2, 1, 1, 10000", 6, "thread 2, where the file has 2"),
    ("1, -1, 0, -1, -1", "1, -2, 0, -1, -1", 7, "lock -2"),
    ("[2500", "2500", 9, "expected `,` or `}`"),
    ("-1]\n]}", "-1]\n]", 9, "cut off"),
];

#[test]
fn each_damage_is_named_with_its_line() {
    for &(good, bad, line, says) in DAMAGES {
        assert!(GOOD.contains(good), "{good}");
        let text = file(&GOOD.replacen(good, bad, 1));
        // A brace that is missing is missed at the end.
        let error = match says {
            "cut off" => Events::from_json(text.trim_end().trim_end_matches('}').as_bytes()),
            _ => Events::from_json(text.as_bytes()),
        };
        let error = error.unwrap_err();
        let message = error.to_string();
        assert!(message.contains(says), "{bad}: {message}");
        assert_eq!(error.line(), BEFORE + line, "{bad}: {message}");
    }
}

#[test]
fn long_names_and_many_threads_are_refused() {
    let long = GOOD.replace("server", &"x".repeat(65));
    let error = read(&long).unwrap_err();
    assert!(error.to_string().contains("has 65 bytes"), "{error}");
    let many = GOOD.replace("[4711, 4711, \"server\"],", &"[1, 1, \"\"],".repeat((1 << 20) + 1));
    let error = read(&many).unwrap_err().to_string();
    assert!(error.contains("a list of more than 1048576"), "{error}");
}
