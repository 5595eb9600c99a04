//! The command `hanoi`, from arguments to streams and exit code.

#[path = "common/done.rs"]
mod done;

use done::{Done, assert_bad_files_are_refused};
use examples::hanoi::{
    app::{self, Streams},
    report,
};
use examples::{locks, policies};
use stanchion_applications::hanoi::{self, Fault, Options, Scene};

fn run_on(arguments: &[&str], out_is_terminal: bool) -> Done {
    Done::of("hanoi", arguments, |arguments, out, err| {
        app::run(arguments, Streams { out, err, out_is_terminal, err_is_terminal: false })
    })
}

fn run(arguments: &[&str]) -> Done {
    run_on(arguments, false)
}

#[test]
fn every_lock_and_policy_brings_the_disks_there() {
    let locks = locks::LOCKS.iter().map(|lock| ("--lock", lock.name));
    let policies = policies::POLICIES.iter().map(|policy| ("--policy", policy.name));
    for (option, name) in locks.chain(policies) {
        let done = run(&["--disks", "20", "--threads", "6", "--rounds", "3", option, name]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
        // 3 times the 111 moves that 20 disks take on 5 pegs.
        assert!(done.out.contains("moves        333, and all disks on peg 4"), "{}", done.out);
        assert!(done.out.contains(&format!(", {} {name}, ", &option[2..])), "{}", done.out);
    }
}

#[test]
fn the_papers_own() {
    let done = run(&["--rounds", "1"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for words in [
        "64 disks, 5 pegs: 1535 moves a round",
        "64 threads",
        "203 locks",
        "moves        1535, and",
    ] {
        assert!(done.out.contains(words), "no {words} in {}", done.out);
    }
}

#[test]
fn the_table_of_waits_has_a_line_for_each_kind_or_for_each_lock() {
    let small = ["--disks", "4", "--threads", "2", "--rounds", "2"];
    let kinds = run(&[&small[..], &["--histogram"]].concat()).out;
    for row in [
        "peg (5)",
        "disk (4)",
        "row (4)",
        "column (5)",
        "count (1)",
        "post (2)",
        "all locks",
        "turn",
    ] {
        assert!(kinds.lines().any(|line| line.starts_with(row)), "no {row} in {kinds}");
    }
    assert!(kinds.contains("waits for locks, by length"), "{kinds}");
    let each = run(&[&small[..], &["--by-lock"]].concat()).out;
    for row in
        ["peg 4 ", "disk 3 ", "row 0 ", "column 2 ", "count ", "post 1 ", "all locks", "turn"]
    {
        assert!(each.lines().any(|line| line.starts_with(row)), "no {row} in {each}");
    }
}

#[test]
fn the_pegs_are_shown_at_the_end_and_on_a_terminal_meanwhile() {
    let done = run(&["--disks", "4", "--pegs", "3", "--threads", "1", "--rounds", "1", "--show"]);
    let expected = "peg 0 | \npeg 1 | \npeg 2 | 3-0\nheld | \nmoves  15 of 15\n";
    assert!(done.out.starts_with(expected), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "{}", done.out);
    // 15 moves of 20 ms each: seen on their way.
    let arguments = "--disks 4 --pegs 3 --threads 1 --rounds 1 --show --work-ns 20000000";
    let done = run_on(&arguments.split(' ').collect::<Vec<_>>(), true);
    assert!(done.out.matches("\x1b[5A\x1b[J").count() >= 1, "{}", done.out);
    assert!(done.out.contains(&format!("\x1b[J{expected}")), "{}", done.out);
}

#[test]
fn a_picture_puts_disks_together_that_follow_one_another() {
    let scene = Scene {
        moves: 7,
        of: 20,
        pegs: vec![vec![9, 8, 7, 3, 1, 0], vec![], vec![6, 4]],
        held: vec![2, 5],
    };
    let expected = "peg 0 | 9-7 3 1-0\npeg 1 | \npeg 2 | 6 4\nheld | 2 5\nmoves  7 of 20\n";
    assert_eq!(report::picture(&scene), expected);
}

#[test]
fn what_is_wrong_is_said() {
    let options = Options { disks: 3, threads: 1, ..Options::default() };
    let mut run = hanoi::run::<examples::Std>(&options).expect("good options");
    assert_eq!(app::wrong(&run, &options), None);
    run.fault = Some(Fault::Held(vec![2]));
    assert_eq!(
        app::wrong(&run, &options).as_deref(),
        Some("the disks [2] are said to be carried still")
    );
    run.moves = 6;
    let expected = "6 moves in 1 rounds, but 5 a round are needed";
    assert_eq!(app::wrong(&run, &options).as_deref(), Some(expected));
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        ["--disks", "0"],
        ["--disks", "65"],
        ["--pegs", "2"],
        ["--pegs", "9"],
        ["--threads", "0"],
        ["--threads", "65"],
        ["--threads", "two"],
        ["--rounds", "0"],
        ["--rounds", "-1"],
        ["--work-ns", "1000000001"],
        ["--draw-ns", "-1"],
        ["--lock", "mutex"],
        ["--policy", "mutex"],
        ["--colour", "red"],
    ] {
        let done = run(&more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
    let done = run(&["--pegs", "3"]);
    let expected = "hanoi: 64 disks on 3 pegs take more than 2^63 moves, the limit is 2097152: take more pegs or fewer disks\n";
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (2, "", expected));
}

#[test]
fn files_that_are_no_good_are_refused() {
    let short: &[&str] = &["--disks", "5", "--threads", "2", "--rounds", "1"];
    assert_bad_files_are_refused("hanoi: ", |more| run(&[short, more].concat()));
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in
        ["--disks", "--pegs", "--rounds", "--lock", "--policy", "--waits", "--show", "Exit code"]
    {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
