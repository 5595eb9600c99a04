//! Figure 4.2 in virtual time.
//!
//! With eight processors or as many as there are, the rule of the verdict depends on the caches.
//!
//! 1. They write through (Symmetry A), or the machine is none of the paper's: the same as on this computer. *holds* if from the smallest section to
//!    the largest the relative speed of spinning on reads rises by at least 0.1, and that of spinning on the exchange by less than half as much.
//! 2. They write back and invalidate (Symmetry B): that a spinner of either kind does harm is all that section 4.6 claims ("much the same effect as
//!    with write-through"). *holds* if with the smallest section the relative speed of spinning on the exchange and on reads is below 0.75, and
//!    backoff's above both. That exchanges do even harm is not to be expected here: what the holder writes stays in its cache, so a section that is
//!    long enough is hardly slowed, whoever uses the bus.
//! 3. They are updated (Firefly), after section 4.6 ("quiescence will occur faster", and backoff "reduces the bus load due to spinning even
//!    further"): *holds* if at every size the relative speed of spinning on reads is at least that of spinning on the exchange, less 0.02, and
//!    backoff occupies the bus for no longer than spinning on reads does.
//!
//! Else *differs*.

use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::super::super::context::{Context, Stop};
use super::super::super::locks::registry::Way;
use super::super::super::outcome::{Axis, Outcome, Picture, Series, Shape, Verdict};
use super::super::super::simulated::cells::cells;
use super::super::super::simulated::contest::{Contest, Standing};
use super::super::super::simulated::registry::{LOCKS, of_way};
use super::super::super::simulated::show;
use super::{MOST_THREADS, comparison, signed, titled};
use crate::units::{nanos, percent, significant};

/// Turns of a loop with one write to shared data each, in the section beside the increment.
const SIZES: [u32; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

const WAYS: [Way; 4] = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling];

/// One lock at one size: alone, and with others.
struct Cell {
    alone: Standing,
    together: Standing,
}

impl Cell {
    fn relative_speed(&self) -> f64 {
        self.alone.pace() / self.together.pace()
    }

    /// Nanoseconds of bus for one increment, with others.
    fn bus(&self) -> f64 {
        self.together.bus * self.together.pace()
    }
}

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let threads = machine.processors.min(MOST_THREADS);
    let increments = context.pick(500, 5_000);
    let settings: Vec<(usize, u32)> =
        (0..LOCKS.len()).flat_map(|lock| SIZES.map(|turns| (lock, turns))).collect();
    context.plan(settings.len());
    let seed = context.seed;
    let cells = cells(context, machine, &settings, |&(lock, turns)| {
        let run =
            |threads| (LOCKS[lock].contest)(machine, &Contest { threads, increments, turns, seed });
        Ok(Cell { alone: run(1)?, together: run(threads)? })
    })?;
    let grid: Vec<&[Cell]> = cells.chunks(SIZES.len()).collect();
    let sections: Vec<f64> = grid[0].iter().map(|cell| cell.alone.section()).collect();
    let line = |lock: usize| {
        let speeds = grid[lock].iter().map(Cell::relative_speed);
        Series::new(LOCKS[lock].name, sections.iter().map(|nanos| nanos / 1e3).zip(speeds))
    };
    let picture = |title: &str, shape, series| Picture {
        title: title.to_owned(),
        shape,
        x: Axis::log("critical section, µs"),
        y: Axis::linear(format!("speed with {threads} processors over speed with 1")),
        series,
    };
    let speeds = |way| [0, SIZES.len() - 1].map(|size| grid[of_way(way)][size].relative_speed());
    let ends = [sections[0], sections[SIZES.len() - 1]];
    let heads = || sections.iter().map(|&section| nanos(section));
    let rows = || LOCKS.iter().map(|lock| lock.name).zip(grid.iter().copied());
    Ok(Outcome {
        title: Some(titled(threads)),
        comparisons: [Way::Exchange, Way::Read, Way::Backoff]
            .map(|way| comparison(way, speeds(way), ends))
            .into(),
        pictures: vec![picture(
            "The paper's ways of waiting",
            Shape::Lines,
            WAYS.map(of_way).map(line).into(),
        )],
        tables: vec![show::table(
            "Relative speed, by critical section",
            "lock",
            heads(),
            rows(),
            |cell| significant(cell.relative_speed()),
        )],
        folded: vec![show::table(
            &format!("Bus occupied with {threads} processors, by critical section"),
            "lock",
            heads(),
            rows(),
            |cell| percent(cell.together.bus),
        )],
        notes: vec![
            format!(
                "{increments} increments a cell in virtual time. The section's other work is 0 to {} turns of a loop that computes and writes one word \
                 of shared data; its size is the time for which one thread alone held the lock.",
                SIZES[SIZES.len() - 1]
            ),
            show::COMPUTATION.to_owned(),
        ],
        ..Outcome::new(verdict(machine, &grid, threads))
    })
}

fn verdict(machine: &Machine, grid: &[&[Cell]], threads: usize) -> Verdict {
    if threads < 2 {
        return Verdict::NotJudged("one processor only: nobody waits".to_owned());
    }
    let of = |way| grid[of_way(way)];
    let gain = |way| of(way)[SIZES.len() - 1].relative_speed() - of(way)[0].relative_speed();
    let (read, exchange) = (gain(Way::Read), gain(Way::Exchange));
    let changes = format!(
        "from the smallest section to the largest, relative speed changes by {} for read and {} for exchange",
        signed(read),
        signed(exchange)
    );
    match machine.memory {
        Memory::Update(_) => updated(of, &changes),
        Memory::WriteBack(_) => {
            let [exchange, read, backoff] =
                [Way::Exchange, Way::Read, Way::Backoff].map(|way| of(way)[0].relative_speed());
            Verdict::when(
                exchange < 0.75 && read < 0.75 && backoff > exchange.max(read),
                format!(
                    "with the smallest section exchange runs at {} of one processor's speed, read {}, backoff {}; {changes}",
                    significant(exchange),
                    significant(read),
                    significant(backoff)
                ),
            )
        }
        _ => Verdict::when(read >= 0.1 && exchange < read / 2.0, changes),
    }
}

fn updated<'a>(of: impl Fn(Way) -> &'a [Cell], changes: &str) -> Verdict {
    let never_slower = of(Way::Read)
        .iter()
        .zip(of(Way::Exchange))
        .all(|(read, exchange)| read.relative_speed() >= exchange.relative_speed() - 0.02);
    let kinder = of(Way::Backoff)
        .iter()
        .zip(of(Way::Read))
        .all(|(backoff, read)| backoff.bus() <= read.bus());
    let bus = |way| nanos(of(way)[0].bus());
    Verdict::when(
        never_slower && kinder,
        format!(
            "{changes}; an increment with the smallest section occupies the bus for {} with exchange, {} with read, {} with backoff",
            bus(Way::Exchange),
            bus(Way::Read),
            bus(Way::Backoff)
        ),
    )
}
