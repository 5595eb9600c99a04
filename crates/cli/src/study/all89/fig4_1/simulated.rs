//! Figure 4.1 in virtual time, on the machines of sections 4.1 and 4.6.
//!
//! Rule of the verdict where writes invalidate the copies of others (Symmetry A and B, and any machine but those below): the paper's claim, as
//! on this computer. *holds* if with all processors against one, spinning on the exchange and spinning on reads take at least twice as
//! long, and backoff, with at most ten processors, at most one and a half times as long; else *differs*. Section 4.6 says of Model B that
//! "the spin-waiting alternatives have much the same effect", so the rule is the same.
//!
//! Rule where copies are updated (Firefly), after section 4.6: *holds* if with all processors a waiter that spins on reads misses less
//! than once in ten increments ("eliminating the cascade of cache misses"; where writes invalidate, each waiter misses at each), and backoff attempts
//! the lock less often than spinning on reads does, and that less often than spinning on the exchange ("reduces the bus load due to spinning even
//! further"); else *differs*.

use stanchion_model::contention::Demand;
use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::super::super::context::{Context, Stop};
use super::super::super::locks::registry::Way;
use super::super::super::outcome::{
    Axis, Comparison, Drawn, Outcome, Picture, Series, Shape, Table, Verdict,
};
use super::super::super::simulated::bus;
use super::super::super::simulated::cells::cells;
use super::super::super::simulated::contest::{Contest, Standing};
use super::super::super::simulated::program::failed;
use super::super::super::simulated::registry::{LOCKS, of_way};
use super::super::super::simulated::show;
use super::{WAYS, comparison};
use crate::units::{nanos, percent, significant};

/// `grid[lock][count]`.
type Grid = Vec<Vec<Standing>>;

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let counts = context.within(machine.processors);
    let increments = context.pick(1_000, 10_000);
    let settings: Vec<(usize, usize)> = (0..LOCKS.len())
        .flat_map(|lock| counts.iter().map(move |&threads| (lock, threads)))
        .collect();
    context.plan(settings.len());
    let seed = context.seed;
    let standings = cells(context, machine, &settings, |&(lock, threads)| {
        (LOCKS[lock].contest)(machine, &Contest { threads, increments, turns: 0, seed })
    })?;
    let grid: Grid = standings.chunks(counts.len()).map(<[Standing]>::to_vec).collect();
    let verdict = match machine.memory {
        Memory::Update(_) => updated(&grid, &counts),
        _ => invalidated(&grid, &counts),
    };
    let timelines = timelines(context, machine)?;
    Ok(Outcome {
        timelines,
        comparisons: comparisons(machine, &grid, &counts)?,
        pictures: vec![
            picture("The paper's ways of waiting", Shape::Lines, &grid, &counts, &WAYS.map(of_way)),
            picture("All locks", Shape::Rows, &grid, &counts, &Vec::from_iter(0..LOCKS.len())),
        ],
        tables: vec![
            table("Bus occupied, by processors", &grid, &counts, |cell| percent(cell.bus)),
            table("Attempts for each increment, by processors", &grid, &counts, |cell| {
                significant(cell.each(cell.accesses.exchanges))
            }),
            table("Misses of reads for each increment, by processors", &grid, &counts, |cell| {
                significant(cell.each(cell.accesses.read_misses))
            }),
        ],
        folded: vec![
            table("Time spent waiting, of all threads' time", &grid, &counts, |cell| {
                percent(cell.waiting)
            }),
            table("Longest wait of any thread, by processors", &grid, &counts, |cell| {
                nanos(cell.longest_wait.as_picos() as f64 / 1e3)
            }),
            table("Jain's index of fairness, by processors (1 is even)", &grid, &counts, |cell| {
                significant(cell.fairness)
            }),
        ],
        notes: vec![
            format!(
                "{increments} increments a cell in virtual time, scaled to a million; each thread on a processor of its own. Attempts are atomic \
                 read-modify-writes of all threads, a release among them where the machine releases by an exchange."
            ),
            show::COMPUTATION.to_owned(),
            "The model, for caches that write through, is the queueing network of section 5, given what one processor asks of the bus here, and for those that wait two misses a section with \
             backoff, all of the bus with the exchange (section 5.1)."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

/// Increments of each timeline: enough for everybody to have waited.
const DRAWN: u64 = 40;

/// What waiting looks like on a few processors.
fn timelines(context: &Context, machine: &Machine) -> Result<Vec<Drawn>, Stop> {
    let threads = machine.processors.min(8);
    let contest = Contest { threads, increments: DRAWN, turns: 0, seed: context.seed };
    let draw = |way| {
        let lock = &LOCKS[of_way(way)];
        let title = format!(
            "{}, {DRAWN} increments on {threads} processors of {}",
            lock.name, machine.name
        );
        (lock.draw)(machine, &contest, (lock.name, &title))
            .map_err(|failure| failed(machine, &failure))
    };
    WAYS.into_iter().map(draw).collect()
}

/// Elapsed time with `column` over that with one processor.
fn degraded(grid: &Grid, way: Way, column: usize) -> f64 {
    let row = &grid[of_way(way)];
    row[column].pace() / row[0].pace()
}

fn invalidated(grid: &Grid, counts: &[usize]) -> Verdict {
    let last = counts.len() - 1;
    if last == 0 {
        return Verdict::NotJudged("one processor only: nobody waits".to_owned());
    }
    let [exchange, read, backoff] =
        [Way::Exchange, Way::Read, Way::Backoff].map(|way| degraded(grid, way, last));
    let ten = counts.iter().rposition(|&count| count <= 10).unwrap_or(0);
    let few = degraded(grid, Way::Backoff, ten);
    Verdict::when(
        exchange >= 2.0 && read >= 2.0 && few <= 1.5,
        format!(
            "with {} processors against 1, exchange takes {} times as long, read {}, backoff {} (with {} processors {})",
            counts[last],
            significant(exchange),
            significant(read),
            significant(backoff),
            counts[ten],
            significant(few),
        ),
    )
}

fn updated(grid: &Grid, counts: &[usize]) -> Verdict {
    let last = counts.len() - 1;
    let of = |way| &grid[of_way(way)][last];
    let attempts = [Way::Exchange, Way::Read, Way::Backoff]
        .map(|way| of(way).each(of(way).accesses.exchanges));
    let missed = of(Way::Read).each(of(Way::Read).accesses.read_misses);
    let [exchange, read, backoff] = attempts;
    Verdict::when(
        missed < 0.1 && backoff < read && read < exchange,
        format!(
            "with {} processors spinning on reads misses {} times an increment; attempts an increment: exchange {}, read {}, backoff {}",
            counts[last],
            significant(missed),
            significant(exchange),
            significant(read),
            significant(backoff),
        ),
    )
}

fn comparisons(machine: &Machine, grid: &Grid, counts: &[usize]) -> Result<Vec<Comparison>, Stop> {
    let last = counts.len() - 1;
    let one = |way| {
        let here = comparison(way, degraded(grid, way, last), counts[last]);
        // Elsewhere one processor alone asks nothing of the bus, and what it asks among others the model does not know.
        let Memory::WriteThrough(times) = &machine.memory else { return Ok(here) };
        let miss = times.miss_bus.as_picos() as f64 / 1e3;
        let alone = &grid[of_way(way)][0];
        let on_bus = alone.each(alone.accesses.occupied.as_picos()) / 1e3;
        let alone = Demand { bus: on_bus, cache: alone.pace() - on_bus };
        match bus::degraded(way, alone, counts[last], miss) {
            Some(Ok(model)) => Ok(here.modelled(significant(model))),
            Some(Err(error)) => Err(Stop::Failed(error.to_string())),
            None => Ok(here),
        }
    };
    WAYS.into_iter().map(one).collect()
}

fn picture(title: &str, shape: Shape, grid: &Grid, counts: &[usize], locks: &[usize]) -> Picture {
    let line = |&lock: &usize| {
        let cells = counts.iter().zip(&grid[lock]);
        // Nanoseconds an increment are milliseconds a million.
        Series::new(LOCKS[lock].name, cells.map(|(&count, cell)| (count as f64, cell.pace() / 1e3)))
    };
    let y = "seconds for a million increments";
    Picture {
        title: title.to_owned(),
        shape,
        x: Axis::linear("processors"),
        y: if shape == Shape::Rows { Axis::log(y) } else { Axis::linear(y) },
        series: locks.iter().map(line).collect(),
    }
}

fn table(title: &str, grid: &Grid, counts: &[usize], value: impl Fn(&Standing) -> String) -> Table {
    let heads = counts.iter().map(usize::to_string);
    show::table(
        title,
        "lock",
        heads,
        LOCKS.iter().map(|lock| lock.name).zip(grid.iter().map(Vec::as_slice)),
        value,
    )
}
