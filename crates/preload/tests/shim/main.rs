//! Tests of the shim with real programs: one that locks by `pthread_mutex_*`
//! (`examples/pthreads.rs`), one that waits by the locks of Rust (`examples/waits.rs`), and one
//! that makes it hard for the shim (`examples/hostile.rs`).
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;
#[path = "../../examples/hostile/filter.rs"]
mod filter;
mod hostile;
mod orders;
mod refused;

use std::fs;
use std::path::Path;
use std::process::Command;

use stanchion_competitive::waits::Distribution;
use stanchion_competitive::waits::current::{CurrentWait, Kind};
use stanchion_competitive::waits::shared::Gathered;
use stanchion_competitive::waits::shared::{SIZE, Shared};

use common::{Table, built, of_kind, ok, ok_in_all_modes, ok_program, run, shim};

/// The policies that can replace locks.
const POLICIES: [&str; 9] = [
    "adaptive",
    "always-block",
    "always-spin",
    "fixed-spin",
    "fixed-spin-half",
    "last-three-samples",
    "optimal-online-approximation",
    "random-walk",
    "randomized",
];

#[test]
fn waits_that_a_process_left_behind_are_cleared_by_the_next_one() {
    let wait = |process, thread| CurrentWait {
        process,
        thread,
        since_ns: 5,
        name: None,
        kind: Kind::Futex,
        address: 8,
    };
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let table = Table::new("left-behind");
    let mut words = table.words();
    // SAFETY: a copy that is this test's.
    let shared = unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), SIZE) }.unwrap();
    let leave = |shared: &Shared| {
        let begun = (0..4096).filter_map(|thread| shared.begin_wait(&wait(gone.id(), thread)));
        assert!(begun.count() > 1_000);
    };
    leave(shared);
    assert!(shared.begin_wait(&wait(gone.id(), 0)).is_none(), "the table is full");
    shared.clear_waits(|_| true);
    let here = wait(std::process::id(), 1);
    assert!(shared.begin_wait(&here).is_some());
    leave(shared);
    fs::write(&table.0, words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>())
        .unwrap();
    let mut command = Command::new(built().join("examples/pthreads"));
    command.arg("none").env("LD_PRELOAD", shim()).env("STANCHION_RECORD", &table.0);
    command.output().unwrap();
    let mut words = table.words();
    // SAFETY: as above.
    let shared = unsafe { Shared::at(words.as_mut_ptr().cast::<u8>(), SIZE) }.unwrap();
    assert_eq!(shared.current_waits(), [(here, None)], "this process is there");
}

#[test]
fn contended_locks_are_counted_under_their_places() {
    let found = ok("contend", None);
    assert_eq!((found.processes, found.lockers, found.nameless), (1, 1, 0));
    let statics = of_kind(&found, 'S');
    assert!(
        matches!(statics[..], [(name, count)] if name.contains("/pthreads+0x") && count > 50),
        "{found:?}"
    );
    let calls = of_kind(&found, 'C');
    assert!(
        matches!(calls[..], [(name, count)] if name.contains("/pthreads+0x") && count > 0),
        "{found:?}"
    );
    let lock = &found.locks[statics[0].0];
    // The holder sleeps for 200 µs at times. So some thread blocked, and was woken by a release
    // that the shim saw.
    assert!(lock.blocked() > 20, "{lock:?}");
    assert!(lock.max_ns() > 100_000, "{lock:?}");
    assert!(lock.arrivals()[1] > 0, "four threads: one of them found another waiting: {lock:?}");
}

#[test]
fn waits_in_other_functions_have_kinds_of_their_own() {
    let found = ok("calls", None);
    // The lock for reading and for writing, which are two functions of the program.
    for (kind, least) in [('R', 2), ('M', 1), ('B', 1), ('N', 1), ('J', 1), ('T', 3)] {
        let names = of_kind(&found, kind);
        assert!(names.len() >= least, "{kind}: {found:?}");
        assert!(names.iter().all(|(name, _)| name.contains("/pthreads+0x")), "{names:?}");
        let waits = found.locks.iter().filter(|(name, _)| name.starts_with(kind));
        let longest = waits.map(|(_, waits)| waits.max_ns()).max();
        assert!(longest > Some(5_000_000), "{kind}: each waits for 10 ms: {found:?}");
    }
    for policy in ["always-block", "fixed-spin"] {
        ok("calls", Some(policy));
    }
}

/// Returns the waits for mutexes. Other waits have the names of paths.
fn mutexes(found: &Gathered) -> impl Iterator<Item = &Distribution> {
    let mutexes = found.locks.iter().filter(|(name, _)| name.starts_with(['S', 'C']));
    mutexes.map(|(_, waits)| waits)
}

#[test]
fn each_policy_keeps_count_and_is_recorded() {
    for policy in POLICIES {
        let found = ok("contend", Some(policy));
        let waits: u64 = mutexes(&found).map(|waits| waits.count()).sum();
        assert!(waits > 0, "{policy}: {found:?}");
        assert_eq!(found.nameless, 0, "{policy}");
    }
}

#[test]
fn replaced_locks_do_what_their_policy_says() {
    let spun = ok("contend", Some("always-spin"));
    assert!(mutexes(&spun).all(|waits| waits.blocked() == 0), "{spun:?}");
    let blocked = ok("contend", Some("always-block"));
    assert!(mutexes(&blocked).any(|waits| waits.blocked() > 20), "{blocked:?}");
}

#[test]
fn other_kinds_of_mutexes_are_as_they_were() {
    ok_in_all_modes("kinds");
}

#[test]
fn times_are_kept() {
    ok_in_all_modes("timed");
}

#[test]
fn a_wait_leaves_errno_alone() {
    ok_in_all_modes("errno");
}

#[test]
fn conditions_lose_no_signal() {
    ok_in_all_modes("conditions");
}

#[test]
fn what_processes_share_stays_the_c_library_s() {
    ok_in_all_modes("shared");
}

#[test]
fn children_of_a_fork_go_on() {
    for policy in [None, Some("always-block"), Some("random-walk")] {
        let found = ok("forks", policy);
        // 20 children count in the same table as their parent.
        assert_eq!((found.processes, found.lockers), (21, 21), "{policy:?}");
        assert!(of_kind(&found, 'S').len() >= 2, "{policy:?}: {found:?}");
    }
}

#[test]
fn a_process_counts_once_though_two_threads_lock_first() {
    let found = ok("first-locks", None);
    assert_eq!((found.processes, found.lockers), (201, 200));
}

#[test]
fn children_use_conditions_that_threads_of_their_parent_were_within() {
    // Not in the mode that only records: the C library's own condition variables may hang there.
    for policy in ["always-block", "adaptive"] {
        ok("forked-conditions", Some(policy));
    }
}

#[test]
fn children_find_those_mutexes_held_that_other_threads_held() {
    ok_in_all_modes("forked-mutexes");
}

#[test]
fn signals_interrupt_no_lock_and_no_wait() {
    ok_in_all_modes("signals");
}

#[test]
fn the_smallest_stacks_suffice() {
    ok_in_all_modes("small-stacks");
}

#[test]
fn more_locks_than_there_is_room_for_are_counted_by_call() {
    for policy in [None, Some("optimal-online-approximation")] {
        let found = ok("many", policy);
        assert!(
            of_kind(&found, 'C').iter().map(|call| call.1).sum::<u64>() > 0,
            "{policy:?}: {found:?}"
        );
    }
}

#[test]
fn a_cancelled_wait_ends_with_the_mutex() {
    ok("cancel", None);
}

#[test]
fn a_lock_is_no_point_of_cancellation() {
    ok_in_all_modes("cancelled-later");
}

#[test]
fn however_a_process_ends_its_waits_are_there() {
    for (what, code) in [("exit", Some(7)), ("killed", None)] {
        let (output, found) = run(what, None);
        assert_eq!(output.status.code(), code, "{what}");
        assert!(!of_kind(&found, 'S').is_empty(), "{what}: {found:?}");
    }
    let found = ok("exec", None);
    assert_eq!(found.processes, 2);
    assert_eq!(of_kind(&found, 'S').len(), 1, "one lock, under one name: {found:?}");
}

#[test]
fn a_program_without_locks_or_without_waits_can_be_told() {
    let none = ok("none", None);
    assert_eq!((none.processes, none.lockers, none.locks.len()), (1, 0, 0));
    let alone = ok("alone", None);
    assert_eq!((alone.processes, alone.lockers, alone.locks.len()), (1, 1, 0));
}

#[test]
fn a_lock_that_its_holder_waits_for_ends_the_program() {
    let (output, _) = run("again", Some("random-walk"));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("already holds the mutex"), "{said}");
}

#[test]
fn without_a_table_the_program_runs_as_ever() {
    let preloaded = |table: &Path, policy: &str| {
        let shim = shim();
        let mut command = Command::new(built().join("examples/pthreads"));
        command.arg("contend").env("LD_PRELOAD", shim).env("STANCHION_RECORD", table);
        command.env("STANCHION_LOCK", policy).output().unwrap()
    };
    let foreign = Table::new("foreign");
    fs::write(&foreign.0, "nothing of ours").unwrap();
    let table = Table::new("no-policy");
    for (path, policy, says) in [
        (Path::new("/nowhere/at/all"), "random-walk", "it cannot be opened"),
        (&foreign.0, "random-walk", "not a table of this version"),
        (&table.0, "lottery", "there is no policy of that name"),
    ] {
        let output = preloaded(path, policy);
        assert!(output.status.success());
        assert_eq!(output.stdout, b"ok\n");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(table.gather().processes, 1, "without the policy it is recorded all the same");
}

#[test]
fn waits_by_the_system_call_are_recorded_with_their_paths() {
    for policy in [None, Some("adaptive")] {
        let gathered = ok_program("waits", "all", policy);
        let paths = of_kind(&gathered, 'P');
        // A mutex, a read-write lock, parking_lot's mutex, a condition, a channel and a rest.
        assert!(paths.len() >= 6, "{paths:?}");
        let deep = paths.iter().filter(|(path, _)| path.matches("+0x").count() >= 4).count();
        assert!(deep >= 6, "{paths:?}");
        assert!(paths.iter().map(|(_, waits)| waits).sum::<u64>() >= 6, "{paths:?}");
    }
}

#[test]
fn waits_for_several_words_are_recorded_with_their_path() {
    // SAFETY: no words to wait for: the call fails.
    let result = unsafe { libc::syscall(libc::SYS_futex_waitv, 0_usize, 0, 0, 0_usize, 0) };
    let is_known =
        result == -1 && std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
    for policy in [None, Some("adaptive")] {
        let gathered = ok_program("waits", "several", policy);
        let paths = of_kind(&gathered, 'P');
        let waits: u64 = paths.iter().map(|(_, waits)| waits).sum();
        // Five that are woken and five that end with their time. Calls that fail are none.
        assert_eq!(waits, if is_known { 10 } else { 0 }, "{paths:?}");
        assert!(paths.iter().all(|(path, _)| path.matches("+0x").count() >= 2), "{paths:?}");
        let longest = paths.iter().map(|(path, _)| gathered.locks[*path].max_ns()).max();
        assert!(longest >= is_known.then_some(10_000_000), "{gathered:?}");
    }
}

#[test]
fn other_system_calls_and_children_are_as_without_the_shim() {
    for policy in [None, Some("always-block")] {
        let gathered = ok_program("waits", "calls", policy);
        assert!(of_kind(&gathered, 'P').is_empty(), "a wait that never began: {gathered:?}");
        ok_program("waits", "children", policy);
    }
}
