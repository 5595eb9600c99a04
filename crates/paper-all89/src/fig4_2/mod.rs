//! Figure 4.2: the relative speed of several threads that count, against the size of the critical
//! section: the pace of one thread over the pace of all.
//!
//! If waiting did not slow the holder, the section alone would set the pace, and the relative speed
//! would be 1 with any number of threads. Where it lies below 1, the rest is the cost of waiting,
//! or of handing the lock over.
//!
//! The paper's sentence: "spinning on memory read degrades performance less as the size of the
//! critical section grows, while spinning on the xchgb instruction degrades performance evenly
//! throughout the critical section" (section 4.5).
//!
//! Rule of the verdict, with eight threads or as many as there are processors if fewer: *holds* if
//!
//! 1. from the smallest section to the largest the relative speed of spinning on reads rises by at
//!    least 0.1, and from no section to the next larger one does it fall by more than 0.05;
//! 2. spinning on the exchange degrades: its relative speed is at most 0.9 with every section;
//! 3. it does so evenly: its relative speeds lie within half of what reads gain from the smallest
//!    section to the largest, whether they rise or fall;
//!
//! else *differs*. One processor: not judged; nor is it if a pace that decides is not known
//! precisely enough ([`Precision`]).

mod simulated;

use std::fmt;

use crate::exchange;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Placement;
use stanchion_study::measure::least;
use stanchion_study::measure::{Grid, Precision, median, sweep_until};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{self, significant};
use stanchion_study_locks::contender::Shared;
use stanchion_study_locks::contest::Contest;
use stanchion_study_locks::list::Way;
use stanchion_study_locks::registry::{LOCKS, Lock, of_way};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig4.2",
    paper: Paper::All89,
    title: "Relative speed, several processors to 1 (the paper: 8), against critical-section size",
    claim: "Spinning on reads degrades less as the critical section grows; spinning on the \
     exchange degrades evenly throughout.",
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

/// Steps of work in the section. Each is about a nanosecond, and is measured below.
const SIZES: [u32; 7] = [0, 4, 15, 50, 200, 1000, 4000];
const MOST_THREADS: usize = 8;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let threads = context.processors.len().min(MOST_THREADS);
    let window = context.window(15, 100);
    let mut settings: Vec<(u32, usize)> = Vec::new();
    for steps in SIZES {
        settings.push((steps, 1));
        settings.push((steps, threads));
    }
    let judged = [Way::Exchange, Way::Read].map(of_way);
    let (grid, repeated) = sweep_until(
        context,
        (LOCKS.len(), &settings),
        Precision::of(EXPERIMENT.id, context),
        |lock, (steps, threads)| {
            let place = Placement { processors: &context.processors, threads };
            (LOCKS[lock].contest)(&Contest { place, window, steps, timed: false }).pace()
        },
        |lock, _| threads > 1 && judged.contains(&lock),
        |&pace| pace,
        median,
    )?;
    let nanos = section_nanos();
    let speed = relative_speed(&grid);
    let verdict = if threads < 2 {
        Verdict::NotJudged(
            "one processor only: no thread waits while another holds the lock".to_owned(),
        )
    } else {
        let judged = Judged::new(&speed[of_way(Way::Exchange)], &speed[of_way(Way::Read)]);
        repeated.judge(judged.verdict())
    };
    let largest = SIZES.len() - 1;
    let ends = |way: Way| {
        let speeds = &speed[of_way(way)];
        comparison(way, [speeds[0], speeds[largest]], [nanos[0], nanos[largest]])
    };
    let line = |lock: usize| {
        let points = nanos.iter().copied().zip(speed[lock].iter().copied());
        Series::new(LOCKS[lock].name, points)
    };
    // Seven dots a row would hide each other; the table has all.
    let some = |lock: usize| {
        let line = line(lock);
        Series::new(line.name, line.points.into_iter().step_by(2))
    };
    let ways = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling].map(of_way);
    let picture = |title: &str, shape, series| Picture {
        title: title.to_owned(),
        shape,
        x: Axis::log("critical section, ns"),
        y: Axis::linear(format!("speed with {threads} threads over speed with 1")),
        series,
    };
    Ok(Outcome {
        comparisons: [Way::Exchange, Way::Read, Way::Backoff].map(ends).into(),
        pictures: vec![
            picture("The paper's ways of waiting", Shape::Lines, ways.map(line).into()),
            picture("All locks, some sizes", Shape::Rows, (0..LOCKS.len()).map(some).collect()),
        ],
        tables: vec![all_sizes(&speed, &nanos)],
        notes: vec![
            format!(
                "{threads} threads against 1, each pinned to a processor of its own (the paper: \
                 8 against 1); sections counted for {} ms a cell, medians of {}, locks \
                 in turn.",
                window.as_millis(),
                repeated.words()
            ),
            "The section multiplies and stores into two cache lines that the lock guards; its \
             size is measured alone, on one thread. With several threads those lines move too, \
             so a relative speed of 1 is out of reach for small sections whatever the lock."
                .to_owned(),
        ],
        title: Some(titled(threads)),
        ..Outcome::new(verdict)
    })
}

/// Compares the paper's words with the relative speeds of `way` in the smallest section and in the
/// largest. The `sizes` of the two sections are in nanoseconds.
fn comparison(way: Way, speeds: [f64; 2], sizes: [f64; 2]) -> Comparison {
    let (name, paper) = match way {
        Way::Exchange => ("spin on exchange", "even throughout"),
        Way::Read => ("spin on read", "improves with size"),
        Way::Backoff => ("backoff", "best"),
        Way::Polling => ("polling backoff", "proposed, not measured"),
    };
    let [least, most] = speeds.map(significant);
    let [small, large] = sizes.map(units::nanos);
    Comparison::new(
        format!("{name}: relative speed, smallest and largest section"),
        paper,
        format!("{least} and {most} ({small} and {large})"),
    )
}

fn titled(threads: usize) -> String {
    format!(
        "Relative speed, {threads} processors to 1 (the paper: 8 to 1), against critical-section size"
    )
}

/// Returns for each lock and size the pace of one thread over the pace of all.
fn relative_speed(grid: &Grid<f64>) -> Grid<f64> {
    grid.iter().map(|row| row.chunks_exact(2).map(|pair| pair[0] / pair[1]).collect()).collect()
}

fn all_sizes(speed: &Grid<f64>, nanos: &[f64]) -> Table {
    let head = std::iter::once("critical section".to_owned());
    let row = |(lock, row): (&Lock, &Vec<f64>)| {
        let cells = row.iter().map(|&speed| significant(speed));
        std::iter::once(lock.name.to_owned()).chain(cells).collect()
    };
    Table {
        title: "All locks, all sizes: relative speed by critical section".to_owned(),
        columns: head.chain(nanos.iter().map(|&nanos| units::nanos(nanos))).collect(),
        rows: LOCKS.iter().zip(speed).map(row).collect(),
    }
}

fn signed(value: f64) -> String {
    format!("{value:+.2}")
}

/// The figures that the claim is about: relative speeds of spinning on the exchange and on reads.
#[derive(Clone, Copy, Debug)]
struct Judged {
    /// The rise of the speed with reads from the smallest section to the largest.
    rise: f64,
    /// The largest fall of that speed from one section to the next.
    fall: f64,
    /// The least and the greatest speed with the exchange.
    range: [f64; 2],
}

impl Judged {
    fn new(exchange: &[f64], read: &[f64]) -> Self {
        Self {
            rise: read[read.len() - 1] - read[0],
            fall: read.windows(2).map(|pair| pair[0] - pair[1]).fold(0.0, f64::max),
            range: [
                exchange.iter().copied().fold(f64::INFINITY, f64::min),
                exchange.iter().copied().fold(0.0, f64::max),
            ],
        }
    }

    fn rises(&self) -> bool {
        self.rise >= 0.1 && self.fall <= 0.05
    }

    /// Returns whether the exchange costs something with every section.
    fn degrades(&self) -> bool {
        self.range[1] <= 0.9
    }

    fn is_even(&self) -> bool {
        self.range[1] - self.range[0] <= self.rise / 2.0
    }

    fn verdict(&self) -> Verdict {
        Verdict::when(self.rises() && self.degrades() && self.is_even(), self.to_string())
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, most] = self.range.map(significant);
        write!(
            f,
            "from the smallest section to the largest, the relative speed of read changes by {} and falls by at most {} in between; that of exchange lies between {least} and {most}",
            signed(self.rise),
            significant(self.fall),
        )
    }
}

/// Returns the uncontended time of each section, in nanoseconds.
fn section_nanos() -> [f64; SIZES.len()] {
    let mut shared = Shared::default();
    SIZES.map(|steps| {
        least(20, 500, || {
            shared.counter += 1;
            shared.work(steps);
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(exchange: [f64; 3], read: [f64; 3]) -> &'static str {
        Judged::new(&exchange, &read).verdict().name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged([0.5, 0.55, 0.5], [0.5, 0.7, 0.9]), "holds");
        assert_eq!(judged([0.5, 0.55, 0.5], [0.5, 0.5, 0.55]), "differs", "reads do not gain");
        assert_eq!(judged([0.5, 0.55, 0.5], [0.5, 0.4, 0.9]), "differs", "reads fall in between");
        assert_eq!(judged([0.5, 0.6, 0.8], [0.5, 0.7, 0.9]), "differs", "exchange rises");
        assert_eq!(judged([0.8, 0.6, 0.5], [0.5, 0.7, 0.9]), "differs", "exchange falls");
        assert_eq!(judged([0.5, 0.8, 0.5], [0.5, 0.7, 0.9]), "differs", "exchange is not even");
        assert_eq!(judged([1.0, 1.0, 1.0], [0.5, 0.7, 0.9]), "differs", "exchange costs nothing");
    }
}
