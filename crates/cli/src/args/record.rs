//! The command lines of `record` and `stalls`.

use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const RECORD_HELP: &str = "\
Examples:
  stanchion record -- xz -T4 -k file
  stanchion record --output redis.json -- redis-server --io-threads 2
  stanchion record --lock random-walk -- ./program   the same with our locks in the place of its own
  stanchion record --orders -- ./program   also name deadlocks of pthread mutexes that could have been
  stanchion record --limit 1G --switches off -- ./program   keep more single waits; no switch records
  stanchion record --cost -- ./program   what recording costs it, in 30 pairs of runs
  stanchion record --pid 4711                        observe a process that runs, from outside

Works for programs that take their locks by pthread_mutex_lock of the GNU C library (those in C and C++ for the most part), for programs in Rust, and for \
whatever processes they start. Nothing needs to be rebuilt: a shim (the library of stanchion-preload) is loaded before the C library. Of the locks of \
Rust it sees the waits in the kernel, named after the function that wanted the lock, and no acquisition without such a wait. It does not see locks of Go. Waits for \
conditions, semaphores, joins and sleeps are printed in a table of their own. What is recorded is what has been counted when COMMAND ends; processes that \
outlive it are not waited for.

With --lock, normal mutexes that are private to a process are replaced, with the condition variables; recursive, error-checking, robust, \
priority-inheriting and shared ones stay. A thread that waits for a condition is then not woken by pthread_cancel, and a program that locks a normal mutex \
which it holds, to wait for another thread to unlock it, is ended with a message.

With --orders the shim also keeps, for each thread, which pthread mutexes and read-write locks it holds, and the orders in which it took them. Acquisitions of different threads that could block each other for ever are printed with their call paths, although they did not do so. Locks of Rust's standard library are not pthread mutexes: `stanchion patch` has those of lock_api.

With --pid nothing is loaded into the process: its files in /proc are read, it is not attached to and gets no signal. That shows for each thread how long it ran, waited for a processor and slept, in which system calls, and which threads waited for the same address. It shows no call paths and no names of locks. System calls can be read by the user that may trace the process; the report says if that was refused. It ends after --seconds, at Ctrl-C, or when the process ends, and with 0.

Single waits are kept too, up to --limit: when, how long, which thread, and which thread ended it. Of that thread the kernel's switch records tell for how long it ran, had no processor, or waited itself (where kernel.perf_event_paranoid is at most 2; the summary says which share of the waits that covers).

Where the threads wait while the program runs is printed by `stanchion stalls`, and at the signal SIGUSR1 to this command. With --stalls-after it is printed by itself when a lock does not come.

Exit codes: COMMAND's own (128 and the signal's number, if one ended it), and
  1    the recording could not be written, or a run of --cost failed
  2    wrong command line, no shim, or a COMMAND that cannot be recorded (statically linked, set-uid,
       for another C library); nothing was run
  126  COMMAND cannot be executed
  127  there is no such command";

pub(super) const STALLS_HELP: &str = "\
Examples:
  stanchion record -- ./program          on one terminal
  stanchion stalls $(pgrep program)      on another one: the threads of that process
  stanchion stalls $(pgrep stanchion)    those of all processes that are recorded
  kill -USR1 $(pgrep stanchion)          the same, on the terminal of `stanchion record`

Prints for each thread that waits the lock or the function, as `record` prints it at its end, and how long it has waited. Of the other threads it \
prints what /proc says of them. Each thread has written its wait into a table before it sleeps, so the program gets no signal and is not stopped. The \
locks of Rust store no owner: which thread holds them is not known. A program that was started without `record` is observed by `record --pid`.

Built with the packages of `stanchion patch` or with stanchion-checked, and started with STANCHION_ORDERS=FILE, a program also tells which thread holds \
which lock, with or without `record`. Then it is printed too whether that thread runs, waits for a processor or is blocked, and which threads want the lock.

Exit codes:
  0  printed
  1  the table could not be read
  2  wrong command line, or PID is neither a `stanchion record` nor a process that it records, nor one that records its locks";

#[derive(Debug, clap::Args)]
pub(crate) struct StallsOptions {
    /// The process of `stanchion record`, one that it records, or one that records its locks.
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7FFF_FFFF))]
    pub(crate) pid: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RecordOptions {
    /// Where the recording goes.
    #[arg(long, alias = "out", short, value_name = "FILE", default_value = "waits.json")]
    pub(crate) output: PathBuf,

    /// Replace the program's mutexes by ours with this policy.
    #[arg(long, value_name = "POLICY")]
    pub(crate) lock: Option<LockPolicy>,

    /// Also record in which orders threads take pthread mutexes and read-write locks, and name
    /// possible deadlocks. A lock and its release
    /// then cost some twenty nanoseconds more.
    #[arg(long, conflicts_with = "lock")]
    pub(crate) orders: bool,

    /// Measure what recording costs the program, by pairs of runs with and without it; write no
    /// recording. The output of the runs goes nowhere.
    #[arg(
        long,
        value_name = "PAIRS",
        num_args = 0..=1,
        default_missing_value = "30",
        require_equals = true,
        value_parser = clap::value_parser!(u32).range(2..=100_000),
        conflicts_with = "output",
    )]
    pub(crate) cost: Option<u32>,

    /// Print where the threads wait, as `stanchion stalls` does, whenever a wait for a lock has
    /// lasted for N seconds.
    #[arg(long, value_name = "N", conflicts_with = "cost",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) stalls_after: Option<u64>,

    /// The most that single waits may take in the recording, in bytes or with K, M or G. If there
    /// are more, a random part of them is kept; counts stay exact. 0 keeps none.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size,
        conflicts_with = "pid")]
    pub(crate) limit: u64,

    /// Have the kernel record when threads lose their processor. So it is known what the waker of a
    /// wait did meanwhile: it ran, was preempted, or waited in the kernel.
    #[arg(long, value_name = "WHEN", default_value = "auto", conflicts_with = "pid")]
    pub(crate) switches: Switches,

    /// The shim, in place of the one beside this command, in ../lib, or built by cargo.
    #[arg(long, value_name = "FILE")]
    pub(crate) shim: Option<PathBuf>,

    /// Observe this process in place of running a program.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7FFF_FFFF),
        conflicts_with_all = ["output", "lock", "orders", "shim", "cost", "stalls_after", "command"])]
    pub(crate) pid: Option<u32>,

    /// Observe it for this time at most.
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "command",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,

    /// The time from one reading of its threads to the next. It is longer where reading them would
    /// take more than a tenth of a processor.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "command",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) interval_ms: u64,

    /// Also write the observation to this file ("-" is standard output).
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) json: Option<PathBuf>,

    /// The program and its arguments.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

/// The most that `--limit` takes: as much as is read again.
const MOST: u64 = 1 << 30;

/// Reads a number of bytes with K, M or G behind it, or nothing.
fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    let size = number.ok_or("expected a number of bytes, such as 4096, 512K, 256M or 1G")?;
    let size = size.checked_mul(unit).filter(|&size| size <= MOST);
    size.ok_or_else(|| "a recording may have 1G at most".to_owned())
}

/// When switch records are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switches {
    /// Where the system allows it; for threads that wait very often, in windows.
    Auto,
    /// Never.
    Off,
}

/// A policy that the shim has. Not among them are those that need room or preparation which a lock
/// of another program cannot give.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LockPolicy {
    Adaptive,
    AlwaysBlock,
    AlwaysSpin,
    FixedSpin,
    FixedSpinHalf,
    LastThreeSamples,
    OptimalOnlineApproximation,
    RandomWalk,
    Randomized,
}

impl LockPolicy {
    /// As the shim knows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::AlwaysBlock => "always-block",
            Self::AlwaysSpin => "always-spin",
            Self::FixedSpin => "fixed-spin",
            Self::FixedSpinHalf => "fixed-spin-half",
            Self::LastThreeSamples => "last-three-samples",
            Self::OptimalOnlineApproximation => "optimal-online-approximation",
            Self::RandomWalk => "random-walk",
            Self::Randomized => "randomized",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("4096", 4_096), ("512K", 512 << 10), ("256m", 256 << 20), ("1G", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5G", "1T", "256 M", "99999999999999999999", "µ"] {
            assert!(size(wrong).unwrap_err().starts_with("expected a number of bytes"), "{wrong}");
        }
        for long in ["2G", "1073741825", "18446744073709551615K"] {
            assert_eq!(size(long), Err("a recording may have 1G at most".to_owned()), "{long}");
        }
    }
}
