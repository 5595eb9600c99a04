//! The command `quicksort`, from arguments to streams and exit code.

#[path = "common/done.rs"]
#[expect(dead_code, reason = "no files are written")]
mod done;

use done::Done;
use examples::locks;
use examples::quicksort::{
    app::{self, Streams},
    pool::{Needs, QUEUES, STACKS},
};

fn run(arguments: &[&str]) -> Done {
    Done::of("quicksort", arguments, |arguments, out, err| {
        app::run(arguments, Streams { out, err, err_is_terminal: false })
    })
}

#[track_caller]
fn sorts(arguments: &[&str]) -> String {
    let done = run(&[&["--numbers", "5000"], arguments].concat());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    assert!(done.out.contains("sorted       all, each once"), "{}", done.out);
    done.out
}

#[test]
fn every_structure_sorts() {
    let queues = QUEUES.iter().map(|entry| ("--queue", entry));
    let stacks = STACKS.iter().map(|entry| ("--stack", entry));
    for (option, entry) in queues.chain(stacks) {
        let out = sorts(&[option, entry.name]);
        assert!(out.contains(&format!("run          {} {} (", &option[2..], entry.name)), "{out}");
        assert_eq!(out.contains("(blocking"), entry.needs == Needs::Lock, "{out}");
        if entry.needs == Needs::Memory {
            let out = sorts(&[option, entry.name, "--memory", "hazard"]);
            assert!(out.contains("hazard pointers"), "{out}");
        }
    }
}

#[test]
fn every_lock_will_do() {
    for lock in locks::LOCKS {
        let out = sorts(&["--queue", "locked", "--lock", lock.name]);
        assert!(out.contains(&format!("lock {}", lock.name)), "{out}");
    }
}

/// As the issue has it.
#[test]
fn the_papers_own_under_three_applications() {
    let done = run(&["--queue", "michael-scott", "--level", "3"]);
    if !cfg!(target_os = "linux") {
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        return;
    }
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for words in [
        "numbers      500000, seed 1; insertion sort from 20 down",
        "run          queue michael-scott (non-blocking, counted pointers), 2 threads, level 3",
        "level 3      all threads together had ",
    ] {
        assert!(done.out.contains(words), "no {words} in {}", done.out);
    }
}

#[test]
fn a_ring_without_room_is_made_do() {
    // More intervals at a time than it has room for.
    let done = run(&["--queue", "ring", "--numbers", "100000", "--cutoff", "2"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains(" for which it had no room"), "{}", done.out);
}

#[test]
fn nonsense_in_the_arguments_is_refused() {
    for more in [
        &["--numbers", "0"][..],
        &["--numbers", "268435457"],
        &["--cutoff", "0"],
        &["--cutoff", "10001"],
        &["--threads", "0"],
        &["--threads", "65"],
        &["--level", "0"],
        &["--level", "4"],
        &["--queue", "treiber"],
        &["--stack", "michael-scott"],
        &["--stack", "treiber", "--queue", "ring"],
        &["--lock", "mutex"],
        &["--memory", "epochs"],
        &["--seed", "-1"],
        &["--colour", "red"],
    ] {
        let done = run(more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.contains(more[0]), "{more:?}: {}", done.err);
    }
}

#[test]
fn help_explains_itself() {
    let done = run(&["--help"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["--queue", "--stack", "--memory", "--lock", "--level", "treiber", "Exit code"] {
        assert!(done.out.contains(word), "no {word} in {}", done.out);
    }
}
