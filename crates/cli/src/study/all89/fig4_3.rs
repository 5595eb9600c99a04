//! Figure 4.3: threads start together, each passes once through the lock, and waits until all have; elapsed time
//! for each thread.
//!
//! Without degradation and without delay the time grows by the same amount with each processor, and the
//! normalized curve is flat.
//!
//! Rule of the verdict, on the paper's three ways of waiting, each thread on a processor of its own: with the
//! fewest processors that can wait (two), spinning on the exchange is the fastest or within 5 % of it; with all
//! processors it is not. *holds* if both; *differs* if either half is measured and is not so. With fewer than
//! four processors the second half cannot be measured, and the claim is not judged unless the first half already
//! differs.

mod simulated;

use std::time::Duration;

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use super::super::locks::pass::{Pass, Passed, run_unlocked};
use super::super::locks::registry::{LOCKS, Way, of_way};
use super::super::locks::start::Placement;
use super::super::locks::sweep::{Grid, median, steps, sweep};
use super::super::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use crate::units::nanos;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig4.3",
    paper: Paper::All89,
    title: "Time to pass once through the lock, for each processor",
    claim: "Spinning on the exchange is best for few processors and is overtaken as they grow.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated {
            machines: &["symmetry-a", "symmetry-b", "firefly"],
            run: simulated::run,
        }),
    },
};

/// Processors from which on "as they grow" can be tried.
const MANY: usize = 4;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let counts = context.thread_counts();
    let repeats = context.pick(5, 9);
    let window = context.window(25, 150);
    // The last row is the start and the finish around one atomic instruction.
    let rows = LOCKS.len() + 1;
    context.plan(steps(rows, counts.len(), repeats));
    let grid = sweep(
        context,
        rows,
        &counts,
        repeats,
        |lock, threads| measure(context, lock, threads, window),
        |repeats| Passed {
            rounds: repeats.iter().map(|passed| passed.rounds).sum(),
            median: median(repeats.iter().map(|passed| passed.median).collect()),
            mean: median(repeats.iter().map(|passed| passed.mean).collect()),
            longest: repeats.iter().map(|passed| passed.longest).fold(0.0, f64::max),
        },
    )?;
    let within = context.within_processors().len();
    Ok(Outcome {
        comparisons: comparisons(&grid, &counts, within),
        pictures: vec![ways(&grid, &counts[..within]), all(&grid, &counts)],
        tables: vec![
            table("Mean, for each thread, by threads", &grid, &counts, |passed| nanos(passed.mean)),
            table("Longest round, for each thread, by threads", &grid, &counts, |passed| {
                nanos(passed.longest)
            }),
        ],
        notes: vec![
            format!(
                "Rounds for {} ms a cell, their median, then the median of {repeats} such \
                 cells; locks in turn. A round contains its own start and finish and two \
                 readings of the clock; the row without a lock shows what those \
                 cost.",
                window.as_millis()
            ),
            "Threads that are through spin until all are, as in the paper. Where threads \
             outnumber the processors they yield instead, or each would keep the others waiting \
             for a time slice whatever the lock."
                .to_owned(),
        ],
        ..Outcome::new(verdict(&grid, &counts, within))
    })
}

fn measure(context: &Context, lock: usize, threads: usize, window: Duration) -> Passed {
    let place = Placement { processors: &context.processors, threads };
    let pass = Pass { place, window };
    LOCKS.get(lock).map_or_else(|| run_unlocked(&pass), |lock| (lock.pass)(&pass))
}

const PAPERS: [(Way, &str); 3] =
    [(Way::Exchange, "exchange"), (Way::Read, "read"), (Way::Backoff, "backoff")];

fn verdict(grid: &Grid<Passed>, counts: &[usize], within: usize) -> Verdict {
    if within < 2 {
        return Verdict::NotJudged(
            "one processor only: nobody waits while another holds the lock".to_owned(),
        );
    }
    let times = |column: usize| PAPERS.map(|(way, _)| grid[of_way(way)][column].median);
    let leads = |[exchange, read, backoff]: [f64; 3]| exchange <= 1.05 * read.min(backoff);
    let say = |column: usize| {
        let times = times(column).map(nanos);
        format!(
            "with {} processors exchange {}, read {}, backoff {} each",
            counts[column], times[0], times[1], times[2]
        )
    };
    let (few, many) = (1, within - 1);
    if !leads(times(few)) {
        Verdict::Differs(say(few))
    } else if counts[many] < MANY {
        Verdict::NotJudged(format!(
            "{} processors cannot show what happens as they grow; the first half holds: {}",
            counts[many],
            say(few)
        ))
    } else {
        Verdict::when(!leads(times(many)), format!("{}; {}", say(few), say(many)))
    }
}

fn comparisons(grid: &Grid<Passed>, counts: &[usize], within: usize) -> Vec<Comparison> {
    let last = within - 1;
    let case = |paper: (Way, &str)| {
        let row = &grid[of_way(paper.0)];
        comparison(paper, [row[0].median, row[last].median], counts[last])
    };
    PAPERS.map(case).into()
}

/// The paper's words beside the time for each thread with one processor and with all.
fn comparison((way, name): (Way, &str), times: [f64; 2], processors: usize) -> Comparison {
    let [one, all] = times.map(nanos);
    Comparison::new(
        format!("{name}: for each thread, 1 processor and all"),
        if way == Way::Exchange { "best for few" } else { "overtakes it as processors grow" },
        format!("{one} and {all} ({processors} processors)"),
    )
}

fn line(name: &str, row: &[Passed], counts: &[usize]) -> Series {
    Series::new(name, counts.iter().zip(row).map(|(&threads, cell)| (threads as f64, cell.median)))
}

fn ways(grid: &Grid<Passed>, counts: &[usize]) -> Picture {
    let ways = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling].map(of_way);
    Picture {
        title: "The paper's ways of waiting, one thread a processor".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("threads"),
        y: Axis::linear("ns for each thread"),
        series: ways.map(|lock| line(LOCKS[lock].name, &grid[lock], counts)).into(),
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    LOCKS.iter().map(|lock| lock.name).chain(["no lock, fetch_add"])
}

fn all(grid: &Grid<Passed>, counts: &[usize]) -> Picture {
    Picture {
        title: "All locks, up to four threads a processor".to_owned(),
        shape: Shape::Rows,
        x: Axis::linear("threads"),
        y: Axis::log("ns for each thread"),
        series: names().zip(grid).map(|(name, row)| line(name, row, counts)).collect(),
    }
}

fn table(
    title: &str,
    grid: &Grid<Passed>,
    counts: &[usize],
    value: impl Fn(&Passed) -> String,
) -> Table {
    Table {
        title: title.to_owned(),
        columns: std::iter::once("lock".to_owned())
            .chain(counts.iter().map(usize::to_string))
            .collect(),
        rows: names()
            .zip(grid)
            .map(|(name, row)| {
                std::iter::once(name.to_owned()).chain(row.iter().map(&value)).collect()
            })
            .collect(),
    }
}
