//! Figure 3.4: the cost of a thread by the number of runnable threads, on 18 processors.
//!
//! The cost is the paper's. With fewer runnable threads than processors, it is the time from before
//! a creation until the thread runs. With more, it is the time of a creation, and of a finish until
//! the next thread runs. *Few* are one to three runnable threads, *nearly all* the last three
//! numbers below the processors, *beyond* those from two more than the processors on.
//!
//! Rule of the verdict, by means over such numbers: *holds* if
//!
//! 1. while processors idle (few to nearly all), an idle queue costs least of all five, and beyond
//!    more than local free lists alone;
//! 2. local ready queues have a spike. Their *scan* is their cost beyond that of local free lists,
//!    which have the same blocks and one ready queue. With one runnable thread less than processors
//!    and with as many, the scan is at least a twentieth of the cost. With half as many and with
//!    twice as many it is less than half of that;
//! 3. with a central queue (local free lists) few runnable threads cost more than nearly all do,
//!    since idle processors rush for each;
//!
//! else *differs*. *not judged* with fewer than eight processors.

use stanchion_simulator::Machine;

use super::threads::{Curve, FREE_LIST, IDLE, PAPER, READY, real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{nanos, percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig3.4",
    paper: Paper::All89,
    title: "Thread cost against runnable threads",
    claim: "An idle queue is fastest while processors idle and slower once threads outnumber them; local ready queues spike near 18; a central queue is dearer with \
            few runnable threads.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run_simulated)),
    },
};

/// The number of processors in the paper.
pub(super) const PROCESSORS: usize = 18;
/// The number of processors below which the claim cannot be seen.
const LEAST: usize = 8;
/// The largest number of runnable threads that is few. It is also the largest number of processors
/// without a thread at which the threads are nearly as many as processors.
const SOME: usize = 3;

/// Cost by runnable threads, from 1 to twice the processors or a little more, strategy by strategy.
pub(super) struct Curves {
    /// The number of processors.
    pub(super) processors: usize,
    /// The strategies, then whole pools.
    pub(super) rows: Vec<Curve>,
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let processors = context.processors.len();
    if processors < 2 {
        return Ok(Outcome::new(too_few(processors)));
    }
    let rows = real::latencies(context, true)?;
    let mut notes = common();
    notes.push("Events follow each other by 5 µs and more. The rows after the strategies are whole pools. They have a worker less, because the creator is not a worker: if it were one, tokio \
         would not let other workers have the task that it created last. They are not judged. Not there: chili, which waits for its forks, and threads of the system, which all run at once.".to_owned());
    Ok(Outcome { notes, ..outcome(&Curves { processors, rows }) })
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let processors = machine.processors.min(PROCESSORS);
    if processors < 2 {
        return Ok(Outcome::new(too_few(processors)));
    }
    let place = simulated::Place::of(&Machine { processors, ..machine.clone() });
    let rows = simulated::latencies(context, &place, processors)?;
    let mut notes = common();
    notes.extend(simulated::notes(context, &place).into_iter().skip(1));
    Ok(Outcome { notes, ..outcome(&Curves { processors, rows }) })
}

fn common() -> Vec<String> {
    vec![
        "One thread creates all others and says which of them finishes, chosen at random; between two events all come to rest, so no lock is waited for but by idle processors that rush for \
         the same thread. Means over several rounds up and down. Runnable threads are counted before a creation."
            .to_owned(),
    ]
}

impl Curves {
    /// Returns the mean cost of `row` over these numbers of runnable threads.
    fn mean(&self, row: usize, runnable: std::ops::RangeInclusive<usize>) -> f64 {
        let points = self.rows[row].1.iter().filter(|(number, _)| runnable.contains(number));
        let (sum, number) =
            points.fold((0.0, 0.0), |(sum, number), (_, cost)| (sum + cost, number + 1.0));
        sum / number
    }

    pub(super) fn at(&self, row: usize, runnable: usize) -> f64 {
        self.mean(row, runnable..=runnable)
    }

    pub(super) fn while_idle(&self, row: usize) -> f64 {
        self.mean(row, 1..=self.processors - 1)
    }

    pub(super) fn beyond(&self, row: usize) -> f64 {
        self.mean(row, self.processors + 2..=usize::MAX)
    }

    /// Returns the cost that scanning adds to local free lists, as a share of theirs.
    fn scan(&self, runnable: usize) -> f64 {
        self.at(READY, runnable) / self.at(FREE_LIST, runnable) - 1.0
    }

    /// Returns the scan with half as many threads as processors, one less than all, as many, and
    /// twice as many.
    fn spike(&self) -> [f64; 4] {
        let near = self.processors;
        [near / 2, near - 1, near, 2 * near].map(|runnable| self.scan(runnable))
    }

    /// Returns the cost of a central queue with few runnable threads over its cost with nearly as
    /// many as processors.
    fn rush(&self) -> f64 {
        let nearly = self.processors - SOME..=self.processors - 1;
        self.mean(FREE_LIST, 1..=SOME) / self.mean(FREE_LIST, nearly)
    }

    /// Returns the cheapest of the paper's five while processors idle.
    fn cheapest(&self) -> usize {
        let cost = |&row: &usize| self.while_idle(row);
        (0..PAPER).min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or(0)
    }

    fn picture(&self) -> Picture {
        let line = |(name, points): &Curve| {
            Series::new(*name, points.iter().map(|&(number, cost)| (number as f64, cost / 1e3)))
        };
        Picture {
            title: format!("Cost of a thread, {} processors", self.processors),
            shape: Shape::Lines,
            x: Axis::linear("runnable threads"),
            y: Axis::linear("µs"),
            series: self.rows.iter().map(line).collect(),
        }
    }

    fn table(&self) -> Table {
        let row = |row: usize| {
            let name = self.rows[row].0.to_owned();
            vec![
                name,
                nanos(self.while_idle(row)),
                nanos(self.at(row, self.processors)),
                nanos(self.beyond(row)),
            ]
        };
        Table {
            title: "Means".to_owned(),
            columns: [
                "strategy",
                "while processors idle",
                "as many threads as processors",
                "beyond",
            ]
            .map(str::to_owned)
            .into(),
            rows: (0..self.rows.len()).map(row).collect(),
        }
    }
}

fn outcome(curves: &Curves) -> Outcome {
    let mut comparisons = vec![Comparison::new(
        "idle queue over local free lists, beyond",
        "above 1",
        significant(curves.beyond(IDLE) / curves.beyond(FREE_LIST)),
    )];
    if curves.processors >= LEAST {
        let scans = curves.spike().map(percent).join(", ");
        comparisons.insert(
            0,
            Comparison::new(
                "cheapest while processors idle",
                "idle queue",
                curves.rows[curves.cheapest()].0,
            ),
        );
        comparisons.extend([
            Comparison::new(
                "what scanning adds with half as many threads as processors, one less, as many, twice as many",
                "a spike",
                scans,
            ),
            Comparison::new(
                "central queue: few runnable threads over nearly as many as processors",
                "above 1",
                significant(curves.rush()),
            ),
        ]);
    }
    Outcome {
        comparisons,
        pictures: vec![curves.picture()],
        tables: vec![curves.table()],
        ..Outcome::new(verdict(curves))
    }
}

fn too_few(processors: usize) -> Verdict {
    Verdict::NotJudged(format!(
        "with {processors} processors there are no few and no many idle ones; it takes {LEAST}"
    ))
}

fn verdict(curves: &Curves) -> Verdict {
    if curves.processors < LEAST {
        return too_few(curves.processors);
    }
    let beyond = curves.beyond(IDLE) / curves.beyond(FREE_LIST);
    let [half, below, above, twice] = curves.spike();
    let is_spike = below >= 0.05 && above >= 0.05 && half < 0.5 * below && twice < 0.5 * above;
    let (cheapest, rush) = (curves.cheapest(), curves.rush());
    Verdict::when(
        cheapest == IDLE && beyond > 1.0 && is_spike && rush > 1.0,
        format!(
            "while processors idle the cheapest is: {}; beyond, an idle queue costs {} times local free lists; scanning adds {} with half as many threads as processors, {} \
             with one less, {} with as many, {} with twice as many; few runnable threads cost a central queue {} times what nearly all do",
            curves.rows[cheapest].0,
            significant(beyond),
            percent(half),
            percent(below),
            percent(above),
            percent(twice),
            significant(rush)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs with 18 processors: a base, and what is added for (strategy, runnable threads).
    fn judged(added: impl Fn(usize, usize) -> f64) -> &'static str {
        let paper = |row: usize, runnable: usize| match row {
            IDLE if runnable < 18 => 30.0,
            IDLE => 70.0,
            READY if (16..=19).contains(&runnable) => 80.0,
            FREE_LIST | READY if runnable <= 3 => 60.0,
            _ => 50.0,
        };
        let row = |row: usize| {
            let cost = |runnable| (runnable, paper(row, runnable) + added(row, runnable));
            ("a strategy", (1..=36).map(cost).collect())
        };
        verdict(&Curves { processors: 18, rows: (0..PAPER).map(row).collect() }).name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(|_, _| 0.0), "holds");
        let idle = |factor: f64| move |row, _| if row == IDLE { factor } else { 0.0 };
        assert_eq!(judged(idle(25.0)), "differs", "an idle queue is not the cheapest");
        assert_eq!(judged(idle(-25.0)), "differs", "it costs nothing beyond");
        let flat = |row, runnable| if row == READY && runnable < 16 { 25.0 } else { 0.0 };
        assert_eq!(judged(flat), "differs", "no spike");
        let level = |row, runnable| if row == READY && runnable > 19 { 25.0 } else { 0.0 };
        assert_eq!(judged(level), "differs", "it does not fall");
        let few = |row, runnable| if row == FREE_LIST && runnable <= 3 { -15.0 } else { 0.0 };
        assert_eq!(judged(few), "differs", "few threads cost no more");
    }

    #[test]
    fn few_processors_are_not_judged() {
        let rows = (0..PAPER).map(|_| ("a strategy", vec![(1, 1.0), (2, 1.0), (4, 1.0)])).collect();
        assert_eq!(verdict(&Curves { processors: 2, rows }).name(), "not judged");
    }
}
