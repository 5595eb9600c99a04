//! The strategies on this computer, and threads of the standard library beside them.

#[path = "rows.rs"]
mod rows;

use machine::wait::Patient;
use stanchion_applications as applications;
use stanchion_spin as spin;
use stanchion_threadpool as threadpool;

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use applications::null_threads::{Costs, Options, Sweep};
use rows::ROWS;

use super::super::super::context::{Context, Stop};
use super::super::super::locks::sweep::{lower_quartile, sweep};
use super::Curve;
use super::grid::{Cell, Grid};

/// How processors wait: for a while by spinning, since others may have taken the processor of whom they wait for.
type Wait = Patient;

/// Rows of figures without user work: our pool, whose tasks are the threads, and a thread of the system for each.
const POOL: &str = "ThreadPool";
const STD: &str = "std::thread";

/// Measures all strategies; a thread computes for `user` nanoseconds on average, which std's threads cannot be told.
pub(in super::super) fn run(context: &Context, user: u64) -> Result<Grid, Stop> {
    let counts = context.within_processors();
    let threads = context.pick(200_000, 1_000_000);
    let system_threads = context.pick(2_000, 20_000);
    let repeats = context.pick(5, 9);
    let others: &[&'static str] = if user == 0 { &[POOL, STD] } else { &[] };
    let rows = ROWS.len() + others.len();
    context.plan(rows * counts.len() * repeats);
    let measure = |row: usize, processors: usize| -> Result<f64, String> {
        if row == ROWS.len() {
            return pool(processors, threads).map_err(|error| error.to_string());
        }
        let Some(row) = ROWS.get(row) else { return Ok(system(processors, system_threads)) };
        let each = (threads / processors as u64).max(1);
        let (costs, seed) = (Costs::default(), context.seed);
        let options = Options {
            processors,
            each,
            user_ns: user,
            threshold: Some(super::THRESHOLD),
            queues: None,
            copies: false,
            costs,
            seed,
        };
        let run = (row.run)(&options).map_err(|refused| refused.to_string())?;
        assert_eq!(run.left, processors, "{} lost a thread, or has one twice", row.name);
        Ok(run.elapsed.as_nanos() as f64 / run.threads as f64)
    };
    // What disturbs a cell makes it slower.
    let quiet = |repeats: Vec<Result<f64, String>>| {
        repeats.into_iter().collect::<Result<Vec<f64>, _>>().map(lower_quartile)
    };
    let measured = sweep(context, rows, &counts, repeats, measure, quiet)?;
    let cell = |pace: Result<f64, String>| match pace {
        Ok(pace) => Ok(Cell { pace, bus: None }),
        Err(why) => Err(Stop::Failed(why)),
    };
    let measured = measured.into_iter().flatten().map(cell).collect::<Result<_, _>>()?;
    let names = ROWS.iter().map(|row| row.name).chain(others.iter().copied());
    Ok(Grid::new(names.collect(), counts, measured))
}

/// What each number of runnable threads costs, strategy by strategy, in nanoseconds.
pub(in super::super) fn latencies(context: &Context) -> Result<Vec<Curve>, Stop> {
    let processors = context.processors.len();
    let sweep = Sweep {
        processors,
        most: 2 * processors + 2,
        rounds: context.pick(500, 5_000),
        threshold: Some(super::THRESHOLD),
        settle_ns: 5_000,
        costs: Costs::default(),
        seed: context.seed,
    };
    context.plan(ROWS.len());
    let one = |row: &rows::Row| {
        let found = (row.latency)(&sweep).map_err(|refused| Stop::Failed(refused.to_string()))?;
        context.step()?;
        Ok((row.name, found.iter().map(|point| (point.runnable, point.cost)).collect()))
    };
    ROWS.iter().map(one).collect()
}

/// The same test with the tasks of a pool: each spawns the next and ends; nanoseconds for a task.
fn pool(chains: usize, threads: u64) -> Result<f64, threadpool::BuildError> {
    fn link(left: u64, done: mpsc::Sender<()>) {
        match left {
            0 => drop(done),
            _ => threadpool::spawn(move || link(left - 1, done)),
        }
    }
    let pool = threadpool::ThreadPool::new(chains)?;
    let each = (threads / chains as u64).max(1);
    Ok(time(each * chains as u64, |done| {
        for _ in 0..chains {
            let done = done.clone();
            pool.spawn(move || link(each - 1, done));
        }
    }))
}

/// The same test with threads of the system: chains in which each thread starts the next and ends; nanoseconds for a thread.
fn system(chains: usize, threads: u64) -> f64 {
    let each = (threads / chains as u64).max(1);
    time(each * chains as u64, |done| (0..chains).for_each(|_| link(each, done.clone())))
}

/// Nanoseconds for each of `threads`, from the start until all senders are gone.
fn time(threads: u64, start: impl FnOnce(mpsc::Sender<()>)) -> f64 {
    let (done, ended) = mpsc::channel();
    let began = Instant::now();
    start(done);
    // Nobody sends: it ends when the last sender is dropped.
    while ended.recv().is_ok() {}
    began.elapsed().as_nanos() as f64 / threads as f64
}

/// One thread of a chain of so many, and by and by the rest.
fn link(left: u64, done: mpsc::Sender<()>) {
    match left {
        0 => drop(done),
        _ => drop(thread::spawn(move || link(left - 1, done))),
    }
}

/// What a reader must know.
pub(in super::super) fn notes(context: &Context) -> Vec<String> {
    vec![
        format!(
            "{} threads a cell, {} where each is a thread of the system; the lower quartiles of {} cells, strategies in turn, because what disturbs a cell makes it slower. Each processor is a \
             thread that is pinned.",
            context.pick(200_000, 1_000_000),
            context.pick(2_000, 20_000),
            context.pick(5, 9),
        ),
        "The tasks of ThreadPool and the threads of the system spawn one another in as many chains as there are processors; the others are the strategies alone, without what a pool adds: \
         closures, panics, waking. All locks are the paper's: test-and-set with backoff. A thread pool of today would choose another, since here the holder of a lock may lose its processor.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_threads_end() {
        assert!(system(2, 10) > 0.0);
        assert!(system(3, 1) > 0.0, "at least one thread a chain");
        assert!(pool(2, 10).unwrap() > 0.0);
    }
}
