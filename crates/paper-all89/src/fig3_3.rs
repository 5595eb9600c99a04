//! Figure 3.3: threads a second where each computes for 300 µs on average, uniformly distributed.
//!
//! *Spread* is the highest rate of the five strategies over the lowest, with the same number of
//! processors.
//!
//! Rule of the verdict: *holds* if with one processor the spread is at most 1.25, and with all of
//! them it lies at least three times as far above 1; else *differs*. *not judged* with fewer than
//! eight processors: the paper's differences appear beyond those.
//!
//! On this computer a thread computes for 300 µs divided by the scale of the simulated Symmetry,
//! 750 ns, because the cost of a thread is smaller by about that scale too.

use stanchion_simulator::{Machine, machines};

use super::threads::grid::Grid;
use super::threads::simulated::USER_NS;
use super::threads::{FREE_LIST, PAPER, READY, real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::{nanos, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig3.3",
    paper: Paper::All89,
    title: "Rate with user work, mean 300 µs",
    claim: "Differences appear only as processors are added.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run_simulated)),
    },
};

/// The number of processors below which the claim cannot be seen.
const LEAST: usize = 8;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let user = USER_NS / machines::symmetry_a(1).scale;
    let precision = Precision::of(EXPERIMENT.id, context);
    let last = context.within_processors().len() - 1;
    let decides = |row, column| {
        context.processors.len() >= LEAST && row < PAPER && (column == 0 || column == last)
    };
    let (grid, repeated) = real::run(context, user as u64, precision, decides)?;
    let mut notes = real::notes(context, &repeated);
    notes.push(format!("A thread computes for {} on average.", nanos(user)));
    Ok(repeated.outcome(outcome(&grid), notes))
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let place = simulated::Place::of(machine);
    let grid = simulated::run(context, &place, USER_NS)?;
    let mut notes = simulated::notes(context, &place);
    notes.push("What a thread computes is out of the processor's cache: the paper does not say what its own asked of the bus.".to_owned());
    Ok(Outcome { notes, ..outcome(&grid) })
}

fn outcome(grid: &Grid) -> Outcome {
    let all = grid.all();
    let rates = |row| {
        Comparison::new(
            format!("{}: 1000s of threads a second with 1 and all processors", grid.name(row)),
            "in the picture only",
            format!("{} and {}", grid.thousands(row, 0), grid.thousands(row, all)),
        )
    };
    Outcome {
        comparisons: vec![
            Comparison::new(
                "highest rate over lowest, one processor",
                "about 1",
                significant(grid.spread(0)),
            ),
            Comparison::new("the same, all processors", "above", significant(grid.spread(all))),
            rates(FREE_LIST),
            rates(READY),
        ],
        pictures: vec![grid.picture(
            "Rate of thread creation, with user work",
            "1000s of threads a second",
            |pace| 1e6 / pace,
        )],
        tables: grid.tables(),
        ..Outcome::new(verdict(grid))
    }
}

fn verdict(grid: &Grid) -> Verdict {
    if grid.processors() < LEAST {
        return Verdict::NotJudged(format!(
            "differences are to appear as processors are added, and there are {}; it takes {LEAST}",
            grid.processors()
        ));
    }
    let (one, all) = (grid.spread(0), grid.spread(grid.all()));
    Verdict::when(
        one <= 1.25 && all - 1.0 >= 3.0 * (one - 1.0),
        format!(
            "the fastest strategy is {} times as fast as the slowest with one processor, {} times with {}",
            significant(one),
            significant(all),
            grid.processors()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::threads::grid::tests::grid;
    use super::*;

    fn judged(one: f64, all: f64) -> &'static str {
        let slowest = |count| if count == 1 { one } else { all };
        verdict(&grid(&[1, 20], |row, count| if row == 0 { slowest(count) } else { 1.0 })).name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged(1.1, 2.0), "holds");
        assert_eq!(judged(1.3, 3.0), "differs", "there are differences from the start");
        assert_eq!(judged(1.1, 1.2), "differs", "none appear");
        assert_eq!(verdict(&grid(&[1, 4], |_, _| 1.0)).name(), "not judged");
    }
}
