//! `stanchion stalls`, and SIGUSR1 to `stanchion record`, on programs that hang.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Place, text};
use crate::record::built;

/// A running `stanchion record` of `examples/stalls`.
struct Recorded {
    /// The command that records.
    recorder: Child,
    /// The program ends with it.
    input: Option<ChildStdin>,
    /// The file with the standard error of both.
    errors: String,
    /// The folder of the recording.
    _place: Place,
}

impl Recorded {
    fn start(what: &str, options: &[&str]) -> Self {
        let place = Place::new("stalls");
        let errors = place.path("errors");
        let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        built();
        command.arg("record").args(options).arg("--").arg(built().join("examples/stalls"));
        command.arg(what).current_dir(&place.0).env_remove("LD_PRELOAD");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&errors).unwrap());
        let mut recorder = command.spawn().expect("it can be started");
        let mut line = String::new();
        BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "waiting\n", "{}", fs::read_to_string(&errors).unwrap());
        let input = recorder.stdin.take();
        Self { recorder, input, errors, _place: place }
    }

    /// Returns the program's process.
    fn program(&self) -> u32 {
        let id = self.recorder.id();
        let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let children = tasks.map(|task| {
            fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        });
        children.collect::<String>().trim().parse().expect("one child")
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    /// Lets the program end and returns what was said.
    fn end(mut self) -> String {
        drop(self.input.take());
        self.recorder.wait().unwrap();
        self.said()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.recorder.wait();
    }
}

fn stalls(id: u32) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.args(["stalls", &id.to_string()]).output().expect("it can be started")
}

/// Calls `look` until `missing` finds nothing missing in what it returns, and returns that.
fn until_whole(missing: impl Fn(&str) -> Option<String>, look: impl Fn() -> String) -> String {
    let began = Instant::now();
    loop {
        let said = look();
        let Some(missing) = missing(&said) else { return said };
        assert!(began.elapsed() < Duration::from_secs(60), "{missing}: {said}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Calls `look` until it returns something with all these words, and returns that.
fn until(words: &[&str], look: impl Fn() -> String) -> String {
    let missing = |said: &str| words.iter().find(|word| !said.contains(**word));
    until_whole(|said| missing(said).map(|word| (*word).to_owned()), look)
}

fn look(id: u32) -> String {
    let done = stalls(id);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    text(&done.stdout)
}

/// Returns the line of the thread of that name, if there is one.
fn line_of<'s>(said: &'s str, thread: &str) -> Option<&'s str> {
    said.lines().find(|line| line.split_whitespace().nth(1) == Some(thread))
}

/// Returns the line of the thread of that name.
fn line<'s>(said: &'s str, thread: &str) -> &'s str {
    line_of(said, thread).unwrap_or_else(|| panic!("{thread}: {said}"))
}

#[test]
fn a_deadlock_is_explained_while_it_lasts_and_at_its_end() {
    let recorded = Recorded::start("deadlock", &[]);
    // A thread is in the table a little before it sleeps.
    let (lock, place) = ("lock  stalls: std Mutex in stalls::lock_second", " (stalls.rs:");
    let expected = [
        ("first", [lock, place]),
        ("second", [lock, place]),
        ("computes", ["not seen by the shim: running", ""]),
        ("stalls", ["not seen by the shim: in read", ""]),
    ];
    let missing = |said: &str| {
        for words in ["of which 2 in waits", "store no owner"] {
            if !said.contains(words) {
                return Some(words.to_owned());
            }
        }
        let has_all = |&(thread, parts): &(&str, [&str; 2])| {
            let line = line_of(said, thread).unwrap_or_default();
            parts.iter().all(|part| line.contains(part)) && !line.contains("/proc")
        };
        expected.iter().find(|line| !has_all(line)).map(|line| format!("{line:?}"))
    };
    until_whole(missing, || look(recorded.program()));
    let said = recorded.end();
    let left = said.lines().find(|line| line.contains("std Mutex in stalls::lock_second"));
    assert!(said.contains("had not ended"), "{said}");
    assert!(left.is_some_and(|line| line.split_whitespace().nth(1) == Some("2")), "{said}");
}

#[test]
fn conditions_and_pthread_mutexes_have_their_names_in_each_mode() {
    let recorded = Recorded::start("condition", &[]);
    let said = until(&["of which 1 in waits"], || look(recorded.program()));
    let waits = line(&said, "waits");
    assert!(waits.contains("condition  stalls: std Condvar in stalls::wait_for_ever"), "{said}");
    for options in [&[][..], &["--lock", "always-block"]] {
        let recorded = Recorded::start("pthreads", options);
        let said = until(&["of which 2 in waits"], || look(recorded.program()));
        assert!(line(&said, "mutex").contains("lock  stalls: stalls::MUTEX"), "{said}");
        let condition = line(&said, "condition");
        assert!(
            condition.contains("condition  stalls: pthread condition in stalls::pthreads::"),
            "{said}"
        );
    }
}

#[test]
fn the_recorder_tells_of_all_processes_when_it_is_asked_or_gets_a_signal() {
    let recorded = Recorded::start("fork", &[]);
    let recorder = recorded.recorder.id();
    let words = ["std Condvar in stalls::wait_for_ever", "std Condvar in stalls::fork::"];
    let said = until(&words, || look(recorder));
    let (parent, child) = (line(&said, "parent"), line(&said, "child"));
    assert!(parent.contains(words[0]) && child.contains(words[1]), "{said}");
    assert_eq!(said.matches("of which 1 in waits").count(), 2, "{said}");
    // The parent alone.
    let only = look(recorded.program());
    assert!(only.contains(words[0]) && !only.contains(words[1]), "{only}");

    let signals = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        // SigQ counts the signals of all processes of the user.
        let is_its = |line: &&str| line.starts_with("Sig") && !line.starts_with("SigQ");
        let lines = status.lines().filter(is_its);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let program = recorded.program();
    let before = signals(program);
    for times in 1..=2 {
        // SAFETY: to a child that has not been waited for.
        unsafe { libc::kill(recorder as i32, libc::SIGUSR1) };
        let began = Instant::now();
        while recorded.said().matches("store no owner").count() < times {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", recorded.said());
            thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(signals(program), before);
    let caught = before.iter().find(|line| line.starts_with("SigCgt")).unwrap();
    let caught = u64::from_str_radix(caught.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(caught >> (libc::SIGUSR1 - 1) & 1, 0, "the program has no handler of ours");
    let said = recorded.end();
    assert_eq!(said.matches(words[1]).count(), 3, "twice by signal and once at the end: {said}");
}

#[test]
fn a_program_that_ends_meanwhile_is_told_or_refused() {
    for round in 0..8 {
        let recorded = Recorded::start("deadlock", &[]);
        let program = recorded.program();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(3 * round));
                // SAFETY: the recorder does not wait for it before it has ended.
                unsafe { libc::kill(program as i32, libc::SIGKILL) };
            });
            loop {
                let done = stalls(program);
                let (said, errors) = (text(&done.stdout), text(&done.stderr));
                match done.status.code() {
                    Some(0) => assert!(said.contains(&format!("the process {program}")), "{said}"),
                    Some(2) => {
                        assert!(errors.contains(&program.to_string()), "{errors}");
                        break;
                    }
                    _ => panic!("{:?}: {said}{errors}", done.status),
                }
            }
        });
    }
}

#[test]
fn processes_that_are_not_recorded_are_refused() {
    let refused = |id: u32, words: &str| {
        let done = stalls(id);
        assert_eq!(done.status.code(), Some(2), "{}", text(&done.stdout));
        assert!(text(&done.stderr).contains(words), "{}", text(&done.stderr));
    };
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    refused(other.id(), &format!("record --pid {}", other.id()));
    other.kill().unwrap();
    other.wait().unwrap();
    refused(other.id(), "there is no process");

    // The recorder was killed, so the program goes on without a table.
    let mut recorded = Recorded::start("deadlock", &[]);
    let program = recorded.program();
    let files = ["waits", "log"];
    let files = files.map(|ending| format!("stanchion-{}-0.{ending}", recorded.recorder.id()));
    recorded.recorder.kill().unwrap();
    recorded.recorder.wait().unwrap();
    let places = ["/dev/shm".into(), std::env::temp_dir()];
    for place in &places {
        files.iter().for_each(|file| drop(fs::remove_file(place.join(file))));
    }
    refused(program, "has ended, and its table with it");
}

#[test]
fn a_lock_that_does_not_come_is_told_of_once_by_itself() {
    let recorded = Recorded::start("deadlock", &["--stalls-after", "1"]);
    let told = |said: &str| said.matches("has waited for longer than").count();
    // Both threads wait for a lock. Each is told of once.
    let words = ["2 told", ": stalls: std Mutex in stalls::lock_second"];
    let said = || recorded.said();
    until(&words, || format!("{} told, {}", told(&said()), said()));
    until(&["of which 2 in waits"], said);
    let said = recorded.end();
    assert_eq!(told(&said), 2, "{said}");
    // A condition may last.
    let recorded = Recorded::start("condition", &["--stalls-after", "1"]);
    thread::sleep(Duration::from_millis(1_500));
    let said = recorded.end();
    assert_eq!(told(&said), 0, "{said}");
    let refused = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(["record", "--stalls-after", "0", "--", "true"])
        .output()
        .expect("it can be started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--stalls-after"), "{}", text(&refused.stderr));
}
