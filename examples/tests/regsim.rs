//! The command `regsim`, from arguments to streams and exit code.

#[path = "common/done.rs"]
mod done;
#[path = "common/scratch.rs"]
mod scratch;

use done::{Done, assert_bad_files_are_refused};
use examples::regsim::{
    app::{self, Verdict},
    report,
};
use examples::{Std, locks, policies};
use scratch::Scratch;
use stanchion_applications::regsim::{self, Netlist, Options, circuits, sequential};
use std::path::Path;

fn data(file: &str) -> String {
    format!("{}/data/{file}", env!("CARGO_MANIFEST_DIR"))
}

fn run(arguments: &[&str]) -> Done {
    Done::of("regsim", arguments, |arguments, out, err| app::run(arguments, out, err))
}

#[test]
fn every_lock_agrees_with_the_sequential_simulator() {
    for lock in locks::LOCKS {
        for (file, cycles) in [("s27.bench", "200"), ("s298.bench", "40"), ("s1423.bench", "5")] {
            let file = data(file);
            let done =
                run(&[&file, "--cycles", cycles, "--threads", "3", "--lock", lock.name, "--check"]);
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{} on {file}", lock.name);
            assert!(done.out.contains("the same as sequentially"), "{}", done.out);
        }
    }
}

#[test]
fn every_policy_agrees_with_the_sequential_simulator() {
    for policy in policies::POLICIES {
        let file = data("s298.bench");
        let done =
            run(&[&file, "--cycles", "40", "--threads", "3", "--policy", policy.name, "--check"]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", policy.name);
        assert!(done.out.contains(&format!("policy {}", policy.name)), "{}", done.out);
        assert!(done.out.contains("the same as sequentially"), "{}", done.out);
    }
}

#[test]
fn an_unknown_policy_gets_the_nearest_and_all_and_a_lock_beside_it_is_refused() {
    let file = data("s27.bench");
    let done = run(&[&file, "--policy", "last-tree"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("a similar value exists: 'last-three'"), "{}", done.err);
    for policy in policies::POLICIES {
        assert!(done.err.contains(policy.name), "{} is not in {}", policy.name, done.err);
    }
    let done = run(&[&file, "--policy", "last-three", "--lock", "mcs"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("cannot be used with"), "{}", done.err);
}

#[test]
fn the_checksum_depends_on_seed_and_cycles_only() {
    let checksum = |more: &[&str]| {
        let file = data("s298.bench");
        let done = run(&[&[file.as_str()], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let line = done.out.lines().find(|line| line.starts_with("checksum")).expect("a checksum");
        line.to_owned()
    };
    let plain = checksum(&["--cycles", "50"]);
    assert_eq!(
        checksum(&["--cycles", "50", "--threads", "5", "--lock", "std", "--buckets", "1"]),
        plain
    );
    assert_ne!(checksum(&["--cycles", "50", "--seed", "2"]), plain);
    assert_ne!(checksum(&["--cycles", "51"]), plain);
}

#[test]
fn the_table_of_waits_and_the_histogram_are_printed() {
    let file = data("s298.bench");
    let done = run(&[&file, "--cycles", "300", "--threads", "4", "--buckets", "1", "--histogram"]);
    assert_eq!(done.code, 0, "{}", done.err);
    for row in ["objects", "lists", "phase", "all locks", "barrier", "waits for locks, by length"] {
        assert!(done.out.contains(row), "no {row} in {}", done.out);
    }
}

#[test]
fn threads_stay_on_processors_of_their_own_unless_told_otherwise() {
    let file = data("s27.bench");
    let places = |more: &[&str]| {
        let done = run(&[&[file.as_str(), "--cycles", "5"], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.matches(", on processor ").count()
    };
    assert_eq!(places(&["--threads", "2", "--no-pin"]), 0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // One thread can always have one; 64 cannot where there are fewer processors.
    assert_eq!(places(&["--threads", "1"]), usize::from(cfg!(target_os = "linux")));
    if processors < 32 {
        assert_eq!(places(&["--threads", "64"]), 0);
    }
}

#[test]
fn the_size_that_help_names() {
    assert_eq!(size_of::<stanchion_spin::TestAndSet>(), 1);
}

#[test]
fn another_checksum_is_exit_code_1_and_says_so() {
    let netlist = Netlist::parse(circuits::S27.as_bytes()).expect("a right netlist");
    let options = Options { cycles: 10, ..Options::default() };
    let run = regsim::run::<Std>(&netlist, &options);
    let reference = sequential::run(&netlist, 10, options.seed);
    assert_eq!(Verdict::of(&run, reference), Verdict::Same(reference));
    let wrong = sequential::run(&netlist, 10, options.seed + 1);
    let verdict = Verdict::of(&run, wrong);
    assert_eq!(verdict, Verdict::Other(wrong));
    assert_eq!((Verdict::Same(wrong).exit_code(), verdict.exit_code()), (0, 1));
    let report = report::Report {
        file: Path::new("x.bench"),
        netlist: &netlist,
        lock: "lock std",
        options,
        run: &run,
        verdict,
        histogram: false,
    };
    let message = app::mismatch(&report, wrong);
    assert!(message.starts_with(&format!("x.bench: checksum {:016x}", run.checksum)), "{message}");
    assert!(message.contains(&format!("but {:016x} sequentially", wrong.checksum)), "{message}");
}

#[test]
fn a_malformed_file_is_named_with_line_and_reason() {
    let long = [b"INPUT(a)\n".as_slice(), &vec![b'a'; 10 << 20]].concat();
    let cases: [(&str, &[u8], &str); 10] = [
        ("empty", b"", "1: the netlist is empty"),
        ("gate", b"INPUT(a)\nOUTPUT(b)\nb = NADN(a, a)\n", "3: unknown gate `NADN`"),
        (
            "case",
            b"INPUT(a)\nOUTPUT(b)\nb = dff(a)\n",
            "3: `dff` is in the wrong case: write `DFF`",
        ),
        ("undefined", b"OUTPUT(b)\nb = NOT(a)\n", "2: net `a` is used here, but nothing drives it"),
        ("twice", b"INPUT(a)\nINPUT(a)\n", "2: net `a` is defined twice: first in line 1"),
        (
            "loop",
            b"OUTPUT(a)\na = NOT(b)\nb = NOT(a)\n",
            "2: combinational loop of 2: a -> b -> a; put a DFF into it",
        ),
        (
            "self",
            b"OUTPUT(z)\nz = NOT(z)\n",
            "2: combinational loop of 1: z -> z; put a DFF into it",
        ),
        ("binary", b"\x7fELF\0\0", "1: byte 1 of the line is the control character"),
        ("latin1", b"INPUT(\xe9)\n", "1: byte 7 of the line is not UTF-8"),
        ("long", &long, "2: the line has 10485760 bytes, the limit is 65536"),
    ];
    for (name, contents, expected) in cases {
        let file = Scratch::new(&format!("{name}.bench"));
        std::fs::write(file.path(), contents).expect("a scratch file");
        let done = run(&[file.path()]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{name}");
        let expected = format!("{}:{expected}", file.path());
        assert!(done.err.starts_with(&expected), "{name}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{name}: {}", done.err);
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let missing = data("s1.bench");
    let done = run(&[&missing]);
    assert_eq!(done.code, 2);
    assert!(done.err.starts_with(&format!("{missing}: cannot be read: ")), "{}", done.err);
    let directory = data("");
    assert_eq!(run(&[&directory]).code, 2);
}

#[test]
fn an_unknown_lock_gets_the_nearest_and_all() {
    let done = run(&[&data("s27.bench"), "--lock", "parking-lot"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("a similar value exists: 'parking_lot'"), "{}", done.err);
    for lock in locks::LOCKS {
        assert!(done.err.contains(lock.name), "{} is not in {}", lock.name, done.err);
    }
}

#[test]
fn files_beside_the_policy_that_are_no_good_are_refused() {
    let file = data("s27.bench");
    assert_bad_files_are_refused("", |more| run(&[&[file.as_str()], more].concat()));
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    let file = data("s27.bench");
    for more in [
        ["--threads", "0"],
        ["--threads", "65"],
        ["--threads", "two"],
        ["--cycles", "0"],
        ["--cycles", "-1"],
        ["--seed", "18446744073709551616"],
        ["--buckets", "0"],
    ] {
        let done = run(&[&file, more[0], more[1]]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
        if more[0] == "--cycles" {
            assert!(done.err.contains(": must be at least 1"), "{}", done.err);
        }
    }
    assert_eq!(run(&[]).code, 2);
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["--cycles", "--threads", "--lock", "--seed", "--check", "Exit code"] {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}

/// The crate carries three of the circuits for the study; they are the ones that lie here.
#[test]
fn the_packaged_circuits_are_these() {
    for (name, text) in circuits::ALL {
        let here = std::fs::read_to_string(data(&format!("{name}.bench"))).expect("a data file");
        assert_eq!(here, text, "{name}");
    }
}
