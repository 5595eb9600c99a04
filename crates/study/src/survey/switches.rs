//! Measures the costs of sleeping and waking, of yielding, and of switching from one thread to
//! another.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_machine::atomic::AtomicU32;
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;
use stanchion_machine::topology::{CachePadded, pin};

use super::{Cost, wait_while};
use crate::measure::{least, lower_quartile};

/// Rounds that are timed together: few, so that some blocks run without an interruption on a busy
/// machine. The result is the time of the fastest block.
const ROUNDS: u32 = 20;
/// Blocks of `ROUNDS` rounds, each timed by itself.
const BLOCKS: u32 = 500;

/// Names the round trip by futex between two threads on one processor.
pub const SAME: &str = "futex round trip, same processor";
const OTHER: &str = "futex round trip, another processor";
/// Names the cost of waking a thread that sleeps on another processor.
pub const WAKE: &str = "futex wake of a sleeper on another processor";
/// Names the time from the end of such a wake until the woken thread runs.
pub const WAKEUP: &str = "from there until it runs";
/// Names the cost of a switch between two threads of one processor.
pub const SWITCH: &str = "context switch, two threads that yield in turn";

/// Measures round trips and switches, on the first processor and between it and the second.
pub fn costs(processors: &[usize]) -> Vec<Cost> {
    let cost = |what: &str, measured: Result<f64, String>| match measured {
        Ok(nanos) => Cost::nanos(what, nanos),
        Err(why) => Cost::not_measured(what, why),
    };
    let mut costs = Vec::new();
    if let [first, rest @ ..] = processors {
        costs.push(cost(SAME, round_trip([*first, *first])));
        if let [second, ..] = rest {
            costs.push(cost(OTHER, round_trip([*first, *second])));
            let parts = wake_elsewhere([*first, *second]);
            costs.push(cost(WAKE, parts.clone().map(|[wake, _]| wake)));
            costs.push(cost(WAKEUP, parts.map(|[_, wakeup]| wakeup)));
        } else {
            let none = |what| Cost::not_measured(what, "only one processor may be used");
            costs.extend([OTHER, WAKE, WAKEUP].map(none));
        }
        costs.push(cost(SWITCH, yield_in_turn(*first)));
    }
    costs.push(Cost::nanos(
        "sched_yield, no other thread to run",
        least(20, 1000, thread::yield_now),
    ));
    costs
}

/// Measures a round trip in nanoseconds: one thread wakes the other, and sleeps until the other
/// wakes it. Each thread is pinned to its processor.
pub fn round_trip(on: [usize; 2]) -> Result<f64, String> {
    check(on)?;
    let words = [0, 1].map(|_| CachePadded::new(AtomicU32::new(0)));
    let sleep_until = |word: &AtomicU32, round: u32| {
        loop {
            // Acquire: pairs with the Release store in `wake`.
            let now = word.load(Ordering::Acquire);
            if now >= round {
                return;
            }
            park::wait(word, now, Deadline::NEVER);
        }
    };
    let wake = |word: &AtomicU32, round: u32| {
        // Release: pairs with the Acquire load in `sleep_until`.
        word.store(round, Ordering::Release);
        park::wake_one(word);
    };
    let best = both(
        || {
            let _pinned = pin(on[1]);
            for round in 1..=ROUNDS * BLOCKS {
                sleep_until(&words[0], round);
                wake(&words[1], round);
            }
        },
        || {
            let _pinned = pin(on[0]);
            let block = |block: u32| {
                let started = Instant::now();
                for round in 1..=ROUNDS {
                    wake(&words[0], block * ROUNDS + round);
                    sleep_until(&words[1], block * ROUNDS + round);
                }
                started.elapsed()
            };
            (0..BLOCKS).map(block).min().unwrap_or(Duration::MAX)
        },
    );
    Ok(best.as_nanos() as f64 / f64::from(ROUNDS))
}

/// Measures a wake of a sleeper on another processor, in nanoseconds: until the waker goes on, and
/// from there until the woken thread runs.
///
/// One clock tells all these times. The second one may be 0, because the thread may run before its
/// waker goes on.
fn wake_elsewhere(on: [usize; 2]) -> Result<[f64; 2], String> {
    const WAKES: u32 = 300;
    /// The time that the sleeper gets to fall asleep.
    const ASLEEP: Duration = Duration::from_micros(100);
    check(on)?;
    let (word, since) = (CachePadded::new(AtomicU32::new(0)), Instant::now());
    let ran = CachePadded::new(AtomicU64::new(0));
    let nanos = || since.elapsed().as_nanos() as u64;
    let taken = both(
        || {
            let _pinned = pin(on[1]);
            for round in 0..WAKES {
                // Acquire: pairs with the waker's Release store of `word`.
                while word.load(Ordering::Acquire) == round {
                    park::wait(&word, round, Deadline::NEVER);
                }
                // Release: pairs with the waker's Acquire loads of `ran`. The time is never 0,
                // which stands for "not yet".
                ran.store(nanos().max(1), Ordering::Release);
            }
        },
        || {
            let _pinned = pin(on[0]);
            let once = |round: u32| {
                let asleep = Instant::now() + ASLEEP;
                while Instant::now() < asleep {}
                // Relaxed: the Release store of `word` below publishes it.
                ran.store(0, Ordering::Relaxed);
                let began = nanos();
                // Release: pairs with the sleeper's Acquire load of `word`.
                word.store(round + 1, Ordering::Release);
                park::wake_one(&word);
                let woke = nanos();
                // Acquire, here and below: pairs with the sleeper's Release store of `ran`.
                wait_while(|| ran.load(Ordering::Acquire) == 0);
                let ran = ran.load(Ordering::Acquire);
                [(woke - began) as f64, ran.saturating_sub(woke) as f64]
            };
            (0..WAKES).map(once).collect::<Vec<_>>()
        },
    );
    Ok([0, 1].map(|part| lower_quartile(taken.iter().map(|parts| parts[part]).collect())))
}

fn check(on: [usize; 2]) -> Result<(), String> {
    // Check before the threads start that both can be pinned, so that neither waits for a partner
    // that cannot.
    for processor in on {
        drop(pin(processor).map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn both<T: Send>(other: impl FnOnce() + Send, mine: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope.spawn(other);
        let mine = scope.spawn(mine);
        mine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Measures a switch in nanoseconds: two threads on one processor yield to each other, and the
/// elapsed time is divided by the switches that the kernel counted.
///
/// It is not divided by the yields: if the scheduler picks the yielding thread to run next, the
/// yield makes no switch.
fn yield_in_turn(processor: usize) -> Result<f64, String> {
    const YIELDS: u32 = 50;
    const BLOCKS: u32 = 400;
    check([processor, processor])?;
    let yields = || {
        let _pinned = pin(processor);
        let block = || {
            let before = switches_of_this_thread();
            let started = Instant::now();
            (0..YIELDS).for_each(|_| thread::yield_now());
            let elapsed = started.elapsed();
            (elapsed, switches_of_this_thread().zip(before).map(|(after, before)| after - before))
        };
        (0..BLOCKS).map(|_| block()).collect::<Vec<_>>()
    };
    let blocks = both(|| drop(yields()), yields);
    let mut best = f64::INFINITY;
    for (elapsed, switches) in blocks {
        let switches = switches.ok_or("this system does not count a thread's switches")?;
        // Each time this thread was switched out, the other thread was switched out too before this
        // one ran again.
        if switches > u64::from(YIELDS) / 2 {
            best = best.min(elapsed.as_nanos() as f64 / (2 * switches) as f64);
        }
    }
    if best.is_finite() {
        Ok(best)
    } else {
        Err("the kernel did not switch when a thread yielded".to_owned())
    }
}

fn switches_of_this_thread() -> Option<u64> {
    switches().map(|[given, taken]| given + taken)
}

/// Returns how often this thread was preempted; `None` if the system does not count it.
pub fn interruptions_of_this_thread() -> Option<u64> {
    switches().map(|[_, taken]| taken)
}

/// Returns how often this thread gave up its processor, and how often it was preempted.
#[cfg(target_os = "linux")]
fn switches() -> Option<[u64; 2]> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for a rusage and lives through the call.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zeroed, and a rusage of zeroes is a valid one, whether or not the call filled it.
    let usage = unsafe { usage.assume_init() };
    (done == 0).then(|| [usage.ru_nvcsw, usage.ru_nivcsw].map(|count| count.unsigned_abs()))
}

#[cfg(not(target_os = "linux"))]
fn switches() -> Option<[u64; 2]> {
    None
}
