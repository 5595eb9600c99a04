//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::picture::image;
use super::report::Report;
use crate::frames::Frames;
use crate::{Choice, Program, at_least_one, bar};
use clap::{Parser, value_parser};
use lock_api::RawMutex;
use stanchion_applications::galaxy::{
    self, HEIGHT, MAX_THREADS, Options, Refused, Run, STARS, Scene, WIDTH, sequential,
};
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Lets two galaxies pass each other, on several threads, with locks of your choice, and says how
/// long they waited.
///
/// The masses are two points; the stars around them have none. The checksum is over the positions
/// and velocities of all stars at the end, bit for bit; it depends on --stars, --steps, --seed and
/// --ratio, and on nothing else.
#[derive(Debug, Parser)]
#[command(
    name = "galaxy",
    version,
    after_help = "The masses are nearest each other after some 800 to 1,100 steps.\n\n\
        Exit code 0: done; 1: --check found another checksum, or the display is wrong; 2: the arguments or a file are no good, or a frame cannot be written."
)]
struct Arguments {
    /// Stars of both galaxies together.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=*STARS.end() as i64))]
    stars: u32,

    /// Steps.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1_500, value_parser = at_least_one)]
    steps: u64,

    /// Threads, at most 64.
    #[arg(long, allow_negative_numbers = true, value_name = "T", default_value_t = 2, value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: u16,

    /// Seed of the stars' first positions.
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// The second mass, 0 to 1; the first is 1.
    #[arg(long, allow_negative_numbers = true, value_name = "M", default_value_t = 0.5)]
    ratio: f64,

    /// Stars that a thread takes from the pool at once: the fewer, the more locking.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    chunk: u32,

    #[command(flatten)]
    lock: Choice,

    /// Leaves the threads to the system. Without it each stays on a processor of its own, if there
    /// are enough.
    #[arg(long)]
    no_pin: bool,

    /// Writes frame-00000.png and so on into this directory, and overwrites files of these names.
    #[arg(long, value_name = "DIR")]
    frames: Option<PathBuf>,

    /// Steps from frame to frame.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10, value_parser = at_least_one, requires = "frames")]
    every: u64,

    /// Compares the checksum with that of the sequential program.
    #[arg(long)]
    check: bool,

    /// Prints the waits for each lock, not for each kind.
    #[arg(long)]
    by_lock: bool,

    /// Prints how many waits took how long.
    #[arg(long)]
    histogram: bool,
}

struct Simulate<'a> {
    /// The options of the run.
    options: &'a Options,
    /// The number of steps from one frame to the next.
    every: u64,
    /// Called with the display.
    watch: &'a mut dyn FnMut(&Scene) -> ControlFlow<()>,
}

impl Program for Simulate<'_> {
    type Outcome = Result<Run, Refused>;

    fn run<L: RawMutex + Send + Sync + 'static>(self, make: &dyn Fn(&str) -> L) -> Self::Outcome {
        galaxy::run_with(self.options, make, self.every, self.watch)
    }
}

/// Does what `arguments` say and returns the exit code. With `progress`, a bar goes to the
/// terminal's standard error.
pub fn run(
    arguments: Vec<OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    progress: bool,
) -> u8 {
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match work(&arguments, out, err, progress) {
        Ok(code) => code,
        Err(refused) => {
            let _ = writeln!(err, "galaxy: {refused}");
            2
        }
    }
}

fn work(
    arguments: &Arguments,
    out: &mut dyn Write,
    err: &mut dyn Write,
    progress: bool,
) -> Result<u8, Box<dyn std::error::Error>> {
    let options = Options {
        stars: arguments.stars as usize,
        steps: arguments.steps,
        threads: arguments.threads.into(),
        seed: arguments.seed,
        ratio: arguments.ratio,
        chunk: arguments.chunk as usize,
        pinned: !arguments.no_pin,
        ..Options::default()
    };
    let locks = arguments.lock.open()?;
    let new = |directory| Frames::new(directory, (WIDTH, HEIGHT));
    let mut frames = arguments.frames.as_deref().map(new).transpose()?;
    let bar = bar(progress, Some(options.steps), "steps");
    // Without frames often enough for the bar.
    let every = if frames.is_some() { arguments.every } else { (options.steps / 100).max(1) };
    let every = if frames.is_some() || progress { every } else { 0 };
    let mut unwritten = None;
    let mut watch = |scene: &Scene| {
        bar.set_position(scene.step);
        match frames.as_mut().map_or(Ok(()), |frames| frames.write(&image(scene))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                unwritten = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let run = locks.run(Simulate { options: &options, every, watch: &mut watch })?;
    bar.finish_and_clear();
    if let Some(error) = unwritten {
        return Err(error.into());
    }
    let reference = if arguments.check { Some(sequential::run(&options)?) } else { None };
    let report = Report {
        lock: &arguments.lock.to_string(),
        options,
        run: &run,
        reference,
        frames: frames.as_ref().map(|frames| (frames.written(), frames.directory())),
        by_lock: arguments.by_lock,
        histogram: arguments.histogram,
    };
    crate::report::end("galaxy", report.write(out), out, err);
    let finished = locks.finish(out);
    let Some(what) = wrong(&run, reference) else {
        finished?;
        return Ok(0);
    };
    if let Err(refused) = finished {
        let _ = writeln!(err, "galaxy: {refused}");
    }
    let _ = writeln!(
        err,
        "galaxy: {what}: either {} does not exclude or the program is wrong; please report it with this command line",
        report.lock,
    );
    Ok(1)
}

/// Returns the fault of a run, if there is one.
pub fn wrong(run: &Run, reference: Option<sequential::Outcome>) -> Option<String> {
    if let Some(fault) = run.fault {
        return Some(fault.to_string());
    }
    let reference = reference.filter(|reference| reference.checksum != run.checksum)?;
    Some(format!("checksum {:016x}, but {:016x} sequentially", run.checksum, reference.checksum))
}
