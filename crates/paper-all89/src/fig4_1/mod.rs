//! Figure 4.1: all threads increment one counter under one lock; elapsed time for a million
//! increments, each way of waiting.
//!
//! The paper's sentence: spinning on the exchange and spinning on the copy "degrade processor
//! performance badly for even a moderate number of spinning processors. […] By contrast, the
//! backoff algorithm results in only slight degradation for less than ten spin-waiting processors"
//! (section 4.5).
//!
//! Rule of the verdict, on the paper's three ways of waiting, each thread on a processor of its
//! own: *degraded* is the elapsed time with so many processors over the elapsed time with one. Each
//! time is the lower quartile of its repeats. Why not the median: a disturbance from outside makes
//! a cell slower, never faster, and it shifts a median of few repeats. Why not the least: where one
//! of two threads was kept off its processor, the other counts uncontended. *holds* if
//!
//! 1. with ten processors and with every greater number, or with all where there are fewer,
//!    spinning on the exchange and spinning on reads are degraded at least twofold ([`BADLY`]);
//! 2. with every number up to ten, backoff is degraded at most one and a half times ([`SLIGHTLY`]);
//!
//! else *differs*. The paper does not say how many a moderate number is. Ten is the number up to
//! which it contrasts the ways of waiting.
//!
//! The cells are measured until the confidence interval of each pace that decides is narrow enough
//! ([`Precision`]). If one is wider after the most rounds, the claim is *not judged*.
//!
//! It is *not judged* either if in any of these cells the threads had less than half of their
//! processors' time (the median of the repeats). The threads wait by spinning, so other programs
//! took the rest. With one processor no thread waits and nothing can be judged.

mod simulated;

use std::time::Duration;

use crate::exchange;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Placement;
use stanchion_study::measure::{Grid, Precision, lower_quartile, median, sweep_until};
use stanchion_study::outcome::{
    Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict, range,
};
use stanchion_study::units::{nanos, percent, significant};
use stanchion_study_locks::contest::{Contest, Standing, run_unlocked};
use stanchion_study_locks::list::Way;
use stanchion_study_locks::registry::{LOCKS, of_way};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig4.1",
    paper: Paper::All89,
    title: "1,000,000 increments under one lock",
    claim: "Spinning on the exchange and spinning on reads degrade badly for even a moderate \
     number of processors; backoff only slightly below ten waiters.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(
            Simulated::on(&["symmetry-a", "symmetry-b", "firefly"], simulated::run)
                .with_counterfactuals(&[exchange::locked(|context, machine, nanos| {
                    exchange::found(simulated::run, context, machine, nanos)
                })]),
        ),
    },
};

/// Medians of one cell unless said otherwise.
#[derive(Clone, Copy)]
struct Cell {
    /// Nanoseconds for one acquisition, all threads together.
    pace: f64,
    /// The least and the greatest of the same.
    range: (f64, f64),
    /// The lower quartile of the same, for the verdict.
    quiet_pace: f64,
    /// Processor time for one acquisition.
    cost: f64,
    /// Processor time over the time that all threads' processors had; none if the system does not
    /// tell it.
    had: Option<f64>,
    /// Jain's index of the threads' acquisitions.
    fairness: f64,
    /// Nanoseconds of the longest wait of any thread.
    longest_wait: f64,
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let counts = context.thread_counts();
    let window = context.window(50, 200);
    // The last row is the counter without a lock.
    let rows = LOCKS.len() + 1;
    let within = context.within_processors().len();
    let decides = |lock, column| column < within && JUDGED.map(of_way).contains(&lock);
    let (grid, repeated) = sweep_until(
        context,
        (rows, &counts),
        Precision::of(EXPERIMENT.id, context),
        |lock, threads| measure(context, lock, threads, window),
        decides,
        |[plain, _]| plain.pace(),
        cell,
    )?;
    Ok(Outcome {
        comparisons: comparisons(&grid, &counts, within),
        pictures: vec![ways(&grid, &counts[..within]), all(&grid, &counts)],
        tables: vec![
            table("Processor time for one increment, by threads", &grid, &counts, |cell| {
                nanos(cell.cost)
            }),
            table(
                "Longest wait of any thread, by threads",
                &grid[..LOCKS.len()],
                &counts,
                |cell| nanos(cell.longest_wait),
            ),
            table("Jain's index of fairness, by threads (1 is even)", &grid, &counts, |cell| {
                significant(cell.fairness)
            }),
        ],
        notes: vec![
            format!(
                "Increments are counted for {} ms a cell and scaled to a million, because a \
                 fixed million would take some of these locks minutes once threads outnumber \
                 processors; medians of {}, locks in turn. Longest waits come from \
                 a further run of half that time in which each wait is timed, and can be no \
                 longer than the run.",
                window.as_millis(),
                repeated.words()
            ),
            "The verdict and the comparison with the paper take each cell's lower quartile instead \
             of its median, because what disturbs a cell makes it slower; they do not judge \
             where the threads of a cell had less than half of their processors' time."
                .to_owned(),
            "Up to one thread a processor each thread is pinned to its own; with more they are \
             left to the kernel. The counter has a cache line of its own, apart from the \
             lock's."
                .to_owned(),
            format!(
                "First come, first served: {}. The others serve the thread that comes at the right \
                 moment.",
                first_come()
            ),
            "A lock that lets a thread take it again before others notice its release looks \
             fast here and scores low in fairness: read the two together."
                .to_owned(),
        ],
        ..Outcome::new(repeated.judge(verdict(&grid, &counts, within)))
    })
}

fn measure(context: &Context, lock: usize, threads: usize, window: Duration) -> [Standing; 2] {
    let place = Placement { processors: &context.processors, threads };
    let plain = Contest { place, window, steps: 0, timed: false };
    let timed = Contest { window: window / 2, timed: true, ..plain };
    match LOCKS.get(lock) {
        Some(lock) => [(lock.contest)(&plain), (lock.contest)(&timed)],
        None => [run_unlocked(&plain); 2],
    }
}

fn cell(repeats: Vec<[Standing; 2]>) -> Cell {
    let over = |value: &dyn Fn(&[Standing; 2]) -> f64| median(repeats.iter().map(value).collect());
    Cell {
        pace: over(&|[plain, _]| plain.pace()),
        range: range(repeats.iter().map(|[plain, _]| plain.pace())),
        quiet_pace: lower_quartile(repeats.iter().map(|[plain, _]| plain.pace()).collect()),
        cost: over(&|[plain, _]| plain.cost()),
        had: Some(over(&|[plain, _]| plain.had())).filter(|&had| had > 0.0),
        fairness: over(&|[plain, _]| plain.fairness),
        longest_wait: over(&|[_, timed]| timed.longest_wait),
    }
}

/// The share of their processors' time that threads must have had for their cell to be judged.
const ENOUGH: f64 = 0.5;

/// The number of processors up to which the paper contrasts the ways of waiting. All but one wait.
const MODERATE: usize = 10;
/// The least elapsed time, over that with one processor, that is degraded badly.
const BADLY: f64 = 2.0;
/// The largest elapsed time, over that with one processor, that is degraded slightly.
const SLIGHTLY: f64 = 1.5;

/// The paper's three ways of waiting, which decide.
const JUDGED: [Way; 3] = [Way::Exchange, Way::Read, Way::Backoff];

/// Returns the elapsed time of a column over that with one processor.
fn degraded(grid: &Grid<Cell>, way: Way, column: usize) -> f64 {
    let row = &grid[of_way(way)];
    row[column].quiet_pace / row[0].quiet_pace
}

fn verdict(grid: &Grid<Cell>, counts: &[usize], within: usize) -> Verdict {
    if within < 2 {
        return Verdict::NotJudged(
            "one processor only: no thread waits while another holds the lock".to_owned(),
        );
    }
    let last = within - 1;
    let moderate = counts[..within].iter().position(|&count| count >= MODERATE).unwrap_or(last);
    let few = 1..=counts[..within].iter().rposition(|&count| count <= MODERATE).unwrap_or(last);
    let least = |way| {
        (moderate..within).map(|column| degraded(grid, way, column)).fold(f64::INFINITY, f64::min)
    };
    let [exchange, read] = [Way::Exchange, Way::Read].map(least);
    let backoff = few.map(|column| degraded(grid, Way::Backoff, column)).fold(1.0, f64::max);
    let judged = JUDGED.map(|way| &grid[of_way(way)]);
    let least_had = judged
        .iter()
        .flat_map(|row| row[..within].iter().map(|cell| cell.had))
        .flatten()
        .fold(1.0, f64::min);
    if least_had < ENOUGH {
        return Verdict::NotJudged(format!(
            "others took the processors: in one of the cells that decide, the threads had {} of \
             their processors' time. Close other programs and run it again",
            percent(least_had)
        ));
    }
    Verdict::when(
        exchange >= BADLY && read >= BADLY && backoff <= SLIGHTLY,
        format!(
            "against 1 processor, from {} to {} processors exchange takes at least {} times as long, \
             read {}; up to {MODERATE} processors backoff at most {}",
            counts[moderate],
            counts[last],
            significant(exchange),
            significant(read),
            significant(backoff)
        ),
    )
}

fn comparisons(grid: &Grid<Cell>, counts: &[usize], within: usize) -> Vec<Comparison> {
    WAYS.map(|way| comparison(way, degraded(grid, way, within - 1), counts[within - 1])).into()
}

/// The paper's three ways of waiting, and the one that it proposes.
const WAYS: [Way; 4] = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling];

/// Compares the paper's words with the time that `way` took with `processors` over that with one.
fn comparison(way: Way, degraded: f64, processors: usize) -> Comparison {
    let (name, paper) = match way {
        Way::Exchange => ("spin on exchange", "“degrades badly”, 20 processors"),
        Way::Read => ("spin on read", "“degrades badly”, 20 processors"),
        Way::Backoff => ("backoff", "“only slight” below 10 waiters"),
        Way::Polling => ("polling backoff", "proposed, not measured"),
    };
    Comparison::new(
        format!("{name}: elapsed with all processors over 1"),
        paper,
        format!("{} ({processors} processors)", significant(degraded)),
    )
}

fn first_come() -> String {
    let names: Vec<&str> = LOCKS.iter().filter(|lock| lock.ordered).map(|lock| lock.name).collect();
    names.join(", ")
}

/// Nanoseconds an increment are milliseconds a million.
fn line(name: &str, row: &[Cell], counts: &[usize]) -> Series {
    Series::new(name, counts.iter().zip(row).map(|(&threads, cell)| (threads as f64, cell.pace)))
        .with_spread(row[..counts.len()].iter().map(|cell| cell.range))
}

fn ways(grid: &Grid<Cell>, counts: &[usize]) -> Picture {
    Picture {
        title: "The paper's ways of waiting, one thread a processor".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("threads"),
        y: Axis::linear("ms for a million increments"),
        series: WAYS.map(of_way).map(|lock| line(LOCKS[lock].name, &grid[lock], counts)).into(),
    }
}

fn all(grid: &Grid<Cell>, counts: &[usize]) -> Picture {
    let mut series: Vec<Series> =
        LOCKS.iter().zip(grid).map(|(lock, row)| line(lock.name, row, counts)).collect();
    series.extend(grid.last().map(|row| line("no lock, fetch_add", row, counts)));
    Picture {
        title: "All locks, up to four threads a processor".to_owned(),
        shape: Shape::Rows,
        x: Axis::linear("threads"),
        y: Axis::log("ms for a million increments"),
        series,
    }
}

fn table(
    title: &str,
    grid: &[Vec<Cell>],
    counts: &[usize],
    value: impl Fn(&Cell) -> String,
) -> Table {
    let names = LOCKS.iter().map(|lock| lock.name).chain(["no lock, fetch_add"]);
    Table {
        title: title.to_owned(),
        columns: std::iter::once("lock".to_owned())
            .chain(counts.iter().map(usize::to_string))
            .collect(),
        rows: names
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

    fn judge(pace_with_two: f64, had: Option<f64>) -> Verdict {
        let cell = |pace, had| Cell {
            range: (pace, pace),
            pace: 1e9, // A disturbed median decides nothing.
            quiet_pace: pace,
            cost: pace,
            had,
            fairness: 1.0,
            longest_wait: 0.0,
        };
        let mut grid = vec![vec![cell(10.0, Some(1.0)), cell(pace_with_two, had)]; LOCKS.len()];
        grid[of_way(Way::Backoff)][1] = cell(12.0, Some(1.0));
        verdict(&grid, &[1, 2], 2)
    }

    /// Paces with 1, 2, 10 and 20 processors.
    fn paces(exchange: [f64; 4], read: [f64; 4], backoff: [f64; 4]) -> &'static str {
        let row = |paces: [f64; 4]| {
            let cell = |pace| Cell {
                pace,
                range: (pace, pace),
                quiet_pace: pace,
                cost: pace,
                had: None,
                fairness: 1.0,
                longest_wait: 0.0,
            };
            paces.map(cell).to_vec()
        };
        let mut grid = vec![row([1.0; 4]); LOCKS.len()];
        grid[of_way(Way::Exchange)] = row(exchange);
        grid[of_way(Way::Read)] = row(read);
        grid[of_way(Way::Backoff)] = row(backoff);
        verdict(&grid, &[1, 2, 10, 20], 4).name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        let (bad, slight) = ([1.0, 1.5, 2.5, 4.0], [1.0, 1.2, 1.4, 3.0]);
        assert_eq!(paces(bad, bad, slight), "holds");
        let many = [1.0, 1.0, 1.9, 4.0];
        assert_eq!(paces(many, bad, slight), "differs", "not for a moderate number");
        assert_eq!(paces(bad, many, slight), "differs", "not for a moderate number");
        assert_eq!(paces(bad, [1.0, 1.5, 2.5, 1.9], slight), "differs", "not for all");
        assert_eq!(paces(bad, bad, [1.0, 1.2, 1.6, 1.2]), "differs", "not slight with ten");
        assert_eq!(paces(bad, bad, [1.0, 1.6, 1.4, 1.2]), "differs", "not slight with two");
    }

    #[test]
    fn the_quiet_pace_decides_and_only_where_the_threads_ran() {
        assert_eq!(judge(30.0, Some(0.9)).name(), "holds");
        assert_eq!(judge(15.0, Some(0.9)).name(), "differs");
        assert_eq!(judge(30.0, Some(0.27)).name(), "not judged");
        assert_eq!(judge(30.0, None).name(), "holds", "where the system does not say");
    }
}
