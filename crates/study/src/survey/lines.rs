//! The time of single accesses to a cache line that is in this processor's cache, in another's, or
//! in both: the figures of a memory system's description.
//!
//! Why not only the hand-over of [`transfer`](super::transfer): it is a fetch, a write and the
//! traffic of a polling loop, all in one. Here the partner prepares many lines and then waits. The
//! first processor follows a chain through the lines: each word names the next line, so one access
//! begins when the one before it is done.
//!
//! Each figure is the median of many passes, because a few passes are interrupted, and the host may
//! move a processor meanwhile.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use stanchion_machine::topology::{CachePadded, pin};

use super::{Cost, wait_while};
use crate::measure::median;

/// Lines in the chain: few enough for the first cache.
const LINES: usize = 64;
/// The distance from one line of the chain to the next. It is large, so that the next access is not
/// to one of the next two lines in memory, which a processor may prefetch.
const STRIDE: usize = 29;
/// Passes through the whole script.
const PASSES: usize = 400;

/// Names the cost of a read of a line that the other processor has written.
pub const FETCH: &str = "fetching a line that the other has written";
/// Names the cost of an exchange after that read. If the read took the line away from the other
/// processor, the exchange needs no memory traffic.
pub const AFTER_FETCH: &str = "exchanging a word there after that";
/// Names the cost of an exchange that fetches the line.
const FETCH_EXCHANGE: &str = "exchanging a word of a line that the other has written";
/// Names the cost of an exchange that only has to invalidate the other processor's copy.
pub const UPGRADE: &str = "exchanging a word of a line that the other has too";

/// Measures each access between the first processor and the second, in nanoseconds.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let names = [FETCH, AFTER_FETCH, FETCH_EXCHANGE, UPGRADE];
    let none = |why: String| names.map(|what| Cost::not_measured(what, why.clone())).into();
    match processors {
        [first, other, ..] => match between(*first, *other) {
            Ok(nanos) => {
                names.into_iter().zip(nanos).map(|(what, n)| Cost::nanos(what, n)).collect()
            }
            Err(why) => none(why),
        },
        _ => none("only one processor may be used".to_owned()),
    }
}

/// Measures only the first of these costs, the fetch.
pub fn fetch(processors: &[usize]) -> Result<f64, String> {
    match processors {
        [first, other, ..] => between(*first, *other).map(|[fetch, ..]| fetch),
        _ => Err("only one processor may be used".to_owned()),
    }
}

/// An action on all lines by one of the two processors.
#[derive(Clone, Copy, Debug)]
enum Pass {
    Write,
    Read,
    Exchange,
}

/// The passes of both processors in turn, repeated from the beginning. The first processor is 0,
/// the partner 1.
const SCRIPT: [(usize, Pass); 10] = [
    (1, Pass::Write),
    (0, Pass::Read),
    (0, Pass::Exchange),
    (1, Pass::Write),
    (0, Pass::Exchange),
    // Both processors read the lines in turn, so that both have a copy whichever of them owned the
    // lines in between.
    (1, Pass::Write),
    (0, Pass::Read),
    (1, Pass::Read),
    (0, Pass::Read),
    (0, Pass::Exchange),
];

/// Measures the four costs between two processors, in the order of the names above.
fn between(first: usize, other: usize) -> Result<[f64; 4], String> {
    // Check before the threads start that both can be pinned, so that neither waits for a partner
    // that cannot.
    for processor in [first, other] {
        drop(pin(processor).map_err(|error| error.to_string())?);
    }
    let chain = Chain::new();
    let turn = CachePadded::new(AtomicUsize::new(0));
    let play = |me: usize, processor: usize| {
        let _pinned = pin(processor);
        let mut taken = SCRIPT.map(|_| Vec::new());
        for pass in 0..PASSES {
            for (step, &(who, what)) in SCRIPT.iter().enumerate() {
                if who == me {
                    let mine = pass * SCRIPT.len() + step;
                    // Acquire: pairs with the Release store of the other thread below, so this
                    // thread finds the lines as the other left them.
                    wait_while(|| turn.load(Ordering::Acquire) != mine);
                    taken[step].push(chain.pass(what));
                    // Release: pairs with the Acquire of the other thread above.
                    turn.store(mine + 1, Ordering::Release);
                }
            }
        }
        taken
    };
    let taken = thread::scope(|scope| {
        scope.spawn(|| play(1, other));
        let mine = scope.spawn(|| play(0, first));
        mine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let [_, fetch, after_fetch, _, fetch_exchange, _, _, _, _, upgrade] = taken.map(median);
    Ok([fetch, after_fetch, fetch_exchange, upgrade])
}

/// A chain of words, each on a line of its own. Each word holds the index of the next one.
struct Chain(Vec<CachePadded<AtomicUsize>>);

impl Chain {
    fn new() -> Self {
        Self((0..LINES).map(|line| CachePadded::new(AtomicUsize::new(next(line)))).collect())
    }

    /// Goes through all lines once, and returns the nanoseconds for each line.
    fn pass(&self, what: Pass) -> f64 {
        let started = Instant::now();
        let mut line = 0;
        // Relaxed: `turn` orders the accesses of the two threads.
        match what {
            Pass::Read => (0..LINES).for_each(|_| line = self.0[line].load(Ordering::Relaxed)),
            Pass::Write => (0..LINES).for_each(|_| {
                self.0[line].store(next(line), Ordering::Relaxed);
                line = next(line);
            }),
            Pass::Exchange => {
                (0..LINES).for_each(|_| line = self.0[line].swap(next(line), Ordering::Relaxed));
            }
        }
        black_box(line);
        started.elapsed().as_nanos() as f64 / LINES as f64
    }
}

fn next(line: usize) -> usize {
    (line + STRIDE) % LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_goes_over_every_line_and_leaves_the_chain_as_it_was() {
        let chain = Chain::new();
        for what in [Pass::Write, Pass::Exchange, Pass::Read] {
            assert!(chain.pass(what) > 0.0);
            let mut seen = [false; LINES];
            let mut line = 0;
            for _ in 0..LINES {
                seen[line] = true;
                line = chain.0[line].load(Ordering::Relaxed);
            }
            assert!(seen.iter().all(|&seen| seen) && line == 0, "{what:?}");
        }
    }
}
