//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use crate::picture::{SIZE, image};
use crate::report::{Report, Row};
use clap::{Parser, value_parser};
use examples::frames::{Frames, Unwritable};
use examples::strategies::{self, OnPool, OverPool};
use examples::{at_least_one, bar};
use indicatif::ProgressBar;
use stanchion_applications::nbody::{
    BODIES, Body, DT, Energy, ForceError, Fork, Options, Refused, SOFTENING, Sequential,
    Simulation, THETA, plummer,
};
use stanchion_threadpool::{Strategy, ThreadPool};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Moves a cluster of stars under its own gravitation, by the tree of Barnes and Hut, over a pool whose ready work is managed as you say.
///
/// The cluster is Plummer's model in Hénon's units: mass and gravitation are 1, the energy is -1/4, a body crosses it in 2.8. The places do not
/// depend on the strategy or the threads, to the last bit.
#[derive(Debug, Parser)]
#[command(
    name = "nbody",
    version,
    after_help = "Exit code 0: done; 1: two strategies, or --check, came to other places; 2: the arguments are no good, the pool cannot be built, or a frame cannot be written."
)]
struct Arguments {
    /// Stars.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 20_000, value_parser = value_parser!(u32).range(*BODIES.start() as i64..=*BODIES.end() as i64))]
    bodies: u32,

    /// Steps.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    steps: u64,

    #[command(flatten)]
    threads: strategies::Threads,

    /// How the pool manages ready work. Several, with commas between them, run one after another; `all` is each.
    #[arg(long, value_name = "NAME", default_value = strategies::DEFAULT, value_delimiter = ',', value_parser = strategies::values_or_all())]
    strategy: Vec<String>,

    /// Opening angle, 0 to 1: from how far away a group of stars is taken for one. At 0 never, which takes N² of time.
    #[arg(long, allow_negative_numbers = true, value_name = "ANGLE", default_value_t = 0.6)]
    theta: f64,

    /// Time that passes in a step.
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", default_value_t = 1.0 / 64.0)]
    dt: f64,

    /// Distance below which gravitation weakens.
    #[arg(long, allow_negative_numbers = true, value_name = "LENGTH", default_value_t = 0.05)]
    softening: f64,

    /// Seed of the stars' first places and speeds.
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Writes frame-00000.png and so on into this directory, over those that are there, while the first strategy runs.
    #[arg(long, value_name = "DIR")]
    frames: Option<PathBuf>,

    /// Steps from frame to frame.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1, value_parser = at_least_one, requires = "frames")]
    every: u64,

    /// Also runs on one thread without a pool, compares the places, and compares the last forces with those by each pair of stars.
    #[arg(long)]
    check: bool,
}

/// The same for every strategy.
struct Task<'a> {
    bodies: &'a [Body],
    options: Options,
    steps: u64,
    bar: &'a ProgressBar,
}

/// What one way of running it came to.
pub(crate) struct Course {
    pub(crate) checksum: u64,
    pub(crate) start: Energy,
    pub(crate) end: Energy,
    pub(crate) simulation: Simulation,
    pub(crate) seconds: f64,
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
            self.bar.inc(1);
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
}

/// A run over a pool, and what that says of itself.
struct Pooled<'a, 'f> {
    task: &'a Task<'a>,
    frames: Option<(&'f mut Frames, u64)>,
    check: bool,
}

impl OverPool for Pooled<'_, '_> {
    type Outcome = Result<(Course, String, Option<ForceError>), Stopped>;

    fn run<S: Strategy>(mut self, pool: &ThreadPool<S>) -> Self::Outcome {
        let last = self.task.steps;
        let course = self.task.run(&OnPool(pool), |simulation| {
            let Some((frames, every)) = &mut self.frames else { return Ok(()) };
            let step = simulation.steps();
            if step.is_multiple_of(*every) || step == last {
                frames.write(&image(simulation.places()))?;
            }
            Ok(())
        })?;
        let metrics = pool.metrics().to_string();
        let error = self.check.then(|| course.simulation.accuracy(&OnPool(pool)));
        Ok((course, metrics, error))
    }
}

/// Does what `arguments` say and returns the exit code. With `progress`, a bar goes to the terminal's standard error.
pub(crate) fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    progress: bool,
) -> u8 {
    let arguments: Arguments = match examples::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match work(&arguments, out, err, progress) {
        Ok(code) => code,
        Err(refused) => {
            let _ = writeln!(err, "nbody: {refused}");
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
        theta: arguments.theta,
        dt: arguments.dt,
        softening: arguments.softening,
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
    let names = strategies::named(&arguments.strategy);
    let bodies = plummer(arguments.bodies as usize, arguments.seed);
    let runs = names.len() as u64 + u64::from(arguments.check);
    let bar = bar(progress, Some(arguments.steps * runs), "steps");
    let task = Task { bodies: &bodies, options, steps: arguments.steps, bar: &bar };
    let threads = arguments.threads.number();

    let (mut rows, mut error): (Vec<Row>, _) = (Vec::new(), None);
    for name in names {
        let first = rows.is_empty();
        let frames = frames.as_mut().filter(|_| first).map(|frames| (frames, arguments.every));
        let pooled = Pooled { task: &task, frames, check: arguments.check && first };
        let (course, metrics, compared) = strategies::run(name, threads, pooled)??;
        error = error.or(compared);
        rows.push(Row { name, course, metrics });
    }
    let alone = match arguments.check {
        true => Some(task.run(&Sequential, |_| Ok(()))?),
        false => None,
    };
    bar.finish_and_clear();
    let report = Report {
        bodies: &bodies,
        options,
        seed: arguments.seed,
        threads,
        rows: &rows,
        alone: alone.as_ref(),
        error,
        frames: frames.as_ref().map(|frames| (frames.written(), frames.directory())),
    };
    examples::report::end("nbody", report.write(out), out, err);
    let Some(what) = wrong(&rows, alone.as_ref()) else { return Ok(0) };
    let _ = writeln!(
        err,
        "nbody: {what}: the pool or the program is wrong; please report it with this command line"
    );
    Ok(1)
}

/// The first that came to other places.
pub(crate) fn wrong(rows: &[Row], alone: Option<&Course>) -> Option<String> {
    let (first, others) = rows.split_first()?;
    let expected = first.course.checksum;
    let sums = others.iter().map(|row| (row.name, row.course.checksum));
    let alone = alone.map(|course| ("one thread without a pool", course.checksum));
    let (name, other) = sums.chain(alone).find(|sum| sum.1 != expected)?;
    Some(format!("checksum {expected:016x} by {}, but {other:016x} by {name}", first.name))
}
