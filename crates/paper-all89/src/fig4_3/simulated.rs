//! Figure 4.3 in virtual time.
//!
//! Rule of the verdict where writes invalidate the copies of others: the same as on this computer
//! ([`Judged`]). With fewer than four processors it is not judged. It *differs* on Symmetry B. The
//! paper has no figure for that machine. There an exchange that fails takes the bus no longer than
//! a read that misses. So with 20 processors spinning on reads does not overtake spinning on the
//! exchange.
//!
//! Rule where copies are updated (Firefly), after section 4.6 ("quiescence will occur faster" with
//! reads): *holds* if with every number of processors that wait, spinning on reads takes no longer
//! than spinning on the exchange, and with all it takes at least 5 % less; else *differs*. *not
//! judged* with one processor.

use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use super::{Judged, MANY, PAPERS, comparison};
use stanchion_simulated_locks::pass::Pass;
use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_simulated_locks::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::median;
use stanchion_study::outcome::{Axis, Outcome, Picture, Series, Shape, Verdict};
use stanchion_study::simulation::cells;
use stanchion_study::units::nanos;
use stanchion_study_locks::list::Way;

/// `grid[lock][count]`: nanoseconds for each thread.
type Grid = Vec<Vec<f64>>;

pub(super) fn run(context: &Context, machine: &Machine) -> Result<Outcome, Stop> {
    let counts = context.within(machine.processors);
    let rounds: u64 = context.pick(51, 201);
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
    let rows = PAPERS.map(|(way, _)| &grid[of_way(way)][..]);
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
        ..Outcome::new(verdict(machine, rows, &counts))
    })
}

/// Judges spinning on the exchange, spinning on reads and backoff, each with `counts` processors.
fn verdict(machine: &Machine, rows: [&[f64]; 3], counts: &[usize]) -> Verdict {
    let last = counts.len() - 1;
    let times = (0..counts.len()).map(|column| rows.map(|row| row[column])).collect();
    let judged = Judged { counts, times };
    if let Memory::Update(_) = machine.memory {
        if last == 0 {
            return Verdict::NotJudged("one processor only: no thread waits".to_owned());
        }
        let quiet = judged.times[1..].iter().all(|[exchange, read, _]| read <= exchange);
        let [exchange, read, _] = judged.times[last];
        return Verdict::when(quiet && read <= 0.95 * exchange, judged.to_string());
    }
    if counts[last] < MANY {
        return Verdict::NotJudged(
            "too few processors to show what happens as they grow".to_owned(),
        );
    }
    judged.verdict()
}

#[cfg(test)]
mod tests {
    use lock_api::RawMutex;
    use sim_machine::wait::Spin;
    use sim_spin::contention::{Ethernet, Exchange, Read};
    use sim_spin::{Mcs, TestAndSet};
    use stanchion_simulator::machines;

    use super::*;
    use stanchion_simulated_locks::pass;
    use stanchion_simulated_locks::registry::DELAY_NS;

    const COUNTS: [usize; 3] = [1, 2, 20];

    type ByExchange = TestAndSet<Exchange, Spin>;
    type ByRead = TestAndSet<Read, Spin>;
    type ByBackoff = TestAndSet<Ethernet<DELAY_NS>, Spin>;
    /// A queue lock. Its waiters leave the bus alone.
    type Queued = Mcs<Spin>;

    fn measured<R: RawMutex + 'static>(machine: &Machine, counts: &[usize]) -> Vec<f64> {
        let of = |threads| {
            let round = |seed| pass::run::<R>(machine, &Pass { threads, seed }).unwrap();
            median((0..51).map(round).collect())
        };
        counts.iter().map(|&count| of(count)).collect()
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
        differs(&judged::<ByExchange, ByExchange, ByBackoff>(&machine, &COUNTS));
        differs(&judged::<ByExchange, ByRead, ByExchange>(&machine, &COUNTS));
    }

    #[test]
    fn a_wrong_lock_in_any_place_makes_the_fireflys_claim_differ() {
        let (machine, counts) = (machines::firefly(), [1, 2, 6]);
        let right = judged::<ByExchange, ByRead, ByBackoff>(&machine, &counts);
        assert_eq!(right.name(), "holds", "{right:?}");
        differs(&judged::<ByRead, ByRead, ByBackoff>(&machine, &counts));
        differs(&judged::<ByExchange, Queued, ByBackoff>(&machine, &counts));
        differs(&judged::<ByExchange, ByExchange, ByBackoff>(&machine, &counts));
    }
}
