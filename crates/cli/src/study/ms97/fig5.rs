//! Figure 5: quicksort of 500,000 numbers over a shared queue.
//!
//! Rule of the verdict, with all processors: *holds* if Michael and Scott's queue takes no longer than the preemption-safe lock and than the ordinary one at any level ("superior performance
//! even on dedicated systems"), and the ordinary lock's normalised time is greater at level 3 than at level 1 ("degrades under multiprogramming, though not as
//! severely as before"); else *differs*. *not judged* with one processor.

use super::super::context::{Context, Stop};
use super::super::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use super::super::outcome::{Outcome, Verdict};
use super::grid::Grid;
use super::{judge, real, simulated};
use crate::units::significant;
use stanchion_simulator::Machine;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms97/fig5",
    paper: Paper::Ms97,
    title: "Quicksort of 500,000 items over a shared queue",
    claim: "The same order as for the queues: Michael and Scott's is best, also on a dedicated system.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated { machines: &["challenge"], run: run_simulated }),
    },
};

const ORDINARY: usize = 0;
const BEST: usize = 2;
const PROGRAMS: usize = 3;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let grid = real::run_programs(context, real::OVER_QUEUES)?;
    Ok(Outcome { notes: real::notes(&grid), ..outcome(&grid) })
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let grid = simulated::run_programs(context, machine, simulated::OVER_QUEUES)?;
    Ok(Outcome { notes: simulated::program_notes(), ..outcome(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    let mut comparisons = judge::absolute(grid, [[4.0, 1.6], [7.9, 2.3], [11.6, 3.3]]);
    comparisons.push(judge::against_base(grid, BEST, "below 1"));
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

    fn judged(best: f64, ordinary: f64) -> &'static str {
        verdict(&grid(&["ordinary", "safe", "best"], |row, level, _| match row {
            0 => 10.0 + ordinary * level as f64,
            1 => 10.0,
            _ => best,
        }))
        .name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(9.0, 1.0), "holds");
        assert_eq!(judged(10.5, 1.0), "differs", "slower than the preemption-safe lock");
        assert_eq!(judged(9.0, 0.0), "differs", "the ordinary lock keeps up");
    }
}
