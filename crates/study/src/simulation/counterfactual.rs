//! Runs a simulated experiment, and its counterfactuals if the command line asks for them.

use stanchion_simulator::Machine;

use super::super::context::{Context, Stop};
use super::super::experiment::{Counterfactual, Simulated};
use super::super::outcome::{Outcome, Swept, Verdict};

/// Runs `simulated` on `machine`. If that is the paper's own and the outcome differs from the
/// paper, it also has the counterfactuals, with their figures if the command line asks for them.
pub fn run(simulated: &Simulated, context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let mut outcome = (simulated.run)(context, machine)?;
    let is_the_papers = simulated.machines.first() == Some(&&*machine.name);
    if is_the_papers && matches!(outcome.verdict, Verdict::Differs(_)) {
        let swept = |piece| sweep(piece, context, machine);
        outcome.counterfactuals =
            simulated.counterfactuals.iter().map(swept).collect::<Result<_, Stop>>()?;
    }
    Ok(outcome)
}

/// Returns the findings with `piece` at each of its sizes.
fn sweep(piece: &Counterfactual, context: &Context, machine: &Machine) -> Result<Swept, Stop> {
    let mut swept = Swept {
        name: piece.name.to_owned(),
        piece: piece.piece.to_owned(),
        size: piece.size.to_owned(),
        figure: piece.figure.to_owned(),
        found: Vec::new(),
    };
    if !context.counterfactuals {
        return Ok(swept);
    }
    for &size in piece.sizes {
        let found = (piece.run)(context, machine, size)?;
        context.go_on()?;
        swept.found.push((size, found));
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use stanchion_simulator::machines;

    use super::super::super::interrupt::Interrupt;
    use super::super::super::outcome::Found;
    use super::*;

    fn differs(_: &Context, _: &Machine) -> Result<Outcome, Stop> {
        Ok(Outcome::new(Verdict::Differs("0 of 3".to_owned())))
    }

    fn holds(_: &Context, _: &Machine) -> Result<Outcome, Stop> {
        Ok(Outcome::new(Verdict::Holds("3 of 3".to_owned())))
    }

    fn above_two(_: &Context, _: &Machine, size: f64) -> Result<Found, Stop> {
        let figure = format!("{size} of 3");
        Ok(Found { verdict: Verdict::when(size > 2.0, figure.clone()), figure })
    }

    const fn swept(sizes: &'static [f64]) -> Counterfactual {
        Counterfactual {
            name: "a daemon",
            piece: "The paper's system had daemons (page 1).",
            size: "daemons",
            sizes,
            figure: "figure",
            run: above_two,
        }
    }

    const PIECES: &[Counterfactual] = &[swept(&[0.0, 1.5, 3.0]), swept(&[0.0, 1.0])];

    fn run(
        run: fn(&Context, &Machine) -> Result<Outcome, Stop>,
        counterfactuals: &'static [Counterfactual],
        is_asked: bool,
    ) -> Result<Vec<Swept>, Stop> {
        let context = Context::new(true, 1, Interrupt::default()).with_counterfactuals(is_asked);
        let simulated = Simulated { machines: &["firefly"], run, counterfactuals };
        let machine = machines::firefly();
        super::run(&simulated, &context, &machine).map(|outcome| outcome.counterfactuals)
    }

    #[test]
    fn one_flips_and_another_does_not() {
        let [flips, stays] = &run(differs, PIECES, true).unwrap()[..] else {
            panic!("it has two");
        };
        let title = "With a daemon, the paper's result appears at 1 of 3 sizes: 3";
        let lines = [
            title,
            "  The paper's system had daemons (page 1).",
            "  daemons    figure  verdict",
            "        0    0 of 3  differs",
            "      1.5  1.5 of 3  differs",
            "        3    3 of 3  holds",
        ];
        assert_eq!(flips.lines(), lines);
        assert_eq!(flips.table().title, title);
        assert_eq!(stays.title(), "With a daemon, the paper's result appears at no size");
        assert_eq!(stays.found.len(), 2);
    }

    #[test]
    fn nothing_is_swept_unless_it_is_asked_for_and_the_experiment_differs() {
        let [one, _] = &run(differs, PIECES, false).unwrap()[..] else {
            panic!("it has two");
        };
        assert!(one.found.is_empty());
        let lines = ["With a daemon: not run", "  The paper's system had daemons (page 1)."];
        assert_eq!(one.lines(), lines);
        assert!(run(holds, PIECES, true).unwrap().is_empty());
    }

    #[test]
    fn only_the_paper_s_own_machine_is_swept() {
        let context = Context::new(true, 1, Interrupt::default()).with_counterfactuals(true);
        let simulated = Simulated::on(&["firefly", "makbilan"], differs);
        let simulated = simulated.with_counterfactuals(PIECES);
        let on = |machine: Machine| super::run(&simulated, &context, &machine).unwrap();
        assert_eq!(on(machines::firefly()).counterfactuals.len(), 2);
        assert!(on(machines::makbilan()).counterfactuals.is_empty());
    }
}
