//! The orders in which a program takes its locks (`examples/orders.rs`).

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use stanchion_order::foreign::{self, Findings};

use crate::common::{built, run_command};

/// A table of lock orders.
struct Table(PathBuf);

impl Table {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("stanchion-orders-{name}-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&foreign::header()).unwrap();
        file.set_len(foreign::SIZE as u64).unwrap();
        Self(path)
    }

    fn findings(&self) -> Findings {
        let bytes = fs::read(&self.0).unwrap();
        let words = bytes.chunks_exact(8);
        let mut words: Vec<u64> =
            words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        // SAFETY: a copy that is this test's.
        unsafe { foreign::Table::at(words.as_mut_ptr().cast(), bytes.len()) }.unwrap().findings()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs `PROGRAM WHAT` with its orders recorded.
fn ok_program(program: &str, what: &str) -> Findings {
    let table = Table::new(&format!("{program}-{what}"));
    let mut command = Command::new(built().join("examples").join(program));
    command.arg(what).env("STANCHION_ORDER_TABLE", &table.0);
    let (output, _) = run_command(&format!("orders-{program}-{what}"), command, None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}: {said}", output.status);
    assert_eq!((output.stdout.as_slice(), said.as_ref()), (&b"ok\n"[..], ""), "{what}");
    table.findings()
}

fn ok(what: &str) -> Findings {
    ok_program("orders", what)
}

#[test]
fn opposite_orders_are_named_although_no_thread_waited() {
    let found = ok("opposite");
    assert_eq!((found.cycles.len(), found.pairs), (1, 2), "{found:?}");
    let steps = &found.cycles[0].steps;
    assert_ne!(steps[0].thread, steps[1].thread);
    assert_eq!(steps[0].held.lock, steps[1].taken.lock);
    for step in steps {
        for name in [&step.held.name, &step.taken.name] {
            assert!(name.as_ref().unwrap().starts_with('S'), "{step:?}");
        }
        let path = step.path.as_ref().unwrap();
        assert!(path.contains("/orders+0x") && path.matches("+0x").count() >= 4, "{path}");
        assert!(step.held.place.as_ref().unwrap().contains("/orders+0x"), "{step:?}");
    }
    assert_ne!(steps[0].path, steps[1].path);
    assert_eq!(found.losses, foreign::Losses::default());
}

#[test]
fn what_cannot_deadlock_is_not_named() {
    for (what, pairs) in [
        ("one-thread", 2),
        ("gate", 4),
        ("reused", 2),
        ("overwritten", 2),
        ("attempts", 1),
        ("recursive", 1),
        ("reads", 2),
        ("many", 4_950),
    ] {
        let found = ok(what);
        assert!(found.cycles.is_empty() && found.recursions.is_empty(), "{what}: {found:?}");
        let cut = usize::try_from(found.losses.cut_acquisitions).unwrap();
        // Each of four threads may have had no room for the same pair.
        assert!(found.pairs <= pairs && found.pairs + cut >= pairs, "{what}: {found:?}");
        assert!(cut == 0 || what == "many", "{what}: {found:?}");
    }
}

#[test]
fn each_way_to_block_is_named() {
    for what in ["after-an-attempt", "writes", "tries-to-write", "condition", "ring"] {
        let found = ok(what);
        let steps = if what == "ring" { 3 } else { 2 };
        assert!(
            matches!(&found.cycles[..], [cycle] if cycle.steps.len() == steps),
            "{what}: {found:?}"
        );
        assert!(!found.cycles[0].needs_writer, "{what}");
    }
}

#[test]
fn a_mutex_that_is_taken_again_is_named_and_the_error_stays() {
    let found = ok("again");
    assert!(matches!(&found.recursions[..], [found] if found.is_fatal), "{found:?}");
    assert!(found.cycles.is_empty());
}

#[test]
fn a_lock_that_another_thread_releases_leaves_the_graph() {
    let found = ok("handed-over");
    assert!(found.cycles.is_empty(), "{found:?}");
    assert_eq!(found.losses.unseen_releases, 1);
}

#[test]
fn more_locks_than_there_is_room_for_are_counted() {
    let found = ok("deep");
    assert_eq!(found.cycles.len(), 1, "those of later threads: {found:?}");
    assert!(found.losses.too_deep > 0, "{found:?}");
    assert_eq!(found.losses.unseen_releases, 0);
}

#[test]
fn a_child_has_orders_of_its_own() {
    let found = ok("forked");
    assert_eq!(found.cycles.len(), 1, "of the second child: {found:?}");
}

#[test]
fn programs_run_with_orders_as_without() {
    for what in ["contend", "kinds", "timed", "errno", "conditions", "shared", "forks", "signals"] {
        let found = ok_program("pthreads", what);
        assert!(found.cycles.is_empty(), "{what}: {found:?}");
    }
    for what in ["small-stacks", "many", "calls", "cancel", "cancelled-later", "forked-mutexes"] {
        ok_program("pthreads", what);
    }
    for what in ["raw-threads", "unmapped", "filter-seccomp", "without-a-way-back"] {
        ok_program("hostile", what);
    }
    ok_program("malloc", "");
    ok_program("waits", "all");
}

#[test]
fn a_table_of_another_version_is_refused() {
    let table = Table::new("foreign");
    fs::write(&table.0, vec![7; foreign::SIZE]).unwrap();
    let mut command = Command::new(built().join("examples/orders"));
    command.arg("opposite").env("STANCHION_ORDER_TABLE", &table.0);
    let (output, found) = run_command("orders-foreign", command, None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
    assert!(said.contains("orders of locks of this process are not recorded"), "{said}");
    assert_eq!((said.lines().count(), found.processes), (1, 1), "waits are recorded");
}
