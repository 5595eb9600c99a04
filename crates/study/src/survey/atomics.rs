//! Costs on a single thread: of atomic instructions on a cache line that no other thread uses, of a
//! pause, and of reading a clock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use stanchion_machine::wait;

use super::Cost;
use crate::measure::least;

/// Names the cost of loading an atomic word.
pub const LOAD: &str = "atomic load";
/// Names the cost of exchanging an atomic word.
pub const SWAP: &str = "atomic swap";
/// Names the cost of the hint that a thread spins.
pub const PAUSE: &str = "pause hint";

/// Runs of each measurement; the fastest one counts.
const RUNS: u32 = 50;
/// Calls in a run.
const CALLS: u32 = 10_000;

/// Measures the costs. Each includes one turn of the loop around it. The cost of the turn is listed
/// first and not subtracted, because an instruction that overlaps with the turn would look free.
pub fn costs() -> Vec<Cost> {
    let word = &*black_box(Box::new(AtomicU64::new(0)));
    // SeqCst, the most expensive ordering of each kind, unless a name says otherwise. No ordering
    // here has a partner: a single thread uses the word. A fence is measured after a store, as
    // algorithms use it. A compiler may merge two fences with nothing between them.
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
        // Exchange 0 for 0, so that it succeeds every time and one instruction is measured.
        cost("atomic compare_exchange, succeeding", || {
            let _ = black_box(word.compare_exchange(0, 0, Ordering::SeqCst, Ordering::SeqCst));
        }),
        cost("waiters' clock, one reading", || {
            black_box(stanchion_machine::clock::now());
        }),
        cost("Instant::now", || {
            black_box(Instant::now());
        }),
        Cost::nanos(PAUSE, stanchion_machine::clock::pause_ns()),
        Cost::nanos("line transfer, as waiting policies measure it", wait::transfers(1) as f64),
        Cost::nanos("kernel call, as waiting policies measure it", wait::calls(1) as f64),
    ]);
    costs
}

/// Measures one cost. The function is generic, so that the loop is compiled around the instruction
/// and no call is measured.
fn cost(what: &str, call: impl FnMut()) -> Cost {
    Cost::nanos(what, least(RUNS, CALLS, call))
}
