//! The variable of the environment, in child processes: this program again, with one test chosen.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use stanchion_order::{Identity, Mode, is_switched_on, report};

const VARIABLE: &str = "STANCHION_ORDERS";

/// Set for a child, which then does the test's work.
const CHILD: &str = "ORDER_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs one test of this program in a child, with the variable set to a file or not at all.
fn child(test: &str, file: Option<&PathBuf>) {
    let program = std::env::current_exe().expect("the test knows its program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env_remove(VARIABLE);
    if let Some(file) = file {
        command.env(VARIABLE, file);
    }
    let output = command.output().expect("the child starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Names a file that does not exist, for one test.
fn file(test: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("order-{}-{test}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    file
}

fn opposite_orders() {
    let (one, two) = (Identity::new(), Identity::new());
    for pair in [[&one, &two], [&two, &one]] {
        let nested = || {
            for lock in pair {
                lock.acquiring(Mode::Exclusive);
                lock.acquired(Mode::Exclusive);
            }
            pair.iter().for_each(|lock| lock.released(Mode::Exclusive));
        };
        thread::scope(|scope| scope.spawn(nested).join()).expect("no acquisition panics");
    }
}

#[test]
fn without_the_variable_nothing_is_recorded() {
    if is_child() {
        opposite_orders();
        assert!(!is_switched_on());
        assert_eq!((report().cycles.len(), report().locks), (0, 0));
    } else {
        child("without_the_variable_nothing_is_recorded", None);
        child("without_the_variable_nothing_is_recorded", Some(&PathBuf::new()));
    }
}

#[test]
fn with_the_variable_a_cycle_is_in_the_file() {
    if is_child() {
        return opposite_orders();
    }
    let file = file("cycle");
    child("with_the_variable_a_cycle_is_in_the_file", Some(&file));
    let text = std::fs::read_to_string(&file).expect("the child has written the file");
    assert_eq!(text.matches("possible deadlock of 2 threads").count(), 1, "{text}");
    assert_eq!(text.matches("in variable::opposite_orders").count(), 2, "{text}");
    assert!(text.ends_with("2 locks recorded, 0 pairs of held and taken locks\n"), "{text}");
    std::fs::remove_file(file).expect("the file can be removed");
}

#[test]
fn a_thread_that_blocks_itself_is_in_the_file_before_it_blocks() {
    if is_child() {
        let lock = Identity::new();
        lock.acquired(Mode::Exclusive);
        lock.acquiring(Mode::Exclusive);
        // Here the lock would block, so that no function runs at the end.
        std::process::abort();
    }
    let file = file("itself");
    let program = std::env::current_exe().expect("the test knows its program");
    let mut command = Command::new(program);
    command.args(["--exact", "a_thread_that_blocks_itself_is_in_the_file_before_it_blocks"]);
    let output = command.env(CHILD, "1").env(VARIABLE, &file).output().expect("the child starts");
    assert!(!output.status.success());
    let text = std::fs::read_to_string(&file).expect("the child has written the file");
    assert!(text.starts_with("a thread blocks itself"), "{text}");
    std::fs::remove_file(file).expect("the file can be removed");
}

#[test]
fn a_file_that_cannot_be_written_is_a_loss_with_a_remedy() {
    if is_child() {
        opposite_orders();
        let why = report().losses.file.expect("the folder does not exist");
        assert!(why.contains("no-such-folder") && why.contains(VARIABLE), "{why}");
        assert_eq!(report().cycles.len(), 1);
    } else {
        let file = PathBuf::from("/no-such-folder/orders");
        child("a_file_that_cannot_be_written_is_a_loss_with_a_remedy", Some(&file));
    }
}
