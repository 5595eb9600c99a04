//! Figure 5.1: the queueing model of section 5 against the measurements of figure 3.3.
//!
//! The inputs of the model are the demands of threads, found as in the paper (section 5.1).
//! Processors with copies of all data run thread management. The amount by which they slow each
//! other gives the bus demand, once of everything and once of the critical sections. The amount by
//! which spinning processors slow others gives the demand of spinning (`projection.rs`). Nothing is
//! fitted to the rates that the model predicts. Figures 5.2 to 5.4 project the same model.
//!
//! Rule of the verdict: *holds* if with every number of processors the model's rate is within 5 %
//! of the simulated one, for local ready queues and for local free lists with a central queue, the
//! latter with fewer than 18 processors; else *differs*. *not judged* where there is no one bus, or
//! where there are too few processors to see the demand of spinning.

use stanchion_simulator::Machine;

use super::projection::{Inputs, Queue};
use super::threads::grid::Grid;
use super::threads::simulated::{self, Place, USER_NS};
use super::threads::{FREE_LIST, READY};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig5.1",
    paper: Paper::All89,
    title: "Queueing model against measurement",
    claim: "Within 5 % except the central ready queue at 18 processors.",
    bodies: Bodies::Machines {
        real: Body::Never("the bus of this computer cannot be asked what it carries"),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run)),
    },
};

/// The largest error of the model, as a share.
const WITHIN: f64 = 0.05;
/// The number of processors from which on the paper's central queue was not within it.
const EXCEPT: usize = 18;

/// A strategy, the model's rates and the simulated ones, by processors.
struct Pair {
    /// The index of the strategy.
    row: usize,
    /// The label of the strategy.
    name: &'static str,
    /// Processors, the model's threads a second, the simulated threads a second.
    points: Vec<(usize, f64, f64)>,
}

impl Pair {
    /// Returns the excess of the model over the simulated rate, as a share.
    fn off(&(_, model, found): &(usize, f64, f64)) -> f64 {
        model / found - 1.0
    }

    /// Returns the largest difference among the points that the claim is about.
    fn worst(&self) -> f64 {
        let judged = self.points.iter().filter(|point| self.row == READY || point.0 < EXCEPT);
        judged.map(|point| Self::off(point).abs()).fold(0.0, f64::max)
    }

    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, Self::off)
    }
}

fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let inputs = match Inputs::fit(context, machine)? {
        Ok(inputs) => inputs,
        Err(verdict) => return Ok(Outcome::new(verdict)),
    };
    let place = Place::of(machine);
    let grid = simulated::run(context, &place, USER_NS)?;
    let pairs = [(FREE_LIST, Queue::Central), (READY, Queue::Local)];
    let pairs = pairs.map(|(row, queue)| pair(&grid, row, queue, &inputs));
    let pairs = pairs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut notes = simulated::notes(context, &place);
    notes.push(inputs.note());
    Ok(Outcome { notes, ..outcome(&pairs, &inputs) })
}

fn pair(grid: &Grid, row: usize, queue: Queue, inputs: &Inputs) -> Result<Pair, Stop> {
    let at = |(column, &processors): (usize, &usize)| {
        let solved = inputs.solve(queue, USER_NS / 1e3, 0.0, processors as u32)?;
        Ok((processors, 1e9 * solved.throughput, grid.rate(row, column)))
    };
    let points = grid.counts().iter().enumerate().map(at).collect::<Result<Vec<_>, Stop>>()?;
    Ok(Pair { row, name: grid.name(row), points })
}

fn outcome(pairs: &[Pair], inputs: &Inputs) -> Outcome {
    let worst = |pair: &Pair| {
        Comparison::new(
            format!(
                "{}: largest difference{}",
                pair.name,
                if pair.row == READY { "" } else { " below 18 processors" }
            ),
            "within 5 %",
            percent(pair.worst()),
        )
    };
    let mut comparisons: Vec<Comparison> = pairs.iter().map(worst).collect();
    if let Some(central) = pairs.iter().find(|pair| pair.row != READY) {
        comparisons.push(Comparison::new(
            "central queue, all processors: the model's rate over the simulated, less 1",
            "more than 5 %, “somewhat optimistic”",
            percent(central.last()),
        ));
    }
    let lines = |pair: &Pair| {
        let of = |value: fn(&(usize, f64, f64)) -> f64| -> Vec<(f64, f64)> {
            pair.points.iter().map(|point| (point.0 as f64, value(point) / 1e3)).collect()
        };
        [
            Series::new(format!("{}, model", pair.name), of(|point| point.1)),
            Series::new(format!("{}, simulated", pair.name), of(|point| point.2)).dotted(),
        ]
    };
    Outcome {
        comparisons,
        pictures: vec![Picture {
            title: "Rate of thread creation, user work 300 µs: the model and the simulation"
                .to_owned(),
            shape: Shape::Lines,
            x: Axis::linear("processors"),
            y: Axis::linear("1000s of threads a second"),
            series: pairs.iter().flat_map(lines).collect(),
        }],
        tables: vec![differences(pairs), inputs.table()],
        ..Outcome::new(verdict(pairs))
    }
}

fn differences(pairs: &[Pair]) -> Table {
    let mut columns = vec!["strategy".to_owned()];
    columns.extend(pairs[0].points.iter().map(|point| point.0.to_string()));
    let row = |pair: &Pair| {
        let cells = pair.points.iter().map(|point| percent(Pair::off(point)));
        std::iter::once(pair.name.to_owned()).chain(cells).collect()
    };
    Table {
        title: "By how much the model's rate is above the simulated one, by processors".to_owned(),
        columns,
        rows: pairs.iter().map(row).collect(),
    }
}

fn verdict(pairs: &[Pair]) -> Verdict {
    let worst: Vec<String> =
        pairs.iter().map(|pair| format!("{} {}", pair.name, percent(pair.worst()))).collect();
    let last = pairs.iter().find(|pair| pair.row != READY).map_or(0.0, Pair::last);
    Verdict::when(
        pairs.iter().all(|pair| pair.worst() <= WITHIN),
        format!(
            "the largest differences are: {}; the central queue with all processors: {}",
            worst.join(", "),
            significant(100.0 * last) + "\u{a0}%"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(central: [f64; 2], local: [f64; 2]) -> &'static str {
        let pair = |row, model: [f64; 2]| Pair {
            row,
            name: "a strategy",
            points: [16, 20]
                .into_iter()
                .zip(model)
                .map(|(count, rate)| (count, rate, 1.0))
                .collect(),
        };
        verdict(&[pair(FREE_LIST, central), pair(READY, local)]).name()
    }

    #[test]
    fn only_the_full_central_queue_may_be_off() {
        assert_eq!(judged([1.04, 1.2], [0.96, 1.04]), "holds");
        assert_eq!(judged([1.06, 1.0], [1.0, 1.0]), "differs");
        assert_eq!(judged([1.0, 1.0], [1.0, 1.06]), "differs");
        assert_eq!(judged([1.0, 1.0], [0.94, 1.0]), "differs");
    }
}
