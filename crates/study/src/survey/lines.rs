//! What single accesses take whose line is here, is somewhere else, or is here and there: the
//! figures of a memory system's description.
//!
//! Why not only the hand-over of [`transfer`](super::transfer): it is a fetch, a write and the
//! traffic of a loop that looks meanwhile, all in one. Here the partner prepares many lines and
//! steps aside, and the first processor then goes through them along a chain: each word names the
//! next line, so that one access begins when the one before is done.
//!
//! Each figure is the median of many passes: few are interrupted, and the host may move a processor
//! meanwhile.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use machine::topology::{CachePadded, pin};

use super::{Cost, wait_while};
use crate::measure::median;

/// Lines in the chain: few enough for the first cache.
const LINES: usize = 64;
/// No multiple of it is the next line or the one after, which a processor may fetch unasked.
const STRIDE: usize = 29;
const PASSES: usize = 400;

/// A read of a line that the other has written.
pub const FETCH: &str = "fetching a line that the other has written";
/// An exchange after that: it has nothing to ask where the read took the line away from the other.
pub const AFTER_FETCH: &str = "exchanging a word there after that";
/// An exchange that fetches.
const FETCH_EXCHANGE: &str = "exchanging a word of a line that the other has written";
/// An exchange that only has to take the other's copy away.
pub const UPGRADE: &str = "exchanging a word of a line that the other has too";

/// Nanoseconds for each access, between the first processor and the second.
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

/// The first of them alone.
pub fn fetch(processors: &[usize]) -> Result<f64, String> {
    match processors {
        [first, other, ..] => between(*first, *other).map(|[fetch, ..]| fetch),
        _ => Err("only one processor may be used".to_owned()),
    }
}

/// What one of the two does to all lines.
#[derive(Clone, Copy, Debug)]
enum Pass {
    Write,
    Read,
    Exchange,
}

/// What each does in its turn, from the beginning again and again: the first processor's passes are
/// 0, the partner's 1.
const SCRIPT: [(usize, Pass); 10] = [
    (1, Pass::Write),
    (0, Pass::Read),
    (0, Pass::Exchange),
    (1, Pass::Write),
    (0, Pass::Exchange),
    // Read by both in turn, whoever of them owns it in between.
    (1, Pass::Write),
    (0, Pass::Read),
    (1, Pass::Read),
    (0, Pass::Read),
    (0, Pass::Exchange),
];

/// In the order of the names above.
fn between(first: usize, other: usize) -> Result<[f64; 4], String> {
    // Before the threads start, so that neither waits for a partner who could not take its place.
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
                    // Acquire and Release: each finds the lines as the other left them.
                    wait_while(|| turn.load(Ordering::Acquire) != mine);
                    taken[step].push(chain.pass(what));
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

/// Words, each the number of the next one, a line apart or more.
struct Chain(Vec<CachePadded<AtomicUsize>>);

impl Chain {
    fn new() -> Self {
        Self((0..LINES).map(|line| CachePadded::new(AtomicUsize::new(next(line)))).collect())
    }

    /// Nanoseconds for each line.
    fn pass(&self, what: Pass) -> f64 {
        let started = Instant::now();
        let mut line = 0;
        // Relaxed: `turn` orders what the two do.
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
