//! The command `tsp`, from arguments to streams and exit code.

#[path = "common/done.rs"]
#[expect(dead_code, reason = "no files are written")]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::Done;
use examples::tsp::app::{self, Streams};
use scratch::Scratch;
use std::fs;

const CITIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stanchion17.tsp");
const FAMILIES: [&str; 4] = ["ordinary", "preemption-safe", "non-blocking", "hybrid"];

fn run(arguments: &[&str]) -> Done {
    Done::of("tsp", arguments, |arguments, out, err| {
        app::run(arguments, Streams { out, err, err_is_terminal: false })
    })
}

#[track_caller]
fn finds(arguments: &[&str]) -> String {
    let done = run(&[&[CITIES], arguments].concat());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    assert!(done.out.contains("\nshortest     2938\n"), "{arguments:?}: {}", done.out);
    done.out
}

#[test]
fn the_tour_is_2938_long_for_every_choice_of_structures_and_every_level() {
    let levels = if cfg!(target_os = "linux") { &["1", "2", "3"][..] } else { &["1"] };
    for family in FAMILIES {
        for level in levels {
            let out = finds(&["--threads", "2", "--structure", family, "--level", level]);
            let words = format!("run          {family} structures (");
            assert!(out.contains(&words) && out.contains(&format!("level {level}")), "{out}");
        }
        finds(&["--threads", "5", "--structure", family, "--no-head-start", "--no-pin"]);
    }
    for family in ["non-blocking", "hybrid"] {
        let out = finds(&["--structure", family, "--memory", "hazard"]);
        assert!(out.contains("hazard pointers"), "{out}");
    }
}

fn refused_file(name: &str, text: &str, more: &[&str]) -> String {
    let file = Scratch::new(name);
    fs::write(file.path(), text).expect("a file of the test");
    let done = run(&[&[file.path()], more].concat());
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{}", done.err);
    let rest = done.err.strip_prefix(file.path()).expect("it begins with the file");
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    rest.to_owned()
}

#[test]
fn a_malformed_file_is_refused_with_file_line_and_reason() {
    let text = fs::read_to_string(CITIES).expect("it is there");
    assert_eq!(
        refused_file("word", &text.replacen("568", "six", 1), &[]),
        ":8: `six` is no distance: must be a whole number from 0 to 4294967295\n"
    );
    assert_eq!(
        refused_file("short", &text.replacen(" 184 0", "", 1), &[]),
        ":20: the matrix ends after 151 of 153 distances\n"
    );
    assert_eq!(
        refused_file("kind", &text.replacen("EXPLICIT", "IMPLICIT", 1), &[]),
        ":5: the edge weight type `IMPLICIT` is not known: known are EXPLICIT, EUC_2D, CEIL_2D, GEO and ATT\n"
    );
    let done = run(&["/nowhere/cities.tsp"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert!(done.err.starts_with("/nowhere/cities.tsp: cannot be read: "), "{}", done.err);
}

/// Cities in no order.
fn scattered(cities: usize) -> String {
    let mut text = format!(
        "NAME: scattered\nDIMENSION: {cities}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    );
    for city in 0..cities {
        text += &format!(
            "{} {} {}\n",
            city + 1,
            (city + 3) * 7_919 % 1_009,
            (city + 5) * (city + 7) * 104_729 % 997
        );
    }
    text
}

#[test]
fn an_instance_that_is_too_large_is_refused_with_the_estimate() {
    assert_eq!(
        refused_file("many", &scattered(100), &[]),
        ": 100 cities are too many for an exact search: there are about 10^156 tours; the limit is 64 cities\n"
    );
    let long = refused_file("long", &scattered(60), &["--bound", "tree", "--limit", "100000"]);
    assert!(
        long.starts_with(
            ": 60 cities are too many for an exact search: it is estimated to look at "
        ),
        "{long}"
    );
    assert!(long.ends_with("; the limit is 1.0e5\n"), "{long}");
    let limited = refused_file("limited", &scattered(16), &["--limit", "1"]);
    assert!(limited.ends_with("; the limit is 1.0e0\n"), "{limited}");
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        ["--threads", "0"],
        ["--threads", "65"],
        ["--level", "0"],
        ["--level", "4"],
        ["--structure", "fast"],
        ["--memory", "epochs"],
        ["--bound", "none"],
        ["--limit", "0"],
        ["--colour", "red"],
    ] {
        let done = run(&[&[CITIES][..], &more].concat());
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
    let done = run(&[]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["--structure", "hybrid", "--memory", "--level", "--limit", "TSPLIB", "Exit code"] {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
