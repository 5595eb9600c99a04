//! Figure 4: the waits for locks of the threads of Regsim.
//!
//! Rule of the verdict: *very few waits require blocking* is taken to mean that the share of waits
//! longer than C is at most that of the paper's Regsim: the off-line optimum blocks in 8.3 % of its
//! waits (table 2). *not judged* if there were fewer than 100 waits, as on one processor.

use super::recorded::{self, Source};
use super::{show, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Outcome, Verdict};
use stanchion_study::units::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/fig4",
    paper: Paper::Klmo91,
    title: "Lock waits of Regsim",
    claim: "Very few waits require blocking.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["firefly"], run_simulated)),
    },
};

/// The paper's share of waits for which blocking is right.
const FEW: f64 = 0.083;

fn run(context: &Context) -> Result<Outcome, Stop> {
    context.plan(1);
    show::one(recorded::of(Source::Regsim, context)?, verdict)
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    context.plan(1);
    let outcome = show::one(Ok(simulated::of(Source::Regsim, context, machine)?), verdict)?;
    Ok(Outcome { verdict: simulated::judged(machine, outcome.verdict), ..outcome })
}

fn verdict(long: f64) -> Verdict {
    let figures =
        format!("{} of the waits were longer than C, {} in the paper", percent(long), percent(FEW));
    Verdict::when(long <= FEW, figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_share_is_the_most() {
        assert_eq!(verdict(0.083).name(), "holds");
        assert_eq!(verdict(0.084).name(), "differs");
    }
}
