//! The process that steps the victim, and watches the others.

use core::ptr;
use core::sync::atomic::Ordering;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::breakpoint::{self, Breakpoint};
use crate::child::{self, Board, OTHERS, Operation, sleep_on, stage, wake};
use crate::processors::Shared;
use crate::structures::Subject;

/// An operation that has not ended after so many instructions does not end while it is stepped.
const ENDLESS: usize = 400_000;

/// The processor time for one operation after which a thread is stuck: some 100,000 times as much
/// as the operation takes.
const SPINNING: Duration = Duration::from_millis(60);

/// The time that a thread sleeps in one operation before it is stuck, whatever wakes it meanwhile.
/// No structure that needs no lock ever sleeps.
const SLEEPING: Duration = Duration::from_millis(400);

/// The result for one operation.
pub(crate) struct Found {
    /// The number of its instructions, undisturbed.
    pub(crate) instructions: usize,
    /// After how many of them the victim was stopped.
    pub(crate) stops: usize,
    /// The first instruction after which a thread waited for it.
    pub(crate) waits: Option<usize>,
}

/// Why nothing was found.
#[derive(Debug)]
pub(crate) enum Refused {
    /// This system does not let a process trace its child, or step it.
    Forbidden(io::Error),
    /// The victim does not get through its operation when it is stepped.
    Endless,
    /// Something else.
    Failed(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A child, which is killed at the latest when this is dropped.
struct Traced {
    /// The child.
    process: libc::pid_t,
    /// The page that both have.
    board: &'static Board,
}

impl Drop for Traced {
    fn drop(&mut self) {
        // SAFETY: it is our child, which has not been waited for to its end, so the number is still
        // its own.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
        loop {
            let status = self.wait();
            if !matches!(status, Ok(Status::Stopped(_))) {
                return;
            }
        }
    }
}

enum Status {
    /// By this signal, which has not arrived.
    Stopped(libc::c_int),
    Ended,
}

impl Traced {
    fn fork(
        processors: &Shared,
        make: fn() -> Arc<dyn Subject>,
        filled: u64,
        operation: Operation,
    ) -> Result<Self, Refused> {
        let board = Board::new()?;
        io::stdout().flush()?;
        // SAFETY: this process has one thread, so the child's memory is in order.
        let process = unsafe { libc::fork() };
        match process {
            -1 => Err(io::Error::last_os_error().into()),
            0 => child::main(board, processors, make, filled, operation),
            _ => {
                processors.one.bind();
                let traced = Self { process, board };
                traced.stops()?;
                traced.ask(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize)?;
                Ok(traced)
            }
        }
    }

    #[allow(clippy::unnecessary_cast)] // The type of a request depends on the C library.
    fn ask(&self, request: libc::c_uint, data: usize) -> Result<(), Refused> {
        let nothing = ptr::null_mut::<u8>();
        // SAFETY: these requests touch no memory of this process.
        let result = unsafe { libc::ptrace(request as _, self.process, nothing, data) };
        if result == 0 { Ok(()) } else { Err(Refused::Forbidden(io::Error::last_os_error())) }
    }

    fn wait(&self) -> io::Result<Status> {
        let mut status = 0;
        // SAFETY: the status is ours.
        let result = unsafe { libc::waitpid(self.process, &raw mut status, libc::__WALL) };
        if result != self.process {
            return Err(io::Error::last_os_error());
        }
        Ok(if libc::WIFSTOPPED(status) {
            Status::Stopped(libc::WSTOPSIG(status))
        } else {
            Status::Ended
        })
    }

    /// Waits for its next stop.
    fn stops(&self) -> Result<(), Refused> {
        match self.wait()? {
            Status::Stopped(libc::SIGTRAP) => Ok(()),
            Status::Stopped(signal) => {
                Err(Refused::Failed(format!("the victim got signal {signal}")))
            }
            Status::Ended => match self.board.refused.load(Ordering::SeqCst) {
                0 => Err(Refused::Failed("the child has ended: it has panicked".to_owned())),
                error => Err(Refused::Forbidden(io::Error::from_raw_os_error(error))),
            },
        }
    }

    /// Lets it run to its next own stop.
    fn goes_on(&self) -> Result<(), Refused> {
        self.ask(libc::PTRACE_CONT, 0)?;
        self.stops()
    }

    fn has_ended(&self) -> bool {
        self.board.stage.load(Ordering::SeqCst) == stage::AFTER
    }

    /// Runs an instruction.
    fn step(&self) -> Result<(), Refused> {
        self.ask(libc::PTRACE_SINGLESTEP, 0)?;
        self.stops()
    }

    /// Steps to the end of the operation and on to the stop after it: where its instructions lie,
    /// in the order in which they were done.
    fn trace(&self) -> Result<Vec<u64>, Refused> {
        let mut trace = Vec::new();
        while !self.has_ended() {
            if trace.len() == ENDLESS {
                return Err(Refused::Endless);
            }
            trace.push(breakpoint::counter(self.process)?);
            self.step()?;
        }
        self.goes_on()?;
        Ok(trace)
    }

    /// Runs the first `position` instructions of the operation; `false` if it has taken
    /// another way this time, has ended and stands at the stop after it.
    fn run_to(&self, trace: &[u64], position: usize) -> Result<bool, Refused> {
        let at = trace[position];
        let times = trace[..position].iter().filter(|other| **other == at).count();
        // A breakpoint is a handful of requests, a step is one.
        if times * 6 + 6 > position || breakpoint::counter(self.process)? != trace[0] || at == trace[0]
        {
            for _ in 0..position {
                if self.has_ended() {
                    self.goes_on()?;
                    return Ok(false);
                }
                self.step()?;
            }
            return Ok(true);
        }
        for time in 0..=times {
            let breakpoint = Breakpoint::put(self.process, at)?;
            self.goes_on()?;
            if !breakpoint.is_hit()? {
                return Ok(false);
            }
            drop(breakpoint);
            if time < times {
                self.step()?;
            }
        }
        Ok(true)
    }

    /// Lets the other threads do their round. Returns whether they have ended it while the victim
    /// stood.
    fn others_run(&self) -> Result<bool, Refused> {
        let board = self.board;
        board.ended.store(0, Ordering::SeqCst);
        board.go.fetch_add(1, Ordering::SeqCst);
        wake(&board.go);
        let all = u64::from(board.go.load(Ordering::SeqCst)) * child::EACH;
        let mut watches = [(); OTHERS].map(|()| Watch::default());
        loop {
            let ended = board.ended.load(Ordering::SeqCst);
            if ended as usize == OTHERS {
                // No thread may run while there are breakpoints.
                for thread in &board.threads {
                    while !sleeps(self.process, thread.load(Ordering::SeqCst))? {
                        std::thread::yield_now();
                    }
                }
                return Ok(true);
            }
            sleep_on(&board.ended, ended, Duration::from_millis(5));
            for (index, watch) in watches.iter_mut().enumerate() {
                let done = board.done[index].load(Ordering::SeqCst);
                let thread = board.threads[index].load(Ordering::SeqCst);
                if done < all && watch.is_stuck(self.process, thread, done)? {
                    return Ok(false);
                }
            }
        }
    }

    /// The victim stands after its operation: the others have their round now, and it makes another
    /// structure.
    fn next_round(&self) -> Result<(), Refused> {
        if !self.others_run()? {
            return Err(Refused::Failed("the others wait although no thread was stopped".to_owned()));
        }
        self.goes_on()
    }
}

/// The resources that one of the other threads has used for the operation that it is in.
#[derive(Default)]
struct Watch {
    /// The number of operations that it had done at the last look.
    done: u64,
    /// The beginning of this operation, in real and in processor time.
    since: Option<(Instant, Duration)>,
    /// The number of looks during this operation.
    looks: u32,
    /// The number of looks at which it slept.
    asleep: u32,
}

impl Watch {
    fn is_stuck(
        &mut self,
        process: libc::pid_t,
        thread: libc::pid_t,
        done: u64,
    ) -> io::Result<bool> {
        let (asleep, used) = (sleeps(process, thread)?, used(process, thread)?);
        let (since, before) = match self.since {
            Some(since) if self.done == done => since,
            _ => {
                *self = Self { done, since: Some((Instant::now(), used)), looks: 0, asleep: 0 };
                return Ok(false);
            }
        };
        self.looks += 1;
        self.asleep += u32::from(asleep);
        let sleeps = since.elapsed() >= SLEEPING && self.asleep * 10 >= self.looks * 9;
        Ok(sleeps || used.saturating_sub(before) >= SPINNING)
    }
}

/// Returns whether a thread sleeps.
fn sleeps(process: libc::pid_t, thread: libc::pid_t) -> io::Result<bool> {
    let stat = about(process, thread, "stat")?;
    Ok(stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
}

/// Returns the processor time of a thread.
fn used(process: libc::pid_t, thread: libc::pid_t) -> io::Result<Duration> {
    let schedule = about(process, thread, "schedstat")?;
    let used = schedule.split(' ').next().and_then(|nanos| nanos.parse().ok());
    used.map(Duration::from_nanos)
        .ok_or_else(|| io::Error::other("schedstat of the kernel has another form"))
}

/// Returns what the kernel says of a thread in this file.
fn about(process: libc::pid_t, thread: libc::pid_t, file: &str) -> io::Result<String> {
    let mut file = File::open(format!("/proc/{process}/task/{thread}/{file}"))?;
    // The kernel tells no size. With room for all, it is asked twice.
    let mut said = String::with_capacity(1024);
    file.read_to_string(&mut said)?;
    Ok(said)
}

/// Stops the victim in `operation` on a structure with `filled` values, again and again on a new
/// one, after one instruction after the other. Ends when a thread waits for it or the operation has
/// ended.
pub(crate) fn search(
    processors: &Shared,
    make: fn() -> Arc<dyn Subject>,
    filled: u64,
    operation: Operation,
    limit: usize,
) -> Result<Found, Refused> {
    let traced = Traced::fork(processors, make, filled, operation)?;
    // The first round touches the memory that is made on first use. The second round is repeated.
    traced.goes_on()?;
    traced.next_round()?;
    let trace = traced.trace()?;
    traced.next_round()?;
    let mut found = Found { instructions: trace.len(), stops: 0, waits: None };
    for position in (0..trace.len()).step_by(trace.len().div_ceil(limit).max(1)) {
        if !traced.run_to(&trace, position)? {
            traced.next_round()?;
            continue;
        }
        found.stops += 1;
        if !traced.others_run()? {
            found.waits = Some(position);
            break;
        }
        // To the end of the operation, to the beginning of the next.
        traced.goes_on()?;
        traced.goes_on()?;
    }
    Ok(found)
}
