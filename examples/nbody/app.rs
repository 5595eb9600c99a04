//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::copies::{self, Line};
use super::disk::{Miss, Reader};
use super::picture::{SIZE, image};
use super::processors;
use super::report::{Report, Row};
use super::runtime::{Blocking, Competitive, Runtime, User, Which};
use crate::frames::{Frames, Unwritable};
use crate::strategies::{self, OnPool, OverPool};
use crate::{Progress, at_least_one};
use clap::builder::ArgPredicate;
use clap::{Parser, ValueEnum, value_parser};
use stanchion_applications::nbody::{
    BLOCK, BODIES, Body, Cache, Cached, DT, Energy, ForceError, Fork, MEMORY, Options, Refused,
    SOFTENING, Sequential, Simulation, THETA, plummer,
};
use stanchion_threadpool::{Strategy, ThreadPool};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Moves a cluster of stars under its own gravitation, by the tree of Barnes and Hut, over a pool
/// that manages ready work as you choose, or over threads of another kind.
///
/// The cluster is Plummer's model in Hénon's units: mass and gravitation are 1, the energy is -1/4,
/// a body crosses it in 2.8. The positions do not depend on the runtime, the threads or the memory,
/// to the last bit.
#[derive(Debug, Parser)]
#[command(
    name = "nbody",
    version,
    after_help = "Exit code 0: done; 1: two runs, or --check, came to other positions; 2: the arguments are no good, the pool cannot be built, a frame cannot be written, a block cannot be read, or a copy failed."
)]
struct Arguments {
    /// Stars; 2,000 with --memory, where each miss waits.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 20_000, default_value_if("memory", ArgPredicate::IsPresent, "2000"), value_parser = value_parser!(u32).range(*BODIES.start() as i64..=*BODIES.end() as i64))]
    bodies: u32,

    /// Steps; 1 with --memory.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 50, default_value_if("memory", ArgPredicate::IsPresent, "1"), value_parser = at_least_one)]
    steps: u64,

    #[command(flatten)]
    threads: strategies::Threads,

    /// The runtime. Several, with commas between them, run one after another.
    #[arg(long, value_name = "NAME", default_value = "pool", value_delimiter = ',')]
    runtime: Vec<Which>,

    /// Processors that the program may use, the first ones of those that it has. Without it all.
    #[arg(long, allow_negative_numbers = true, value_name = "P", value_parser = value_parser!(u16).range(1..=1024))]
    processors: Option<u16>,

    /// The least number of stars that are computed at once; 16 with --memory, so that near
    /// stars share their misses.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, default_value_if("memory", ArgPredicate::IsPresent, "16"), value_parser = value_parser!(u32).range(1..))]
    grain: u32,

    /// The part of the stars that fits into memory, in percent; the others are read when they are
    /// wanted. Without it all stars are there and no misses happen. A step of 2,000 stars has some
    /// 600 misses at 50 percent: a run with more stars or steps takes long, and prints its
    /// progress.
    #[arg(long, allow_negative_numbers = true, value_name = "PERCENT", value_parser = value_parser!(u32).range(*MEMORY.start() as i64..=*MEMORY.end() as i64))]
    memory: Option<u32>,

    /// The cost of reading stars that are not in memory: a time that the thread sleeps in the
    /// kernel, or `file`: it reads from a file that the system was told to forget. If the
    /// system ignores that (files in memory, systems other than Linux) the read takes its own time.
    #[arg(long, value_name = "TIME|file", default_value = "50ms", requires = "memory")]
    miss: Miss,

    /// Processes of this program at the same time, each with its own runtime: prints the time of
    /// each, and the speed-up over one thread alone.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=64), conflicts_with_all = ["frames", "check"])]
    copies: u8,

    /// Is a copy: prints a line for each runtime.
    #[arg(long, hide = true)]
    copy: bool,

    /// The way in which the pool manages ready work. Several, with commas between them, run one
    /// after another; `all` is each.
    #[arg(long, value_name = "NAME", default_value = strategies::DEFAULT, value_delimiter = ',', value_parser = strategies::values_or_all())]
    strategy: Vec<String>,

    /// Opening angle, 0 to 1: from how far away a group of stars is taken for one. At 0 never,
    /// which takes N² of time.
    #[arg(long, allow_negative_numbers = true, value_name = "ANGLE", default_value_t = 0.6)]
    theta: f64,

    /// Time that passes in a step.
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", default_value_t = 1.0 / 64.0)]
    dt: f64,

    /// Distance below which gravitation weakens.
    #[arg(long, allow_negative_numbers = true, value_name = "LENGTH", default_value_t = 0.05)]
    softening: f64,

    /// Seed of the stars' first positions and speeds.
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Writes frame-00000.png and so on into this directory, and overwrites files of these names,
    /// while the first strategy runs.
    #[arg(long, value_name = "DIR")]
    frames: Option<PathBuf>,

    /// Steps from frame to frame.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = at_least_one, requires = "frames")]
    every: u64,

    /// Also runs on one thread without a pool, compares the positions, and compares the last forces
    /// with those by each pair of stars.
    #[arg(long)]
    check: bool,
}

/// The same for every strategy.
struct Task<'a> {
    /// The bodies at the start.
    bodies: &'a [Body],
    /// The options of the simulation.
    options: Options,
    /// The number of steps.
    steps: u64,
    /// The part that fits, and the cost of a miss.
    memory: Option<(u32, Miss)>,
    /// The progress to report to.
    progress: &'a Progress,
}

/// The result of one way of running it.
pub struct Course {
    /// The checksum of the positions.
    pub checksum: u64,
    /// The energy at the start.
    pub start: Energy,
    /// The energy at the end.
    pub end: Energy,
    /// The simulation at the end.
    pub simulation: Simulation,
    /// The time that it took.
    pub seconds: f64,
}

impl Task<'_> {
    fn run<F: Fork>(
        &self,
        fork: &F,
        mut frame: impl FnMut(&Simulation) -> Result<(), Unwritable>,
    ) -> Result<Course, Stopped> {
        let began = Instant::now();
        let mut simulation = Simulation::new(self.bodies.to_vec(), self.options, fork)?;
        let start = simulation.energy(fork);
        frame(&simulation)?;
        for _ in 0..self.steps {
            simulation.step(fork);
            self.progress.step();
            frame(&simulation)?;
        }
        let end = simulation.energy(fork);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Course { checksum: simulation.checksum(), start, end, simulation, seconds })
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    #[error("blocks cannot be read: {0}")]
    Disk(#[from] std::io::Error),
}

/// A run over a runtime, and what that says of itself.
struct Over<'a, 'f> {
    /// The task.
    task: &'a Task<'a>,
    /// The frames to write, and the number of steps from one to the next.
    frames: Option<(&'f mut Frames, u64)>,
    /// Set if the forces are checked.
    check: bool,
}

/// The result of a run.
type Ran = Result<(Course, String, Option<ForceError>), Stopped>;

impl Over<'_, '_> {
    fn over<R: Runtime>(mut self, runtime: &R) -> Ran {
        let (course, touches) = match self.task.memory {
            None => (self.course(runtime)?, String::new()),
            Some((percent, miss)) => self.course_in(percent, miss, runtime)?,
        };
        let error = self.check.then(|| course.simulation.accuracy(runtime));
        Ok((course, runtime.says() + &touches, error))
    }

    fn course<F: Fork>(&mut self, fork: &F) -> Result<Course, Stopped> {
        let last = self.task.steps;
        self.task.run(fork, |simulation| {
            let Some((frames, every)) = &mut self.frames else { return Ok(()) };
            let step = simulation.steps();
            if step.is_multiple_of(*every) || step == last {
                frames.write(&image(simulation.positions()))?;
            }
            Ok(())
        })
    }

    /// Runs the same with so much memory. Returns the touches in it as well.
    fn course_in<R: Runtime>(
        &mut self,
        percent: u32,
        miss: Miss,
        runtime: &R,
    ) -> Result<(Course, String), Stopped> {
        let bodies = self.task.bodies.len();
        let reader = Reader::new(miss, bodies.div_ceil(BLOCK))?;
        let cache = Cache::<R::Lock, _>::new(bodies, percent, |block| reader.read(block));
        let course = self.course(&Cached { fork: runtime, cache: &cache })?;
        let ((blocks, fit), touches) = (cache.blocks(), cache.touches());
        drop(cache);
        let mean = reader.mean()?.map_or(String::new(), |mean| format!(" of {mean:.1?}"));
        let touches = format!(
            "; {fit} of {blocks} blocks fit: {} hits, {} misses{mean}, {} shared",
            touches.hits, touches.misses, touches.shared
        );
        Ok((course, touches))
    }
}

impl OverPool for Over<'_, '_> {
    type Outcome = Ran;

    fn run<S: Strategy>(self, pool: &ThreadPool<S>) -> Ran {
        self.over(&OnPool(pool))
    }
}

/// A row of the report: a strategy of the pool, or another runtime.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Pool(&'static str),
    Other(Which),
}

impl Entry {
    /// All that were asked for.
    fn named(arguments: &Arguments) -> Vec<(String, Self)> {
        let of = |which: &Which| match which {
            Which::Pool => {
                let names = strategies::named(&arguments.strategy).into_iter();
                names.map(|name| (name.to_owned(), Self::Pool(name))).collect()
            }
            which => {
                let value = which.to_possible_value().expect("none is skipped");
                vec![(value.get_name().to_owned(), Self::Other(*which))]
            }
        };
        arguments.runtime.iter().flat_map(of).collect()
    }

    fn run(self, threads: usize, over: Over<'_, '_>) -> Result<Ran, Box<dyn std::error::Error>> {
        Ok(match self {
            Self::Pool(name) => strategies::run(name, threads, over)?,
            Self::Other(Which::Kernel) => over.over(&Blocking::default()),
            Self::Other(Which::KernelCompetitive) => over.over(&Competitive::default()),
            Self::Other(Which::User) => over.over(&User::new(threads, false, true)?),
            Self::Other(Which::Activations) => over.over(&User::new(threads, true, true)?),
            Self::Other(Which::ActivationsStay) => over.over(&User::new(threads, true, false)?),
            Self::Other(Which::Pool) => unreachable!("a pool has a strategy"),
        })
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
    let given: Vec<OsString> = arguments.into_iter().collect();
    let arguments: Arguments = match crate::parse(given.iter().cloned(), out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match work(&arguments, &given, out, err, progress) {
        Ok(code) => code,
        Err(refused) => {
            let _ = writeln!(err, "nbody: {refused}");
            2
        }
    }
}

fn work(
    arguments: &Arguments,
    given: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
    progress: bool,
) -> Result<u8, Box<dyn std::error::Error>> {
    let options = Options {
        theta: arguments.theta,
        dt: arguments.dt,
        softening: arguments.softening,
        grain: arguments.grain as usize,
        ..Options::default()
    };
    for (name, value, range) in [
        ("--theta", options.theta, THETA),
        ("--dt", options.dt, DT),
        ("--softening", options.softening, SOFTENING),
    ] {
        if !range.contains(&value) {
            let (least, most) = range.into_inner();
            return Err(format!("{name} {value}: must be {least} to {most}").into());
        }
    }
    let mut frames = match &arguments.frames {
        Some(directory) => Some(Frames::new(directory, (SIZE, SIZE))?),
        None => None,
    };
    if let Some(wanted) = arguments.processors {
        processors::keep_to(usize::from(wanted))?;
    }
    let entries = Entry::named(arguments);
    let bodies = plummer(arguments.bodies as usize, arguments.seed);
    let runs = match arguments.copies {
        1 => entries.len() as u64 + u64::from(arguments.check),
        _ => 1,
    };
    let progress = Progress::new("nbody", progress, arguments.steps * runs, "steps");
    let memory = arguments.memory.map(|percent| (percent, arguments.miss));
    let task =
        Task { bodies: &bodies, options, steps: arguments.steps, memory, progress: &progress };
    if arguments.copies > 1 {
        return at_once(arguments, &task, given, out, err);
    }
    let threads = arguments.threads.number();

    let (mut rows, mut error): (Vec<Row>, _) = (Vec::new(), None);
    for (name, entry) in entries {
        let first = rows.is_empty();
        let frames = frames.as_mut().filter(|_| first).map(|frames| (frames, arguments.every));
        let over = Over { task: &task, frames, check: arguments.check && first };
        let (course, metrics, compared) = entry.run(threads, over)??;
        error = error.or(compared);
        rows.push(Row { name, course, metrics });
    }
    let alone = match arguments.check {
        true => Some(task.run(&Sequential, |_| Ok(()))?),
        false => None,
    };
    progress.end();
    if arguments.copy {
        for Row { name, course, .. } in rows {
            Line { name, seconds: course.seconds, checksum: course.checksum }.write(out)?;
        }
        return Ok(0);
    }
    let report = Report {
        bodies: &bodies,
        options,
        seed: arguments.seed,
        threads,
        memory,
        rows: &rows,
        alone: alone.as_ref(),
        error,
        frames: frames.as_ref().map(|frames| (frames.written(), frames.directory())),
    };
    crate::report::end("nbody", report.write(out), out, err);
    let Some(what) = wrong(&rows, alone.as_ref()) else { return Ok(0) };
    let _ = writeln!(
        err,
        "nbody: {what}: the pool or the program is wrong; please report it with this command line"
    );
    Ok(1)
}

/// Runs the program on one thread, and then the copies.
fn at_once(
    arguments: &Arguments,
    task: &Task<'_>,
    given: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Box<dyn std::error::Error>> {
    let alone = task.run(&Sequential, |_| Ok(()))?;
    task.progress.end();
    let program = std::env::current_exe()?;
    let copy = |_| {
        let mut command = Command::new(&program);
        command.args(copies::arguments(given));
        command
    };
    let copies = copies::run((0..arguments.copies).map(copy).collect())?;
    if copies::report(out, &copies, (alone.seconds, alone.checksum))? {
        return Ok(0);
    }
    let _ = writeln!(
        err,
        "nbody: a copy came to other positions; please report it with this command line"
    );
    Ok(1)
}

/// The first that came to other positions.
pub fn wrong(rows: &[Row], alone: Option<&Course>) -> Option<String> {
    let (first, others) = rows.split_first()?;
    let expected = first.course.checksum;
    let sums = others.iter().map(|row| (row.name.as_str(), row.course.checksum));
    let alone = alone.map(|course| ("one thread without a pool", course.checksum));
    let (name, other) = sums.chain(alone).find(|sum| sum.1 != expected)?;
    Some(format!("checksum {expected:016x} by {}, but {other:016x} by {name}", first.name))
}
