//! Measures the cost of moving a cache line from one processor to another: two pinned threads pass
//! a word to and fro.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::topology::{CachePadded, pin};

use super::Cost;

/// Hand-overs in one run. The result is the fastest run, which is the one with the least
/// disturbance.
const ROUNDS: u32 = 2_000;
/// Runs for each pair of processors.
const RUNS: u32 = 50;
/// The most partners of the first processor that are tried: enough to see near and far ones.
const PARTNERS: usize = 16;

/// Measures the transfer in one direction, from the first processor to each of the others.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let [first, others @ ..] = processors else { return Vec::new() };
    if others.is_empty() {
        return vec![Cost::not_measured("cache-line transfer", "only one processor may be used")];
    }
    others
        .iter()
        .take(PARTNERS)
        .map(|other| {
            let what = format!("cache-line transfer, {first} to {other}");
            match one_way(*first, *other) {
                Ok(nanos) => Cost::nanos(what, nanos),
                Err(why) => Cost::not_measured(what, why),
            }
        })
        .collect()
}

fn one_way(first: usize, other: usize) -> Result<f64, String> {
    // Check before the threads start that both can be pinned, so that neither waits for a partner
    // that cannot.
    for processor in [first, other] {
        drop(pin(processor).map_err(|error| error.to_string())?);
    }
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let word = CachePadded::new(AtomicU32::new(0));
        let hand_over = |mine: u32, processor: usize| {
            let _pinned = pin(processor);
            let started = Instant::now();
            for round in 0..ROUNDS {
                let turn = 2 * round + mine;
                // Acquire and Release: each load pairs with the other thread's store. There is no
                // pause hint, because its length would be part of the measured time.
                while word.load(Ordering::Acquire) != turn {}
                word.store(turn + 1, Ordering::Release);
            }
            started.elapsed()
        };
        let elapsed = thread::scope(|scope| {
            let partner = scope.spawn(|| hand_over(1, other));
            let mine = scope.spawn(|| hand_over(0, first));
            // The thread that starts first also waits for the other to start. The shorter time is
            // that of the hand-overs.
            [partner, mine]
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .into_iter()
                .min()
                .unwrap_or(Duration::MAX)
        });
        best = best.min(elapsed);
    }
    Ok(best.as_nanos() as f64 / f64::from(2 * ROUNDS))
}
