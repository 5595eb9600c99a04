//! Null Fork and Signal-Wait on this computer, at four levels: the operations of the paper's table
//! IV.
//!
//! | operation | what is timed |
//! | --- | --- |
//! | Null Fork | making a thread that does nothing, and waiting for its end |
//! | Signal-Wait | two threads take turns: each signals the other and waits; half of a turn |
//!
//! All run on one processor, as in the paper. A process signals through a pipe, since it has no
//! better way. Threads signal through a pipe too where a signal is to go through the kernel. The
//! operations of user-level threads among themselves are in `stanchion_study_programs::sa92`.

use stanchion_activations::{Runtime, spawn};

use stanchion_study::context::Stop;
use stanchion_study_programs::sa92::each;

/// Null Fork of a kernel thread.
pub(super) fn kernel_fork(times: u32) -> f64 {
    each(times, || {
        for _ in 0..times {
            let _ = std::thread::spawn(|| ()).join();
        }
    })
}

/// Signal-Wait of kernel threads.
pub(super) fn kernel_signal(times: u32) -> f64 {
    let first = std::thread::current();
    let turn = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let theirs = std::sync::Arc::clone(&turn);
    // Acquire: pairs with the Release of `pass`, so that a turn sees the writes of the one before.
    let wait = |turn: &std::sync::atomic::AtomicBool, mine: bool| {
        while turn.load(std::sync::atomic::Ordering::Acquire) != mine {
            std::thread::park();
        }
    };
    let pass = |turn: &std::sync::atomic::AtomicBool, to: bool, other: &std::thread::Thread| {
        // Release: pairs with the Acquire of `wait`.
        turn.store(to, std::sync::atomic::Ordering::Release);
        other.unpark();
    };
    let second = std::thread::spawn(move || {
        for _ in 0..times {
            wait(&theirs, true);
            pass(&theirs, false, &first);
        }
    });
    let nanos = each(2 * times, || {
        for _ in 0..times {
            pass(&turn, true, second.thread());
            wait(&turn, false);
        }
    });
    let _ = second.join();
    nanos
}

/// Signal-Wait of kernel threads through pipes.
pub(super) fn kernel_pipes(times: u32) -> Result<f64, Stop> {
    let (here, there) = pipes::Ends::pair()?;
    let second = std::thread::spawn(move || (0..times).all(|_| there.wait() && there.signal()));
    let mut well = true;
    let nanos = each(2 * times, || well = (0..times).all(|_| here.signal() && here.wait()));
    drop(here);
    told(well && second.join().unwrap_or(false), nanos)
}

/// Measures Signal-Wait of user-level threads through pipes. Each waits in the kernel, and does not
/// tell the runtime.
pub(super) fn user_pipes(runtime: &Runtime, times: u32) -> Result<f64, Stop> {
    let (here, there) = pipes::Ends::pair()?;
    let (nanos, well) = runtime.run(move || {
        let second = spawn(move || (0..times).all(|_| there.wait() && there.signal()));
        let mut well = true;
        let nanos = each(2 * times, || well = (0..times).all(|_| here.signal() && here.wait()));
        drop(here);
        (nanos, well && second.join().unwrap_or(false))
    });
    told(well, nanos)
}

fn told(well: bool, nanos: f64) -> Result<f64, Stop> {
    if well { Ok(nanos) } else { Err(Stop::Failed("a pipe broke".to_owned())) }
}

/// Null Fork of a process.
#[cfg(unix)]
pub(super) fn process_fork(times: u32) -> Result<f64, Stop> {
    let mut well = true;
    let nanos = each(times, || {
        well = (0..times).all(|_| processes::child(|| ()).is_some_and(processes::ended))
    });
    if well { Ok(nanos) } else { Err(Stop::Failed("no process could be made".to_owned())) }
}

/// Measures Signal-Wait of processes, through pipes. Returns an error if the other process ends
/// before its time. It ends after [`processes::SECONDS`] at the latest.
#[cfg(unix)]
pub(super) fn process_signal(times: u32) -> Result<f64, Stop> {
    let (child, here) = signaller(move |there| (0..times).all(|_| there.wait() && there.signal()))?;
    let mut well = true;
    let nanos = each(2 * times, || well = (0..times).all(|_| here.signal() && here.wait()));
    drop(here);
    told(processes::ended(child) && well, nanos)
}

/// Starts a process that calls `work` with its ends of two pipes. Returns the process and our ends.
/// Neither process keeps the other's ends open. So if one has ended, the other reads the end of the
/// pipe and does not wait for it.
#[cfg(unix)]
fn signaller(work: impl FnOnce(&pipes::Ends) -> bool) -> Result<(libc::pid_t, pipes::Ends), Stop> {
    let (here, there) = pipes::Ends::pair()?;
    let mut here = Some(here);
    let theirs = &mut here;
    let child = processes::child(move || {
        processes::end_in_time();
        drop(theirs.take());
        work(&there);
    });
    child.zip(here).ok_or_else(|| Stop::Failed("no process could be made".to_owned()))
}

#[cfg(unix)]
mod processes {
    /// The longest life of a process that signals.
    pub(super) const SECONDS: u32 = 60;

    /// Makes the calling process end in [`SECONDS`] at the latest. May be called in a child.
    pub(super) fn end_in_time() {
        // SAFETY: the call takes a number. The signal ends the process, since its default action
        // is unchanged.
        unsafe { libc::alarm(SECONDS) };
    }

    /// Makes a process that calls `work` and ends. Returns its number. `work` may do what a signal
    /// handler may.
    pub(super) fn child(work: impl FnOnce()) -> Option<libc::pid_t> {
        // SAFETY: the child does what is safe in a signal handler and then leaves without
        // unwinding.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                work();
                // SAFETY: it ends this process and nothing else.
                unsafe { libc::_exit(0) }
            }
            child => Some(child),
        }
    }

    /// Waits for the end of `child`. Returns whether it ended well.
    pub(super) fn ended(child: libc::pid_t) -> bool {
        let mut status = 0;
        // SAFETY: the child is ours, and the status has a place.
        unsafe { libc::waitpid(child, &raw mut status, 0) == child && status == 0 }
    }
}

mod pipes {
    use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

    use super::Stop;

    /// One process's ends of the two pipes between two processes.
    pub(super) struct Ends {
        /// The end that this process reads.
        from: PipeReader,
        /// The end that this process writes.
        to: PipeWriter,
    }

    impl Ends {
        pub(super) fn pair() -> Result<(Self, Self), Stop> {
            let failed = |error| Stop::Failed(format!("a pipe: {error}"));
            let (first, second) = (pipe().map_err(failed)?, pipe().map_err(failed)?);
            Ok((Self { from: first.0, to: second.1 }, Self { from: second.0, to: first.1 }))
        }

        pub(super) fn signal(&self) -> bool {
            (&self.to).write_all(b".").is_ok()
        }

        pub(super) fn wait(&self) -> bool {
            (&self.from).read_exact(&mut [0]).is_ok()
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_too_early_is_not_waited_for() {
        let (child, here) = signaller(|there| there.wait()).unwrap();
        assert!(here.signal() && !here.wait(), "it has ended instead of signalling");
        assert!(processes::ended(child));
    }
}
