//! Table 1: the costs of a switch and of a spawn, with gangs and without.
//!
//! Switching without gangs is a turn of two threads that yield to each other on one processor. On
//! the simulated Makbilan it is what table 1 has for the default library, at each load that the
//! paper measured. Switching slots is the time from a member's last look in its turn to the first
//! of the next slot's member on the same processor. The executor of `stanchion-gang` makes it, on
//! both kinds of machines.
//!
//! Rule of the verdict: *holds* if scheduling costs more with gangs, as in the paper, and on the
//! Makbilan takes within a quarter of its 0.2 ms; else *differs*. *not judged* on another simulated
//! machine, or if the ratio of the two is not known precisely enough ([`Precision`]).
//!
//! It differs on the Makbilan. Our executor takes the machine's switch, and lets a thread sleep and
//! wakes another. The paper's library switched without that. No other piece is known.
//!
//! Spawning is starting and joining as many threads as there are processors. The threads do
//! nothing. It is shown and not judged. The paper's gangs and its system both start threads. Here
//! only the system does: the executor keeps its threads from one gang to the next.

use std::time::Duration;

use stanchion_formulas::gang::makbilan;
use stanchion_simulator::Machine;
use stanchion_study_programs::fr92::overheads::{slots, spawning};

use super::stage::Stage;
use super::{real, simulated};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::{Precision, median};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/table1",
    paper: Paper::Fr92,
    title: "Overheads of gang scheduling",
    claim: "Scheduling takes longer with gangs: 0.2 ms against 0.07 + 0.14/ℓ ms.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["makbilan"], run_simulated)),
    },
};

const QUANTUM: Duration = Duration::from_millis(1);
/// The loads of the paper's experiments that share a processor.
const LOADS: std::ops::RangeInclusive<u32> = 2..=5;

/// Costs in µs, without gangs and with.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Passing a processor from one thread to another.
    switch: [f64; 2],
    /// Starting and joining a thread for each processor.
    spawn: [f64; 2],
}

impl Costs {
    /// Returns both costs with gangs over those without.
    fn ratios(self) -> [f64; 2] {
        [self.switch, self.spawn].map(|[without, with]| with / without)
    }

    fn comparisons(self) -> Vec<Comparison> {
        let both = |[without, with]: [f64; 2]| {
            format!("{} µs against {} µs", significant(without), significant(with))
        };
        vec![
            Comparison::new(
                "scheduling, without gangs against with",
                "0.07 + 0.14/ℓ ms against 0.2 ms",
                both(self.switch),
            ),
            Comparison::new(
                "spawning, without gangs against with (not judged)",
                "1.6 ms against 2.5 ms",
                both(self.spawn),
            ),
        ]
    }
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let stage = Stage::real(context)?;
    let place = stage.place();
    let precision = Precision::of(EXPERIMENT.id, context);
    context.plan(precision.steps(1, 1));
    let mut seen: Vec<Costs> = Vec::new();
    let repeated = precision.repeat(|_| {
        let gaps = slots(place.processors, QUANTUM, context.window(50, 150)).map_err(failed)?;
        let spawned = spawning(place.processors, context.pick(30, 120)).map_err(failed)?;
        let costs = Costs {
            switch: [real::switch(context.processors[0])? * 1e3, median(gaps) / 1e3],
            spawn: spawned.map(|times| median(times) / 1e3),
        };
        seen.push(costs);
        context.step()?;
        Ok(vec![costs.ratios()[0]])
    })?;
    let middle = |of: fn(&Costs) -> f64| median(seen.iter().map(of).collect());
    let costs = Costs {
        switch: [middle(|costs| costs.switch[0]), middle(|costs| costs.switch[1])],
        spawn: [middle(|costs| costs.spawn[0]), middle(|costs| costs.spawn[1])],
    };
    Ok(Outcome {
        comparisons: costs.comparisons(),
        notes: vec![format!(
            "{} processors, medians of {}; switching is cooperative. The gangs' threads are kept from one gang to the next; the system's are new each time.",
            place.processors,
            repeated.words()
        )],
        ..stage.judged(Some(repeated), verdict(costs))
    })
}

fn failed(why: String) -> Stop {
    Stop::Failed(format!("the overheads of gangs: {why}"))
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    context.plan(1);
    let (gaps, spawned) = simulated::overheads(context, machine)?;
    context.step()?;
    // The dearest of the loads: the others differ more from gangs.
    let without = LOADS.map(|load| makbilan::scheduling(load) * 1e3).fold(0.0, f64::max);
    let costs = Costs {
        switch: [without, median(gaps) / 1e3],
        spawn: spawned.map(|times| median(times) / 1e3),
    };
    let verdict = if machine.name == "makbilan" {
        verdict_on_makbilan(costs)
    } else {
        let why = "without gangs the times are those of the Makbilan's default library";
        Verdict::NotJudged(why.to_owned())
    };
    Ok(Outcome {
        comparisons: costs.comparisons(),
        notes: vec![NOTE.to_owned()],
        ..Outcome::new(verdict)
    })
}

/// The note on the simulated run.
const NOTE: &str = "\
    Without gangs it is what the table has for the default library with two programs, of the loads that share a processor the dearest. With gangs it is \
    what our executor takes in virtual time: the machine's switch, 0.2 ms, and a thread that sleeps and is woken, which the paper's library did not need. \
    Spawning is of a thread for each processor.";

/// The paper's time of scheduling with gangs on the Makbilan, in microseconds.
const PAPER: f64 = 200.0;

/// Judges the order, as on this computer, and the time. The machine's switch alone decides the
/// order there, so the time must be within a quarter of the paper's.
fn verdict_on_makbilan(costs: Costs) -> Verdict {
    let is_near = (costs.switch[1] / PAPER - 1.0).abs() <= 0.25;
    match verdict(costs) {
        Verdict::Holds(why) if !is_near => Verdict::Differs(format!("{why}; the paper has 200 µs")),
        other => other,
    }
}

fn verdict(costs: Costs) -> Verdict {
    let [ratio, spawn] = costs.ratios();
    Verdict::when(
        ratio > 1.0,
        format!(
            "scheduling takes {} µs with gangs, {} times as long as without; spawning, which is not judged, {} times",
            significant(costs.switch[1]),
            significant(ratio),
            significant(spawn),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_makbilan_the_time_is_judged_too() {
        let judged =
            |gangs| verdict_on_makbilan(Costs { switch: [140.0, gangs], spawn: [1.0, 1.0] }).name();
        assert_eq!(judged(200.0), "holds");
        assert_eq!(judged(249.0), "holds");
        assert_eq!(judged(251.0), "differs");
        assert_eq!(judged(130.0), "differs");
    }

    #[test]
    fn scheduling_is_judged_and_spawning_is_not() {
        let judged =
            |slot, gang| verdict(Costs { switch: [1.0, slot], spawn: [10.0, gang] }).name();
        assert_eq!(Costs { switch: [1.0, 2.0], spawn: [10.0, 5.0] }.ratios(), [2.0, 0.5]);
        assert_eq!(judged(2.0, 20.0), "holds");
        assert_eq!(judged(0.5, 20.0), "differs");
        assert_eq!(judged(2.0, 5.0), "holds", "spawning is not judged");
    }
}
