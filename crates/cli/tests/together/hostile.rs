//! `stanchion record` before programs and on disks that make it hard, and damaged recordings.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::common::{Place, text};
use crate::record::built;

/// Returns the path of a program of the shim's examples.
fn program(name: &str) -> String {
    built().join("examples").join(name).to_string_lossy().into_owned()
}

/// Returns the command.
fn stanchion(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.args(arguments).current_dir(&place.0).env_remove("LD_PRELOAD");
    command
}

#[test]
fn lost_knowledge_is_said() {
    let place = Place::new("losses");
    let filtered = ["record", "--", &program("hostile"), "filter-seccomp"];
    let done = stanchion(&place, &filtered).output().unwrap();
    let said = text(&done.stderr);
    assert!(done.status.success() && text(&done.stdout) == "ok\n", "{said}");
    assert!(said.contains("A process installed a filter of system calls."), "{said}");
    assert!(said.contains("hostile: HELD_OFTEN"), "{said}");

    let refused = [
        (libc::SYS_process_vm_readv, "The stack of a thread could not be read"),
        (libc::SYS_openat, "The list of mappings of a process could not be read"),
        (libc::SYS_getrusage, "The switches of a thread could not be read"),
        (libc::SYS_gettid, "The number of a thread could not be read"),
    ];
    for (number, says) in refused {
        let mut command = stanchion(&place, &["record", "--", &program("pthreads"), "contend"]);
        let refused = format!("{number}:{}", libc::EPERM);
        let done = command.env("STANCHION_TEST_REFUSED", refused).output().unwrap();
        let said = text(&done.stderr);
        assert!(done.status.success() && text(&done.stdout) == "ok\n", "{said}");
        assert!(said.contains(says) && said.contains("pthreads: STATIC_LOCK"), "{number}: {said}");
    }
}

#[test]
fn possible_deadlocks_are_named_with_both_paths() {
    let place = Place::new("orders");
    let record = |what: &str| {
        let command = ["record", "--orders", "--", &program("orders"), what];
        let done = stanchion(&place, &command).output().unwrap();
        let said = text(&done.stderr);
        assert!(done.status.success() && text(&done.stdout) == "ok\n", "{what}: {said}");
        said
    };
    let said = record("opposite");
    for part in [
        "1 possible deadlock of orders",
        "(orders: FIRST), taken in ",
        "(orders: SECOND), taken in ",
        "called from orders::linux::forward (linux.rs:",
        "called from orders::linux::backward (linux.rs:",
        "2 pairs of a held and a taken lock were seen",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("std::") && !said.contains("not recorded:"), "{said}");
    let said = record("gate");
    assert!(said.contains("took no locks in orders that could deadlock"), "{said}");
    let said = record("again");
    assert!(said.contains("a thread blocks itself") && said.contains("took again lock"), "{said}");
    assert!(record("handed-over").contains("not recorded: locks left the graph"));
    let said = record("forked");
    assert!(said.contains("1 possible deadlock of orders"), "{said}");
    let both = ["record", "--orders", "--lock", "adaptive", "--", &program("orders"), "gate"];
    assert_eq!(stanchion(&place, &both).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_deadlock_that_happens_is_named_when_the_program_is_ended() {
    let place = Place::new("deadlocked");
    let command = ["record", "--orders", "--", &program("orders"), "deadlocked"];
    let mut command = stanchion(&place, &command);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting\n");
    let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(sent.unwrap().success());
    let done = child.wait_with_output().unwrap();
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(128 + libc::SIGTERM), "{said}");
    assert!(said.contains("1 possible deadlock of orders"), "{said}");
    assert!(said.contains("linux::deadlocked::take (linux.rs:"), "{said}");
}

#[test]
fn a_program_that_is_run_under_a_filter_is_not_recorded() {
    let place = Place::new("run-filtered");
    let command = ["record", "--", &program("hostile"), "run-filtered"];
    let done = stanchion(&place, &command).output().unwrap();
    let said = text(&done.stderr);
    assert!(done.status.success() && text(&done.stdout) == "ok\n", "{said}");
    assert!(said.contains("it is run under a filter of system calls"), "{said}");
}

#[test]
fn a_full_disk_is_an_error_and_not_the_program_s_end() {
    let place = Place::new("full");
    let command = ["record", "--output", "/dev/full", "--", &program("pthreads"), "contend"];
    let done = stanchion(&place, &command).output().unwrap();
    let said = text(&done.stderr);
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(1), "ok\n"), "{said}");
    assert!(said.contains("cannot write /dev/full"), "{said}");
    // A file may have no more than so many blocks: the table has no room, so nothing is run.
    let me = env!("CARGO_BIN_EXE_stanchion");
    let script = format!("ulimit -f 1; exec {me} record -- {} contend", program("pthreads"));
    let done = Command::new("sh").args(["-c", &script]).current_dir(&place.0).output().unwrap();
    let said = text(&done.stderr);
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("cannot make the table of waits"), "{said}");
}

#[test]
fn a_cut_or_foreign_recording_is_refused_with_its_name() {
    let place = Place::new("cut");
    let command = ["record", "--output", "whole.json", "--", &program("pthreads"), "contend"];
    assert!(stanchion(&place, &command).output().unwrap().status.success());
    let whole = fs::read(place.path("whole.json")).unwrap();
    let last = whole.trim_ascii_end().len();
    let refused = |name: &str, bytes: &[u8]| {
        fs::write(place.path("other.json"), bytes).unwrap();
        for verb in ["report", "advise"] {
            let done = stanchion(&place, &[verb, "other.json"]).output().unwrap();
            let said = text(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{verb} {name}: {said}");
            assert!(said.contains("other.json"), "{verb} {name}: {said}");
        }
    };
    for part in 0..24 {
        let length = last * part / 24;
        refused(&format!("cut to {length}"), &whole[..length]);
    }
    refused("without its last byte", &whole[..last - 1]);
    let later = String::from_utf8(whole).unwrap().replace("\"version\": 1", "\"version\": 99");
    refused("of another version", later.as_bytes());
    refused("a program", &fs::read(program("pthreads")).unwrap()[..4096]);
}
