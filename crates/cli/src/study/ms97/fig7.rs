//! Figure 7: the travelling salesman over a shared heap, stack and counters, 17 cities.
//!
//! Rule of the verdict, with all processors: *holds* if the hybrid takes no longer than any of the other three at any level, and the ordinary lock's normalised time is greater
//! at level 3 than at level 1; else *differs*. *not judged* with one processor.

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use super::super::outcome::{Outcome, Verdict};
use super::grid::Grid;
use super::{judge, real, simulated};
use crate::units::significant;
use stanchion_simulator::Machine;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig7",
    paper: Paper::Ms97,
    title: "17-city travelling salesman, four programs",
    claim: "The hybrid of non-blocking structures and a preemption-safe heap is best.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated { machines: &["challenge"], run: run_simulated }),
    },
};

const ORDINARY: usize = 0;
const NON_BLOCKING: usize = 2;
const BEST: usize = 3;
const PROGRAMS: usize = 4;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let grid = real::run_programs(context, real::SALESMEN)?;
    Ok(Outcome { notes: real::notes(&grid), ..outcome(&grid) })
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let grid = simulated::run_programs(context, machine, simulated::SALESMEN)?;
    Ok(Outcome { notes: simulated::program_notes(), ..outcome(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    let mut comparisons = judge::absolute(grid, [[34.9, 14.3], [71.7, 15.7], [108.0, 18.5]]);
    comparisons.push(judge::against_base(grid, BEST, "below 1, and the least"));
    comparisons.push(judge::against_base(grid, NON_BLOCKING, "not said in figures"));
    comparisons.extend(judge::levels(grid, &[(ORDINARY, true), (BEST, false)]));
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
    Verdict::when(
        judge::best(grid, BEST, 0..PROGRAMS, 1.0) && grid.degraded(ORDINARY) > 1.0,
        format!(
            "with {} processors {}; from level 1 to 3 the ordinary lock's normalised time grows {} times",
            grid.processors(),
            judge::gain(grid, BEST, 0..PROGRAMS),
            significant(grid.degraded(ORDINARY)),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::grid;
    use super::*;

    fn judged(hybrid: f64, without_locks: f64, ordinary: f64) -> &'static str {
        verdict(&grid(&["ordinary", "safe", "non-blocking", "hybrid"], |row, level, _| match row {
            0 => 10.0 + ordinary * level as f64,
            1 => 10.0,
            2 => without_locks,
            _ => hybrid,
        }))
        .name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(9.0, 12.0, 1.0), "holds");
        assert_eq!(judged(9.0, 8.0, 1.0), "differs", "without locks it is faster");
        assert_eq!(judged(11.0, 12.0, 1.0), "differs", "slower than the preemption-safe lock");
        assert_eq!(judged(9.0, 12.0, 0.0), "differs", "the ordinary lock keeps up");
    }
}
