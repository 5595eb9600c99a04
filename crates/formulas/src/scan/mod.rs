//! The number of queues that an idle processor examines before it finds a ready thread.
//!
//! With a ready queue for each processor, a processor that runs out of work scans the queues in
//! order from its own until one is not empty. Anderson, Lazowska and Levy (SIGMETRICS 1989, section
//! 3.7) put `r` threads at random into `q` queues and ask for the expected number of queues
//! examined, **E(r, q)**: the mean of the smallest of `r` numbers drawn from `1..=q`. By symmetry
//! the same number is the distance of the nearest of `r` idle processors, each scanning somewhere,
//! from the queue that a new thread has just been put into.
//!
//! Three routes lead to the same number, so that each checks the others:
//!
//! | function | method | cost |
//! | --- | --- | --- |
//! | [`equation_3_1`] | the paper's closed form, term by term | r·q |
//! | [`queues_examined`] | the sum of the chances of not having found one yet | q |
//! | [`exhaustive`] | every one of the qʳ placements, in integers | qʳ |
//!
//! and [`simulate`] draws placements and walks the queues.
//!
//! # Findings about the paper
//!
//! 1. Equation 3.1 is right as printed, its lone `q` included: that term is the one placement in
//!    which every thread lies in the last queue, which the inner sum (it stops at `q - 1`, where
//!    `0⁰` would arise) leaves out.
//! 2. Inner sums telescope: `Σⱼ (q-i+1)^(r-j) (q-i)^(j-1) = (q-i+1)^r - (q-i)^r`, and summing `i`
//!    times that by parts gives `E(r,q) = Σ_{i=0}^{q-1} ((q-i)/q)^r`. Its terms are the chances
//!    that the first `i` queues are all empty; all lie in 0..=1, so it neither overflows nor
//!    cancels, for any `r` and `q`. [`queues_examined`] uses it.
//! 3. At r = 0 both forms give `q`: a processor that finds nothing has looked everywhere. The paper
//!    defines E for finding *one of* r threads, so these functions refuse r = 0 instead.
//! 4. The bounds for an arrival during the scan are right, and the cost between them has a closed
//!    form too: [`with_arrival`].
//! 5. "The combined cost for both processors is E(r,q) + E(r-1,q)" is exact for r = 2 and an
//!    approximation from r = 3 on. The thread that the first processor takes is the one behind the
//!    *longer* gap on average, and taking it merges that gap with the next. So the rest is a little
//!    more clustered than r - 1 new threads are. [`two_processors_exhaustive`] counts the true
//!    value: for 3 threads in 18 queues 11.83 against 11.52, 2.6 % more; nowhere 4 %. See
//!    [`two_processors`].

pub mod simulate;

/// Why a scan has no expected length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// There is no queue to examine.
    #[error("q = 0: there is no queue to examine; ask about at least 1 queue")]
    NoQueues,
    /// There are fewer threads than are to be found.
    #[error(
        "r = {threads}: the scan is to find {wanted}, so it never ends; ask about at least \
         {wanted} ready thread(s)"
    )]
    TooFewThreads {
        /// Threads that were asked about.
        threads: u32,
        /// Threads that are to be found.
        wanted: u32,
    },
    /// There are too many placements to visit them all.
    #[error(
        "q^r = {queues}^{threads} placements are too many to count (limit {limit}); use the \
         closed form or fewer threads"
    )]
    TooManyPlacements {
        /// Queues that were asked about.
        queues: u32,
        /// Threads (and processors) to place.
        threads: u32,
        /// Most placements that are visited.
        limit: u64,
    },
}

/// Most placements that [`exhaustive`] and [`two_processors_exhaustive`] visit: about a second's
/// work.
pub const MOST_PLACEMENTS: u64 = 1 << 26;

fn check(threads: u32, queues: u32, wanted: u32) -> Result<(), ScanError> {
    if queues == 0 {
        Err(ScanError::NoQueues)
    } else if threads < wanted {
        Err(ScanError::TooFewThreads { threads, wanted })
    } else {
        Ok(())
    }
}

/// Returns E(r, q) by the stable sum `Σ_{i=0}^{q-1} ((q-i)/q)^r`. Takes `q` steps, and overflows
/// for no `r` and `q`.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
///
/// ```
/// use stanchion_formulas::scan::queues_examined;
/// // One thread among 18 queues: half-way through on average.
/// assert_eq!(queues_examined(1, 18)?, 9.5);
/// // Threads everywhere: the first queue has one.
/// assert!(queues_examined(1_000_000, 18)? - 1.0 < 1e-12);
/// # Ok::<(), stanchion_formulas::scan::ScanError>(())
/// ```
pub fn queues_examined(threads: u32, queues: u32) -> Result<f64, ScanError> {
    check(threads, queues, 1)?;
    Ok((0..queues).map(|i| empty_so_far(threads, queues, i)).sum())
}

/// The chance that the first `examined` queues hold none of `threads`.
fn empty_so_far(threads: u32, queues: u32, examined: u32) -> f64 {
    (f64::from(queues - examined) / f64::from(queues)).powf(f64::from(threads))
}

/// E(r, q) by equation 3.1 as printed, every term divided by `q^r` before it is summed; takes `r·q`
/// steps.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
///
/// ```
/// use stanchion_formulas::scan::{equation_3_1, queues_examined};
/// assert!((equation_3_1(5, 18)? - queues_examined(5, 18)?).abs() < 1e-12);
/// # Ok::<(), stanchion_formulas::scan::ScanError>(())
/// ```
pub fn equation_3_1(threads: u32, queues: u32) -> Result<f64, ScanError> {
    check(threads, queues, 1)?;
    let q = f64::from(queues);
    // The lone q: all threads in the last queue, one placement of q^r.
    let all_last = q * q.powf(-f64::from(threads));
    let mut sum = 0.0;
    for i in 1..queues {
        let at_or_after = f64::from(queues - i + 1) / q;
        let after = f64::from(queues - i) / q;
        for j in 1..=threads {
            let later = at_or_after.powf(f64::from(threads - j));
            let earlier = after.powf(f64::from(j - 1));
            sum += f64::from(i) / q * later * earlier;
        }
    }
    Ok(all_last + sum)
}

/// E(r, q) counted over all `q^r` placements, in integers.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue, or there are more than [`MOST_PLACEMENTS`]
/// placements.
///
/// ```
/// use stanchion_formulas::scan::exhaustive;
/// // Two threads, two queues: the lower is 1, 1, 1 or 2.
/// assert_eq!(exhaustive(2, 2)?, 5.0 / 4.0);
/// # Ok::<(), stanchion_formulas::scan::ScanError>(())
/// ```
pub fn exhaustive(threads: u32, queues: u32) -> Result<f64, ScanError> {
    check(threads, queues, 1)?;
    let placements = placements(threads, queues)?;
    let mut sum: u64 = 0;
    for placement in 0..placements {
        let lowest = digits(placement, threads, queues).min().unwrap_or_default();
        sum += u64::from(lowest) + 1;
    }
    Ok(sum as f64 / placements as f64)
}

/// Returns the number of ways to put `items` into `queues`, if they can all be visited.
fn placements(items: u32, queues: u32) -> Result<u64, ScanError> {
    u64::from(queues)
        .checked_pow(items)
        .filter(|&count| count <= MOST_PLACEMENTS)
        .ok_or(ScanError::TooManyPlacements { queues, threads: items, limit: MOST_PLACEMENTS })
}

/// The placement numbered `placement`: for each item the queue it is in, counted from 0.
fn digits(mut placement: u64, items: u32, queues: u32) -> impl Iterator<Item = u32> {
    (0..items).map(move |_| {
        let digit = placement % u64::from(queues);
        placement /= u64::from(queues);
        digit as u32
    })
}

/// Bounds on the cost of a scan during which one more thread arrives: `(E(r+1, q), E(r, q))`, least
/// first.
///
/// If the new thread is the one found, the scan is no shorter than if it had been there all along;
/// if not, no longer than if it had never come.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
pub fn arrival_bounds(threads: u32, queues: u32) -> Result<(f64, f64), ScanError> {
    Ok((queues_examined(threads.saturating_add(1), queues)?, queues_examined(threads, queues)?))
}

/// Expected cost of a scan for `threads` when one more arrives, anywhere, just after `examined`
/// queues were found empty.
///
/// Not in the paper, which only bounds it: `Σ_{i<q} ((q-i)/q)^r · (1 - max(0, i-examined)/q)`. A
/// thread put behind the scan is not found by it. At `examined = 0` this is E(r+1, q), from
/// `examined = q` on it is E(r, q), and between it rises steadily: that is the paper's argument.
///
/// # Errors
///
/// [`ScanError`] if there is no thread or no queue.
///
/// ```
/// use stanchion_formulas::scan::{arrival_bounds, with_arrival};
/// let (least, most) = arrival_bounds(1, 18)?;
/// let cost = with_arrival(1, 18, 6)?;
/// assert!(least < cost && cost < most);
/// # Ok::<(), stanchion_formulas::scan::ScanError>(())
/// ```
pub fn with_arrival(threads: u32, queues: u32, examined: u32) -> Result<f64, ScanError> {
    check(threads, queues, 1)?;
    let missed_new = |i: u32| 1.0 - f64::from(i.saturating_sub(examined)) / f64::from(queues);
    Ok((0..queues).map(|i| empty_so_far(threads, queues, i) * missed_new(i)).sum())
}

/// Returns the number of queues that two processors examine together to find a thread each, by the
/// paper: `E(r, q) + E(r-1, q)`.
///
/// Exact for `r = 2`, a lower bound from 3 on, less than 4 % below the counted cost; see the
/// module's finding 5.
///
/// # Errors
///
/// [`ScanError`] if there are fewer than two threads or no queue.
///
/// ```
/// use stanchion_formulas::scan::{two_processors, two_processors_exhaustive};
/// assert!((two_processors(2, 18)? - two_processors_exhaustive(2, 18)?).abs() < 1e-12);
/// let (paper, counted) = (two_processors(3, 18)?, two_processors_exhaustive(3, 18)?);
/// assert!(paper < counted && counted < 1.04 * paper);
/// # Ok::<(), stanchion_formulas::scan::ScanError>(())
/// ```
pub fn two_processors(threads: u32, queues: u32) -> Result<f64, ScanError> {
    check(threads, queues, 2)?;
    Ok(queues_examined(threads, queues)? + queues_examined(threads - 1, queues)?)
}

/// Returns the number of queues that two processors examine together to find a thread each. It is
/// counted over all placements of the threads and of the second processor's starting queue. The
/// processors do not contend.
///
/// # Errors
///
/// [`ScanError`] if there are fewer than two threads or no queue, or more than [`MOST_PLACEMENTS`]
/// placements.
pub fn two_processors_exhaustive(threads: u32, queues: u32) -> Result<f64, ScanError> {
    check(threads, queues, 2)?;
    // The second processor's start is one more item to place; the first starts at queue 0 without
    // loss of generality.
    let placements = placements(threads.saturating_add(1), queues)?;
    let mut sum: u64 = 0;
    let mut ready = vec![0; queues as usize];
    for placement in 0..placements {
        let mut items = digits(placement, threads + 1, queues);
        let second = items.next().unwrap_or_default();
        ready.fill(0);
        items.for_each(|queue| ready[queue as usize] += 1);
        sum += u64::from(take(&mut ready, 0)) + u64::from(take(&mut ready, second));
    }
    Ok(sum as f64 / placements as f64)
}

/// Scans `ready` from queue `start`, takes one thread and returns how many queues were examined.
///
/// The caller makes sure that there is a thread to find.
fn take(ready: &mut [u32], start: u32) -> u32 {
    let queues = ready.len();
    for step in 0..queues {
        let queue = (start as usize + step) % queues;
        if ready[queue] > 0 {
            ready[queue] -= 1;
            return step as u32 + 1;
        }
    }
    unreachable!("a scan began although no thread was ready")
}

#[cfg(test)]
mod tests;
