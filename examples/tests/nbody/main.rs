//! The command `nbody`, from arguments to streams, files and exit code.

mod copies;
mod disk;
#[path = "../common/done.rs"]
#[expect(dead_code, reason = "no files of waits")]
mod done;
mod progress;
#[path = "../common/scratch.rs"]
mod scratch;

use done::Done;
use examples::nbody::{
    app,
    picture::{SIZE, image},
    report,
};
use examples::strategies::STRATEGIES;
use scratch::Scratch;
use stanchion_applications::nbody::{Options, Sequential, Simulation, plummer};
use std::fs;

fn run(arguments: &[&str]) -> Done {
    Done::of("nbody", arguments, |arguments, out, err| app::run(arguments, out, err, false))
}

fn small(more: &[&str]) -> Done {
    run(&[&["--bodies", "600", "--steps", "4"], more].concat())
}

/// The line of the report that begins with this word.
#[track_caller]
fn line<'a>(done: &'a Done, word: &str) -> &'a str {
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    done.out.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{}", done.out))
}

#[test]
fn every_strategy_comes_to_the_same_places_as_one_thread() {
    let done = small(&["--strategy", "all", "--threads", "3", "--check"]);
    assert!(line(&done, "checksum").ends_with(", the same as sequentially"), "{}", done.out);
    for strategy in STRATEGIES {
        let row = line(&done, strategy.name);
        assert!(row.contains(" tasks, "), "the pool's own words: {row}");
    }
    line(&done, "(no pool)");
    assert!(line(&done, "forces").contains("off by "), "{}", done.out);
}

#[test]
fn the_checksum_depends_on_bodies_steps_seed_and_precision_only() {
    let sum = |more: &[&str]| line(&small(more), "checksum").to_owned();
    let plain = sum(&[]);
    assert_eq!(sum(&["--threads", "5", "--strategy", "single-lock,idle-queue"]), plain);
    for more in [["--seed", "2"], ["--theta", "0.4"], ["--dt", "0.01"], ["--softening", "0.1"]] {
        assert_ne!(sum(&more), plain, "{more:?}");
    }
}

#[test]
fn the_places_do_not_depend_on_the_runtime_or_the_memory() {
    let plain = line(&small(&[]), "checksum").to_owned();
    let all = [
        "--runtime",
        "pool,kernel,kernel-competitive,user,activations,activations-stay",
        "--strategy",
        "work-stealing",
    ];
    let little = ["--memory", "30", "--miss", "20us", "--grain", "16", "--processors", "1"];
    let done = small(&[&all[..], &little].concat());
    assert_eq!(line(&done, "checksum"), plain);
    for row in [
        "work-stealing",
        "kernel ",
        "kernel-competitive",
        "user",
        "activations ",
        "activations-stay",
    ] {
        let row = line(&done, row);
        assert!(row.contains("; 3 of 10 blocks fit: ") && !row.contains(" 0 misses"), "{row}");
    }
    assert!(line(&done, "kernel ").contains(" threads made; "), "{}", done.out);
    let done = small(&["--memory", "30", "--miss", "file", "--grain", "64"]);
    assert_eq!(line(&done, "checksum"), plain);
    assert!(line(&done, "run").ends_with(" 30 % in memory, a miss is a read from a file"));
    let done = small(&["--memory", "100"]);
    assert!(line(&done, "work-stealing").contains("10 of 10 blocks fit: "), "{}", done.out);
    assert!(line(&done, "work-stealing").ends_with(" 0 misses, 0 shared"), "{}", done.out);
}

#[test]
fn a_run_in_little_memory_is_a_small_one_unless_more_is_asked_for() {
    let run = |more: &[&str]| run(&[&["--memory", "50", "--miss", "1us"], more].concat());
    let done = run(&[]);
    assert!(line(&done, "cluster").contains(" 2000 bodies, "), "{}", done.out);
    assert!(line(&done, "run").contains(" 1 steps of "), "{}", done.out);
    let done = run(&["--bodies", "300", "--steps", "2"]);
    assert!(line(&done, "cluster").contains(" 300 bodies, "), "{}", done.out);
    assert!(line(&done, "run").contains(" 2 steps of "), "{}", done.out);
}

#[test]
fn a_copy_says_its_time_and_its_checksum() {
    let done = small(&["--copy", "--runtime", "pool,kernel"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let names: Vec<&str> = done.out.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["work-stealing", "kernel"]);
    let sum = line(&small(&[]), "checksum").replace("checksum     ", "");
    assert!(done.out.lines().all(|line| line.ends_with(&sum)), "{}", done.out);
}

#[test]
fn energy_is_told_at_both_ends() {
    let done = small(&[]);
    let energy = line(&done, "energy");
    let numbers: Vec<f64> = energy.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [start, end, drift] = numbers[..] else { panic!("{energy}") };
    assert!((start + 0.25).abs() < 0.05 && (end + 0.25).abs() < 0.05, "{energy}");
    assert!(drift.abs() < 1e-2 && (drift - (end - start) / start.abs()).abs() < 1e-5, "{energy}");
}

#[test]
fn frames_are_written_once_for_all_strategies() {
    let scratch = Scratch::new("frames");
    let frames = ["--frames", scratch.path(), "--every", "3", "--strategy", "all"];
    let done = small(&frames);
    // Steps 0, 3 and 4.
    let expected = format!("frames       3 in {}", scratch.path());
    assert_eq!(line(&done, "frames"), expected);
    let mut names: Vec<_> = fs::read_dir(&scratch.0)
        .expect("made")
        .map(|entry| entry.expect("there").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["frame-00000.png", "frame-00001.png", "frame-00002.png"]);
    let frame = |name: &String| fs::read(scratch.0.join(name)).expect("a frame");
    assert_ne!(frame(&names[0]), frame(&names[2]), "the stars move");
}

#[test]
fn a_picture_shows_where_the_stars_are() {
    let picture = image(
        [
            [0.0, 0.0, 9.0],
            [0.0, 0.0, -9.0],
            [-3.0, 3.0, 0.0],
            [3.0, 0.0, 0.0],
            [0.0, f64::NAN, 0.0],
        ]
        .into_iter(),
    );
    let lit: Vec<(usize, u8)> = picture
        .chunks(3)
        .enumerate()
        .filter(|(_, pixel)| pixel[0] > 0)
        .map(|(cell, pixel)| (cell, pixel[0]))
        .collect();
    assert_eq!(lit, [(0, 75), (SIZE / 2 * SIZE + SIZE / 2, 105)]);
}

#[test]
fn frames_that_cannot_be_written_end_the_run() {
    let scratch = Scratch::new("file");
    fs::write(&scratch.0, "in the way").expect("a scratch file");
    let done = small(&["--frames", scratch.path()]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    let expected = format!("nbody: {}: cannot be written: ", scratch.path());
    assert!(done.err.starts_with(&expected), "{}", done.err);
    // A directory where the third frame should be.
    let scratch = Scratch::new("directory");
    let frame = scratch.0.join("frame-00002.png");
    fs::create_dir_all(&frame).expect("a scratch directory");
    let done = small(&["--frames", scratch.path()]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    let expected = format!("nbody: {}: cannot be written: ", frame.display());
    assert!(done.err.starts_with(&expected), "{}", done.err);
    assert!(!scratch.0.join("frame-00003.png").exists(), "the run ends there");
}

#[test]
fn other_places_are_noticed() {
    let simulation = Simulation::new(plummer(5, 1), Options::default(), &Sequential);
    let simulation = simulation.expect("good options");
    let course = |checksum| app::Course {
        checksum,
        start: simulation.energy(&Sequential),
        end: simulation.energy(&Sequential),
        simulation: simulation.clone(),
        seconds: 0.0,
    };
    let row = |name: &str, checksum| report::Row {
        name: name.to_owned(),
        course: course(checksum),
        metrics: String::new(),
    };
    let rows = [row("one", 7), row("two", 7)];
    assert_eq!(app::wrong(&rows, Some(&course(7))), None);
    assert_eq!(
        app::wrong(&rows, Some(&course(8))).as_deref(),
        Some("checksum 0000000000000007 by one, but 0000000000000008 by one thread without a pool")
    );
    assert_eq!(
        app::wrong(&[row("one", 7), row("two", 9)], None).as_deref(),
        Some("checksum 0000000000000007 by one, but 0000000000000009 by two")
    );
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        ["--bodies", "0"],
        ["--bodies", "4194305"],
        ["--steps", "0"],
        ["--threads", "0"],
        ["--threads", "-1"],
        ["--threads", "1025"],
        ["--strategy", "work-sharing"],
        ["--strategy", "single-lock,"],
        ["--seed", "-1"],
        ["--theta", "wide"],
        ["--every", "5"],
        ["--runtime", "fibers"],
        ["--processors", "0"],
        ["--grain", "0"],
        ["--memory", "0"],
        ["--memory", "101"],
        ["--copies", "65"],
    ] {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        let named = if more[0] == "--every" { "--frames" } else { more[0] };
        assert!(done.err.contains(named), "{more:?}: {}", done.err);
    }
    let done = run(&["--miss", "5ms"]);
    assert!(done.code == 2 && done.err.contains("--memory <PERCENT>"), "{}", done.err);
    let done = run(&["--memory", "50", "--miss", "5"]);
    assert!(done.code == 2 && done.err.contains("such as 50ms"), "{}", done.err);
    let done = run(&["--processors", "1024"]);
    assert!(done.code == 2 && done.err.starts_with("nbody: --processors 1024: "), "{}", done.err);
    for (option, value, range) in [
        ("--theta", "-0.5", "0 to 1"),
        ("--theta", "NaN", "0 to 1"),
        ("--dt", "0", "0.000000001 to 1"),
        ("--softening", "inf", "0.000001 to 1"),
    ] {
        let done = run(&[option, value]);
        let expected = format!("nbody: {option} {value}: must be {range}\n");
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (2, "", expected.as_str()));
    }
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let words = ["--bodies", "--steps", "--frames", "--threads", "--theta", "--dt", "--softening"];
    let strategies = STRATEGIES.iter().map(|strategy| strategy.name);
    for word in words.into_iter().chain(["--check", "Exit code", "Plummer"]).chain(strategies) {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
