//! Figure 4.3: threads start together, each passes once through the lock, and waits until all have;
//! elapsed time for each thread.
//!
//! Without degradation and without delay the time grows by the same amount with each processor, and
//! the normalized curve is flat.
//!
//! The paper's sentences: "for small numbers of processors, spinning on the xchgb instruction is
//! fastest […]. As more processors are added, however, this benefit is outweighed by the
//! degradation of the processor holding the lock. The backoff algorithm shows a similar curve to
//! spinning on a memory read" (section 4.5).
//!
//! Rule of the verdict, on the paper's three ways of waiting, each thread on a processor of its own
//! ([`Judged`]): *holds* if
//!
//! 1. with the fewest processors that can wait (two), spinning on the exchange takes less time than
//!    spinning on reads and than backoff;
//! 2. with all processors it takes longer than each of them, by at least 3 % ([`OUTWEIGHED`]);
//! 3. with every number from two on, backoff takes at most one and a half times as long as spinning
//!    on reads, and that at most one and a half times as long as backoff;
//!
//! *differs* if any of these is measured and is not so. With fewer than four processors the second
//! cannot be measured, and the claim is not judged unless another part already differs. Nor is it
//! if a time that decides is not known precisely enough ([`Precision`]).

mod simulated;

use std::fmt;
use std::time::Duration;

use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Placement;
use stanchion_study::measure::{Grid, Precision, median, sweep_until};
use stanchion_study::outcome::{
    Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict, range,
};
use stanchion_study::units::{nanos, significant};
use stanchion_study_locks::list::Way;
use stanchion_study_locks::pass::{Pass, Passed, run_unlocked};
use stanchion_study_locks::registry::{LOCKS, of_way};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig4.3",
    paper: Paper::All89,
    title: "Time to pass once through the lock, for each processor",
    claim: "Spinning on the exchange is fastest for few processors and is overtaken as they grow; \
     backoff shows a similar curve to spinning on reads.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(
            &["symmetry-a", "symmetry-b", "firefly"],
            simulated::run,
        )),
    },
};

/// The number of processors from which on "as they grow" can be tried.
const MANY: usize = 4;

/// The rounds of one cell, in nanoseconds for each thread.
#[derive(Clone, Copy)]
struct Cell {
    /// The median of the runs' medians.
    median: f64,
    /// The least and the greatest of these.
    range: (f64, f64),
    /// The median of the runs' means.
    mean: f64,
    /// The longest round.
    longest: f64,
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let counts = context.thread_counts();
    let window = context.window(25, 150);
    // The last row is the start and the finish around one atomic instruction.
    let rows = LOCKS.len() + 1;
    let within = context.within_processors().len();
    let judged = PAPERS.map(|(way, _)| of_way(way));
    // With one thread nothing is judged.
    let decides = |lock, column| (1..within).contains(&column) && judged.contains(&lock);
    let (grid, repeated) = sweep_until(
        context,
        (rows, &counts),
        Precision::of(EXPERIMENT.id, context),
        |lock, threads| measure(context, lock, threads, window),
        decides,
        |passed| passed.median,
        |repeats| Cell {
            median: median(repeats.iter().map(|passed| passed.median).collect()),
            range: range(repeats.iter().map(|passed| passed.median)),
            mean: median(repeats.iter().map(|passed| passed.mean).collect()),
            longest: repeats.iter().map(|passed| passed.longest).fold(0.0, f64::max),
        },
    )?;
    Ok(Outcome {
        comparisons: comparisons(&grid, &counts, within),
        pictures: vec![ways(&grid, &counts[..within]), all(&grid, &counts)],
        tables: vec![
            table("Mean, for each thread, by threads", &grid, &counts, |cell| nanos(cell.mean)),
            table("Longest round, for each thread, by threads", &grid, &counts, |cell| {
                nanos(cell.longest)
            }),
        ],
        notes: vec![
            format!(
                "Rounds for {} ms a cell, their median, then the median of {} of \
                 them; locks in turn. A round contains its own start and finish and two \
                 readings of the clock; the row without a lock shows what those \
                 cost.",
                window.as_millis(),
                repeated.words()
            ),
            "Threads that are through spin until all are, as in the paper. Where threads \
             outnumber the processors they yield instead, or each would keep the others waiting \
             for a time slice whatever the lock."
                .to_owned(),
        ],
        ..Outcome::new(repeated.judge(verdict(&grid, &counts, within)))
    })
}

fn measure(context: &Context, lock: usize, threads: usize, window: Duration) -> Passed {
    let place = Placement { processors: &context.processors, threads };
    let pass = Pass { place, window };
    LOCKS.get(lock).map_or_else(|| run_unlocked(&pass), |lock| (lock.pass)(&pass))
}

const PAPERS: [(Way, &str); 3] =
    [(Way::Exchange, "exchange"), (Way::Read, "read"), (Way::Backoff, "backoff")];

fn verdict(grid: &Grid<Cell>, counts: &[usize], within: usize) -> Verdict {
    if within < 2 {
        return Verdict::NotJudged(
            "one processor only: no thread waits while another holds the lock".to_owned(),
        );
    }
    let rows = PAPERS.map(|(way, _)| &grid[of_way(way)]);
    let times = (0..within).map(|column| rows.map(|row| row[column].median)).collect();
    Judged { counts: &counts[..within], times }.verdict()
}

/// The least time of spinning on the exchange, over the times of the others, at which its benefit
/// is outweighed.
const OUTWEIGHED: f64 = 1.03;
/// The largest ratio of the times of two similar curves.
const SIMILAR: f64 = 1.5;

/// The figures that the claim is about.
struct Judged<'a> {
    /// The numbers of processors: from one on, at least two of them.
    counts: &'a [usize],
    /// The times of the exchange, reads and backoff, by count.
    times: Vec<[f64; 3]>,
}

impl Judged<'_> {
    fn last(&self) -> usize {
        self.counts.len() - 1
    }

    fn is_fastest_for_few(&self) -> bool {
        let [exchange, read, backoff] = self.times[1];
        exchange < read.min(backoff)
    }

    fn is_overtaken(&self) -> bool {
        let [exchange, read, backoff] = self.times[self.last()];
        exchange >= OUTWEIGHED * read.max(backoff)
    }

    /// Returns the largest ratio of the times of backoff and of reads.
    fn apart(&self) -> f64 {
        let apart = |&[_, read, backoff]: &[f64; 3]| (read / backoff).max(backoff / read);
        self.times[1..].iter().map(apart).fold(1.0, f64::max)
    }

    fn verdict(&self) -> Verdict {
        let many = self.counts[self.last()];
        if !self.is_fastest_for_few() || self.apart() > SIMILAR {
            Verdict::Differs(self.to_string())
        } else if many < MANY {
            Verdict::NotJudged(format!(
                "{many} processors cannot show what happens as they grow; the other parts hold: {self}"
            ))
        } else {
            Verdict::when(self.is_overtaken(), self.to_string())
        }
    }
}

impl fmt::Display for Judged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns = vec![1, self.last()];
        columns.dedup();
        for column in columns {
            let [exchange, read, backoff] = self.times[column].map(nanos);
            let count = self.counts[column];
            write!(
                f,
                "with {count} processors exchange {exchange}, read {read}, backoff {backoff} each; "
            )?;
        }
        write!(f, "backoff and read are at most {} times apart", significant(self.apart()))
    }
}

fn comparisons(grid: &Grid<Cell>, counts: &[usize], within: usize) -> Vec<Comparison> {
    let last = within - 1;
    let case = |paper: (Way, &str)| {
        let row = &grid[of_way(paper.0)];
        comparison(paper, [row[0].median, row[last].median], counts[last])
    };
    PAPERS.map(case).into()
}

/// Compares the paper's words with the time for each thread, with one processor and with all.
fn comparison((way, name): (Way, &str), times: [f64; 2], processors: usize) -> Comparison {
    let [one, all] = times.map(nanos);
    Comparison::new(
        format!("{name}: for each thread, 1 processor and all"),
        if way == Way::Exchange { "best for few" } else { "overtakes it as processors grow" },
        format!("{one} and {all} ({processors} processors)"),
    )
}

fn line(name: &str, row: &[Cell], counts: &[usize]) -> Series {
    let points = counts.iter().zip(row).map(|(&threads, cell)| (threads as f64, cell.median));
    Series::new(name, points).with_spread(row[..counts.len()].iter().map(|cell| cell.range))
}

fn ways(grid: &Grid<Cell>, counts: &[usize]) -> Picture {
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

fn all(grid: &Grid<Cell>, counts: &[usize]) -> Picture {
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
    grid: &Grid<Cell>,
    counts: &[usize],
    value: impl Fn(&Cell) -> String,
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

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: [f64; 3] = [4.0, 5.0, 6.0];
    const MANY_OF_THEM: [f64; 3] = [9.0, 7.0, 8.0];

    fn judged(few: [f64; 3], many: [f64; 3]) -> &'static str {
        Judged { counts: &[1, 2, 20], times: vec![[8.0; 3], few, many] }.verdict().name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(FEW, MANY_OF_THEM), "holds");
        assert_eq!(judged([5.0, 5.0, 6.0], MANY_OF_THEM), "differs", "not faster than reads");
        assert_eq!(judged([4.0, 5.0, 3.9], MANY_OF_THEM), "differs", "backoff is faster");
        assert_eq!(judged(FEW, [7.5, 7.0, 8.0]), "differs", "does not overtake backoff");
        assert_eq!(judged(FEW, [9.0, 8.9, 8.0]), "differs", "reads do not overtake it");
        assert_eq!(judged([4.0, 5.0, 7.6], MANY_OF_THEM), "differs", "curves apart for few");
        assert_eq!(judged(FEW, [12.0, 7.0, 10.6]), "differs", "curves apart for many");
        let two = |times| Judged { counts: &[1, 2], times: vec![[8.0; 3], times] }.verdict();
        assert_eq!(two(FEW).name(), "not judged");
        assert_eq!(two([6.0, 5.0, 6.0]).name(), "differs");
    }
}
