//! Figures 5, 6 and 7: the paper's programs, over shared structures.
//!
//! | | program | shared | the paper's best |
//! | --- | --- | --- | --- |
//! | figure 5 | quicksort of 500,000 numbers | a queue | Michael and Scott's |
//! | figure 6 | the same | a stack | Treiber's |
//! | figure 7 | the travelling salesman, 17 cities | a heap, a stack, two counters | the hybrid |
//!
//! The hybrid has a heap under a preemption-safe lock, and the rest without locks.
//!
//! Rule of the verdict, with all processors: *holds* if the paper's best takes no longer than any
//! other program at any level ("superior performance even on dedicated systems"), and the ordinary
//! lock's normalised time is greater at level 3 than at level 1 ("degrades under multiprogramming,
//! though not as severely as before"); else *differs*. *not judged* with one processor, nor if a
//! normalised time is not known precisely enough ([`Precision`]).

use super::grid::{Grid, Ratio};
use super::{judge, real, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Outcome, Verdict};
use stanchion_study::units::significant;

/// The parameters in which the figures differ.
struct Figure {
    /// The name on the command line.
    id: &'static str,
    /// The programs on this computer.
    real: &'static [real::Program],
    /// The same programs in virtual time.
    simulated: &'static [simulated::Program],
    /// The row that the paper has as the best; row 0 is the ordinary lock.
    best: usize,
    /// The preemption-safe lock's seconds in the paper, with 1 and 11 processors, at each level.
    paper: [[f64; 2]; 3],
    /// Other rows to be set against that lock, with what the paper says of them.
    others: &'static [(usize, &'static str)],
}

const ORDINARY: usize = 0;

const FIVE: Figure = Figure {
    id: "ms97/fig5",
    real: real::OVER_QUEUES,
    simulated: simulated::OVER_QUEUES,
    best: 2,
    paper: [[4.0, 1.6], [7.9, 2.3], [11.6, 3.3]],
    others: &[],
};

const SIX: Figure = Figure {
    id: "ms97/fig6",
    real: real::OVER_STACKS,
    simulated: simulated::OVER_STACKS,
    best: 2,
    paper: [[3.4, 1.5], [7.0, 2.3], [10.2, 3.1]],
    others: &[],
};

const SEVEN: Figure = Figure {
    id: "ms97/fig7",
    real: real::SALESMEN,
    simulated: simulated::SALESMEN,
    best: 3,
    paper: [[34.9, 14.3], [71.7, 15.7], [108.0, 18.5]],
    others: &[(2, "not said in figures")],
};

/// A function pointer captures nothing, so each figure has its own two.
macro_rules! bodies {
    ($figure:ident) => {
        Bodies::Machines {
            real: Body::Run(|context| $figure.run(context)),
            simulated: Body::Run(Simulated::on(&["challenge"], |context, machine| {
                $figure.run_simulated(context, machine)
            })),
        }
    };
}

pub(crate) const FIG5: Experiment = Experiment {
    id: FIVE.id,
    paper: Paper::Ms97,
    title: "Quicksort of 500,000 items over a shared queue",
    claim: "The same order as for the queues: Michael and Scott's is best, also on a dedicated system.",
    bodies: bodies!(FIVE),
};

pub(crate) const FIG6: Experiment = Experiment {
    id: SIX.id,
    paper: Paper::Ms97,
    title: "Quicksort of 500,000 items over a shared stack",
    claim: "The same order as for the stacks: Treiber's is best, also on a dedicated system.",
    bodies: bodies!(SIX),
};

pub(crate) const FIG7: Experiment = Experiment {
    id: SEVEN.id,
    paper: Paper::Ms97,
    title: "17-city travelling salesman, four programs",
    claim: "The hybrid of non-blocking structures and a preemption-safe heap is best.",
    bodies: bodies!(SEVEN),
};

impl Figure {
    fn run(&self, context: &Context) -> Result<Outcome, Stop> {
        let precision = Precision::of(self.id, context);
        let (grid, repeated) = real::run_programs(context, self.real, precision, &self.deciding())?;
        Ok(repeated.outcome(self.outcome(&grid), real::notes(&grid, &repeated)))
    }

    /// Returns the ratios that the rule uses.
    fn deciding(&self) -> Vec<Ratio> {
        judge::normalised(0..self.real.len(), true)
    }

    fn run_simulated(&self, context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
        let grid = simulated::run_programs(context, machine, self.simulated)?;
        Ok(Outcome { notes: simulated::program_notes(machine), ..self.outcome(&grid) })
    }

    fn outcome(&self, grid: &Grid) -> Outcome {
        let mut comparisons = judge::absolute(grid, self.paper);
        comparisons.push(judge::against_base(grid, self.best, "below 1, and the least"));
        let others = self.others.iter();
        comparisons.extend(others.map(|&(row, paper)| judge::against_base(grid, row, paper)));
        comparisons.extend(judge::levels(grid, &[(ORDINARY, true), (self.best, false)]));
        Outcome {
            comparisons,
            pictures: grid.pictures(),
            tables: grid.tables(),
            ..Outcome::new(self.verdict(grid))
        }
    }

    fn verdict(&self, grid: &Grid) -> Verdict {
        if grid.processors() < 2 {
            return judge::alone();
        }
        let all = 0..grid.rows();
        Verdict::when(
            judge::best(grid, self.best, all.clone(), 1.0) && grid.degraded(ORDINARY) > 1.0,
            format!(
                "with {} processors {}; from level 1 to 3 the ordinary lock's normalised time grows {} times",
                grid.processors(),
                judge::gain(grid, self.best, all),
                significant(grid.degraded(ORDINARY)),
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{grid, only};
    use super::*;

    #[test]
    fn rows_are_where_figures_say() {
        for (figure, best) in [(FIVE, "Michael-Scott"), (SIX, "Treiber"), (SEVEN, "hybrid")] {
            assert_eq!(figure.real[ORDINARY].name, "ordinary lock");
            assert_eq!(figure.real[figure.best].name, best);
            let names = |programs: &[real::Program]| -> Vec<_> {
                programs.iter().map(|program| program.name).collect()
            };
            let simulated: Vec<_> = figure.simulated.iter().map(|program| program.name).collect();
            assert_eq!(names(figure.real), simulated, "the same on both machines");
        }
        assert_eq!(SEVEN.real[SEVEN.others[0].0].name, "non-blocking");
    }

    fn times(figure: &Figure, best: f64, other: f64, ordinary: f64) -> Grid {
        let names: Vec<_> = figure.real.iter().map(|program| program.name).collect();
        grid(&names, |row, level, _| match row {
            0 => 10.0 + ordinary * level as f64,
            1 => 10.0,
            row if row == figure.best => best,
            _ => other,
        })
    }

    fn judged(figure: &Figure, best: f64, other: f64, ordinary: f64) -> &'static str {
        figure.verdict(&times(figure, best, other, ordinary)).name()
    }

    #[test]
    fn only_the_ratios_that_are_measured_precisely_decide() {
        for figure in [FIVE, SIX, SEVEN] {
            let only = only(&times(&figure, 9.0, 12.0, 1.0), &figure.deciding());
            assert_eq!(figure.verdict(&only).name(), "holds");
        }
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        for figure in [FIVE, SIX, SEVEN] {
            assert_eq!(judged(&figure, 9.0, 12.0, 1.0), "holds");
            assert_eq!(judged(&figure, 10.5, 12.0, 1.0), "differs", "slower than the safe lock");
            assert_eq!(judged(&figure, 9.0, 12.0, 0.0), "differs", "the ordinary lock keeps up");
        }
        assert_eq!(judged(&SEVEN, 9.0, 8.0, 1.0), "differs", "without locks it is faster");
    }
}
