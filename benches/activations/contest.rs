//! The contestants of a cell, round by round, and their medians.

use crate::measure::{Figures, median};
use crate::options::Options;

/// A contestant: a name, and a function for one run.
pub(crate) struct Contestant<'a> {
    pub(crate) name: String,
    pub(crate) run: Box<dyn FnMut() -> Figures + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(name: impl Into<String>, run: impl FnMut() -> Figures + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// One line of a cell: the contestant, and the medians of its rounds.
pub(crate) type Line = (String, Figures);

/// Runs the selected contestants. Every round has the reverse order of the last.
pub(crate) fn rounds(contestants: Vec<Contestant<'_>>, options: &Options) -> Vec<Line> {
    let mut running: Vec<_> = contestants
        .into_iter()
        .filter(|known| options.wants_contestant(&known.name))
        .map(|contestant| (contestant, Vec::new()))
        .collect();
    for round in 0..options.rounds() {
        for place in 0..running.len() {
            let which = if round % 2 == 0 { place } else { running.len() - 1 - place };
            let (contestant, figures) = &mut running[which];
            figures.push((contestant.run)());
        }
    }
    running
        .into_iter()
        .map(|(contestant, rounds)| {
            let of = |figure: fn(&Figures) -> f64| {
                median(&mut rounds.iter().map(figure).collect::<Vec<_>>())
            };
            (contestant.name, Figures { ns: of(|run| run.ns), cpu: of(|run| run.cpu) })
        })
        .collect()
}

/// Runs a cell and prints it: ns for each operation, and each contestant's time divided by that of
/// the first.
pub(crate) fn nanos(cell: &str, contestants: Vec<Contestant<'_>>, options: &Options) {
    if !options.wants_cell(cell) {
        return;
    }
    let lines = rounds(contestants, options);
    let Some(first) = lines.first().map(|(_, figures)| figures.ns) else { return };
    println!("\n{cell}");
    println!("{:<44} {:>12} {:>12} {:>10}", "", "ns", "CPU", "by first");
    for (name, Figures { ns, cpu }) in lines {
        println!("{name:<44} {ns:>12.0} {cpu:>12.0} {:>10.2}", ns / first);
    }
}
