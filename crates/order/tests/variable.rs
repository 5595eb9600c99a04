//! The variable of the environment, in child processes: this program again, with one test chosen.

use std::path::{Path, PathBuf};
use std::thread;

use stanchion_alone::{alone, alone_with, is_child};
use stanchion_order::{
    Identity, Mode, Wait, is_switched_on, mutex_acquired, mutex_released, report,
};

const VARIABLE: &str = "STANCHION_ORDERS";

/// The beginning of the lines for tools.
const JSON: &str = "{\"format\": \"stanchion orders\", \"version\": 1, ";

/// Runs `body` in a child with the variable set, and returns the file's text to the parent.
fn with_file(test: &str, body: impl FnOnce(&Path)) -> Option<String> {
    let file = std::env::var_os(VARIABLE).map_or_else(
        || std::env::temp_dir().join(format!("order-{}-{test}", std::process::id())),
        PathBuf::from,
    );
    let set = |child: &mut std::process::Command| {
        child.env(VARIABLE, &file);
    };
    alone_with(test, set, || body(&file));
    (!is_child()).then(|| {
        let text = std::fs::read_to_string(&file).expect("the child has written the file");
        std::fs::remove_file(&file).expect("the file can be removed");
        text
    })
}

fn opposite_orders() {
    opposite_orders_in(thread::Builder::new);
}

fn opposite_orders_in(builder: fn() -> thread::Builder) {
    let (one, two) = (Identity::new(), Identity::new());
    for pair in [[&one, &two], [&two, &one]] {
        let nested = || {
            for lock in pair {
                lock.acquiring(Mode::Exclusive);
                lock.acquired(Mode::Exclusive);
            }
            pair.iter().for_each(|lock| lock.released(Mode::Exclusive));
        };
        thread::scope(|scope| {
            let thread = builder().spawn_scoped(scope, nested).expect("a thread is spawned");
            thread.join().expect("no acquisition panics");
        });
    }
}

#[test]
fn without_the_variable_nothing_is_recorded() {
    let nothing = || {
        opposite_orders();
        assert!(!is_switched_on());
        assert_eq!((report().cycles.len(), report().locks), (0, 0));
    };
    alone("without_the_variable_nothing_is_recorded", nothing);
    let empty = |child: &mut std::process::Command| {
        child.env(VARIABLE, "");
    };
    alone_with("without_the_variable_nothing_is_recorded", empty, nothing);
}

#[test]
fn with_the_variable_a_cycle_is_in_the_file() {
    let test = "with_the_variable_a_cycle_is_in_the_file";
    let Some(text) = with_file(test, |_| {
        opposite_orders();
        // The child of a fork is off, and does not write at its end.
        #[cfg(target_os = "linux")]
        stanchion_alone::in_a_fork(|| {
            assert!(!is_switched_on());
            std::process::exit(0);
        });
    }) else {
        return;
    };
    assert_eq!(text.matches("process ").count(), 2, "a finding, and the end:\n{text}");
    assert_eq!(text.matches("possible deadlock of 2 threads").count(), 1, "{text}");
    assert_eq!(text.matches("in variable::opposite_orders").count(), 2, "{text}");
    let lines: Vec<_> = text.lines().collect();
    let [.., counts, last] = lines[..] else { panic!("{text}") };
    assert_eq!(counts, "locks recorded: 2; pairs of a held and a taken lock: 0");
    // For tools: the finding when it is made, and both orders of the locks, which have ended.
    let made: Vec<_> = lines.iter().filter(|line| line.starts_with(JSON)).collect();
    assert_eq!(made.len(), 2, "{text}");
    assert!(made[0].contains("\"ended\": false") && made[0].contains("\"pairs\": []"), "{text}");
    assert_eq!(made[0].matches("\"held_at\": ").count(), 2, "the steps of the cycle: {text}");
    assert!(last.contains("\"ended\": true") && last.contains("\"cycles\": []"), "{text}");
    let (_, pairs) = last.split_once("\"pairs\": ").expect("it has the field");
    for held in ["{\"number\": 1, ", "{\"number\": 2, "].map(|lock| format!("\"held\": {lock}")) {
        assert_eq!(pairs.matches(&held).count(), 1, "{pairs}");
    }
    assert!(pairs.contains("variable::opposite_orders"), "{pairs}");
    assert!(pairs.contains("\"held_at\": \"crates/order/tests/variable.rs:"), "{pairs}");
}

#[test]
fn locks_of_one_place_that_have_ended_are_one_pair_in_the_file() {
    let test = "locks_of_one_place_that_have_ended_are_one_pair_in_the_file";
    let Some(text) = with_file(test, |_| {
        for _ in 0..1_000 {
            let (one, two) = (Identity::new(), Identity::new());
            for lock in [&one, &two] {
                lock.acquiring(Mode::Exclusive);
                lock.acquired(Mode::Exclusive);
            }
            [two, one].iter().for_each(|lock| lock.released(Mode::Exclusive));
        }
    }) else {
        return;
    };
    let line = text.lines().last().unwrap_or_default();
    assert_eq!(line.matches("\"held_at\": ").count(), 1, "{line}");
    assert!(line.contains("\"locks\": 2000, ") && line.contains("\"cut_pairs\": 0"), "{line}");
}

#[test]
fn a_program_with_many_findings_has_a_bounded_file() {
    let test = "a_program_with_many_findings_has_a_bounded_file";
    let Some(text) = with_file(test, |_| {
        (0..300).for_each(|_| opposite_orders());
        let report = report();
        assert_eq!((report.cycles.len(), report.losses.cut_findings), (256, 44));
    }) else {
        return;
    };
    assert_eq!(text.matches("possible deadlock of 2 threads").count(), 256);
    assert!(text.contains("not recorded: findings beyond those that are kept: 44"));
}

#[test]
fn a_cycle_is_named_on_a_small_stack() {
    let Some(text) = with_file("a_cycle_is_named_on_a_small_stack", |_| {
        opposite_orders_in(|| thread::Builder::new().stack_size(48 << 10));
    }) else {
        return;
    };
    assert_eq!(text.matches("in variable::opposite_orders_in").count(), 2, "{text}");
}

#[test]
fn a_program_without_findings_says_what_was_recorded() {
    let test = "a_program_without_findings_says_what_was_recorded";
    let Some(text) = with_file(test, |_| {
        let lock = Identity::new();
        lock.acquiring(Mode::Exclusive);
        lock.acquired(Mode::Exclusive);
        // It ends while it is held.
    }) else {
        return;
    };
    let losses = "not recorded: locks that left the graph, because a release was not seen: 1\n";
    let (process, text) = text.split_once('\n').expect("the first line names the process");
    assert!(process.starts_with("process "));
    let (text, line) = text.split_once('{').expect("the last line is for tools");
    assert!(line.contains("\"unseen_releases\": 1, "), "{line}");
    assert_eq!(text, format!("locks recorded: 1; pairs of a held and a taken lock: 0\n{losses}"));
}

#[test]
fn waits_are_in_the_file_at_the_end_of_the_process() {
    let test = "waits_are_in_the_file_at_the_end_of_the_process";
    let Some(text) = with_file(test, |_| {
        let lock = Identity::new();
        // A raw lock would be behind its identity.
        let address = (&raw const lock).addr() + size_of::<Identity>();
        for _ in 0..2 {
            lock.acquiring(Mode::Exclusive);
            Wait::begin(address).end(true);
            lock.acquired(Mode::Exclusive);
            lock.released(Mode::Exclusive);
        }
        // It did not sleep.
        Wait::begin(address).end(false);
    }) else {
        return;
    };
    assert!(text.contains("  for lock 1 (created at crates/order/tests/variable.rs:"), "{text}");
    assert_eq!(text.matches("): 2, ").count(), 1, "{text}");
    assert!(text.contains("    first in ") && text.contains("at ./tests/variable.rs:"), "{text}");
    assert_eq!(text.matches("  for ").count(), 1, "{text}");
}

#[test]
fn a_lock_that_is_held_across_a_long_wait_is_in_the_file() {
    let test = "a_lock_that_is_held_across_a_long_wait_is_in_the_file";
    let Some(text) = with_file(test, |_| {
        let (outer, mutex) = (Identity::new(), Identity::new());
        let address = (&raw const mutex).addr() + size_of::<Identity>();
        outer.acquired(Mode::Shared);
        mutex.acquired(Mode::Exclusive);
        for slept in [20, 20, 0] {
            let wait = Wait::begin(0x7000);
            wait.sleeping(|| mutex_released(address));
            thread::sleep(std::time::Duration::from_millis(slept));
            wait.end(true);
            mutex_acquired(address);
        }
        mutex.released(Mode::Exclusive);
        outer.released(Mode::Shared);
        // Nothing is held, so nothing is held up.
        let wait = Wait::begin(0x8000);
        thread::sleep(std::time::Duration::from_millis(20));
        wait.end(true);
    }) else {
        return;
    };
    let (_, across) = text.split_once("locks held across long waits\n").expect("there is one");
    assert!(across.starts_with("  lock 1 (created at "), "{text}");
    assert!(across.contains("in mode shared, taken at crates/order/tests/variable.rs:"), "{text}");
    assert!(across.contains("  for a condition (0x7000) with lock 2 (created at "), "{text}");
    assert_eq!(across.matches("in waits\n").count(), 1, "{text}");
    assert!(!across.contains("0x8000"), "{text}");
}

#[test]
fn waits_for_many_addresses_are_bounded() {
    let Some(text) = with_file("waits_for_many_addresses_are_bounded", |_| {
        (0..300).for_each(|other| Wait::begin(0x1000 + 8 * other).end(true));
    }) else {
        return;
    };
    assert_eq!(text.matches("  for ").count(), 33, "32 and the line for the others:\n{text}");
    assert!(text.contains("  for 224 more locks and addresses"), "{text}");
    let lost = "not recorded: waits for more locks and addresses than are kept: 44\n";
    assert!(text.contains(lost), "{text}");
}

#[test]
fn a_thread_that_blocks_itself_is_in_the_file_before_it_blocks() {
    let test = "a_thread_that_blocks_itself_is_in_the_file_before_it_blocks";
    with_file(test, |file| {
        let lock = Identity::new();
        lock.acquired(Mode::Exclusive);
        lock.acquiring(Mode::Exclusive);
        // Here the lock would block.
        let text = std::fs::read_to_string(file).expect("the recorder has written the file");
        let (_, text) = text.split_once('\n').expect("the first line names the process");
        assert!(text.starts_with("a thread blocks itself"), "{text}");
    });
}

#[test]
fn a_file_that_cannot_be_written_is_a_loss_with_a_remedy() {
    let missing = |child: &mut std::process::Command| {
        child.env(VARIABLE, "/no-such-folder/orders");
    };
    alone_with("a_file_that_cannot_be_written_is_a_loss_with_a_remedy", missing, || {
        opposite_orders();
        let why = report().losses.file.expect("the folder does not exist");
        assert!(why.contains("no-such-folder") && why.contains(VARIABLE), "{why}");
        assert_eq!(report().cycles.len(), 1);
    });
}
