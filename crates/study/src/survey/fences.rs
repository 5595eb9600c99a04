//! Measures what the heavy side of an asymmetric fence takes beside one running thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use stanchion_machine::asymmetric;

use super::{Cost, wait_while};
use crate::measure::lower_quartile;

/// Names the cost of a heavy fence.
pub const HEAVY: &str = "heavy fence, beside one running thread";

/// Measures a heavy fence on two processors.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let cost = match heavy(processors) {
        Ok(nanos) => Cost::nanos(HEAVY, nanos),
        Err(why) => Cost::not_measured(HEAVY, why),
    };
    vec![cost]
}

/// Measures a heavy fence in nanoseconds, while another thread runs. It registers the process.
///
/// # Errors
///
/// There is one processor, or the kernel makes no barriers.
pub fn heavy(processors: &[usize]) -> Result<f64, String> {
    const FENCES: usize = 300;
    if processors.len() < 2 {
        return Err("only one processor may be used".to_owned());
    }
    asymmetric::heavy();
    if !asymmetric::is_free() {
        return Err("the kernel makes no barriers here, so both sides fence".to_owned());
    }
    let (running, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let times = thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed, both: the words publish nothing else.
            running.store(true, Ordering::Relaxed);
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        // Relaxed: as above.
        wait_while(|| !running.load(Ordering::Relaxed));
        let times = (0..FENCES).map(|_| spaced()).collect();
        // Relaxed: as above.
        over.store(true, Ordering::Relaxed);
        times
    });
    Ok(lower_quartile(times))
}

/// Times a heavy fence in nanoseconds, and then spins for longer than that: fences without such
/// spaces are too many (see [`asymmetric`]).
fn spaced() -> f64 {
    let began = Instant::now();
    asymmetric::heavy();
    let took = began.elapsed();
    while began.elapsed() < 3 * took {
        std::hint::spin_loop();
    }
    took.as_nanos() as f64
}
