//! Figure 4.2 in virtual time.
//!
//! With eight processors or as many as there are, the rule of the verdict depends on the caches.
//!
//! 1. They write through (Symmetry A), or the machine is none of the paper's: the same as on this
//!    computer ([`Judged`]). It *differs* on Symmetry A. With the smallest section eight processors
//!    that exchange are nearly as fast as one, because an exchange that succeeds overlaps with the
//!    end of the section before. In a large section nothing overlaps, so they are slower. If an
//!    exchange keeps its location from others for longer, the claim holds:
//!    `cargo simulate --counterfactuals all89/fig4.2` prints the range
//!    ([`exchange`](crate::exchange)).
//! 2. They write back and invalidate (Symmetry B): "the spin-waiting alternatives have much the
//!    same effect as with write-through" (section 4.6). *holds* if with the smallest section the
//!    relative speed of spinning on the exchange and of spinning on reads is below 0.75, backoff's
//!    is above both, and with larger sections the relative speed of spinning on reads rises by at
//!    least 0.1. Exchanges are not expected to degrade all sizes evenly here. The writes of the
//!    holder stay in its cache, so a section that is long enough is hardly slowed by any use of the
//!    bus.
//! 3. They are updated (Firefly), after section 4.6 ("quiescence will occur faster", and backoff
//!    "reduces the bus load due to spinning even further"): *holds* if at every size spinning on
//!    reads is at least as fast as spinning on the exchange, and backoff occupies the bus for less
//!    time than spinning on reads does, and that for less than spinning on the exchange; and if at
//!    some size spinning on reads is faster by a tenth.
//!
//! Else *differs*. *not judged* with one processor.

use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::{Judged, MOST_THREADS, comparison, titled};
use stanchion_simulated_locks::contest::{Contest, Standing};
use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_simulated_locks::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::{Axis, Outcome, Picture, Series, Shape, Verdict};
use stanchion_study::simulation::cells;
use stanchion_study::units::{nanos, percent, significant};
use stanchion_study_locks::list::Way;

/// Turns of a loop with one write to shared data each, in the section beside the increment.
const SIZES: [u32; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

const WAYS: [Way; 4] = [Way::Exchange, Way::Read, Way::Backoff, Way::Polling];

/// One lock at one size: alone, and with others.
struct Cell {
    /// With one thread.
    alone: Standing,
    /// With all threads.
    together: Standing,
}

impl Cell {
    fn relative_speed(&self) -> f64 {
        self.alone.pace() / self.together.pace()
    }

    /// Returns the nanoseconds of bus for one increment, with others.
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
    let judged = [Way::Exchange, Way::Read, Way::Backoff].map(|way| grid[of_way(way)]);
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
        ..Outcome::new(verdict(machine, judged, threads))
    })
}

/// Judges spinning on the exchange, spinning on reads and backoff, each by size.
fn verdict(machine: &Machine, [exchange, read, backoff]: [&[Cell]; 3], threads: usize) -> Verdict {
    if threads < 2 {
        return Verdict::NotJudged("one processor only: no thread waits".to_owned());
    }
    let speeds =
        |row: &[Cell]| -> Vec<f64> { row.iter().map(|cell| cell.relative_speed()).collect() };
    let judged = Judged::new(&speeds(exchange), &speeds(read));
    match machine.memory {
        Memory::Update(_) => updated([exchange, read, backoff], &judged),
        Memory::WriteBack(_) => {
            let least = [exchange, read, backoff].map(|row| row[0].relative_speed());
            let [exchange, read, backoff] = least;
            Verdict::when(
                exchange < 0.75 && read < 0.75 && backoff > exchange.max(read) && judged.rises(),
                format!(
                    "with the smallest section exchange runs at {} of one processor's speed, read {}, backoff {}; {judged}",
                    significant(exchange),
                    significant(read),
                    significant(backoff)
                ),
            )
        }
        _ => judged.verdict(),
    }
}

fn updated([exchange, read, backoff]: [&[Cell]; 3], judged: &Judged) -> Verdict {
    let gains = || {
        let pairs = read.iter().zip(exchange);
        pairs.map(|(read, exchange)| read.relative_speed() / exchange.relative_speed())
    };
    let least = gains().fold(f64::INFINITY, f64::min);
    let most = gains().fold(0.0, f64::max);
    let loads = exchange.iter().zip(read).zip(backoff);
    let falls = loads
        .map(|((exchange, read), backoff)| [exchange, read, backoff].map(Cell::bus))
        .all(|[exchange, read, backoff]| backoff < read && read < exchange);
    let bus = |row: &[Cell]| nanos(row[0].bus());
    Verdict::when(
        least >= 1.0 && most >= 1.1 && falls,
        format!(
            "read is {} to {} times as fast as exchange; {judged}; an increment with the smallest section occupies the bus for {} with exchange, {} with read, {} with backoff",
            significant(least),
            significant(most),
            bus(exchange),
            bus(read),
            bus(backoff)
        ),
    )
}

#[cfg(test)]
mod tests {
    use lock_api::RawMutex;
    use sim_machine::wait::Spin;
    use sim_spin::contention::{Ethernet, Exchange, Read};
    use sim_spin::{Mcs, TestAndSet};
    use stanchion_simulator::machines;

    use super::*;
    use stanchion_simulated_locks::contest;
    use stanchion_simulated_locks::registry::DELAY_NS;

    type ByExchange = TestAndSet<Exchange, Spin>;
    type ByRead = TestAndSet<Read, Spin>;
    type ByBackoff = TestAndSet<Ethernet<DELAY_NS>, Spin>;
    /// A queue lock. Its waiters leave the bus alone.
    type Queued = Mcs<Spin>;

    fn measured<R: RawMutex + 'static>(machine: &Machine) -> Vec<Cell> {
        let of = |threads, turns| {
            let contest = Contest { threads, increments: 500, turns, seed: 1 };
            contest::run::<R>(machine, &contest).unwrap()
        };
        let threads = machine.processors.min(MOST_THREADS);
        SIZES.map(|turns| Cell { alone: of(1, turns), together: of(threads, turns) }).into()
    }

    fn judged<E, R, B>(machine: &Machine) -> Verdict
    where
        E: RawMutex + 'static,
        R: RawMutex + 'static,
        B: RawMutex + 'static,
    {
        let rows = [measured::<E>(machine), measured::<R>(machine), measured::<B>(machine)];
        verdict(machine, rows.each_ref().map(Vec::as_slice), machine.processors.min(MOST_THREADS))
    }

    fn differs(verdict: &Verdict) {
        assert_eq!(verdict.name(), "differs", "{verdict:?}");
    }

    fn parts<E: RawMutex + 'static, R: RawMutex + 'static>(machine: &Machine) -> Judged {
        let speeds =
            |row: Vec<Cell>| -> Vec<f64> { row.iter().map(Cell::relative_speed).collect() };
        Judged::new(&speeds(measured::<E>(machine)), &speeds(measured::<R>(machine)))
    }

    /// The claim differs with the right locks too, because exchanges are not even. So each part is
    /// looked at by itself.
    #[test]
    fn a_wrong_lock_instead_of_reads_gains_nothing_from_large_sections_of_the_symmetry() {
        let machine = machines::symmetry_a(8);
        let right = parts::<ByExchange, ByRead>(&machine);
        assert!(right.rises() && !right.is_even(), "{right}");
        assert_eq!(judged::<ByExchange, ByRead, ByBackoff>(&machine).name(), "differs");
        for wrong in
            [parts::<ByExchange, ByExchange>(&machine), parts::<ByExchange, Queued>(&machine)]
        {
            assert!(!wrong.rises(), "{wrong}");
        }
        let wrong = parts::<Queued, ByRead>(&machine);
        assert!(!wrong.degrades(), "{wrong}");
    }

    #[test]
    fn a_wrong_lock_in_any_place_makes_model_bs_claim_differ() {
        let machine = machines::symmetry_b(8);
        let right = judged::<ByExchange, ByRead, ByBackoff>(&machine);
        assert_eq!(right.name(), "holds", "{right:?}");
        differs(&judged::<ByBackoff, ByRead, ByBackoff>(&machine));
        differs(&judged::<ByExchange, ByBackoff, ByBackoff>(&machine));
        differs(&judged::<ByExchange, ByRead, ByExchange>(&machine));
    }

    #[test]
    fn a_wrong_lock_in_any_place_makes_the_fireflys_claim_differ() {
        let machine = machines::firefly();
        let right = judged::<ByExchange, ByRead, ByBackoff>(&machine);
        assert_eq!(right.name(), "holds", "{right:?}");
        differs(&judged::<ByRead, ByRead, ByBackoff>(&machine));
        differs(&judged::<ByExchange, ByExchange, ByBackoff>(&machine));
        differs(&judged::<ByExchange, ByRead, ByRead>(&machine));
    }
}
