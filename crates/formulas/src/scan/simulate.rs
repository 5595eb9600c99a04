//! The same questions, put to the process itself: place threads at random, let processors walk the
//! queues, count.
//!
//! Nothing here uses a formula of the module above, so an agreement says something.

use super::{ScanError, check, take};
use crate::Random;

pub use crate::Estimate;

/// The mean of `runs` runs, in queues examined.
fn estimate(runs: u32, mut one: impl FnMut() -> u32) -> Estimate {
    Estimate::of((0..runs).map(|_| f64::from(one())))
}

fn random_queue(random: &mut Random, queues: u32) -> usize {
    random.below(u64::from(queues)) as usize
}

/// One idle processor looks for one of `threads` in `queues`, `runs` times; the mean estimates E(r,
/// q).
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
///
/// ```
/// use stanchion_formulas::{Random, scan};
/// let seen = scan::simulate::scan(4, 18, 20_000, &mut Random::new(1))?;
/// assert!(seen.agrees_with(scan::queues_examined(4, 18)?, 4.0));
/// # Ok::<(), scan::ScanError>(())
/// ```
pub fn scan(
    threads: u32,
    queues: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, ScanError> {
    check(threads, queues, 1)?;
    let mut ready = vec![0; queues as usize];
    Ok(estimate(runs, || {
        fill(&mut ready, threads, random);
        take(&mut ready, 0)
    }))
}

fn fill(ready: &mut [u32], threads: u32, random: &mut Random) {
    ready.fill(0);
    for _ in 0..threads {
        ready[random_queue(random, ready.len() as u32)] += 1;
    }
}

/// The symmetric case: `idle` processors scan, each from a random queue, in step; one thread is put
/// into queue 1.
///
/// Counts how many queues the processor that gets it looks through after the thread was queued; the
/// mean estimates E(idle, q).
///
/// # Errors
///
/// [`ScanError`] if there is no idle processor or no queue.
pub fn idle_processors(
    idle: u32,
    queues: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, ScanError> {
    check(idle, queues, 1)?;
    let mut at = vec![0; idle as usize];
    Ok(estimate(runs, || {
        at.fill_with(|| random_queue(random, queues));
        let mut examined = 1;
        while at.iter().all(|&queue| queue != 0) {
            at.iter_mut().for_each(|queue| *queue = (*queue + 1) % queues as usize);
            examined += 1;
        }
        examined
    }))
}

/// One idle processor scans for `threads`; once it has found `examined` queues empty, one more
/// thread is put somewhere.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
pub fn scan_with_arrival(
    threads: u32,
    queues: u32,
    examined: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, ScanError> {
    check(threads, queues, 1)?;
    let mut ready = vec![0; queues as usize];
    Ok(estimate(runs, || {
        fill(&mut ready, threads, random);
        let mut step = 0;
        loop {
            if step == examined {
                ready[random_queue(random, queues)] += 1;
            }
            if ready[step as usize] > 0 {
                break step + 1;
            }
            step += 1;
        }
    }))
}

/// Two idle processors, each from a random queue, walk in step until each has taken one of
/// `threads`.
///
/// Counts the queues that both examined together. Where both stand at a queue with one thread, the
/// first one gets it and the other walks on; they do not slow each other.
///
/// # Errors
///
/// [`ScanError`] if there are fewer than two threads or no queue.
pub fn two_processors(
    threads: u32,
    queues: u32,
    runs: u32,
    random: &mut Random,
) -> Result<Estimate, ScanError> {
    check(threads, queues, 2)?;
    let mut ready = vec![0; queues as usize];
    Ok(estimate(runs, || {
        fill(&mut ready, threads, random);
        let mut walkers = [Some(random_queue(random, queues)), Some(random_queue(random, queues))];
        let mut examined = 0;
        while walkers.iter().any(Option::is_some) {
            for walker in &mut walkers {
                if let Some(queue) = *walker {
                    examined += 1;
                    *walker = if ready[queue] > 0 {
                        ready[queue] -= 1;
                        None
                    } else {
                        Some((queue + 1) % queues as usize)
                    };
                }
            }
        }
        examined
    }))
}
