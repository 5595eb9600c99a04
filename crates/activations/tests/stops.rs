//! Stops from outside, of a whole process by SIGSTOP and of single kernel threads by a debugger:
//! none of them is a block for which a slot is taken.
//!
//! A child is stopped: this test again, in another process. Its runtime always has more threads
//! ready than processors.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use stanchion_activations::{Runtime, spawn};

/// Set for the child.
const CHILD: &str = "STANCHION_TEST_STOPS";

const PROCESSORS: usize = 2;

/// Computes, then lets another go on in its place, until told: there are always some that have not
/// begun.
fn chain(steps: Arc<AtomicU64>, over: Arc<AtomicBool>) {
    (0..2_000).for_each(|_| std::hint::spin_loop());
    steps.fetch_add(1, Ordering::Relaxed);
    if !over.load(Ordering::Relaxed) {
        drop(spawn(move || chain(steps, over)));
    }
}

/// The child: says after each line on its input how many hand-offs there have been, once its
/// threads have gone on.
fn child() {
    // A child that hangs ends its parent's test.
    // SAFETY: a number.
    unsafe { libc::alarm(300) };
    let runtime = Runtime::new(PROCESSORS).unwrap();
    let (steps, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    for _ in 0..16 {
        let (steps, over) = (steps.clone(), over.clone());
        drop(runtime.spawn(move || chain(steps, over)));
    }
    for line in std::io::stdin().lines() {
        line.unwrap();
        let before = steps.load(Ordering::Relaxed);
        while steps.load(Ordering::Relaxed) < before + 100 {
            std::thread::yield_now();
        }
        println!("\nhandoffs {}", runtime.metrics().handoffs);
    }
    over.store(true, Ordering::Relaxed);
}

struct Stopped {
    child: Child,
    asks: ChildStdin,
    tells: BufReader<ChildStdout>,
}

impl Stopped {
    /// The child of the test of that name.
    fn start(test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let asks = child.stdin.take().unwrap();
        let tells = BufReader::new(child.stdout.take().unwrap());
        Self { child, asks, tells }
    }

    fn pid(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    /// Hand-offs so far, when its threads have gone on.
    fn handoffs(&mut self) -> u64 {
        writeln!(self.asks).unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.tells.read_line(&mut line).unwrap(), 0, "the child has ended");
            if let Some(count) = line.strip_prefix("handoffs ") {
                return count.trim().parse().unwrap();
            }
        }
    }

    /// The kernel threads that carry its threads.
    fn workers(&self) -> Vec<libc::pid_t> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        tasks
            .map(|task| task.unwrap().path())
            .filter(|task| {
                std::fs::read_to_string(task.join("comm")).unwrap().starts_with("worker")
            })
            .map(|task| task.file_name().unwrap().to_str().unwrap().parse().unwrap())
            .collect()
    }

    fn end(self) {
        let Self { mut child, asks, tells } = self;
        drop(asks);
        // What it still says is read, so that it can end.
        tells.lines().for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}

fn ptrace(request: libc::c_uint, thread: libc::pid_t) -> libc::c_long {
    // SAFETY: requests without addresses, of a child's thread.
    unsafe { libc::ptrace(request, thread, 0_usize, 0_usize) }
}

/// Waits until that process, or traced thread, has stopped or goes on.
fn await_change(of: libc::pid_t, options: libc::c_int) {
    let mut status = 0;
    // SAFETY: a place for the status.
    assert_eq!(unsafe { libc::waitpid(of, &raw mut status, options) }, of);
    assert!(libc::WIFSTOPPED(status) || libc::WIFCONTINUED(status), "{status:#x}");
}

#[test]
fn a_process_that_is_stopped_hands_nothing_over() {
    const STOPS: u64 = 10;
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let mut stopped = Stopped::start("a_process_that_is_stopped_hands_nothing_over");
    let before = stopped.handoffs();
    for _ in 0..STOPS {
        // SAFETY: a child of ours.
        assert_eq!(unsafe { libc::kill(stopped.pid(), libc::SIGSTOP) }, 0);
        await_change(stopped.pid(), libc::WUNTRACED);
        std::thread::sleep(Duration::from_millis(10));
        // SAFETY: likewise.
        assert_eq!(unsafe { libc::kill(stopped.pid(), libc::SIGCONT) }, 0);
        await_change(stopped.pid(), libc::WCONTINUED);
        stopped.handoffs();
    }
    let during = stopped.handoffs() - before;
    // A thread that missed a page, now and then.
    assert!(during <= PROCESSORS as u64, "{during} hand-offs in {STOPS} stops");
    stopped.end();
}

#[test]
fn kernel_thread_stopped_by_a_debugger_keeps_its_slot() {
    const STOPS: u64 = 10;
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let mut stopped = Stopped::start("kernel_thread_stopped_by_a_debugger_keeps_its_slot");
    let before = stopped.handoffs();
    let workers = stopped.workers();
    assert!(workers.len() >= PROCESSORS, "{workers:?}");
    for stop in 0..STOPS {
        // One of them, then the other, then all at the same time.
        let which: Vec<_> = match stop as usize % (PROCESSORS + 1) {
            PROCESSORS => workers.clone(),
            one => vec![workers[one]],
        };
        for thread in &which {
            if ptrace(libc::PTRACE_SEIZE, *thread) != 0 {
                eprintln!("no debugger here: {}", std::io::Error::last_os_error());
                return stopped.end();
            }
            assert_eq!(ptrace(libc::PTRACE_INTERRUPT, *thread), 0);
            await_change(*thread, libc::__WALL);
        }
        // The others look, and the monitor.
        std::thread::sleep(Duration::from_millis(20));
        which.iter().for_each(|thread| assert_eq!(ptrace(libc::PTRACE_DETACH, *thread), 0));
        stopped.handoffs();
    }
    let during = stopped.handoffs() - before;
    assert!(during <= PROCESSORS as u64, "{during} hand-offs in {STOPS} stops");
    stopped.end();
}
