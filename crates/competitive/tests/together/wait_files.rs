//! Files of recorded waits. A written file reads the same again. A file that was cut, damaged or
//! edited, or is something else, is refused with its line.

use proptest::prelude::*;
use stanchion_competitive::waits::{
    Distribution, FileError, MAX_LENGTH_NS, MAX_UNIT_NS, Observation, Recording, Thresholds,
};

fn observation() -> impl Strategy<Value = Observation> {
    let length = (0..=u64::MAX, 0_u32..64).prop_map(|(length, shift)| length >> shift);
    (length, any::<u64>(), any::<bool>(), any::<Option<u64>>(), 0_u32..24, 0_u32..5).prop_map(
        |(length_ns, spun_ns, blocked, wake_latency_ns, others, holder_changes)| Observation {
            length_ns,
            spun_ns,
            blocked,
            wake_latency_ns,
            others,
            holder_changes,
        },
    )
}

prop_compose! {
    fn recording()(
        unit_ns in (1..=MAX_UNIT_NS, 0_u32..27).prop_map(|(unit, shift)| (unit >> shift).max(1)),
        cost_ns in 1_u64..=1_000_000_000,
        elapsed_ns: u64,
        overflow: u64,
        program in "[a-zäöü\"\\\\ ]{1,20}",
        mutexes in prop::option::of("[a-z-]{1,20}"),
        locks in prop::collection::btree_map(
            "[a-z0-9ß:+<>&{}\\[\\]\"\\\\ ]{1,30}",
            prop::collection::vec(observation(), 1..40),
            0..6,
        ),
    ) -> Recording {
        let locks = locks.into_iter().map(|(name, observations)| {
            let mut waits = Distribution::new(unit_ns);
            observations.iter().for_each(|observation| waits.add(observation));
            (name, waits)
        });
        let locks = locks.collect();
        Recording { program, mutexes, cost_ns, unit_ns, elapsed_ns, locks, overflow }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(recording in recording()) {
        prop_assert_eq!(Recording::from_json(recording.to_json().as_bytes()), Ok(recording));
    }

    #[test]
    fn a_file_that_was_cut_is_refused(recording in recording(), share in 0.0..1.0) {
        let text = recording.to_json();
        // Without the line's end it is whole.
        let end = ((text.len() - 1) as f64 * share) as usize;
        let error = Recording::from_json(&text.as_bytes()[..end]).unwrap_err();
        prop_assert!(error.line() <= 1 + text[..text.floor_char_boundary(end)].matches('\n').count());
    }

    #[test]
    fn a_byte_that_was_changed_is_refused_or_means_something_whole(recording in recording(), share in 0.0..1.0, byte: u8) {
        let mut bytes = recording.to_json().into_bytes();
        let at = (bytes.len() as f64 * share) as usize;
        bytes[at] = byte;
        match Recording::from_json(&bytes) {
            Ok(other) => prop_assert_eq!(Recording::from_json(other.to_json().as_bytes()), Ok(other)),
            Err(error) => {
                prop_assert!(error.to_string().len() < 3_000);
                prop_assert!(error.line() >= 1 && error.line() <= bytes.len());
            }
        }
    }

    #[test]
    fn merging_adds_everything(observations in prop::collection::vec(observation(), 0..60), cut in 0_usize..60, unit in 1_u64..5_000) {
        let cut = cut.min(observations.len());
        let of = |observations: &[Observation]| {
            let mut waits = Distribution::new(unit);
            observations.iter().for_each(|observation| waits.add(observation));
            waits
        };
        let mut sum = of(&observations[..cut]);
        sum.merge(&of(&observations[cut..])).unwrap();
        prop_assert_eq!(&sum, &of(&observations));
        prop_assert_eq!(sum.count(), observations.len() as u64);

        // Quantiles rise, and are no shorter than the waits they stand for.
        let mut lengths: Vec<u64> = observations.iter().map(|wait| wait.length_ns.min(MAX_LENGTH_NS)).collect();
        lengths.sort_unstable();
        let mut last = 0;
        for step in 0..=10 {
            let q = f64::from(step) / 10.0;
            let Some(found) = sum.quantile_ns(q) else { prop_assert!(lengths.is_empty()); continue };
            let exact = lengths[((q * lengths.len() as f64).ceil() as usize).clamp(1, lengths.len()) - 1];
            prop_assert!(found >= exact && found >= last, "{q}: {found} for {exact}");
            prop_assert!(found <= exact.saturating_add(unit).max(exact.saturating_mul(5) / 4 + 1) || found == sum.max_ns());
            last = found;
        }
    }
}

const GOOD: &str = r#"{"format": "stanchion waits", "version": 1,
"program": "queues", "cost_ns": 5000, "unit_ns": 400, "elapsed_ns": 2000000000, "overflow": 0,
"locks": [
{"name": "list", "waits": 1, "total_ns": 300, "spun_ns": 300, "max_ns": 300, "holder_changes": 0, "arrivals": [1], "spun": [[0, 1]], "blocked": [], "wake_latency": []},
{"name": "queue", "waits": 3, "total_ns": 91000, "spun_ns": 1000, "max_ns": 90000, "holder_changes": 2, "arrivals": [2, 1], "spun": [[0, 1], [1, 1]], "blocked": [[70, 1]], "wake_latency": [[24, 1]]}
]}
"#;

fn refused(text: &str) -> FileError {
    match Recording::from_json(text.as_bytes()) {
        Err(error) => error,
        Ok(recording) => panic!("read as {recording:?}"),
    }
}

#[test]
fn the_example_is_good() {
    let recording = Recording::from_json(GOOD.as_bytes()).unwrap();
    assert_eq!(recording.lock("queue").unwrap().count(), 3);
    assert_eq!(recording.to_json(), GOOD);
    assert_eq!(recording.mutexes, None);
}

#[test]
fn what_mutexes_a_program_had_is_kept() {
    let text = GOOD.replacen("\"queues\",", "\"queues\", \"mutexes\": \"pthread\",", 1);
    let recording = Recording::from_json(text.as_bytes()).unwrap();
    assert_eq!(recording.mutexes.as_deref(), Some(Recording::PTHREAD));
    assert_eq!(recording.to_json(), text);
}

/// The text to replace, its replacement, the line that is to be named, and a part of the message.
const DAMAGES: &[(&str, &str, usize, &str)] = &[
    ("stanchion waits", "stanchion thresholds", 1, "expected a recording of waits"),
    (
        "\"version\": 1",
        "\"version\": 2",
        1,
        "version 2 of the format, where this stanchion reads 1",
    ),
    ("\"version\": 1", "\"version\": \"1\"", 1, "expected the number 1"),
    ("\"version\": 1,", "", 1, "\"version\" is missing"),
    ("\"format\": \"stanchion waits\", ", "", 1, "expected a recording of waits"),
    ("\"cost_ns\": 5000", "\"cost_ns\": 0", 2, "cost_ns is 0: expected 1 to 1000000000"),
    ("\"cost_ns\": 5000", "\"cost_ns\": 10000000000", 2, "cost_ns is 10000000000"),
    ("\"unit_ns\": 400", "\"unit_ns\": 0", 2, "unit_ns is 0: expected 1 to"),
    ("\"unit_ns\": 400", "\"unit_ns\": 900000000", 2, "unit_ns is 900000000: expected 1 to"),
    ("\"unit_ns\": 400", "\"unit_ns\": 800", 5, "max_ns is 90000, which the last of its buckets"),
    ("\"elapsed_ns\": 2000000000", "\"elapsed_ns\": -1", 2, "expected u64"),
    ("\"program\": \"queues\"", "\"program\": \"\"", 2, "the name of the program has 0 bytes"),
    ("\"queues\",", "\"queues\", \"mutexes\": \"\",", 2, "the kind of mutexes has 0 bytes"),
    ("\"name\": \"list\"", "\"name\": \"queue\"", 5, "a second lock `queue`"),
    ("\"name\": \"list\"", "\"name\": \"li\\u001bst\"", 4, "control character"),
    ("\"name\": \"list\"", "\"nom\": \"list\"", 4, "unknown field `nom`"),
    ("\"overflow\": 0", "\"overflow\": 0, \"more\": 1", 2, "unknown field `more`"),
    ("\"waits\": 3", "\"waits\": 4", 5, "\"waits\" is 4, but its buckets hold 3"),
    ("\"waits\": 3", "\"waits\": -3", 5, "expected u64"),
    ("\"waits\": 3", "\"waits\": 3.5", 5, "expected u64"),
    (
        "\"total_ns\": 91000",
        "\"total_ns\": 89000",
        5,
        "total_ns is 89000, but waits in its buckets take from",
    ),
    ("\"total_ns\": 91000", "\"total_ns\": 99000", 5, "total_ns is 99000"),
    ("\"spun_ns\": 1000", "\"spun_ns\": 91001", 5, "91001 spun_ns, but 91000 total_ns"),
    ("\"max_ns\": 90000", "\"max_ns\": 900000", 5, "max_ns is 900000"),
    ("\"arrivals\": [2, 1]", "\"arrivals\": [2, 2]", 5, "4 arrivals, but 3 waits"),
    (
        "\"arrivals\": [2, 1]",
        "\"arrivals\": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,3]",
        5,
        "arrivals has 18 numbers",
    ),
    ("[[24, 1]]", "[[24, 2]]", 5, "2 wake latencies, but 1 blocked waits"),
    ("[[24, 1]]", "[[97, 1]]", 5, "wake_latency has the bucket 97 where one from 0 to 96"),
    ("[[70, 1]]", "[[700, 1]]", 5, "blocked has the bucket 700"),
    ("[[70, 1]]", "[[70, 0]]", 5, "is 0: expected 1 to"),
    ("[[0, 1], [1, 1]]", "[[1, 1], [0, 1]]", 5, "spun has the bucket 0 where one from 2"),
    ("[[0, 1], [1, 1]]", "[[0, 1], [1, 9007199254740993]]", 5, "the count of bucket 1 of spun"),
    ("[[0, 1], [1, 1]]", "[[0, 1], [1, 99999999999999999999]]", 5, "line 5"),
    ("[[0, 1]], \"blocked\"", "[[0, 1]] \"blocked\"", 4, "expected `,` or `}`"),
    ("\"holder_changes\": 2", "\"holder_changes\": 9007199254740993", 5, "holder_changes is"),
    ("\n]}\n", "", 5, "cut off"),
];

#[test]
fn each_damage_is_named_with_its_line() {
    for &(good, bad, line, says) in DAMAGES {
        assert!(GOOD.contains(good), "{good}");
        let error = refused(&GOOD.replacen(good, bad, 1));
        let message = error.to_string();
        assert!(message.contains(says), "{bad}: {message}");
        assert_eq!(error.line(), line, "{bad}: {message}");
        assert!(message.starts_with(&format!("line {line}: ")), "{message}");
    }
}

/// There is no checksum.
#[test]
fn an_edit_that_keeps_the_counts_in_agreement_goes_unnoticed() {
    let edited = GOOD.replacen("[[24, 1]]", "[[23, 1]]", 1);
    assert_ne!(edited, GOOD);
    assert!(Recording::from_json(edited.as_bytes()).is_ok());
}

#[test]
fn other_files_are_told_what_was_expected() {
    for text in [
        "",
        " \n ",
        "hello",
        "[1, 2]",
        "{}",
        "null",
        "3",
        "\u{feff}{}",
        "<html>",
        "{\"locks\": []}",
    ] {
        let message = refused(text).to_string();
        assert!(
            message.contains("expected a recording of waits as stanchion writes it"),
            "{text:?}: {message}"
        );
    }
    let binary = Recording::from_json(b"\x7fELF\n\xff\xfe").unwrap_err();
    assert_eq!(binary.line(), 2);
    assert!(binary.to_string().contains("not text"), "{binary}");
    let mut long = GOOD.as_bytes().to_vec();
    long.resize((64 << 20) + 1, b' ');
    assert!(Thresholds::from_json(&long).unwrap_err().to_string().contains("at most 67108864"));
    let many = GOOD.replacen("\n{", &format!("\n{}{{", "1,".repeat(100_001)), 1);
    assert!(refused(&many).to_string().contains("a list of more than 100000"));
    let wide = GOOD.replace("holder_changes", &"x".repeat(1 << 20));
    assert!(refused(&wide).to_string().len() < 1_000);
    let deep = format!("{}{}", GOOD.trim_end().trim_end_matches("]}"), "[".repeat(100_000));
    refused(&deep);
}

#[test]
fn thresholds_read_the_same_and_are_found_by_name() {
    let thresholds = Thresholds {
        program: "queues \"and\" stacks".to_owned(),
        cost_ns: 5_000,
        locks: vec![("queue".to_owned(), 0), ("a \\ b".to_owned(), u64::MAX)],
    };
    let text = thresholds.to_json();
    let read = Thresholds::from_json(text.as_bytes()).unwrap();
    assert_eq!(read, thresholds);
    assert_eq!(
        [read.of("queue"), read.of("a \\ b"), read.of("stack")],
        [Some(0), Some(u64::MAX), None]
    );

    let damages = [
        ("\"threshold_ns\": 0", "\"threshold_ns\": -1", 4, "expected u64"),
        ("\"queue\"", "\"a \\\\ b\"", 5, "a second lock"),
        ("\"version\": 1", "\"version\": 7", 1, "use a later one"),
        ("stanchion thresholds", "stanchion waits", 1, "expected a file of thresholds"),
        ("\n]}\n", "", 5, "cut off"),
    ];
    for (good, bad, line, says) in damages {
        assert!(text.contains(good), "{good}");
        let error = Thresholds::from_json(text.replacen(good, bad, 1).as_bytes()).unwrap_err();
        assert_eq!(error.line(), line, "{bad}: {error}");
        assert!(error.to_string().contains(says), "{bad}: {error}");
    }
}
