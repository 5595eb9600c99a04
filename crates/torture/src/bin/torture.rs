//! `torture [LOCK | pool | barrier | gang | activations]… --seconds N`: see the library.
//!
//! The exit code is 1 if a subject has a fault, and 2 if the command line is wrong.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use torture::activations::ActivationsFault;
use torture::barrier::BarrierFault;
use torture::contest::Fault;
use torture::gang::GangFault;
use torture::locks::{Entry, LOCKS, named};
use torture::phase::{Phase, Torture};
use torture::pool::PoolFault;

/// Tortures locks with real threads, random stalls and too few processors.
#[derive(Parser)]
struct Arguments {
    /// Locks, `pool`, `barrier`, `gang` or `activations`; without any, all but those broken on
    /// purpose
    #[arg(value_name = "LOCK", value_parser = subject)]
    subjects: Vec<Subject>,
    /// Seconds for each lock
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = positive)]
    seconds: f64,
    /// Threads of the crowd; four for each processor if not given
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Seconds without an acquisition after which a lock counts as stuck
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = positive)]
    stuck_after: f64,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the names and end
    #[arg(long)]
    list: bool,
}

/// A subject of the torture.
#[derive(Clone, Copy)]
enum Subject {
    Lock(&'static Entry),
    Pool,
    Barrier,
    Gang,
    Activations,
}

/// The name of the thread pool.
const POOL: &str = "pool";
/// The name of all barriers together.
const BARRIER: &str = "barrier";
/// The name of the gangs.
const GANG: &str = "gang";
/// The name of the runtime of user-level threads.
const ACTIVATIONS: &str = "activations";

fn subject(name: &str) -> Result<Subject, String> {
    if name == POOL {
        return Ok(Subject::Pool);
    }
    if name == BARRIER {
        return Ok(Subject::Barrier);
    }
    if name == GANG {
        return Ok(Subject::Gang);
    }
    if name == ACTIVATIONS {
        return Ok(Subject::Activations);
    }
    let names = || LOCKS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let lock = named(name).map(Subject::Lock);
    lock.ok_or_else(|| {
        format!("no such lock; there are: {}, {POOL}, {BARRIER}, {GANG} and {ACTIVATIONS}", names())
    })
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number of seconds, above 0 and at most a million".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let torture = Torture {
        time: Duration::from_secs_f64(arguments.seconds),
        threads: arguments.threads.map(usize::from),
        stuck_after: Duration::from_secs_f64(arguments.stuck_after),
        seed: arguments.seed,
    };
    let all = || {
        let locks = LOCKS.iter().filter(|entry| !entry.busted || arguments.list);
        locks
            .map(Subject::Lock)
            .chain([Subject::Pool, Subject::Barrier, Subject::Gang, Subject::Activations])
            .collect()
    };
    let subjects = if arguments.subjects.is_empty() { all() } else { arguments.subjects };
    // A closed pipe ends the run without an error: the user wanted the text.
    let Ok(faults) = run(&subjects, &torture, arguments.list) else { return ExitCode::SUCCESS };
    // Threads that wait for ever may be left behind. They end when `main` returns.
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tortures the subjects, or lists them. Returns the number of faults.
fn run(subjects: &[Subject], torture: &Torture, list: bool) -> io::Result<usize> {
    let mut out = io::stdout().lock();
    let mut faults = 0;
    for subject in subjects {
        let entry = match subject {
            Subject::Lock(entry) => entry,
            Subject::Pool => {
                faults += pool(&mut out, torture, list)?;
                continue;
            }
            Subject::Barrier => {
                faults += barrier(&mut out, torture, list)?;
                continue;
            }
            Subject::Gang => {
                faults += gang(&mut out, torture, list)?;
                continue;
            }
            Subject::Activations => {
                faults += activations(&mut out, torture, list)?;
                continue;
            }
        };
        if list {
            writeln!(out, "{}", entry.name)?;
            continue;
        }
        for phase in Phase::ALL {
            write!(
                out,
                "{:22} {phase:14} {:>4} threads  ",
                entry.name,
                phase.plan(torture).threads
            )?;
            out.flush()?;
            match phase.run((entry.free)(), torture) {
                Ok(figures) => writeln!(out, "{figures}")?,
                Err(fault) => {
                    faults += 1;
                    writeln!(out, "FAULT: {}: {fault}", kind(&fault))?;
                    // The threads of this phase may still run. Another phase beside them would
                    // measure nothing.
                    break;
                }
            }
        }
    }
    Ok(faults)
}

fn pool(out: &mut impl Write, torture: &Torture, list: bool) -> io::Result<usize> {
    if list {
        writeln!(out, "{POOL}")?;
        return Ok(0);
    }
    write!(out, "{POOL:22} {:14} ", "crowd")?;
    out.flush()?;
    // The tasks panic on purpose.
    std::panic::set_hook(Box::new(|_| ()));
    let tortured = torture::pool::torment(torture);
    drop(std::panic::take_hook());
    match tortured {
        Ok(figures) => writeln!(out, "{figures}")?,
        Err(fault) => {
            let kind = match fault {
                PoolFault::NoProgress(..) => "progress",
                PoolFault::Books { .. } => "books",
            };
            writeln!(out, "FAULT: {kind}: {fault}")?;
            return Ok(1);
        }
    }
    Ok(0)
}

fn barrier(out: &mut impl Write, torture: &Torture, list: bool) -> io::Result<usize> {
    if list {
        writeln!(out, "{BARRIER}")?;
        return Ok(0);
    }
    write!(out, "{BARRIER:22} {:14} ", "crowd")?;
    out.flush()?;
    match torture::barrier::torment(torture) {
        Ok(figures) => writeln!(out, "{figures}")?,
        Err(fault) => {
            let kind = match fault {
                BarrierFault::NoProgress(..) => "progress",
                BarrierFault::Split { .. } => "split",
                BarrierFault::Panicked(_) => "panic",
            };
            writeln!(out, "FAULT: {kind}: {fault}")?;
            return Ok(1);
        }
    }
    Ok(0)
}

fn gang(out: &mut impl Write, torture: &Torture, list: bool) -> io::Result<usize> {
    if list {
        writeln!(out, "{GANG}")?;
        return Ok(0);
    }
    write!(out, "{GANG:22} {:14} ", "by signal")?;
    out.flush()?;
    // Members panic on purpose.
    std::panic::set_hook(Box::new(|_| ()));
    let tortured = torture::gang::torment(torture);
    drop(std::panic::take_hook());
    match tortured {
        Ok(figures) => writeln!(out, "{figures}")?,
        Err(fault) => {
            let kind = match fault {
                GangFault::NoProgress(_) => "progress",
                GangFault::Books { .. } => "books",
            };
            writeln!(out, "FAULT: {kind}: {fault}")?;
            return Ok(1);
        }
    }
    Ok(0)
}

fn activations(out: &mut impl Write, torture: &Torture, list: bool) -> io::Result<usize> {
    if list {
        writeln!(out, "{ACTIVATIONS}")?;
        return Ok(0);
    }
    write!(out, "{ACTIVATIONS:22} {:14} ", "crowd")?;
    out.flush()?;
    // The threads panic on purpose.
    std::panic::set_hook(Box::new(|_| ()));
    let tortured = torture::activations::torment(torture);
    drop(std::panic::take_hook());
    match tortured {
        Ok(figures) => writeln!(out, "{figures}")?,
        Err(fault) => {
            let kind = match fault {
                ActivationsFault::NoProgress(..) => "progress",
                ActivationsFault::Books { .. } => "books",
            };
            writeln!(out, "FAULT: {kind}: {fault}")?;
            return Ok(1);
        }
    }
    Ok(0)
}

/// Returns one word for the fault, by which the output can be searched.
fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::TwoHolders { .. } => "exclusion",
        Fault::NoProgress(_) => "progress",
        Fault::Starved { .. } => "starvation",
        Fault::Panicked(_) => "panic",
    }
}
