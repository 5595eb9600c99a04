//! Figure 1: a million enqueue/dequeue pairs on an initially empty queue, 6 µs of other work after
//! each operation.
//!
//! Rule of the verdict, with all processors: *holds* if
//! 1. the queue of Michael and Scott takes at most 0.6 of the preemption-safe single lock's time at
//!    every level ("more than 40 %"), and no other row of the paper's takes less at any level;
//! 2. the ordinary locks degrade (their normalised time grows by more than a quarter from level 1
//!    to level 3), two locks more than one, and neither the preemption-safe locks nor the queues
//!    without locks do;
//! 3. uncontended (one processor, level 1) it is within a tenth of the single ordinary lock
//!    ("essentially tied");
//!
//! else *differs*. *not judged* with one processor: no process waits. Nor is it judged if a ratio
//! that decides is not known precisely enough ([`Precision`]).

use super::grid::{Grid, Ratio};
use super::{judge, peers, real, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Found, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig1",
    paper: Paper::Ms97,
    title: "1,000,000 enqueue/dequeue pairs, six queues",
    claim: "The Michael–Scott queue is best, by more than 40 % over the preemption-safe single lock at 11 processors; ordinary locks degrade with the \
     multiprogramming level, the others do not.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(
            Simulated::on(&["challenge"], run_simulated).with_counterfactuals(PIECES),
        ),
    },
};

const PIECES: &[Counterfactual] = &[simulated::upgrade(
    "growth of the steady rows; of the ordinary locks; Michael-Scott alone; gain",
    with_upgrade,
)];

// The paper's rows.
const ONE: usize = 0;
const TWO: usize = 2;
const MICHAEL_SCOTT: usize = 4;
const PRAKASH_LEE_JOHNSON: usize = 5;
const PAPER: std::ops::Range<usize> = 0..6;
/// The rows that the level must not slow down.
const STEADY: [usize; 3] = [3, MICHAEL_SCOTT, PRAKASH_LEE_JOHNSON];

/// The paper's seconds of the preemption-safe single lock at each level, with one processor and
/// with eleven.
pub(super) const SECONDS: [[f64; 2]; 3] = [[18.2, 15.6], [38.8, 15.4], [57.6, 16.3]];

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let (grid, repeated) =
        real::run(context, (real::QUEUES, peers::QUEUES), 0, precision, &deciding())?;
    Ok(repeated.outcome(outcome(&grid), real::notes(&grid, &repeated)))
}

/// Returns the ratios that the rule uses.
fn deciding() -> Vec<Ratio> {
    let tied = Ratio { row: MICHAEL_SCOTT, base: ONE, level: 1, all: false };
    [judge::normalised(PAPER, true), vec![tied]].concat()
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let grid = simulated::run(context, machine, simulated::QUEUES, 0)?;
    Ok(Outcome { notes: simulated::notes(machine), ..outcome(&grid) })
}

fn with_upgrade(context: &Context, machine: &Machine, micros: f64) -> Result<Found, Stop> {
    let machine = simulated::with_upgrade(machine, micros);
    let grid = simulated::run(context, &machine, simulated::QUEUES, 0)?;
    let growth = STEADY.map(|row| significant(grid.degraded(row))).join(", ");
    let locks = [ONE, TWO].map(|row| significant(grid.degraded(row))).join(", ");
    let gain = judge::gain(&grid, MICHAEL_SCOTT, PAPER);
    let figure = format!("{growth}; {locks}; {}; {gain}", significant(tied(&grid)));
    Ok(Found { figure, verdict: verdict(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    Outcome {
        comparisons: comparisons(grid),
        pictures: grid.pictures(),
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

fn verdict(grid: &Grid) -> Verdict {
    if grid.processors() < 2 {
        return judge::alone();
    }
    let steady = STEADY.iter().all(|&row| !judge::degrades(grid, row));
    let (one, two) = (grid.degraded(ONE), grid.degraded(TWO));
    let tied = tied(grid);
    Verdict::when(
        judge::best(grid, MICHAEL_SCOTT, PAPER, 0.6)
            && judge::degrades(grid, ONE)
            && two > one
            && steady
            && (0.9..=1.1).contains(&tied),
        format!(
            "with {} processors {}; from level 1 to 3 one ordinary lock's time grows {} times, two locks' {}, {}'s {}; alone it takes {} of the ordinary lock's time",
            grid.processors(),
            judge::gain(grid, MICHAEL_SCOTT, PAPER),
            significant(one),
            significant(two),
            grid.name(MICHAEL_SCOTT),
            significant(grid.degraded(MICHAEL_SCOTT)),
            significant(tied),
        ),
    )
}

/// Returns the uncontended time of Michael and Scott's queue over that of the single ordinary lock.
fn tied(grid: &Grid) -> f64 {
    grid.cell(MICHAEL_SCOTT, 1, 0).elapsed / grid.cell(ONE, 1, 0).elapsed
}

fn comparisons(grid: &Grid) -> Vec<Comparison> {
    let mut all = judge::absolute(grid, SECONDS);
    all.push(judge::against_base(grid, MICHAEL_SCOTT, "less than 0.6"));
    all.push(Comparison::new(
        "Michael-Scott over the single ordinary lock, one processor",
        "“essentially tied”",
        significant(tied(grid)),
    ));
    all.extend(judge::levels(
        grid,
        &[
            (ONE, true),
            (TWO, true),
            (3, false),
            (MICHAEL_SCOTT, false),
            (PRAKASH_LEE_JOHNSON, false),
        ],
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{grid, only};
    use super::*;

    const NAMES: [&str; 6] = ["one", "safe", "two", "two safe", "Michael-Scott", "PLJ"];

    /// As the paper has it, but for what `change` says.
    fn paper(change: impl Fn(usize, usize) -> Option<f64>) -> Grid {
        grid(&NAMES, |row, level, column| {
            let paper = match (row, column) {
                (_, 0) => 18.0,
                (0, _) => 14.0 + 8.0 * level as f64,
                (1, _) => 16.0,
                (2, _) => 8.0 + 12.0 * level as f64,
                (3, _) => 13.0,
                (4, _) => 9.0,
                _ => 11.0,
            };
            change(row, level).filter(|_| column == 1).unwrap_or(paper)
        })
    }

    fn judged(change: impl Fn(usize, usize) -> Option<f64>) -> Verdict {
        verdict(&paper(change))
    }

    #[test]
    fn only_the_ratios_that_are_measured_precisely_decide() {
        assert_eq!(verdict(&only(&paper(|_, _| None), &deciding())).name(), "holds");
    }

    #[test]
    fn the_papers_figure_holds_and_each_part_of_the_claim_counts() {
        assert_eq!(judged(|_, _| None).name(), "holds");
        let differs = |row, level, value| {
            let verdict = judged(|r, l| ((r, l) == (row, level)).then_some(value));
            assert_eq!(verdict.name(), "differs", "{verdict:?}");
        };
        differs(4, 2, 10.0); // Less than 40 %.
        differs(5, 1, 8.0); // Not the best.
        differs(0, 3, 20.0); // Ordinary locks keep up.
        differs(2, 3, 30.0); // Two suffer less than one.
        differs(3, 3, 30.0); // A preemption-safe one degrades.
    }
}
