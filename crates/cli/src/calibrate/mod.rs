//! `stanchion calibrate`: every lock and every policy here and on a simulated machine that has this
//! computer's times, side by side.
//!
//! The same two programs run on both: one thread that takes a lock again and again, and two threads
//! on two processors that do, each holding it for [`HOLD`] nanoseconds and staying away for up to
//! twice [`AWAY`]. What is compared is the time from the start until both are through, divided by
//! how often the lock was taken. A run is short, so that on a busy computer some are not disturbed;
//! the figure is the median of those.

mod contenders;
mod papers;
mod real;
mod simulated;
mod text;

use std::time::Duration;

use stanchion_simulator::Machine;

use crate::args::CalibrateOptions;
use crate::error::Error;
use contenders::{Contender, contenders};
use stanchion_study::measure::median;
use stanchion_study::output::Output;
use stanchion_study::progress::{Part, Progress};
use stanchion_study::survey::{self, description, fetch};
use stanchion_study::target;
use stanchion_study::units::nanos;
use text::Row;

/// The time for which each of two threads holds the lock, in nanoseconds.
const HOLD: u64 = 25;
/// The time for which it then stays away, on average, in nanoseconds.
const AWAY: u64 = 25;
/// The number of acquisitions of each of two threads in a run.
const ROUNDS: u32 = 2_000;
/// Times that the locks take turns, so that what drifts meets all of them alike.
const TURNS: u32 = 3;

/// The time of one contender on this computer, about.
const HERE: Duration = Duration::from_millis(100);
/// The time of one contender on the simulated machine, about.
const SIMULATED: Duration = Duration::from_millis(50);

/// Nanoseconds for each time that the lock was taken: by one thread, by two.
type Figures = [Option<f64>; 2];

/// Runs the command.
pub(crate) fn run(options: &CalibrateOptions) -> Result<(), Error> {
    if options.papers {
        return papers::run();
    }
    let chosen = chosen(&options.filters)?;
    let given = options.machine.as_deref().map(target::named).transpose()?;
    let mut bar = Bar::new(&chosen, given.is_some());
    let compared = compare(&chosen, given, options.runs, &mut bar);
    bar.progress.finish();
    let Compared { machine, rows, moved } = compared?;
    let out = Output::Stdout;
    out.line(format_args!("{}\n{}", text::machine(&machine), text::table(&rows)));
    if let Some([described, after]) = moved {
        let (described, after) = (nanos(described), nanos(after));
        out.line(format_args!(
            "its times did not hold: a fetch took {described} before, {after} after the locks"
        ));
    }
    Ok(())
}

/// The progress of the command.
struct Bar {
    /// The bar on the terminal.
    progress: Progress,
    /// The number of parts that have begun.
    begun: usize,
    /// The expected time of all contenders on this computer.
    here: Duration,
    /// The expected time of all contenders on the simulated machine.
    simulated: Duration,
}

impl Bar {
    /// Starts the bar. The times of this computer are no part of it if they are given.
    fn new(chosen: &[Contender], given: bool) -> Self {
        let number = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        let (here, simulated) = (HERE * number, SIMULATED * number);
        let progress = match given {
            true => Progress::new(2, here + simulated),
            false => Progress::new(3, survey::EXPECTED + here + simulated),
        };
        Self { progress, begun: 0, here, simulated }
    }

    fn begin(&mut self, what: &str, expected: Duration) -> Part {
        self.begun += 1;
        self.progress.begin(self.begun - 1, what, expected)
    }

    fn times(&mut self) -> Part {
        self.begin("times", survey::EXPECTED)
    }

    fn here(&mut self) -> Part {
        self.begin("locks here", self.here)
    }

    fn simulated(&mut self) -> Part {
        self.begin("locks simulated", self.simulated)
    }

    /// Announces that this computer is measured again.
    fn again(&mut self) {
        self.progress.add(2, survey::EXPECTED + self.here);
    }
}

/// All that is printed.
struct Compared {
    /// The simulated machine.
    machine: Machine,
    /// The figures of each contender.
    rows: Vec<Row>,
    /// A fetch before and after, if they differ.
    moved: Option<[f64; 2]>,
}

fn compare(
    chosen: &[Contender],
    given: Option<Machine>,
    runs: u32,
    bar: &mut Bar,
) -> Result<Compared, Error> {
    let Taken { machine, here, moved } = match given {
        Some(machine) => Taken { machine, here: real(chosen, runs, &bar.here()), moved: None },
        None => taken(chosen, runs, bar)?,
    };
    let machine = Machine { processors: 2, ..machine };
    let part = bar.simulated();
    part.plan(chosen.len());
    let mut rows = Vec::new();
    for (contender, here) in chosen.iter().zip(here) {
        let simulated = [
            Some((contender.simulated_alone)(&machine)?),
            Some((contender.simulated_pair)(&machine, runs)?),
        ];
        rows.push(Row { name: contender.name, here, simulated });
        part.step();
    }
    Ok(Compared { machine, rows, moved })
}

/// The measurements of this computer.
struct Taken {
    /// The simulated machine with the times of this computer.
    machine: Machine,
    /// The figures of each contender.
    here: Vec<Figures>,
    /// A fetch before and after, if they differ.
    moved: Option<[f64; 2]>,
}

/// Measures this computer's times and the locks, again if the times were others after the locks
/// than before: where the processors of a virtual machine lie, the host may change at any time.
fn taken(chosen: &[Contender], runs: u32, bar: &mut Bar) -> Result<Taken, Error> {
    const TIMES: u32 = 5;
    const HOLDS: f64 = 0.2;
    let mut times = 1;
    loop {
        let (machine, before) = description::measure(&bar.times())?;
        let here = real(chosen, runs, &bar.here());
        let after = fetch().unwrap_or(before);
        let moved = ((after / before - 1.0).abs() > HOLDS).then_some([before, after]);
        if moved.is_none() || times == TIMES {
            return Ok(Taken { machine, here, moved });
        }
        times += 1;
        bar.again();
    }
}

fn chosen(filters: &[String]) -> Result<Vec<Contender>, Error> {
    let mut all = contenders();
    let matches =
        |name: &str, filter: &String| name.to_lowercase().contains(&filter.to_lowercase());
    for filter in filters {
        if !all.iter().any(|contender| matches(contender.name, filter)) {
            let all = all.iter().map(|contender| contender.name).collect();
            return Err(Error::UnknownLock { filter: filter.clone(), all });
        }
    }
    all.retain(|it| filters.is_empty() || filters.iter().any(|filter| matches(it.name, filter)));
    Ok(all)
}

/// Measures all on this computer.
fn real(chosen: &[Contender], runs: u32, part: &Part) -> Vec<Figures> {
    part.plan(chosen.len() * TURNS as usize);
    let work = real::Work::calibrated();
    let mut alone = vec![f64::INFINITY; chosen.len()];
    let mut pairs = vec![Vec::new(); chosen.len()];
    for _ in 0..TURNS {
        for (index, contender) in chosen.iter().enumerate() {
            alone[index] = alone[index].min((contender.real_alone)());
            pairs[index].extend((contender.real_pair)(work, runs.div_ceil(TURNS)));
            part.step();
        }
    }
    let pair = |runs: Vec<f64>| (!runs.is_empty()).then(|| median(runs));
    alone.into_iter().zip(pairs).map(|(alone, pairs)| [Some(alone), pair(pairs)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_chooses_by_part_of_a_name_and_one_of_nothing_is_refused() {
        let names = |filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
            chosen(&filters).map(|them| them.iter().map(|it| it.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["ticket", "ClH"]).unwrap(), ["Ticket", "Clh"]);
        assert_eq!(names(&[]).unwrap().len(), contenders().len());
        let refused = names(&["Ticket", "hemlock"]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("`hemlock`; there are TestAndSet"), "{refused}");
    }
}
