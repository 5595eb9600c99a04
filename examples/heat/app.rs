//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::picture::image;
use super::plate::{Plate, Warm, alone, warm};
use super::report::{Report, Row};
use crate::picture::{self, Unwritable};
use clap::{Parser, ValueEnum, value_parser};
use stanchion_gang::{GangExecutor, Switching};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Warms plates, each by a gang of threads that meet in every step, or one by the ranks of an MPI
/// job.
///
/// A cell moves towards the mean of its four neighbours. The end does not depend on the number of
/// members or gangs, to the last bit.
#[derive(Debug, Parser)]
#[command(
    name = "heat",
    version,
    after_help = "Exit code 0: done; 1: --check came to something else, or a gang did not end well; 2: the arguments are no good, the gangs cannot be started, or the picture cannot be written."
)]
struct Arguments {
    /// Plates, each with a gang of its own. They take turns if there are not enough virtual
    /// processors.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=64), conflicts_with = "mpi")]
    gangs: u16,

    /// Members of each gang. By default one for each virtual processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = value_parser!(u16).range(1..=1024), conflicts_with = "mpi")]
    members: Option<u16>,

    /// Virtual processors: threads that run at the same time. By default one for each processor, or
    /// as many as a gang has members.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = value_parser!(u16).range(1..=1024), conflicts_with = "mpi")]
    seats: Option<u16>,

    /// Cells from side to side of a plate.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 128, value_parser = value_parser!(u32).range(1..=16_384))]
    side: u32,

    /// Steps.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 2_000, value_parser = crate::at_least_one)]
    steps: u64,

    /// The way in which the gangs take turns.
    #[arg(long, value_name = "HOW", default_value = "cooperative", conflicts_with = "mpi")]
    switching: How,

    /// Milliseconds of a turn.
    #[arg(long, allow_negative_numbers = true, value_name = "MS", default_value_t = 10, value_parser = value_parser!(u64).range(1..=60_000), conflicts_with = "mpi")]
    quantum: u64,

    /// Be a rank of an MPI job: its ranks are the members of one gang. Started by `mpirun`, in a
    /// build with the feature `mpi`.
    #[arg(long)]
    mpi: bool,

    /// Writes the first plate as it is at the end to this PNG file.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// Also warms each plate on one thread without a gang, and compares.
    #[arg(long)]
    check: bool,
}

/// [`Switching`] as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// Members leave their virtual processors where they meet.
    Cooperative,
    /// Members are stopped by a signal.
    Signal,
    /// Members of the gang in turn have the higher priority; needs the right to real-time
    /// priorities.
    Priority,
}

impl From<How> for Switching {
    fn from(how: How) -> Self {
        match how {
            How::Cooperative => Self::Cooperative,
            How::Signal => Self::Signal,
            How::Priority => Self::Priority,
        }
    }
}

/// An error, and the exit code for it.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Ended(String),
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
}

impl Stopped {
    fn code(&self) -> u8 {
        if matches!(self, Self::Ended(_)) { 1 } else { 2 }
    }
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let done = if arguments.mpi { as_rank(&arguments, out) } else { as_gangs(&arguments, out) };
    match done {
        Ok(None) => 0,
        Ok(Some(wrong)) => {
            let _ = writeln!(
                err,
                "heat: {wrong}: the gang or the program is wrong; please report it with this command line"
            );
            1
        }
        Err(stopped) => {
            let _ = writeln!(err, "heat: {stopped}");
            stopped.code()
        }
    }
}

fn plate(arguments: &Arguments, number: usize) -> Plate {
    Plate::new(arguments.side as usize, arguments.steps, number)
}

/// One gang after the other is started; they take turns.
fn as_gangs(arguments: &Arguments, out: &mut dyn Write) -> Result<Option<String>, Stopped> {
    let processors = available_parallelism().map_or(1, usize::from);
    let seats = arguments.seats.or(arguments.members).map_or(processors, usize::from);
    let seats = if arguments.seats.is_none() { seats.max(processors) } else { seats };
    let members = arguments.members.map_or(seats, usize::from);
    let executor = GangExecutor::builder()
        .processors(seats)
        .quantum(Duration::from_millis(arguments.quantum))
        .switching(arguments.switching.into())
        .build()
        .map_err(|refused| Stopped::Refused(refused.to_string()))?;
    let began = Instant::now();
    let mut gangs = Vec::new();
    for number in 0..usize::from(arguments.gangs) {
        let plate = plate(arguments, number);
        let gang = executor
            .spawn(members, move |member| {
                let warm = warm(member, &plate)?;
                Ok(warm.map(|warm| (warm, began.elapsed())))
            })
            .map_err(|refused| Stopped::Refused(refused.to_string()))?;
        gangs.push((plate, gang));
    }
    let mut rows = Vec::new();
    for (plate, gang) in gangs {
        let ended = gang.join().map_err(|error| Stopped::Ended(error.to_string()))?;
        let whole = ended.into_iter().flatten().next();
        let (warm, elapsed) = whole.expect("member 0 has gathered the plate");
        rows.push(Row { plate, warm, elapsed });
    }
    let how = format!(
        "{} of {members} on {seats} virtual processors, {} switching, quantum {} ms",
        if rows.len() == 1 { "1 gang".to_owned() } else { format!("{} gangs", rows.len()) },
        executor.switching(),
        arguments.quantum
    );
    finish(arguments, &how, &rows, Some(executor.metrics().to_string()), out)
}

/// This process is one member, and the one with number 0 tells.
#[cfg(feature = "mpi")]
fn as_rank(arguments: &Arguments, out: &mut dyn Write) -> Result<Option<String>, Stopped> {
    let plate = plate(arguments, 0);
    let began = Instant::now();
    let ended = stanchion_gang::mpi::run(|member| Ok((warm(member, &plate)?, member.len())));
    let (warm, ranks) = ended.map_err(|error| Stopped::Refused(error.to_string()))?;
    let Some(warm) = warm else { return Ok(None) };
    let rows = [Row { plate, warm, elapsed: began.elapsed() }];
    finish(arguments, &format!("{ranks} ranks"), &rows, None, out)
}

#[cfg(not(feature = "mpi"))]
fn as_rank(_: &Arguments, _: &mut dyn Write) -> Result<Option<String>, Stopped> {
    let mend = "build it with `--features mpi`, for which Open MPI and libclang must be installed";
    Err(Stopped::Refused(format!("--mpi: this program was built without MPI: {mend}")))
}

/// Writes the report and the picture. Returns the fault, if there is one.
fn finish(
    arguments: &Arguments,
    how: &str,
    rows: &[Row],
    metrics: Option<String>,
    out: &mut dyn Write,
) -> Result<Option<String>, Stopped> {
    let alone: Vec<Warm> = match arguments.check {
        true => rows.iter().map(|row| alone(&row.plate)).collect(),
        false => Vec::new(),
    };
    let picture = arguments.picture.as_deref();
    if let (Some(path), Some(first)) = (picture, rows.first()) {
        draw(path, first)?;
    }
    let report = Report { how, rows, alone: &alone, metrics: metrics.as_deref(), picture };
    crate::report::end("heat", report.write(out), out, &mut std::io::sink());
    Ok(wrong(rows, &alone))
}

fn draw(path: &Path, row: &Row) -> Result<(), Unwritable> {
    picture::write(path, (row.plate.side, row.plate.side), &image(&row.warm.cells))
}

/// The first plate that came out differently.
pub fn wrong(rows: &[Row], alone: &[Warm]) -> Option<String> {
    let sums = rows.iter().map(|row| row.warm.checksum()).zip(alone.iter().map(Warm::checksum));
    let (number, (gang, alone)) = sums.enumerate().find(|(_, (gang, alone))| gang != alone)?;
    Some(format!("checksum {gang:016x} by gang {number}, but {alone:016x} by one thread alone"))
}
