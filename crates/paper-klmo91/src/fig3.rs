//! Figure 3: the waits for locks of the threads of Galaxy and of Hanoi.
//!
//! Rule of the verdict: *most waits are short* is taken to mean that in both programs more than
//! half of the waits were no longer than C, so that spinning through them costs less than blocking.
//! *not judged* if a program had fewer than 100 waits, as on one processor.

use std::sync::Arc;

use super::paper;
use super::recorded::{self, Source};
use super::recording::Recorded;
use super::{show, simulated};
use stanchion_simulator::Machine;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/fig3",
    paper: Paper::Klmo91,
    title: "Lock waits of Galaxy and Hanoi",
    claim: "Most waits are short.",
    bodies: Bodies::Machines {
        real: Body::Run(run),
        simulated: Body::Run(Simulated::on(&["firefly"], run_simulated)),
    },
};

fn run(context: &Context) -> Result<Outcome, Stop> {
    context.plan(2);
    let mut recorded = Vec::new();
    for source in [Source::Galaxy, Source::Hanoi] {
        match recorded::of(source, context)? {
            Ok(taken) => recorded.push(taken),
            Err(why) => return Ok(Outcome::new(Verdict::NotRun(why))),
        }
    }
    outcome(&recorded)
}

fn run_simulated(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    context.plan(2);
    let mut recorded = Vec::new();
    for source in [Source::Galaxy, Source::Hanoi] {
        recorded.push(simulated::of(source, context, machine)?);
    }
    let outcome = outcome(&recorded)?;
    Ok(Outcome { verdict: simulated::judged(machine, outcome.verdict), ..outcome })
}

fn outcome(recorded: &[Arc<Recorded>]) -> Result<Outcome, Stop> {
    let programs: Vec<&Recorded> = recorded.iter().map(AsRef::as_ref).collect();
    if let Some(why) = programs.iter().find_map(|program| program.too_few()) {
        return Ok(Outcome::new(Verdict::NotJudged(why)));
    }
    let mut short = Vec::new();
    for program in &programs {
        short.push((program.name.as_str(), 1.0 - program.all()?.share_above(program.pool.cost)));
    }
    Ok(Outcome {
        comparisons: comparisons(&programs, &short),
        pictures: programs.iter().map(|program| show::histogram(program)).collect(),
        tables: vec![show::lengths(&programs)?],
        notes: show::notes(&programs),
        ..Outcome::new(verdict(&short))
    })
}

/// Judges the share of waits up to C of each program.
fn verdict(short: &[(&str, f64)]) -> Verdict {
    let figures: Vec<String> =
        short.iter().map(|(name, share)| format!("{} of {name}'s", percent(*share))).collect();
    let met = short.iter().all(|(_, share)| *share > 0.5);
    Verdict::when(met, format!("{} waits were no longer than C", figures.join(" and ")))
}

fn comparisons(programs: &[&Recorded], short: &[(&str, f64)]) -> Vec<Comparison> {
    let mut rows = vec![Comparison::new(
        "C",
        "200 µs (about 200 spins)",
        programs.first().map_or_else(String::new, |program| program.time(program.pool.cost)),
    )];
    for (program, (name, share)) in programs.iter().zip(short) {
        let paper = paper::offline_of(program.beside)
            .map_or_else(String::new, |row| percent(1.0 - row.blocks));
        rows.push(Comparison::new(format!("{name}: waits shorter than C"), paper, percent(*share)));
        let locks = if program.beside == "Galaxy" { "13" } else { "207" };
        let here = program.pool.locks.len().to_string();
        rows.push(Comparison::new(format!("{name}: locks that were waited for"), locks, here));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_decide() {
        assert_eq!(verdict(&[("Galaxy", 0.9), ("Hanoi", 0.51)]).name(), "holds");
        let differs = verdict(&[("Galaxy", 0.9), ("Hanoi", 0.5)]);
        assert_eq!(differs.name(), "differs");
        assert!(differs.because().contains("50.0\u{a0}% of Hanoi's"), "{differs:?}");
    }
}
