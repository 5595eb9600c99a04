//! Single waits of `stanchion record`, before the program of
//! `crates/preload/examples/holders.rs`: which thread ended each, and what it did meanwhile.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use stanchion_competitive::waits::Recording;
use stanchion_competitive::waits::events::{Event, Events, Meanwhile};
use stanchion_machine::presence::switches::Ring;

use crate::common::{Place, text};
use crate::record::built;

/// The time for which a lock is held, in nanoseconds.
const HELD_NS: u64 = 10_000_000;

/// A recording's file.
struct File {
    /// The counts.
    recording: Recording,
    /// Single waits.
    events: Option<Events>,
    /// The text that `record` printed.
    said: String,
    /// The classes of the waits by path of calls.
    classes: Vec<String>,
}

/// Records `PROGRAM WHAT` of the examples.
fn record(name: &str, options: &[&str], program: &[&str]) -> File {
    record_by(name, options, program, |_| {})
}

/// Does the same by a command that `prepare` has changed.
fn record_by(
    name: &str,
    options: &[&str],
    program: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> File {
    let place = Place::new(name);
    let example = built().join("examples").join(program[0]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.arg("record").args(options).arg("--").arg(example).args(&program[1..]);
    prepare(&mut command);
    let done = command.current_dir(&place.0).env_remove("LD_PRELOAD").output().unwrap();
    let said = text(&done.stderr).to_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(text(&done.stdout), "ok\n");
    let bytes = fs::read(place.path("waits.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let paths = json["paths"]["waits"].as_array().unwrap();
    File {
        recording: Recording::from_json(&bytes).unwrap(),
        events: Events::from_json(&bytes).unwrap(),
        said,
        classes: paths.iter().map(|path| path["class"].as_str().unwrap().to_owned()).collect(),
    }
}

impl File {
    /// Returns the waits of threads named `waiter` of that class.
    fn waits(&self, class: &str) -> Vec<Event> {
        let events = self.events.as_ref().unwrap();
        let of_class =
            |wait: &&Event| wait.path.is_some_and(|path| self.classes[path as usize] == class);
        let by_waiter = |wait: &&Event| events.thread_of(wait).unwrap().name == "waiter";
        events.waits.iter().filter(of_class).filter(by_waiter).copied().collect()
    }

    /// Returns what the wakers of waits for locks did meanwhile, or `None` where the system has no
    /// switch records.
    fn meanwhile(&self) -> Option<Vec<Meanwhile>> {
        let waits = self.waits("lock");
        assert!(waits.len() >= 5, "{}: {waits:?}", self.said);
        let known: Vec<_> = waits.iter().filter_map(|wait| wait.meanwhile).collect();
        if Ring::of_this_thread().is_err() {
            assert_eq!(known, []);
            return None;
        }
        // The waker has its ring once it has ended a wait. The program repeats the waits in which
        // the waker was absent more often than a ring can tell.
        assert!(known.len() >= 4, "{}: {waits:?}", self.said);
        Some(known)
    }
}

#[test]
fn a_holder_that_sleeps_is_blocked() {
    let file = record("sleeps", &[], &["holders", "sleeps"]);
    for times in file.meanwhile().into_iter().flatten() {
        assert!(times.blocked_ns >= HELD_NS, "{times:?}");
    }
}

#[test]
fn a_holder_that_computes_runs() {
    let file = record("computes", &[], &["holders", "computes"]);
    for times in file.meanwhile().into_iter().flatten() {
        // The two clocks differ by little.
        assert!(times.ran_ns >= HELD_NS / 10 * 9, "{times:?}");
    }
}

#[test]
fn a_holder_beside_busy_threads_is_preempted() {
    let file = record("preempted", &[], &["holders", "preempted"]);
    let Some(known) = file.meanwhile() else { return };
    let sum: u64 = known.iter().map(|times| times.preempted_ns).sum();
    assert!(sum > 0, "{known:?}");
}

#[test]
fn no_switch_records_are_taken_if_they_are_off() {
    let file = record("off", &["--switches=off"], &["holders", "sleeps"]);
    let events = file.events.as_ref().unwrap();
    assert!(events.waits.iter().all(|wait| wait.meanwhile.is_none()));
    assert!(file.waits("lock").iter().all(|wait| wait.waker.is_some()));
    assert!(file.said.contains("--switches=off"), "{}", file.said);
}

/// Installs a filter that kills the process at `perf_event_open`.
fn kill_at_switch_records() -> std::io::Result<()> {
    let step = |code, k, jf| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut steps = [
        // The number of the call is the first word.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_perf_event_open as u32, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: gives up privileges that the program does not use.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its steps are there during the call.
    let installed =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if promised == 0 && installed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn a_filter_that_forbids_switch_records_does_not_end_the_program() {
    let file = record_by("filtered", &[], &["holders", "sleeps"], |command| {
        // SAFETY: it makes two system calls, and allocates nothing.
        unsafe { command.pre_exec(kill_at_switch_records) };
    });
    let events = file.events.as_ref().unwrap();
    assert!(events.waits.iter().all(|wait| wait.meanwhile.is_none()));
    assert!(file.said.contains("this command runs under a filter"), "{}", file.said);
}

#[test]
fn a_program_that_may_lock_no_memory_has_no_switch_records() {
    let file = record_by("unlocked", &[], &["holders", "sleeps"], |command| {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let set = move || {
            // SAFETY: reads `none`.
            match unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &none) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: it makes one system call, and allocates nothing.
        unsafe { command.pre_exec(set) };
    });
    let events = file.events.as_ref().unwrap();
    assert!(events.waits.iter().all(|wait| wait.meanwhile.is_none()));
}

#[test]
fn the_thread_that_ended_a_wait_is_known() {
    let file = record("wakers", &[], &["holders", "wakers"]);
    let events = file.events.as_ref().unwrap();
    let mut names = Vec::new();
    for (class, at_least) in [("lock", 10), ("condition", 15)] {
        let waits = file.waits(class);
        assert!(waits.len() >= at_least, "{class}: {} of {:?}", waits.len(), file.said);
        for wait in waits {
            let waker = events.waker_of(&wait);
            let is_first = waker.is_some_and(|waker| waker.thread == waker.process);
            assert!(is_first, "{class}: {wait:?} by {waker:?}: {}", file.said);
            if let Some(lock) = wait.lock {
                names.push(&file.recording.locks[lock as usize].0);
            }
        }
    }
    assert!(names.iter().any(|name| name.contains("rwlock")), "{names:?}");
    let joined = events.waits.iter().filter(|wait| {
        wait.path.is_some_and(|path| file.classes[path as usize] == "join")
            && events.waker_of(wait).is_some_and(|waker| waker.name == "joined")
    });
    assert_eq!(joined.count(), 5, "{events:?}");
}

#[test]
fn a_recording_keeps_its_limit_and_its_counts() {
    let file = record("limit", &["--limit=20K"], &["waits", "often", "20000"]);
    let events = file.events.as_ref().unwrap();
    assert!(events.to_json().len() <= 20 << 10);
    assert!(events.seen > 5_000 && (100..=256).contains(&events.waits.len()), "{}", file.said);
    let line = format!("single waits: {} of ", events.waits.len());
    assert!(file.said.contains(&line), "{}", file.said);
    let none = record("none", &["--limit=0"], &["waits", "rest"]);
    assert!(none.events.is_none() && !none.said.contains("single waits"), "{}", none.said);
}
