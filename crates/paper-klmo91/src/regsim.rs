//! Regsim, the register-level simulator of Karlin and others (1991), on the circuit s5378 of
//! ISCAS'89: a real program with many short critical sections, not one made up to test a lock.
//!
//! Rule of the verdict: *blocking pays* for a wait that is longer than the futex round trip
//! measured beforehand (to another processor if there are two). *holds* if with every lock and
//! every number of threads the checksum of all outputs is the sequential simulator's, and with one
//! thread a processor at most 1 % of the acquisitions of the default lock (backoff) wait so long
//! that blocking would pay; else *differs*. *not judged* if that share is not known precisely
//! enough ([`Precision`]). A wrong checksum fails the experiment; where no thread ever waits, as on
//! one processor, there is nothing to judge.

use std::time::Duration;

use stanchion_applications::regsim::{Netlist, Options, Run, circuits, sequential};

use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::measure::{Grid, Precision, median, on_scale, sweep_until};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::survey::switches::round_trip;
use stanchion_study::units::{nanos, percent, significant};
use stanchion_study_locks::list::Way;
use stanchion_study_locks::registry::{LOCKS, Lock, of_way};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "regsim",
    paper: Paper::Klmo91,
    title: "A register-level simulator on the circuit s5378",
    claim: "Every lock gives the outputs of the sequential simulator, and very few waits are \
     long enough for blocking to pay.",
    bodies: Bodies::real(run, "klmo91/table3 is Regsim on the paper's machine"),
};

/// The largest share of acquisitions that wait longer than blocking costs.
const MOST_LONG: f64 = 0.01;

/// Medians of one cell.
#[derive(Clone, Copy)]
struct Cell {
    /// Milliseconds for a thousand cycles.
    elapsed: f64,
    /// Share of acquisitions that found the lock held.
    contended: f64,
    /// Share of acquisitions that waited longer than blocking costs.
    long: f64,
    /// Nanoseconds of an acquisition's wait, over all acquisitions.
    mean_wait: f64,
    /// Nanoseconds of the longest wait.
    longest_wait: f64,
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let circuit = Netlist::parse(circuits::S5378.as_bytes())
        .map_err(|error| Stop::Failed(format!("s5378: {error}")))?;
    let cycles = context.pick(50, 500);
    let processors = context.processors.len();
    let counts = counts(processors);
    let locks: Vec<&Lock> = LOCKS.iter().filter(|lock| lock.regsim.is_some()).collect();
    let blocking = blocking(&context.processors)?;
    let expected = sequential::run(&circuit, cycles, context.seed);

    let backoff = locks
        .iter()
        .position(|lock| std::ptr::eq(*lock, &raw const LOCKS[of_way(Way::Backoff)]))
        .unwrap_or(0);
    let within = counts.iter().rposition(|&threads| threads <= processors).unwrap_or(0);
    let mut wrong = None;
    let (grid, repeated) = sweep_until(
        context,
        (locks.len(), &counts),
        Precision::of(EXPERIMENT.id, context),
        |lock, threads| {
            let options =
                Options { cycles, threads, seed: context.seed, pinned: true, ..Options::default() };
            let run = locks[lock].regsim.map(|regsim| regsim(&circuit, &options));
            if run.as_ref().is_some_and(|run| run.checksum != expected.checksum) {
                wrong = Some(format!("{} with {threads} threads", locks[lock].name));
            }
            run.map(|run| cell(&run, cycles, blocking))
        },
        |lock, column| processors > 1 && (lock, column) == (backoff, within),
        |cell| cell.map_or(f64::NAN, |cell| on_scale(cell.long, MOST_LONG)),
        |repeats| medians(&repeats.into_iter().flatten().collect::<Vec<_>>()),
    )?;
    if let Some(lock) = wrong {
        return Err(Stop::Failed(format!(
            "{lock} gave other outputs than the sequential simulator"
        )));
    }
    let alone = per_thousand(expected.elapsed, cycles);
    Ok(Outcome {
        comparisons: comparisons(&grid[backoff], counts[within], within, blocking, alone),
        pictures: vec![Picture {
            title: "Elapsed time for 1,000 cycles of s5378".to_owned(),
            shape: Shape::Rows,
            x: Axis::linear("threads"),
            y: Axis::log("ms"),
            series: locks
                .iter()
                .zip(&grid)
                .map(|(lock, row)| {
                    let points = counts.iter().zip(row);
                    Series::new(
                        lock.name,
                        points.map(|(&threads, cell)| (threads as f64, cell.elapsed)),
                    )
                })
                .collect(),
        }],
        tables: vec![
            table(
                "Acquisitions that found the lock held, by threads",
                &locks,
                &grid,
                &counts,
                |cell| percent(cell.contended),
            ),
            table(
                &format!(
                    "Acquisitions that waited longer than blocking costs ({}), by threads",
                    nanos(blocking)
                ),
                &locks,
                &grid,
                &counts,
                |cell| percent(cell.long),
            ),
            table("Mean wait of those that waited, by threads", &locks, &grid, &counts, |cell| {
                nanos(cell.mean_wait)
            }),
            table("Longest wait, by threads", &locks, &grid, &counts, |cell| {
                nanos(cell.longest_wait)
            }),
        ],
        notes: vec![
            format!(
                "{cycles} cycles a cell, medians of {}, locks in turn; {} ms a thousand \
                 cycles without threads or locks. The threads meet after every level of the \
                 circuit, so with more threads than processors most of the time goes to waiting \
                 for those that are not running, whatever the lock. Up to one thread a processor \
                 each stays on its own; with more they are left to the kernel.",
                repeated.words(),
                significant(alone)
            ),
            "A wait is counted in a class of its power of two. If the class reaches beyond the \
             cost of blocking, the wait counts as long."
                .to_owned(),
        ],
        ..Outcome::new(repeated.judge(verdict(&grid[backoff][within], counts[within], blocking)))
    })
}

/// Returns the numbers of threads: one, then one, two and four a processor, up to the simulator's
/// limit.
fn counts(processors: usize) -> Vec<usize> {
    let most = stanchion_applications::regsim::MAX_THREADS;
    let mut counts: Vec<usize> = [1, processors, 2 * processors, 4 * processors]
        .into_iter()
        .filter(|&n| n <= most)
        .collect();
    counts.dedup();
    counts
}

/// Returns the cost of blocking and being woken for a thread, in nanoseconds.
fn blocking(processors: &[usize]) -> Result<f64, Stop> {
    let [first, rest @ ..] = processors else {
        return Err(Stop::Failed("no processor may be used".to_owned()));
    };
    let other = rest.first().unwrap_or(first);
    // There and back are two sleeps and two wake-ups.
    round_trip([*first, *other]).map(|nanos| nanos / 2.0).map_err(Stop::Failed)
}

fn per_thousand(elapsed: Duration, cycles: u64) -> f64 {
    elapsed.as_secs_f64() * 1e6 / cycles as f64
}

fn cell(run: &Run, cycles: u64, blocking: f64) -> Cell {
    let waits = run.waits.locks();
    let all = waits.acquisitions().max(1) as f64;
    // A class from `from` reaches to just below twice that.
    let long: u64 = waits
        .histogram()
        .filter(|&(from, _)| 2.0 * from as f64 > blocking)
        .map(|(_, count)| count)
        .sum();
    Cell {
        elapsed: per_thousand(run.elapsed, cycles),
        contended: waits.contended() as f64 / all,
        long: long as f64 / all,
        mean_wait: waits.mean_ns(),
        longest_wait: waits.max_ns() as f64,
    }
}

fn medians(cells: &[Cell]) -> Cell {
    let over = |value: fn(&Cell) -> f64| median(cells.iter().map(value).collect());
    Cell {
        elapsed: over(|cell| cell.elapsed),
        contended: over(|cell| cell.contended),
        long: over(|cell| cell.long),
        mean_wait: over(|cell| cell.mean_wait),
        longest_wait: over(|cell| cell.longest_wait),
    }
}

fn verdict(cell: &Cell, threads: usize, blocking: f64) -> Verdict {
    if threads < 2 {
        return Verdict::NotJudged(
            "one processor only: no thread waits while another holds a \
         lock. All checksums are right"
                .to_owned(),
        );
    }
    if cell.contended == 0.0 {
        return Verdict::NotJudged(format!(
            "all checksums are right, but with {threads} threads none ever found a lock held: \
             they hardly ran at the same time"
        ));
    }
    Verdict::when(
        cell.long <= MOST_LONG,
        format!(
            "all checksums are right; with {threads} threads {} of acquisitions wait, {} longer \
             than the {} that blocking costs",
            percent(cell.contended),
            percent(cell.long),
            nanos(blocking)
        ),
    )
}

fn comparisons(
    row: &[Cell],
    threads: usize,
    within: usize,
    blocking: f64,
    alone: f64,
) -> Vec<Comparison> {
    let cell = row[within];
    vec![
        Comparison::new("cost of blocking", "200 µs (about 200 spins)", nanos(blocking)),
        Comparison::new(
            format!("acquisitions that wait longer than that, {threads} threads, backoff"),
            "very few (figure 4)",
            percent(cell.long),
        ),
        Comparison::new(
            format!("speed-up over the sequential simulator, {threads} threads, backoff"),
            "not given",
            significant(alone / cell.elapsed),
        ),
    ]
}

fn table(
    title: &str,
    locks: &[&Lock],
    grid: &Grid<Cell>,
    counts: &[usize],
    value: impl Fn(&Cell) -> String,
) -> Table {
    Table {
        title: title.to_owned(),
        columns: std::iter::once("lock".to_owned())
            .chain(counts.iter().map(usize::to_string))
            .collect(),
        rows: locks
            .iter()
            .zip(grid)
            .map(|(lock, row)| {
                std::iter::once(lock.name.to_owned()).chain(row.iter().map(&value)).collect()
            })
            .collect(),
    }
}
