//! `stanchion record --pid`: observes a process that runs already, from outside.
//!
//! It reads files of `/proc/PID/task` in rounds. It writes nothing into the process, attaches no
//! debugger to it and sends it no signal. So it sees how long threads run, wait for a processor and
//! sleep, and in which system calls. It sees no call paths and no names of locks.

pub(crate) mod calls;
mod observe;
pub(crate) mod procfs;
mod report;
mod text;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stanchion_study::interrupt::Interrupt;
use stanchion_study::output::Output;

use crate::args::RecordOptions;
use observe::Observation;
use procfs::Process;
use report::{End, Frame, Report};

/// The folder of processes.
pub(crate) const PROC: &str = "/proc";
/// The time between two rounds is at least so often the time that a round takes.
const REST: u32 = 9;
/// The longest sleep between two looks for an interrupt.
const NAP: Duration = Duration::from_millis(50);

/// Why a process was not observed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("--pid needs the files of Linux in /proc: this is {0}")]
    System(&'static str),

    #[error(
        "there is no process {0}; `ps -e` lists those that run (where /proc hides processes of others, as their user or root)"
    )]
    NoProcess(u32),

    #[error("{thread} is a thread of the process {process}: give --pid {process}")]
    IsThread { thread: u32, process: u32 },

    #[error(
        "the process {0} is this command itself, which would observe its own reading: name another process"
    )]
    Ourselves(u32),

    #[error(
        "the process {0} has ended and waits for its parent to ask for its result (a zombie): it has no threads"
    )]
    Zombie(u32),

    #[error("{0} is a thread of the kernel, which makes no system calls: name a process")]
    Kernel(u32),

    #[error(
        "cannot read /proc/{process}/task: {source}; run this command as the user of the process or as root"
    )]
    Unreadable { process: u32, source: std::io::Error },

    #[error("cannot listen for Ctrl-C: {0}")]
    Listen(String),

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },

    #[error("cannot express the observation as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Refusal {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Listen(_) | Self::Write { .. } | Self::Json(_) => 1,
            _ => 2,
        }
    }
}

/// Observes the process `id` and prints what it did.
pub(crate) fn run(id: u32, options: &RecordOptions) -> Result<(), Refusal> {
    let (process, began) = find(Path::new(PROC), id)?;
    let name = process.name().unwrap_or_default();
    let has_our_calls = process.has_our_calls();
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    let file = options.json.as_deref().filter(|_| !to_stdout);
    let interrupt = Interrupt::listen().map_err(|error| Refusal::Listen(error.to_string()))?;
    if let Some(path) = file {
        // The file is wanted in some seconds: a wrong path is told now.
        write(path, "")?;
    }
    let interval = Duration::from_millis(options.interval_ms);
    let time = Duration::from_secs(options.seconds);

    let mut seen = Observation::new(process, began);
    let (start, cost) = (Instant::now(), processor_time());
    let mut next = start;
    let end = loop {
        let is_over = start.elapsed() >= time;
        let round = Instant::now();
        if seen.round(is_over || interrupt.asked()).is_err() {
            break End::Process;
        }
        if is_over {
            break End::Time;
        }
        // Rounds that were missed are left out.
        next = (next + interval).max(Instant::now() + round.elapsed() * REST);
        while !interrupt.asked() && Instant::now() < next {
            std::thread::sleep(NAP.min(next.saturating_duration_since(Instant::now())));
        }
        if interrupt.asked() {
            let _ = seen.round(true);
            break End::Interrupt;
        }
    };
    let elapsed = start.elapsed();
    let frame = Frame {
        process: id,
        name,
        elapsed,
        interval,
        end,
        observer: processor_time().saturating_sub(cost),
        has_our_calls,
    };
    let report = Report::new(frame, seen);
    let output = if to_stdout { Output::Stderr } else { Output::Stdout };
    for line in text::lines(&report) {
        output.line(format_args!("{line}"));
    }
    if options.json.is_some() {
        let json = serde_json::to_string_pretty(&report)?;
        match file {
            Some(path) => write(path, &(json + "\n"))?,
            None => Output::Stdout.line(format_args!("{json}")),
        }
    }
    Ok(())
}

fn write(path: &Path, contents: &str) -> Result<(), Refusal> {
    std::fs::write(path, contents)
        .map_err(|source| Refusal::Write { path: path.to_owned(), source })
}

/// Finds a process that can be observed, and the time at which its first thread began.
fn find(root: &Path, id: u32) -> Result<(Process, u64), Refusal> {
    if !cfg!(target_os = "linux") {
        return Err(Refusal::System(std::env::consts::OS));
    }
    if id == std::process::id() {
        return Err(Refusal::Ourselves(id));
    }
    let process = Process::at(root, id);
    let group = process.group().ok_or(Refusal::NoProcess(id))?;
    if group == std::process::id() {
        return Err(Refusal::Ourselves(group));
    }
    if group != id {
        return Err(Refusal::IsThread { thread: id, process: group });
    }
    let threads =
        process.threads().map_err(|source| Refusal::Unreadable { process: id, source })?;
    let stat = process.stat(id).map_err(|_| Refusal::NoProcess(id))?;
    if stat.of_kernel {
        return Err(Refusal::Kernel(id));
    }
    // The first thread may end before the others.
    if matches!(stat.state, 'Z' | 'X') && threads.len() <= 1 {
        return Err(Refusal::Zombie(id));
    }
    Ok((process, stat.began))
}

/// Returns the processor time that this command has used.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
