//! Section 5.1: the bus demands of a critical section and of spinning, found as in the paper.
//! Processors with private copies are slowed by one another and by others that spin. The amount
//! gives the demands.
//!
//! The paper gives no figures but a sentence: "the effect of adding a spinning processor with the
//! backoff algorithm is to add two cache misses per execution of the critical section", so the bus
//! demand of spinning "is linear with the number of processors"; it is "less true when processors
//! spin on memory reads". The simulator can count the misses, which the paper could not.
//!
//! The backoff is that of figures 4.1 to 4.3: see
//! [`DELAY_NS`](super::super::simulated::registry::DELAY_NS) for its unit and the source.
//!
//! Rule of the verdict, on a machine with one bus: *holds* if with backoff the fitted demand of
//! each number of spinners lies within a tenth of the largest from the line of least squares, and
//! that line rises by 1.5 to 2.5 misses for each spinner; else *differs*.

use stanchion_formulas::contention::{
    self, ContentionError, SpinningFit, fit_bus_demand, fit_spinning,
};
use stanchion_simulator::{Failure, Machine};

use stanchion_simulated_locks::bus;
use stanchion_simulated_locks::copies::{Beside, Copies};
use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_simulated_locks::shared::turn;
use stanchion_simulated_locks::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::simulation::cells;
use stanchion_study::units::{nanos, percent, significant};
use stanchion_study_locks::list::Way;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/sec5.1",
    paper: Paper::All89,
    title: "Bus demands of a critical section and of spinning, fitted",
    claim: "The bus demand of spinning with backoff is linear in the number of processors: two cache misses for each critical section.",
    bodies: Bodies::Machines {
        real: Body::Never("the bus of this computer cannot be asked what it carries"),
        simulated: Body::Run(Simulated::on(&["symmetry-a"], run)),
    },
};

/// Processors with copies of their own, beside the spinners (the paper's P): enough that the bus is
/// busy, since at moderate loads the model is pessimistic (section 5.1) and would see no spinner.
const PRIVATE: usize = 12;

/// The ways in which waiters spin. The first is judged.
const SPINNING: [Way; 3] = [Way::Backoff, Way::Read, Way::Exchange];

fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let Some(miss) = bus::miss(machine) else {
        return Ok(Outcome::new(Verdict::NotJudged(format!("{} has no one bus", machine.name))));
    };
    let most = machine.processors.saturating_sub(PRIVATE + 1);
    if most < 2 {
        let why = format!("it takes {} processors, and {} has too few", PRIVATE + 3, machine.name);
        return Ok(Outcome::new(Verdict::NotJudged(why)));
    }
    let counts = context.within(machine.processors);
    let spinners = context.within(most);
    context.plan(counts.len() + SPINNING.len() * spinners.len());
    let (sections, turn, seed) = (context.pick(200, 2_000), turn(machine), context.seed);
    let measure = |way, private, sharing| -> Result<Beside, Failure> {
        let copies = Copies { private, sharing, sections, turn, seed };
        (LOCKS[of_way(way)].copies)(machine, &copies)
    };

    let alone = cells(context, machine, &counts, |&private| measure(Way::Backoff, private, 0))?;
    let points: Vec<(u32, f64)> =
        counts.iter().zip(&alone).map(|(&count, beside)| (count as u32, beside.section)).collect();
    let section = fit_bus_demand(&points).map_err(failed)?;

    let mut ways = Vec::new();
    for way in SPINNING {
        let beside =
            cells(context, machine, &spinners, |&spinners| measure(way, PRIVATE, spinners + 1))?;
        let times: Vec<(u32, f64)> = spinners
            .iter()
            .zip(&beside)
            .map(|(&count, cell)| (count as u32, cell.section))
            .collect();
        let fit = fit_spinning(section.demand, PRIVATE as u32, &times).map_err(failed)?;
        let name = LOCKS[of_way(way)].name;
        ways.push(Spinning::new(name, fit, beside.last().map_or(0.0, |cell| cell.misses)));
    }
    let backoff = &ways[0];
    let each = backoff.slope / miss;
    let verdict = Verdict::when(
        backoff.off <= 0.1 && (1.5..=2.5).contains(&each),
        format!(
            "with backoff each spinner adds {} of bus to a section, {} misses, and the largest demand is at most {} off a line; {} misses were counted",
            nanos(backoff.slope),
            significant(each),
            percent(backoff.off),
            significant(backoff.counted)
        ),
    );
    let curve = |&(count, _): &(u32, f64)| {
        contention::time_on_copies(section.demand, count).map(|time| (f64::from(count), time / 1e3))
    };
    let curve: Vec<(f64, f64)> =
        points.iter().map(curve).collect::<Result<_, _>>().map_err(failed)?;
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "misses for each spinner and section, backoff",
                "2",
                format!("{} fitted, {} counted", significant(each), significant(backoff.counted)),
            ),
            Comparison::new(
                "bus demand of a section, with lock and unlock",
                "fitted, not given",
                format!("{} fitted, {} counted", nanos(section.demand.bus), nanos(alone[0].bus)),
            ),
        ],
        pictures: vec![
            Picture {
                title: "A section on a private copy, by processors that run one".to_owned(),
                shape: Shape::Lines,
                x: Axis::linear("processors"),
                y: Axis::linear("µs"),
                series: vec![
                    Series::new("the fitted model", curve),
                    Series::new(
                        "simulated",
                        points.iter().map(|&(count, time)| (f64::from(count), time / 1e3)),
                    )
                    .dotted(),
                ],
            },
            Picture {
                title: "Fitted bus demand of all spinners in one section".to_owned(),
                shape: Shape::Lines,
                x: Axis::linear("spinners"),
                y: Axis::linear("µs"),
                series: ways.iter().map(Spinning::series).collect(),
            },
        ],
        tables: vec![table(&ways, miss)],
        notes: vec![
            format!(
                "{sections} sections on each private copy. The model's curve lies within {} of the times; the paper's matched \"well in practice, \
                 deviating only at moderate loads\". Beside spinners {PRIVATE} processors have private copies.",
                percent(section.worst)
            ),
            show::COMPUTATION.to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

/// One way of waiting.
struct Spinning {
    /// The label in tables.
    name: &'static str,
    /// The bus time of spinners that fits the measured times.
    fit: SpinningFit,
    /// Bus time that one spinner more asks for in each section, by the line of least squares.
    slope: f64,
    /// The largest distance of a fitted demand from that line, as a share of the largest demand.
    off: f64,
    /// Misses for each spinner and section, with most spinners.
    counted: f64,
}

impl Spinning {
    fn new(name: &'static str, fit: SpinningFit, counted: f64) -> Self {
        let points = || fit.aggregate.iter().map(|&(count, time)| (f64::from(count), time));
        let number = fit.aggregate.len() as f64;
        let mean = |value: &dyn Fn((f64, f64)) -> f64| points().map(value).sum::<f64>() / number;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let together = mean(&|point| (point.0 - x) * (point.1 - y));
        let slope = together / mean(&|point| (point.0 - x).powi(2));
        let distance = |point: (f64, f64)| (point.1 - y - slope * (point.0 - x)).abs();
        let largest = points().map(|point| point.1).fold(0.0, f64::max);
        let off = points().map(distance).fold(0.0, f64::max) / largest;
        Self { name, fit, slope, off, counted }
    }

    fn series(&self) -> Series {
        let points = self.fit.aggregate.iter();
        Series::new(self.name, points.map(|&(count, time)| (f64::from(count), time / 1e3)))
    }
}

fn table(ways: &[Spinning], miss: f64) -> Table {
    let row = |spinning: &Spinning| {
        vec![
            spinning.name.to_owned(),
            nanos(spinning.slope),
            significant(spinning.slope / miss),
            percent(spinning.off),
            significant(spinning.counted),
        ]
    };
    Table {
        title: "What one spinner more asks of the bus while one section goes by".to_owned(),
        columns: ["lock", "fitted", "in misses", "off a line", "misses of reads counted"]
            .map(str::to_owned)
            .into(),
        rows: ways.iter().map(row).collect(),
    }
}

fn failed(error: ContentionError) -> Stop {
    Stop::Failed(error.to_string())
}
