//! Table 1: the costs of a switch and of a spawn, with gangs and without.
//!
//! Switching without gangs is a turn of two threads that yield to each other on one processor.
//! Switching slots is the time from a member's last look in its turn to the first of the next
//! slot's member on the same processor. Spawning is starting and joining as many threads as there
//! are processors. The threads do nothing. They are the system's, and a gang's, which the executor
//! keeps between two gangs.
//!
//! Rule of the verdict: *holds* if both cost more with gangs, as in the paper; else *differs*. The
//! paper's gangs and its system both start threads. Here only the system does. So the second half
//! cannot show the cost of starting threads in a gang, and the verdict says so. *not judged* if a
//! ratio of two costs is not known precisely enough ([`Precision`]).

use std::thread;
use std::time::{Duration, Instant};

use stanchion_gang::{Ended, GangExecutor, Member};

use super::real;
use super::stage::Stage;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::measure::{Precision, median};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/table1",
    paper: Paper::Fr92,
    title: "Overheads of gang scheduling",
    claim: "Scheduling 0.07 + 0.14/ℓ ms against 0.2 ms, spawning 1.6 against 2.5 ms; ours on this machine.",
    bodies: Bodies::real(run, "what a simulated machine's threads cost is in its description"),
};

const QUANTUM: Duration = Duration::from_millis(1);
/// The time after which a member that has not looked had lost its turn: half a quantum.
const GONE: Duration = Duration::from_micros(500);

/// Costs in µs, without gangs and with.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Passing a processor from one thread to another.
    switch: [f64; 2],
    /// Starting and joining a thread for each processor.
    spawn: [f64; 2],
}

impl Costs {
    /// Returns both costs with gangs over those without.
    fn ratios(self) -> [f64; 2] {
        [self.switch, self.spawn].map(|[without, with]| with / without)
    }
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    let stage = Stage::real(context)?;
    let place = stage.place();
    let precision = Precision::of(EXPERIMENT.id, context);
    context.plan(precision.steps(1, 1));
    let mut seen: Vec<Costs> = Vec::new();
    let repeated = precision.repeat(|_| {
        let costs = Costs {
            switch: [
                real::switch(context.processors[0])? * 1e3,
                slots(place.processors, context.window(50, 150))?,
            ],
            spawn: spawning(place.processors, context.pick(30, 120))?,
        };
        seen.push(costs);
        context.step()?;
        Ok(costs.ratios().into())
    })?;
    let middle = |of: fn(&Costs) -> f64| median(seen.iter().map(of).collect());
    let costs = Costs {
        switch: [middle(|costs| costs.switch[0]), middle(|costs| costs.switch[1])],
        spawn: [middle(|costs| costs.spawn[0]), middle(|costs| costs.spawn[1])],
    };
    let both = |[without, with]: [f64; 2]| {
        format!("{} µs against {} µs", significant(without), significant(with))
    };
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "scheduling, without gangs against with",
                "0.07 + 0.14/ℓ ms against 0.2 ms",
                both(costs.switch),
            ),
            Comparison::new(
                "spawning, without gangs against with",
                "1.6 ms against 2.5 ms",
                both(costs.spawn),
            ),
        ],
        notes: vec![format!(
            "{} processors, medians of {}; switching is cooperative. The gangs' threads are kept from one gang to the next; the system's are new each time.",
            place.processors,
            repeated.words()
        )],
        ..stage.judged(Some(repeated), verdict(costs))
    })
}

/// The remark that explains why spawning may take less with gangs.
const KEPT: &str = " (this executor keeps its threads from one gang to the next, so it wakes them where the system starts them: the paper's starts them too)";

fn verdict(costs: Costs) -> Verdict {
    let [switch, spawn] = costs.ratios();
    Verdict::when(
        switch > 1.0 && spawn > 1.0,
        format!(
            "with gangs switching takes {} times as long and spawning {} times{}",
            significant(switch),
            significant(spawn),
            if spawn > 1.0 { "" } else { KEPT }
        ),
    )
}

/// Returns the time from one slot to the next, in µs, of two gangs that do nothing but look.
fn slots(seats: usize, length: Duration) -> Result<f64, Stop> {
    let failed = |why: &dyn std::fmt::Display| Stop::Failed(format!("switching slots: {why}"));
    let built = GangExecutor::builder().processors(seats).quantum(QUANTUM).pin(true).build();
    let executor = built.map_err(|refused| failed(&refused))?;
    let ends = Instant::now() + length;
    let body = move |member: &mut Member| -> Result<(usize, Vec<(Instant, Instant)>), Ended> {
        let (mut turns, mut came) = (Vec::with_capacity(4_096), Instant::now());
        let mut last = came;
        while last < ends {
            member.checkpoint()?;
            let now = Instant::now();
            if now - last > GONE {
                turns.push((came, last));
                came = now;
            }
            last = now;
        }
        Ok((member.processor(), turns))
    };
    let gangs = [executor.spawn(seats, body), executor.spawn(seats, body)];
    let mut turns = vec![Vec::new(); seats];
    for (number, gang) in gangs.into_iter().enumerate() {
        let members = gang.map_err(|refused| failed(&refused))?.join();
        for (seat, of) in members.map_err(|error| failed(&error))? {
            turns[seat].extend(of.into_iter().map(|(came, left)| (came, left, number)));
        }
    }
    let mut gaps = Vec::new();
    for seat in &mut turns {
        seat.sort_unstable();
        let next = seat.windows(2).filter(|pair| pair[0].2 != pair[1].2 && pair[1].0 > pair[0].1);
        gaps.extend(next.map(|pair| (pair[1].0 - pair[0].1).as_secs_f64() * 1e6));
    }
    if gaps.is_empty() {
        return Err(failed(&"two gangs took no turns"));
    }
    Ok(median(gaps))
}

/// Returns the times of starting and joining as many threads as there are processors, without gangs
/// and with, in µs.
fn spawning(seats: usize, times: usize) -> Result<[f64; 2], Stop> {
    let failed = |why: &dyn std::fmt::Display| Stop::Failed(format!("spawning: {why}"));
    let executor = GangExecutor::builder().processors(seats).build().map_err(|why| failed(&why))?;
    let (mut threads, mut gangs) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let began = Instant::now();
        thread::scope(|scope| (0..seats).for_each(|_| drop(scope.spawn(|| ()))));
        threads.push(began.elapsed().as_secs_f64() * 1e6);
        let began = Instant::now();
        let gang = executor.spawn(seats, |_: &mut Member| Ok(()));
        gang.map_err(|why| failed(&why))?.join().map_err(|why| failed(&why))?;
        gangs.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok([median(threads), median(gangs)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged =
            |slot, gang| verdict(Costs { switch: [1.0, slot], spawn: [10.0, gang] }).name();
        assert_eq!(Costs { switch: [1.0, 2.0], spawn: [10.0, 5.0] }.ratios(), [2.0, 0.5]);
        assert_eq!(judged(2.0, 20.0), "holds");
        assert_eq!(judged(0.5, 20.0), "differs");
        assert_eq!(judged(2.0, 5.0), "differs");
    }
}
