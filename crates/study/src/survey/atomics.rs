//! What one thread pays for an atomic instruction whose cache line nobody else wants, for a pause,
//! and for reading a clock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use super::Cost;
use crate::measure::least;

/// Names the cost of loading an atomic word.
pub const LOAD: &str = "atomic load";
/// Names the cost of exchanging an atomic word.
pub const SWAP: &str = "atomic swap";
/// Names the cost of the hint that a thread spins.
pub const PAUSE: &str = "pause hint";

const RUNS: u32 = 50;
const CALLS: u32 = 10_000;

/// The costs, each with the turn of the loop around it, which is listed first: taking it off would
/// make what overlaps with it look free.
pub fn costs() -> Vec<Cost> {
    let word = &*black_box(Box::new(AtomicU64::new(0)));
    // SeqCst where nothing is said: the dearest of each kind. A fence is measured behind a store,
    // as algorithms use it, and because a compiler may make one of two fences with nothing between.
    let mut costs = vec![
        cost("one turn of an empty loop, in each of these", || {
            black_box(word);
        }),
        cost(LOAD, || {
            black_box(word.load(Ordering::SeqCst));
        }),
        cost("atomic store, release", || word.store(1, Ordering::Release)),
        cost("atomic store, seqcst", || word.store(1, Ordering::SeqCst)),
        cost("atomic store, release, then fence, seqcst", || {
            word.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
        }),
        cost(SWAP, || {
            black_box(word.swap(1, Ordering::SeqCst));
        }),
        cost("atomic fetch_add", || {
            black_box(word.fetch_add(1, Ordering::SeqCst));
        }),
    ];
    word.store(0, Ordering::Relaxed);
    costs.extend([
        // 0 for 0: it succeeds every time, and one instruction is measured.
        cost("atomic compare_exchange, succeeding", || {
            let _ = black_box(word.compare_exchange(0, 0, Ordering::SeqCst, Ordering::SeqCst));
        }),
        cost("waiters' clock, one reading", || {
            black_box(machine::clock::now());
        }),
        cost("Instant::now", || {
            black_box(Instant::now());
        }),
        Cost::nanos(PAUSE, machine::clock::pause_ns()),
    ]);
    costs
}

/// Generic, so that the loop is compiled around the instruction and no call is measured.
fn cost(what: &str, call: impl FnMut()) -> Cost {
    Cost::nanos(what, least(RUNS, CALLS, call))
}
