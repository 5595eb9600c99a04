//! What it costs to sleep and be woken, to yield, and to switch from one thread to another.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use machine::atomic::AtomicU32;
use machine::clock::Deadline;
use machine::park;
use machine::topology::{CachePadded, pin};

use super::Cost;
use crate::study::least;

const ROUNDS: u32 = 2_000;
const RUNS: u32 = 5;

/// Round trips and switches, on the first processor and between it and the second.
pub(super) fn costs(processors: &[usize]) -> Vec<Cost> {
    let same = "futex round trip, same processor";
    let other = "futex round trip, another processor";
    let switch = "context switch, two threads that yield in turn";
    let cost = |what: &str, measured: Result<f64, String>| match measured {
        Ok(nanos) => Cost::nanos(what, nanos),
        Err(why) => Cost::not_measured(what, why),
    };
    let mut costs = Vec::new();
    if let [first, rest @ ..] = processors {
        costs.push(cost(same, round_trip([*first, *first])));
        costs.push(match rest {
            [second, ..] => cost(other, round_trip([*first, *second])),
            [] => Cost::not_measured(other, "only one processor may be used"),
        });
        costs.push(cost(switch, yield_in_turn(*first)));
    }
    costs.push(Cost::nanos("sched_yield, nobody else to run", least(20, 1000, thread::yield_now)));
    costs
}

/// One thread wakes the other and sleeps until it is woken back, in nanoseconds; each on its processor.
pub(crate) fn round_trip(on: [usize; 2]) -> Result<f64, String> {
    check(on)?;
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let words = [0, 1].map(|_| CachePadded::new(AtomicU32::new(0)));
        let sleep_until = |word: &AtomicU32, round: u32| {
            loop {
                // Acquire: pairs with the Release store of the waker.
                let now = word.load(Ordering::Acquire);
                if now >= round {
                    return;
                }
                park::wait(word, now, Deadline::NEVER);
            }
        };
        let wake = |word: &AtomicU32, round: u32| {
            word.store(round, Ordering::Release);
            park::wake_one(word);
        };
        let elapsed = both(
            || {
                let _pinned = pin(on[1]);
                for round in 1..=ROUNDS {
                    sleep_until(&words[0], round);
                    wake(&words[1], round);
                }
            },
            || {
                let _pinned = pin(on[0]);
                let started = Instant::now();
                for round in 1..=ROUNDS {
                    wake(&words[0], round);
                    sleep_until(&words[1], round);
                }
                started.elapsed()
            },
        );
        best = best.min(elapsed);
    }
    Ok(best.as_nanos() as f64 / f64::from(ROUNDS))
}

fn check(on: [usize; 2]) -> Result<(), String> {
    // Before the threads start, so that neither waits for a partner who could not take its place.
    for processor in on {
        drop(pin(processor).map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn both(other: impl FnOnce() + Send, mine: impl FnOnce() -> Duration + Send) -> Duration {
    thread::scope(|scope| {
        scope.spawn(other);
        let mine = scope.spawn(mine);
        mine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Two threads on one processor yield to each other; elapsed time for each switch that the kernel counted.
///
/// Not for each yield: a scheduler that holds the yielding thread to be the one to run next does not switch.
fn yield_in_turn(processor: usize) -> Result<f64, String> {
    const YIELDS: u32 = 20_000;
    check([processor, processor])?;
    let yields = || {
        let _pinned = pin(processor);
        let before = switches_of_this_thread();
        let started = Instant::now();
        (0..YIELDS).for_each(|_| thread::yield_now());
        let elapsed = started.elapsed();
        (elapsed, switches_of_this_thread().zip(before).map(|(after, before)| after - before))
    };
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let (elapsed, switches) = thread::scope(|scope| {
            scope.spawn(yields);
            let mine = scope.spawn(yields);
            mine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let switches = switches.ok_or("this system does not count a thread's switches")?;
        // Each time this thread was switched out, the other was switched out too before this one came back.
        if switches > u64::from(YIELDS) / 10 {
            best = best.min(elapsed.as_nanos() as f64 / (2 * switches) as f64);
        }
    }
    if best.is_finite() {
        Ok(best)
    } else {
        Err("the kernel did not switch when a thread yielded".to_owned())
    }
}

#[cfg(target_os = "linux")]
fn switches_of_this_thread() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for a rusage and lives through the call.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zeroed, and a rusage of zeroes is a valid one, whether or not the call filled it.
    let usage = unsafe { usage.assume_init() };
    (done == 0).then(|| (usage.ru_nvcsw + usage.ru_nivcsw).unsigned_abs())
}

#[cfg(not(target_os = "linux"))]
fn switches_of_this_thread() -> Option<u64> {
    None
}
