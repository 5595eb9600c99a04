//! Figure 4.3 in virtual time: rounds that differ by their seeds, and their median.
//!
//! Rule of the verdict where writes invalidate the copies of others, the same as on this computer, on the paper's three ways of waiting: *holds* if
//! with two processors spinning on the exchange is the fastest or within 5 % of it, and with all processors it is not; else *differs*. With
//! fewer than four processors it is not judged.
//!
//! It *differs* on Symmetry B, of which the paper has no figure: there an exchange that fails takes the bus no longer than a read that misses, so
//! spinning on it is not overtaken by spinning on reads with 20 processors, and the delays of backoff are "inappropriate" (section 4.5), as on Model
//! A.
//!
//! Rule where copies are updated, after section 4.6 ("quiescence will occur faster" with reads): *holds* if with any number of processors spinning
//! on reads takes at most 5 % longer than spinning on the exchange; else *differs*.

use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::super::super::context::{Context, Stop};
use super::super::super::locks::registry::Way;
use super::super::super::locks::sweep::median;
use super::super::super::outcome::{Axis, Outcome, Picture, Series, Shape, Verdict};
use super::super::super::simulated::cells::cells;
use super::super::super::simulated::pass::Pass;
use super::super::super::simulated::registry::{LOCKS, of_way};
use super::super::super::simulated::show;
use super::{MANY, PAPERS, comparison};
use crate::units::nanos;

/// `grid[lock][count]`: nanoseconds for each thread.
type Grid = Vec<Vec<f64>>;

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let counts = context.within(machine.processors);
    let rounds: u64 = context.pick(11, 101);
    let settings: Vec<(usize, usize)> = (0..LOCKS.len())
        .flat_map(|lock| counts.iter().map(move |&threads| (lock, threads)))
        .collect();
    context.plan(settings.len());
    let medians = cells(context, machine, &settings, |&(lock, threads)| {
        let round = |round| {
            let seed = context.seed.wrapping_add(round);
            (LOCKS[lock].pass)(machine, &Pass { threads, seed })
        };
        (0..rounds).map(round).collect::<Result<Vec<f64>, _>>().map(median)
    })?;
    let grid: Grid = medians.chunks(counts.len()).map(<[f64]>::to_vec).collect();
    let last = counts.len() - 1;
    let line = |lock: usize| {
        let cells = counts.iter().zip(&grid[lock]);
        Series::new(LOCKS[lock].name, cells.map(|(&count, &cell)| (count as f64, cell / 1e3)))
    };
    let picture = |title: &str, shape, y, locks: &[usize]| Picture {
        title: title.to_owned(),
        shape,
        x: Axis::linear("processors"),
        y,
        series: locks.iter().map(|&lock| line(lock)).collect(),
    };
    let ways = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling].map(of_way);
    let y = "µs for each processor";
    let all = Vec::from_iter(0..LOCKS.len());
    Ok(Outcome {
        comparisons: PAPERS
            .map(|(way, name)| {
                let row = &grid[of_way(way)];
                comparison((way, name), [row[0], row[last]], counts[last])
            })
            .into(),
        pictures: vec![
            picture("The paper's ways of waiting", Shape::Lines, Axis::linear(y), &ways),
            picture("All locks", Shape::Rows, Axis::log(y), &all),
        ],
        folded: vec![show::table(
            "Median, for each processor",
            "lock",
            counts.iter().map(usize::to_string),
            LOCKS.iter().map(|lock| lock.name).zip(grid.iter().map(Vec::as_slice)),
            |&cell| nanos(cell),
        )],
        notes: vec![
            format!(
                "The median of {rounds} rounds a cell, which differ by when within one turn of a loop each processor starts. A processor that is through \
                 reads the counter until all are, so it loses its copy at each increment."
            ),
            show::COMPUTATION.to_owned(),
        ],
        ..Outcome::new(verdict(machine, &grid, &counts))
    })
}

fn verdict(machine: &Machine, grid: &Grid, counts: &[usize]) -> Verdict {
    let last = counts.len() - 1;
    if counts[last] < MANY {
        return Verdict::NotJudged(
            "too few processors to show what happens as they grow".to_owned(),
        );
    }
    let times = |column: usize| PAPERS.map(|(way, _)| grid[of_way(way)][column]);
    let leads = |[exchange, read, backoff]: [f64; 3]| exchange <= 1.05 * read.min(backoff);
    let say = |column: usize| {
        let times = times(column).map(nanos);
        let count = counts[column];
        format!(
            "with {count} processors exchange {}, read {}, backoff {} each",
            times[0], times[1], times[2]
        )
    };
    if let Memory::Update(_) = machine.memory {
        let quiet = (1..=last).map(times).all(|[exchange, read, _]| read <= 1.05 * exchange);
        return Verdict::when(quiet, format!("{}; {}", say(1), say(last)));
    }
    Verdict::when(leads(times(1)) && !leads(times(last)), format!("{}; {}", say(1), say(last)))
}
