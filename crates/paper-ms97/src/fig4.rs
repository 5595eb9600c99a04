//! Figure 4: a million increments of one counter, 6 µs of other work after each.
//!
//! Rule of the verdict, with all processors: *holds* if the LL/SC counter takes at most 0.45 of the
//! preemption-safe lock's time at every level ("more than 55 %"), fetch-and-add at most as much as
//! that at every level ("even better", within a hundredth), the ordinary lock degrades (its
//! normalised time grows by more than a quarter from level 1 to level 3) and the LL/SC counter does
//! not; else *differs*. *not judged* with one processor, nor if a ratio that decides is not known
//! precisely enough ([`Precision`]).

use super::grid::{Grid, LEVELS, Ratio};
use super::{judge, peers, real, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Found, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig4",
    paper: Paper::Ms97,
    title: "1,000,000 increments, three counters",
    claim: "The LL/SC counter is more than 55 % better than the preemption-safe lock at 11 processors; fetch-and-add would be better still.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(
            Simulated::on(&["challenge"], run_simulated).with_counterfactuals(PIECES),
        ),
    },
};

const PIECES: &[Counterfactual] =
    &[simulated::upgrade("LL/SC's time over the lock's at its worst level", with_upgrade)];

const ORDINARY: usize = 0;
const LINKED: usize = 2;
const FETCH_ADD: usize = 4;
const PAPER: std::ops::Range<usize> = 0..3;

/// The paper's seconds of the preemption-safe single lock at each level, with one processor and
/// with eleven.
pub(super) const SECONDS: [[f64; 2]; 3] = [[17.7, 10.8], [35.0, 11.3], [50.6, 10.9]];

fn run(context: &Context) -> Result<Outcome, Stop> {
    let precision = Precision::of(EXPERIMENT.id, context);
    let (grid, repeated) =
        real::run(context, (real::COUNTERS, peers::COUNTERS), 0, precision, &deciding())?;
    Ok(repeated.outcome(outcome(&grid), real::notes(&grid, &repeated)))
}

/// Returns the ratios that the rule uses.
fn deciding() -> Vec<Ratio> {
    judge::normalised(PAPER.chain([FETCH_ADD]), true)
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let grid = simulated::run(context, machine, simulated::COUNTERS, 0)?;
    Ok(Outcome { notes: simulated::notes(machine), ..outcome(&grid) })
}

fn with_upgrade(context: &Context, machine: &Machine, micros: f64) -> Result<Found, Stop> {
    let machine = simulated::with_upgrade(machine, micros);
    let grid = simulated::run(context, &machine, simulated::COUNTERS, 0)?;
    Ok(Found { figure: significant(grid.worst(LINKED)), verdict: verdict(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    let mut comparisons = judge::absolute(grid, SECONDS);
    comparisons.push(judge::against_base(grid, LINKED, "less than 0.45"));
    comparisons.push(judge::against_base(grid, FETCH_ADD, "“even better”, not measured"));
    comparisons.extend(judge::levels(grid, &[(ORDINARY, true), (LINKED, false)]));
    Outcome {
        comparisons,
        pictures: grid.pictures(),
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

fn verdict(grid: &Grid) -> Verdict {
    if grid.processors() < 2 {
        return judge::alone();
    }
    let at = |row, level| grid.normalised(row, level, grid.all());
    let better = LEVELS.into_iter().all(|level| at(FETCH_ADD, level) <= 1.01 * at(LINKED, level));
    Verdict::when(
        judge::best(grid, LINKED, PAPER, 0.45)
            && better
            && judge::degrades(grid, ORDINARY)
            && !judge::degrades(grid, LINKED),
        format!(
            "with {} processors {}, fetch-and-add {} of the lock's time; from level 1 to 3 the ordinary lock's time grows {} times, LL/SC's {}",
            grid.processors(),
            judge::gain(grid, LINKED, PAPER),
            significant(grid.worst(FETCH_ADD)),
            significant(grid.degraded(ORDINARY)),
            significant(grid.degraded(LINKED)),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{grid, only};
    use super::*;

    fn times(linked: f64, fetch_add: f64, ordinary: f64) -> Grid {
        let names = ["ordinary", "safe", "LL/SC", "compare-exchange", "fetch-and-add"];
        grid(&names, |row, level, _| match row {
            0 => 11.0 + ordinary * level as f64,
            2 => linked,
            4 => fetch_add,
            _ => 11.0,
        })
    }

    fn judged(linked: f64, fetch_add: f64, ordinary: f64) -> &'static str {
        verdict(&times(linked, fetch_add, ordinary)).name()
    }

    #[test]
    fn only_the_ratios_that_are_measured_precisely_decide() {
        let only = only(&times(4.0, 3.0, 10.0), &deciding());
        assert_eq!(verdict(&only).name(), "holds");
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(4.0, 3.0, 10.0), "holds");
        assert_eq!(judged(6.0, 3.0, 10.0), "differs", "less than 55 %");
        assert_eq!(judged(4.0, 5.0, 10.0), "differs", "fetch-and-add is worse");
        assert_eq!(judged(4.0, 3.0, 0.0), "differs", "the ordinary lock keeps up");
    }
}
