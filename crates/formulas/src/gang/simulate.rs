//! Figure 1 of the paper, played: threads compute, meet, and compute again, while a scheduler takes
//! their processors away.
//!
//! No formula of the module above is used, so an agreement says something. To meet takes no time of
//! its own, as in the model: it is part of a thread's processing time. Processing times are drawn
//! evenly from a [`Grain`].

use std::collections::VecDeque;

use super::{GangError, Iteration, System, time};
use crate::{Estimate, Random};

/// Processing times between `least` and `least + spread`, all equally likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grain {
    /// The shortest.
    pub least: f64,
    /// The longest less the shortest.
    pub spread: f64,
}

impl Grain {
    /// Returns the iteration that the model takes for it.
    ///
    /// # Errors
    ///
    /// [`GangError`] if a time is negative or not finite, or no thread takes part.
    pub fn iteration(self, members: u32) -> Result<Iteration, GangError> {
        Iteration::uniform(self.least, self.spread, members)
    }

    fn check(self) -> Result<(), GangError> {
        time("least", self.least)?;
        time("spread", self.spread)?;
        if self.least + self.spread > 0.0 {
            Ok(())
        } else {
            let value = self.least + self.spread;
            Err(GangError::Time { what: "least + spread", value, least: "above 0" })
        }
    }

    fn draw(self, random: &mut Random) -> f64 {
        self.least + self.spread * random.unit()
    }
}

/// The turns of a thread on its processor: a quantum long, from `from` on, in each round.
struct Turns {
    /// The system that the thread is in.
    system: System,
    /// The beginning of its quantum in each round.
    from: f64,
}

impl Turns {
    /// Returns the time when a thread that wants to go on at `now` has had its processor for `need`
    /// more.
    fn advance(&self, now: f64, need: f64) -> f64 {
        let (round, quantum) = (self.system.round(), self.system.quantum());
        let into = (now - self.from).rem_euclid(round);
        // What it has had of this round's quantum, and where that round began.
        let (had, began) = (into.min(quantum), now - into);
        let mut whole = ((had + need) / quantum).floor();
        let mut rest = had + need - whole * quantum;
        if rest == 0.0 && whole > 0.0 {
            // Done as its quantum ends, not when the next begins.
            (whole, rest) = (whole - 1.0, quantum);
        }
        began + whole * round + rest
    }
}

/// Programs of `iterations` iterations, each with threads that start their rounds where `starts`
/// says: the mean time of an iteration.
fn busy(
    system: System,
    grain: Grain,
    iterations: u32,
    random: &mut Random,
    mut starts: impl FnMut(&mut Random) -> f64,
) -> f64 {
    let turns: Vec<_> =
        (0..system.members()).map(|_| Turns { system, from: starts(random) }).collect();
    // Long before the first iteration all have had a quantum.
    let begin = 2.0 * system.round() * (1.0 + random.unit());
    let mut met = begin;
    for _ in 0..iterations {
        // Each sees that all have met, when it has its processor, and computes.
        met = turns.iter().map(|turns| turns.advance(met, grain.draw(random))).fold(met, f64::max);
    }
    (met - begin) / f64::from(iterations)
}

/// Busy waiting with gangs: the mean time of an iteration, over `runs` programs of `iterations`
/// iterations.
///
/// # Errors
///
/// [`GangError`] if the grain takes no time or is not one.
pub fn gang(
    system: System,
    grain: Grain,
    iterations: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, GangError> {
    grain.check()?;
    Ok(Estimate::of((0..runs).map(|_| busy(system, grain, iterations, random, |_| 0.0))))
}

/// Busy waiting without gangs: each thread's quantum comes at a random time in the round and stays
/// there for a run.
///
/// Estimates the *rate*, as the paper does when it takes a mean overlap: the mean over runs of
/// iterations per time. Its inverse is the time of an iteration of a system that falls into another
/// pattern now and then.
///
/// # Errors
///
/// [`GangError`] if the grain takes no time or is not one.
pub fn uncoordinated(
    system: System,
    grain: Grain,
    iterations: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, GangError> {
    grain.check()?;
    let round = system.round();
    let run = |_| 1.0 / busy(system, grain, iterations, random, |random| round * random.unit());
    Ok(Estimate::of((0..runs).map(run)))
}

/// The behaviour of the programs beside the one that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// The same.
    Alike,
    /// They compute, and never wait.
    Busy,
}

/// A thread that meets others.
struct Thread {
    /// The number of its program.
    gang: usize,
    /// Processing until it arrives; infinite if it never does.
    need: f64,
}

/// A processor with the threads that are ready for it. The first of them runs.
struct Processor {
    /// The time that it has come to.
    now: f64,
    /// The ready threads, the running one first.
    ready: VecDeque<usize>,
    /// Of the running thread's quantum.
    left: f64,
}

/// Simulates blocking: each processor has a queue, served in turn. A thread that waits is in none.
/// Blocking costs `alpha` switches, the end of a quantum one.
///
/// Returns the mean time of an iteration of the first program, over `runs` times `iterations` of
/// them.
///
/// # Errors
///
/// [`GangError`] if the grain takes no time or is not one, or `alpha` is out of its range.
pub fn blocking(
    system: System,
    grain: Grain,
    alpha: f64,
    others: Others,
    iterations: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, GangError> {
    grain.check()?;
    let cost = super::alpha_of(alpha)? * system.switch();
    let run = |_| block(system, grain, cost, others, iterations, random);
    Ok(Estimate::of((0..runs).map(run)))
}

fn block(
    system: System,
    grain: Grain,
    cost: f64,
    others: Others,
    iterations: u32,
    random: &mut Random,
) -> f64 {
    let (members, load) = (system.members() as usize, system.load() as usize);
    // Thread `gang * members + p` runs on processor p.
    let mut threads: Vec<_> = (0..load * members)
        .map(|index| {
            let gang = index / members;
            let waits = gang == 0 || others == Others::Alike;
            Thread { gang, need: if waits { grain.draw(random) } else { f64::INFINITY } }
        })
        .collect();
    let mut arrived = vec![0; load];
    // Queues in a random order and clocks apart: the paper's skewing threads.
    let mut processors: Vec<_> = (0..members)
        .map(|p| {
            let mut ready: VecDeque<_> = (0..load).map(|gang| gang * members + p).collect();
            ready.rotate_left(random.below(load as u64) as usize);
            let quantum = system.quantum();
            Processor { now: quantum * random.unit(), ready, left: quantum }
        })
        .collect();
    // A round of iterations first, so that starting does not count.
    let (warm, mut done, mut began) = (iterations / 10 + 1, 0, 0.0);
    loop {
        // The processor with the running thread that does something first.
        let next = (0..members).filter_map(|p| {
            let of = &processors[p];
            let &running = of.ready.front()?;
            Some((p, of.now + threads[running].need.min(of.left)))
        });
        let (p, now) = next
            .min_by(|(_, left), (_, right)| left.total_cmp(right))
            .expect("the last to arrive is ready");
        let of = &mut processors[p];
        let running = of.ready[0];
        of.now = now;
        if threads[running].need > of.left {
            // Its quantum is over.
            threads[running].need -= of.left;
            if of.ready.len() > 1 {
                of.ready.rotate_left(1);
                of.now += system.switch();
            }
            of.left = system.quantum();
            continue;
        }
        of.left -= threads[running].need;
        let gang = threads[running].gang;
        arrived[gang] += 1;
        if arrived[gang] < members {
            of.ready.pop_front();
            of.now += cost;
            of.left = system.quantum();
            threads[running].need = grain.draw(random);
            continue;
        }
        // The last: it goes on, and the others are ready again.
        arrived[gang] = 0;
        threads[running].need = grain.draw(random);
        for (other, of) in processors.iter_mut().enumerate().filter(|&(other, _)| other != p) {
            if of.ready.is_empty() {
                of.now = of.now.max(now);
            }
            of.ready.push_back(gang * members + other);
        }
        if gang == 0 {
            done += 1;
            if done == warm {
                began = now;
            } else if done == warm + iterations {
                return (now - began) / f64::from(iterations);
            }
        }
    }
}
