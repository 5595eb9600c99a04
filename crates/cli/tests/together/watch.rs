//! `stanchion record --pid` as a user runs it, on processes that these tests start.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Place, text};
use crate::record::built;

/// A running `examples/server`.
struct Server {
    /// The process. It ends with its standard input.
    child: Child,
    /// The port of its sockets.
    port: u16,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(built().join("examples/server"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        output.read_line(&mut line).expect("it prints its port");
        Self { child, port: line.trim().parse().expect("a port") }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn connect(&self) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).expect("it listens"))
    }

    /// Returns the lines of its status on signals and tracers, and its threads with their times of
    /// start.
    fn state(&self) -> (Vec<String>, BTreeMap<String, String>) {
        let of = |path: &str| fs::read_to_string(format!("/proc/{}/{path}", self.id())).unwrap();
        // Not SigQ, which counts the signals of all processes of the user.
        let kept = ["SigPnd", "SigBlk", "SigIgn", "SigCgt", "Shd", "Tracer", "Threads", "Seccomp"];
        let is_kept = |line: &&str| kept.iter().any(|key| line.starts_with(key));
        let status = of("status").lines().filter(is_kept).map(str::to_owned).collect();
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let threads = tasks.map(|task| {
            let id = task.unwrap().file_name().into_string().unwrap();
            let stat = of(&format!("task/{id}/stat"));
            let began = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
            (id, began.to_owned())
        });
        (status, threads.collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a line and returns the answer.
fn ask(server: &mut BufReader<TcpStream>, line: &str) -> u64 {
    writeln!(server.get_mut(), "{line}").unwrap();
    let mut answer = String::new();
    server.read_line(&mut answer).unwrap();
    answer.trim().parse().unwrap()
}

/// A guard that tells a loop to end when it is dropped, also if a check before that fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stanchion(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.arg("record").args(arguments);
    command
}

fn observe(id: u32, arguments: &[&str]) -> Output {
    stanchion(&["--pid", &id.to_string()]).args(arguments).output().expect("it can be started")
}

fn json(done: &Output) -> Value {
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    serde_json::from_slice(&done.stdout).expect("it is JSON")
}

/// Returns the threads of that name.
fn named<'v>(report: &'v Value, name: &str) -> Vec<&'v Value> {
    let threads = report["threads"].as_array().expect("a list");
    threads.iter().filter(|thread| thread["name"] == name).collect()
}

#[test]
fn a_thousand_observations_change_nothing_in_a_server() {
    let server = Server::start(&[]);
    let mut control = server.connect();
    assert_eq!(ask(&mut control, "3"), 9);
    let before = server.state();
    let is_over = AtomicBool::new(false);
    let mut rounds = 0;
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut server = server.connect();
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                assert_eq!(ask(&mut server, &number.to_string()), number * number);
            }
            number
        });
        let over = SetOnDrop(&is_over);
        while rounds < 1_000 {
            let arguments = ["--seconds", "1", "--interval-ms", "1", "--json", "-"];
            let report = json(&observe(server.id(), &arguments));
            rounds += report["rounds"].as_u64().unwrap();
            assert_eq!(report["most_threads"], before.1.len());
        }
        drop(over);
        assert!(client.join().unwrap() > 0);
    });
    assert_eq!(ask(&mut control, "interrupted"), 0);
    assert_eq!(ask(&mut control, "1000"), 1_000_000);
    assert_eq!(server.state(), before);
}

#[test]
fn threads_are_told_with_their_system_calls_and_common_addresses() {
    let place = Place::new("watch");
    let server = Server::start(&[]);
    let file = place.path("seen.json");
    let done = observe(server.id(), &["--seconds", "1", "--json", &file]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();

    let waiters = named(&report, "waits");
    assert_eq!(waiters.len(), 3, "{report:#}");
    for waiter in &waiters {
        assert_eq!(waiter["asleep_in"][0]["call"], "futex", "{waiter:#}");
        assert_eq!(waiter["asleep_in"][0]["without_limit"], true);
        assert_eq!(waiter["now"], "futex");
    }
    let ids: Vec<_> = waiters.iter().map(|waiter| waiter["id"].clone()).collect();
    assert_eq!(report["words"][0]["threads"], Value::from(ids.clone()));
    assert_eq!(report["words"][0]["now"], Value::from(ids));
    assert_eq!(report["words"][0]["address"], waiters[0]["asleep_in"][0]["word"]);

    let computes = named(&report, "computes")[0];
    // It never sleeps. While it waits for a processor, it is shown as running.
    assert!(computes["running"].as_f64().unwrap() > 0.0, "{computes:#}");
    assert_eq!(computes["now"], "running", "{computes:#}");
    assert_eq!(named(&report, "server")[0]["asleep_in"][0]["call"], "read");
    assert!(named(&report, "worker-0")[0]["asleep_in"][0]["call"] == "accept4", "{report:#}");

    assert!(said.contains("3 threads, 3 when last read"), "{said}");
    assert!(said.contains("Call paths and the names of locks cannot be seen"), "{said}");
    assert!(said.lines().any(|line| line.contains("waits") && line.contains("futex 0x")), "{said}");
}

#[test]
fn without_the_right_to_look_the_rest_is_told_with_the_remedy() {
    let place = Place::new("hidden");
    // An account that may read neither the folder of the build nor the process.
    let copy = place.copy_of(env!("CARGO_BIN_EXE_stanchion"));
    let server = Server::start(&["hidden"]);
    let id = server.id().to_string();
    let mut command = Command::new(copy);
    command.args(["record", "--seconds", "1", "--json", "-", "--pid", &id]).current_dir("/");
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65_534).gid(65_534);
    }
    let report = json(&command.output().expect("it can be started"));
    let unseen = report["unseen"][1].as_str().expect("a sentence");
    assert!(unseen.contains("another user") && unseen.contains("as root"), "{unseen}");
    assert!(report["words"].as_array().unwrap().is_empty());
    let computes = named(&report, "computes")[0];
    assert!(computes["running"].as_f64().unwrap() > 0.0, "{computes:#}");
    let waits = named(&report, "waits")[0];
    assert_eq!(waits["state"], "S");
    assert!(waits["asleep"].as_f64().unwrap() > 0.9, "{waits:#}");
}

#[test]
fn what_cannot_be_observed_is_refused() {
    let server = Server::start(&[]);
    let thread = server.state().1.into_keys().find(|id| *id != server.id().to_string()).unwrap();
    let mut zombie = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", zombie.id());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        thread::sleep(Duration::from_millis(1));
    }
    let dead = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let refused = |id: u32, words: &str| {
        let done = observe(id, &["--seconds", "1"]);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains(&id.to_string()), "{said}");
    };
    refused(thread.parse().unwrap(), &format!("give --pid {}", server.id()));
    refused(zombie.id(), "zombie");
    refused(dead, "there is no process");
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        refused(2, "thread of the kernel");
    }
    zombie.wait().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" record --pid $$", env!("CARGO_BIN_EXE_stanchion")]);
    let done = shell.output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("this command itself"), "{}", text(&done.stderr));
    let id = server.id().to_string();
    for wrong in [
        &["--pid", "0"][..],
        &["--pid", "many"],
        &["--pid", &id, "--", "true"],
        &["--pid", &id, "--output", "x"],
        &["--pid", &id, "--seconds", "0"],
        &["--seconds", "1", "--", "true"],
        &[],
    ] {
        let done = stanchion(wrong).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{wrong:?}");
    }
    let done = observe(server.id(), &["--json", "/nowhere/seen.json"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("/nowhere/seen.json"), "{}", text(&done.stderr));
}

#[test]
fn the_end_of_the_process_ends_the_observation() {
    let mut server = Server::start(&[]);
    let id = server.id().to_string();
    let place = Place::new("ends");
    let file = place.path("seen.json");
    let mut command = stanchion(&["--pid", &id, "--seconds", "600", "--json", &file]);
    let observer = command.stdout(Stdio::piped()).spawn().unwrap();
    // The file is made once it has found the process.
    while fs::metadata(&file).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    server.child.kill().unwrap();
    let done = observer.wait_with_output().unwrap();
    server.child.wait().unwrap();
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&report["ended_by"], done.status.code()), (&"process".into(), Some(0)));
    let threads = report["threads"].as_array().unwrap();
    assert!(threads.iter().all(|thread| thread["is_alive"] == false), "{report:#}");
    assert!(text(&done.stdout).contains("until the process ended"));
}

#[test]
fn an_interrupt_ends_the_observation_with_its_report() {
    let place = Place::new("interrupt");
    let server = Server::start(&[]);
    let file = place.path("seen.json");
    let id = server.id().to_string();
    let mut command = stanchion(&["--pid", &id, "--seconds", "600", "--json", &file]);
    let mut observer = command.stdout(Stdio::null()).spawn().unwrap();
    // The file is made once it listens.
    while fs::metadata(&file).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: to a child that has not been waited for.
    unsafe { libc::kill(observer.id() as i32, libc::SIGINT) };
    assert_eq!(observer.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["ended_by"], "interrupt");
    assert!(report["rounds"].as_u64().unwrap() > 0);
}
