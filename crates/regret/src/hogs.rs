//! Other programs on the machine: processes that compute for ever, each on a processor of its own.
//!
//! They are processes of their own, not threads of this one, for two reasons. The processor time of
//! this process is then that of the threads under test. And a lock that interrupts all running
//! threads of its process (an expedited `membarrier`) does not also interrupt the hogs.
//!
//! A hog is this program again, run as `stanchion hog PROCESSOR`. It writes one line when it
//! computes, and ends when its standard input does. The pipe closes when its `Hogs` is dropped.
//! It also closes when this process ends in any way, `SIGKILL` included. So no hog outlives a
//! study, on any system, without a signal.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use super::work::work;

/// The number of hogs of a named cell, on a machine with at least as many processors.
pub(crate) const HOGS: usize = 2;

/// Running hogs; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Hogs(Vec<Child>);

impl Hogs {
    /// Starts a hog on each of the first `number` of `processors` and waits until all compute.
    pub(crate) fn start(processors: &[usize], number: usize) -> Result<Self, String> {
        let mut hogs = Self(Vec::new());
        for processor in processors.iter().take(number) {
            hogs.0.push(start(*processor)?);
        }
        for hog in &mut hogs.0 {
            let mut said = String::new();
            let heard = hog.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut said));
            match heard {
                Some(Ok(bytes)) if bytes > 0 => {}
                _ => return Err("a processor hog ended before it had begun".to_owned()),
            }
        }
        Ok(hogs)
    }
}

impl Hogs {
    /// Returns the process numbers of the hogs.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            // The hog may have ended by Ctrl-C, which goes to all processes of a terminal. Then
            // there is nothing left to do.
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

fn start(processor: usize) -> Result<Child, String> {
    Command::new(this_program()?)
        .args(["hog", &processor.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start a processor hog: {error}"))
}

/// Returns the path of the running program's file. On Linux it is right even if the file has been
/// replaced since.
fn this_program() -> Result<PathBuf, String> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
        .map_err(|error| format!("cannot find this program's file to start a hog: {error}"))
}

/// Computes on `processor` until the standard input ends: the main function of a hog.
pub fn run(processor: usize) -> ExitCode {
    std::thread::spawn(move || {
        // If pinning is refused, the kernel chooses the processor, and the hog computes there.
        let _pinned = stanchion_machine::topology::pin(processor);
        println!("computing on {processor}");
        loop {
            work(1_000_000);
        }
    });
    let mut rest = Vec::new();
    // Nothing is ever written to it: this returns when the other end has gone.
    let _ = std::io::stdin().lock().read_to_end(&mut rest);
    ExitCode::SUCCESS
}
