//! Figure 2: a million push/pop pairs on an initially empty stack, 6 µs of other work after each
//! operation.
//!
//! Rule of the verdict, with all processors: *holds* if Treiber's stack takes at most 0.55 of the
//! preemption-safe lock's time at every level ("over 45 %"), no other row of the paper's takes less
//! at any level or with one processor ("the best performance even with no contention"; within a
//! hundredth), the ordinary lock degrades (its normalised time grows by more than a quarter from
//! level 1 to level 3) and the stacks without locks do not; else *differs*. *not judged* with one
//! processor, nor if a ratio that decides is not known precisely enough ([`Precision`]).

use super::grid::{Grid, Ratio};
use super::{judge, peers, real, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Found, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig2",
    paper: Paper::Ms97,
    title: "1,000,000 push/pop pairs, four stacks",
    claim: "Treiber's stack is best, by more than 45 % over the preemption-safe lock at 11 processors, and also without contention.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(
            Simulated::on(&["challenge"], run_simulated).with_counterfactuals(PIECES),
        ),
    },
};

/// Tried without success: a shorter cap of the backoff, a slower transfer of lines.
const PIECES: &[Counterfactual] =
    &[simulated::upgrade("Treiber's time over the lock's at its worst level", with_upgrade)];

const ORDINARY: usize = 0;
const TREIBER: usize = 2;
const HERLIHY: usize = 3;
const PAPER: std::ops::Range<usize> = 0..4;

/// The paper's seconds of the preemption-safe single lock at each level, with one processor and
/// with eleven.
pub(super) const SECONDS: [[f64; 2]; 3] = [[19.0, 20.3], [40.8, 20.7], [60.2, 21.6]];

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let (grid, repeated) =
        real::run(context, (real::STACKS, peers::STACKS), 0, precision, &deciding())?;
    Ok(repeated.outcome(outcome(&grid), real::notes(&grid, &repeated)))
}

/// Returns the ratios that the rule uses.
fn deciding() -> Vec<Ratio> {
    let others = PAPER.filter(|&row| row != TREIBER);
    let alone = others.map(|base| Ratio { row: TREIBER, base, level: 1, all: false });
    judge::normalised(PAPER, true).into_iter().chain(alone).collect()
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let grid = simulated::run(context, machine, simulated::STACKS, 0)?;
    Ok(Outcome { notes: simulated::notes(machine), ..outcome(&grid) })
}

fn with_upgrade(context: &Context, machine: &Machine, micros: f64) -> Result<Found, Stop> {
    let machine = simulated::with_upgrade(machine, micros);
    let grid = simulated::run(context, &machine, simulated::STACKS, 0)?;
    Ok(Found { figure: significant(grid.worst(TREIBER)), verdict: verdict(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    let mut comparisons = judge::absolute(grid, SECONDS);
    comparisons.push(judge::against_base(grid, TREIBER, "less than 0.55"));
    comparisons.push(judge::against_base(grid, HERLIHY, "below 1"));
    comparisons.push(Comparison::new(
        "Treiber over the best of the others, one processor",
        "below 1",
        significant(alone(grid)),
    ));
    let levels = [(ORDINARY, true), (TREIBER, false), (HERLIHY, false)];
    comparisons.extend(judge::levels(grid, &levels));
    Outcome {
        comparisons,
        pictures: grid.pictures(),
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

/// Returns Treiber's time over that of the best other row of the paper's, with one processor at
/// level 1.
fn alone(grid: &Grid) -> f64 {
    let others = PAPER.filter(|&row| row != TREIBER).map(|row| grid.cell(row, 1, 0).elapsed);
    grid.cell(TREIBER, 1, 0).elapsed / others.fold(f64::INFINITY, f64::min)
}

fn verdict(grid: &Grid) -> Verdict {
    if grid.processors() < 2 {
        return judge::alone();
    }
    let steady = [TREIBER, HERLIHY].iter().all(|&row| !judge::degrades(grid, row));
    Verdict::when(
        judge::best(grid, TREIBER, PAPER, 0.55)
            && alone(grid) <= 1.01
            && judge::degrades(grid, ORDINARY)
            && steady,
        format!(
            "with {} processors {}; alone it takes {} of the best other's time; from level 1 to 3 the ordinary lock's time grows {} times, Treiber's {}",
            grid.processors(),
            judge::gain(grid, TREIBER, PAPER),
            significant(alone(grid)),
            significant(grid.degraded(ORDINARY)),
            significant(grid.degraded(TREIBER)),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{grid, only};
    use super::*;

    fn times(treiber: f64, ordinary: f64, alone: f64) -> Grid {
        grid(&["ordinary", "safe", "Treiber", "Herlihy"], |row, level, column| {
            match (row, column) {
                (2, 0) => alone,
                (_, 0) => 19.0,
                (0, _) => 20.0 + ordinary * level as f64,
                (1, _) => 20.0,
                (2, _) => treiber,
                _ => 15.0,
            }
        })
    }

    fn judged(treiber: f64, ordinary: f64, alone: f64) -> &'static str {
        verdict(&times(treiber, ordinary, alone)).name()
    }

    #[test]
    fn only_the_ratios_that_are_measured_precisely_decide() {
        let only = only(&times(10.0, 10.0, 18.0), &deciding());
        assert_eq!(verdict(&only).name(), "holds");
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(10.0, 10.0, 18.0), "holds");
        assert_eq!(judged(11.5, 10.0, 18.0), "differs", "less than 45 %");
        assert_eq!(judged(10.0, 1.0, 18.0), "differs", "the ordinary lock keeps up");
        assert_eq!(judged(10.0, 10.0, 20.0), "differs", "not the best when alone");
    }
}
