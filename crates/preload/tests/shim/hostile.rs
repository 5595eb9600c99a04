//! Programs that make it hard for the shim.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

use stanchion_competitive::waits::Loss;
use stanchion_competitive::waits::shared::Gathered;

use crate::common::{built, of_kind, ok_program, run_command, run_program};

fn run(what: &str, policy: Option<&str>) -> (Output, Gathered) {
    run_program("hostile", what, policy)
}

fn ok(what: &str, policy: Option<&str>) -> Gathered {
    ok_program("hostile", what, policy)
}

#[test]
fn a_filter_that_kills_does_not_kill_for_the_shim() {
    for way in ["filter-prctl", "filter-prctl-call", "filter-seccomp"] {
        for policy in [None, Some("always-block"), Some("adaptive")] {
            let found = ok(way, policy);
            assert!(found.losses.contains(&Loss::Filter), "{way} with {policy:?}: {found:?}");
            let statics = of_kind(&found, 'S');
            assert!(
                matches!(statics[..], [(name, count)] if name.contains("/hostile+0x") && count > 1),
                "{way} with {policy:?}: {found:?}"
            );
        }
    }
}

#[test]
fn such_a_filter_kills_if_the_shim_does_not_see_it() {
    let mut command = Command::new(built().join("examples/hostile"));
    // Without the shim the program needs no other call.
    let output = command.arg("filter-inlined").env_remove("LD_PRELOAD").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (output, _) = run("filter-inlined", None);
    assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{output:?}");
}

#[test]
fn a_filter_that_the_kernel_refuses_is_none() {
    let found = ok("refused-filter", None);
    assert!(found.losses.is_empty(), "{found:?}");
    assert!(!of_kind(&found, 'S').is_empty(), "{found:?}");
}

#[test]
fn a_program_is_refused_that_is_run_under_a_filter() {
    let mut command = Command::new(built().join("examples/hostile"));
    command.arg("run-filtered").env("STANCHION_FILTERS", filters().to_string());
    let (output, found) = run_command("run-filtered", command, None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
    assert!(said.contains("it is run under a filter of system calls"), "{said}");
    assert_eq!((said.lines().count(), found.processes, found.locks.len()), (1, 1, 0), "{found:?}");
    // If this test runs under filters itself, they are no reason.
    let mut command = Command::new(built().join("examples/hostile"));
    command.arg("run-filtered").env("STANCHION_FILTERS", (filters() + 1).to_string());
    let (output, found) = run_command("run-filtered-too", command, None);
    assert_eq!((output.stderr.as_slice(), found.processes), (&b""[..], 2));
}

/// Returns the number of filters that this process runs under.
fn filters() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

#[test]
fn closed_descriptors_are_missed_by_none() {
    for policy in [None, Some("always-block")] {
        let (output, found) = run("closes-all", policy);
        assert!(output.status.success(), "{}", output.status);
        assert!(!of_kind(&found, 'S').is_empty() && !of_kind(&found, 'P').is_empty(), "{found:?}");
    }
}

#[test]
fn an_allocator_of_the_program_may_wait_for_its_lock() {
    for policy in [None, Some("always-block"), Some("adaptive")] {
        let found = ok_program("malloc", "", policy);
        assert_eq!(found.lockers, 1, "the allocator is the program's: {found:?}");
    }
}

#[test]
fn threads_without_memory_of_their_own_are_recorded() {
    let found = ok("raw-threads", None);
    let waits: u64 = of_kind(&found, 'P').iter().map(|(_, waits)| waits).sum();
    // Four threads, and all of them sleep before each of fifty turns.
    // While one of them stores the name of their path, the others count without a name.
    assert!(waits > 100 && waits + found.nameless >= 4 * 50, "{found:?}");
}

#[test]
fn thousands_of_threads_that_wait_at_once_all_count() {
    let mut command = Command::new(built().join("examples/hostile"));
    command.args(["many-threads", "10000"]);
    let (output, found) = run_command("many-threads", command, None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with("ok\n"), "{output:?}");
    let threads: u64 = said.lines().next().unwrap().parse().unwrap();
    let waits = |kind| of_kind(&found, kind).iter().map(|(_, waits)| waits).sum::<u64>();
    assert!(threads > 100, "{said}");
    // All threads sleep before the lock is released and the word is changed.
    // While a thread stores a name, the others count without it.
    assert!(waits('S') + waits('P') + found.nameless >= threads, "{threads}: {found:?}");
    assert!(waits('S') * 10 > threads / 2 * 9, "{threads}: {found:?}");
    assert!(waits('P') * 10 > threads / 2 * 9, "{threads}: {found:?}");
}

#[test]
fn a_lock_may_be_freed_while_it_is_recorded() {
    for policy in [None, Some("always-block"), Some("adaptive")] {
        ok("unmapped", policy);
    }
}

#[test]
fn a_stack_that_leads_nowhere_ends_the_path() {
    let found = ok("without-a-way-back", None);
    let paths = of_kind(&found, 'P');
    assert!(paths.iter().map(|(_, waits)| waits).sum::<u64>() >= 15, "{paths:?}");
    assert!(found.losses.is_empty(), "{found:?}");
}

#[test]
fn a_fault_ends_the_program_as_without_the_shim() {
    let (output, found) = run("faults", None);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    assert!(!of_kind(&found, 'S').is_empty(), "{found:?}");
}
