//! Figure 4.1 in virtual time, on the machines of sections 4.1 and 4.6.
//!
//! # Rule of the verdict where writes invalidate the copies of others
//!
//! On Symmetry A and B, and any machine but those below. The paper's sentence: spinning on the
//! exchange and spinning on the copy "degrade processor performance badly for even a moderate
//! number of spinning processors. […] By contrast, the backoff algorithm results in only slight
//! degradation for less than ten spin-waiting processors" (section 4.5). *holds* if
//!
//! 1. with ten processors, of which nine wait, and with every greater number, spinning on the
//!    exchange and spinning on reads each take at least twice as long as with one ([`BADLY`]);
//! 2. with every number up to ten, backoff takes at most one and a half times as long as with one
//!    ([`SLIGHTLY`](super::SLIGHTLY));
//!
//! else *differs*. *not judged* with fewer than ten processors. It *differs* on Symmetry A: with 20
//! processors both take more than twice as long, but with ten 1.4 times, and four are faster than
//! one, because an exchange that succeeds overlaps with the end of the section before. If an
//! exchange keeps its location from others for longer, the claim holds:
//! `cargo simulate --counterfactuals all89/fig4.1` prints the range
//! ([`exchange`](crate::exchange)). The paper does not say how many a moderate number is. Ten is
//! the number up to which it contrasts the ways of waiting. Section 4.6 says of Model B that "the
//! spin-waiting alternatives have much the same effect", so the rule is the same.
//!
//! # Rule where copies are updated
//!
//! On the Firefly, after section 4.6. With all processors, *holds* if
//!
//! 1. spinning on the exchange keeps the bus busy for at least nine tenths of the time ("the bus
//!    can be saturated");
//! 2. a waiter that spins on reads misses less than once in ten increments ("eliminating the
//!    cascade of cache misses": where writes invalidate, each waiter misses at each);
//! 3. backoff attempts the lock less often than spinning on reads does ("reduces the number of lock
//!    attempts"), and that less often than spinning on the exchange;
//! 4. an increment occupies the bus for less time with backoff than with reads ("reduces the bus
//!    load even further"), and with reads for less than with the exchange;
//!
//! else *differs*. *not judged* with one processor.

use stanchion_formulas::contention::Demand;
use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::{BADLY, MODERATE, SLIGHTLY, WAYS, comparison};
use stanchion_simulated_locks::bus;
use stanchion_simulated_locks::contest::{Contest, Standing};
use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_simulated_locks::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::{
    Axis, Comparison, Drawn, Outcome, Picture, Series, Shape, Table, Verdict,
};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::failed;
use stanchion_study::units::{nanos, percent, significant};
use stanchion_study_locks::list::Way;

/// `grid[lock][count]`.
type Grid = Vec<Vec<Standing>>;

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let mut counts = context.within(machine.processors);
    if machine.processors >= MODERATE && !counts.contains(&MODERATE) {
        counts.push(MODERATE);
        counts.sort_unstable();
    }
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
    let ways = [Way::Exchange, Way::Read, Way::Backoff].map(|way| &grid[of_way(way)][..]);
    let verdict = verdict(machine, ways, &counts);
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

/// Increments of each timeline: enough for each thread to have waited.
const DRAWN: u64 = 40;

/// Draws a timeline of each way of waiting, on a few processors.
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

/// Returns the elapsed time with `column` over that with one processor.
fn degraded(grid: &Grid, way: Way, column: usize) -> f64 {
    let row = &grid[of_way(way)];
    row[column].pace() / row[0].pace()
}

/// Judges spinning on the exchange, spinning on reads and backoff, each with `counts` processors.
fn verdict(machine: &Machine, ways: [&[Standing]; 3], counts: &[usize]) -> Verdict {
    match machine.memory {
        Memory::Update(_) => updated(ways, counts),
        _ => invalidated(ways, counts),
    }
}

fn invalidated(ways: [&[Standing]; 3], counts: &[usize]) -> Verdict {
    let Some(moderate) = counts.iter().position(|&count| count >= MODERATE) else {
        return Verdict::NotJudged(format!(
            "{} processors are fewer than the {MODERATE} of which the claim speaks",
            counts[counts.len() - 1]
        ));
    };
    let degraded = |row: &[Standing], column: usize| row[column].pace() / row[0].pace();
    let [exchange, read, backoff] = ways;
    let many = moderate..counts.len();
    let least =
        |row| many.clone().map(|column| degraded(row, column)).fold(f64::INFINITY, f64::min);
    let few = counts.iter().filter(|&&count| count <= MODERATE).count();
    let most = (1..few).map(|column| degraded(backoff, column)).fold(1.0, f64::max);
    let last = counts.len() - 1;
    let say = |row| {
        let [some, all] = [moderate, last].map(|column| significant(degraded(row, column)));
        format!("{some} and {all}")
    };
    Verdict::when(
        least(exchange) >= BADLY && least(read) >= BADLY && most <= SLIGHTLY,
        format!(
            "with {} and {} processors exchange takes {} times as long as with 1, read {}, backoff {}; backoff at most {} up to {MODERATE}",
            counts[moderate],
            counts[last],
            say(exchange),
            say(read),
            say(backoff),
            significant(most),
        ),
    )
}

/// The least share of the time for which a saturated bus is busy.
const SATURATED: f64 = 0.9;

fn updated(ways: [&[Standing]; 3], counts: &[usize]) -> Verdict {
    let last = counts.len() - 1;
    if last == 0 {
        return Verdict::NotJudged("one processor only: no thread waits".to_owned());
    }
    let all = ways.map(|row| &row[last]);
    let attempts = all.map(|cell| cell.each(cell.accesses.exchanges));
    let loads = all.map(|cell| cell.bus * cell.pace());
    let missed = all[1].each(all[1].accesses.read_misses);
    let falls = |[exchange, read, backoff]: [f64; 3]| backoff < read && read < exchange;
    let [exchange, read, backoff] = attempts;
    Verdict::when(
        all[0].bus >= SATURATED && missed < 0.1 && falls(attempts) && falls(loads),
        format!(
            "with {} processors exchange keeps the bus busy for {} of the time, read misses {} times an increment; attempts an increment: exchange {}, read {}, backoff {}; \
             bus time an increment: exchange {}, read {}, backoff {}",
            counts[last],
            percent(all[0].bus),
            significant(missed),
            significant(exchange),
            significant(read),
            significant(backoff),
            nanos(loads[0]),
            nanos(loads[1]),
            nanos(loads[2]),
        ),
    )
}

fn comparisons(machine: &Machine, grid: &Grid, counts: &[usize]) -> Result<Vec<Comparison>, Stop> {
    let last = counts.len() - 1;
    let one = |way| {
        let here = comparison(way, degraded(grid, way, last), counts[last]);
        // On other machines one processor alone asks nothing of the bus, and the model does not
        // know the demand of one among others.
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

#[cfg(test)]
mod tests {
    use lock_api::{GuardSend, RawMutex};
    use sim_machine::atomic::{AtomicBool, Ordering};
    use sim_machine::wait::{Spin, WaitPolicy, retry_until};
    use sim_spin::contention::{Ethernet, Exchange, Read};
    use sim_spin::{Mcs, TestAndSet};
    use stanchion_simulator::machines;

    use super::*;
    use stanchion_simulated_locks::contest;
    use stanchion_simulated_locks::registry::DELAY_NS;

    const COUNTS: [usize; 3] = [1, 2, 20];

    type ByExchange = TestAndSet<Exchange, Spin>;
    type ByRead = TestAndSet<Read, Spin>;
    type ByBackoff = TestAndSet<Ethernet<DELAY_NS>, Spin>;
    /// A queue lock. Its waiters leave the bus alone, and hand it over in turn.
    type Queued = Mcs<Spin>;

    /// A lock that costs a waiter eight exchanges more than a thread that finds it free.
    struct Clumsy(AtomicBool);

    // SAFETY: a thread has the lock only if its exchange found `false`, and until it stores
    // `false`.
    unsafe impl RawMutex for Clumsy {
        const INIT: Self = Self(AtomicBool::new(false));
        type Guard = GuardSend;

        fn lock(&self) -> GuardSend {
            // Acquire, at each exchange of this lock: pairs with the Release of `unlock`.
            if self.0.swap(true, Ordering::Acquire) {
                retry_until(
                    || (!self.0.swap(true, Ordering::Acquire)).then_some(()),
                    &mut Spin::start(),
                );
                (0..8).for_each(|_| _ = self.0.swap(true, Ordering::Acquire));
            }
            GuardSend::new()
        }

        fn try_lock(&self) -> Option<GuardSend> {
            (!self.0.swap(true, Ordering::Acquire)).then(GuardSend::new)
        }

        unsafe fn unlock(&self, _guard: GuardSend) {
            // Release: pairs with the Acquire of the exchange that takes the lock next.
            self.0.store(false, Ordering::Release);
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn measured<R: RawMutex + 'static>(machine: &Machine, counts: &[usize]) -> Vec<Standing> {
        let contest = |&threads: &usize| Contest { threads, increments: 1_000, turns: 0, seed: 1 };
        counts.iter().map(|count| contest::run::<R>(machine, &contest(count)).unwrap()).collect()
    }

    fn judged<E, R, B>(machine: &Machine, counts: &[usize]) -> Verdict
    where
        E: RawMutex + 'static,
        R: RawMutex + 'static,
        B: RawMutex + 'static,
    {
        let rows = [
            measured::<E>(machine, counts),
            measured::<R>(machine, counts),
            measured::<B>(machine, counts),
        ];
        verdict(machine, rows.each_ref().map(Vec::as_slice), counts)
    }

    fn differs(verdict: &Verdict) {
        assert_eq!(verdict.name(), "differs", "{verdict:?}");
    }

    #[test]
    fn a_wrong_lock_in_any_place_makes_the_symmetrys_claim_differ() {
        let machine = machines::symmetry_a(20);
        let right = judged::<ByExchange, ByRead, ByBackoff>(&machine, &COUNTS);
        assert_eq!(right.name(), "holds", "{right:?}");
        differs(&judged::<Queued, ByRead, ByBackoff>(&machine, &COUNTS));
        differs(&judged::<ByExchange, Queued, ByBackoff>(&machine, &COUNTS));
        differs(&judged::<ByExchange, ByRead, Clumsy>(&machine, &COUNTS));
        let moderate = judged::<ByExchange, ByRead, ByBackoff>(&machine, &[1, 10, 20]);
        assert_eq!(moderate.name(), "differs", "{moderate:?}");
        let few = judged::<ByExchange, ByRead, ByBackoff>(&machine, &COUNTS[..2]);
        assert_eq!(few.name(), "not judged", "{few:?}");
    }

    #[test]
    fn a_wrong_lock_in_any_place_makes_the_fireflys_claim_differ() {
        let (machine, counts) = (machines::firefly(), [1, 6]);
        let right = judged::<ByExchange, ByRead, ByBackoff>(&machine, &counts);
        assert_eq!(right.name(), "holds", "{right:?}");
        differs(&judged::<ByRead, ByRead, ByBackoff>(&machine, &counts));
        differs(&judged::<ByExchange, ByExchange, ByBackoff>(&machine, &counts));
        differs(&judged::<ByExchange, ByRead, ByRead>(&machine, &counts));
    }
}
