//! The same recurrence for customers of several kinds, over every mix of them.
//!
//! Why not one class with the mean of all demands: section 5.1 of the paper wants to know how much
//! *one* kind of processors (those that run a critical section) is slowed by *another* (those that
//! spin).
//!
//! A customer of class c finds the queues of the mix with one customer of c less. So the queues of
//! every smaller mix are needed. Mixes are visited in the order of a number. Its digits are the
//! numbers of customers of each class. Invariant 1: a mix with one customer less has a smaller
//! number, so its queues are known.

use super::{Kind, MvaError, Solution, Station, check_customers, check_demands, residence};

/// Most mixes of customers that [`exact_classes`] goes through, Π(Nᵢ + 1).
pub const MOST_STATES: usize = 1 << 22;

/// Customers that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class<'a> {
    /// The number of customers.
    pub customers: u32,
    /// Service that each gets in one cycle at each centre, in the caller's unit of time.
    pub demands: &'a [f64],
}

/// Solves a network for several classes of customers, exactly: a solution for each class, in the
/// order given.
///
/// Takes centres·Π(Nᵢ + 1) steps and numbers. Exact where a queueing centre serves in order of
/// arrival, if a *visit* takes the same time for all classes (they may come more or less often), or
/// shares itself among its customers.
///
/// # Errors
///
/// [`MvaError`] if a class has no customers, if its demands are not times, not one for each centre,
/// or all 0, or if there are more than [`MOST_STATES`] mixes of customers.
///
/// ```
/// use stanchion_formulas::mva::{Class, Kind, exact_classes};
/// // One processor computes with some bus use; four others do nothing but use the bus.
/// let worker = Class { customers: 1, demands: &[1.0, 9.0] };
/// let spinners = Class { customers: 4, demands: &[1.0, 0.0] };
/// let solved = exact_classes(&[Kind::Queueing, Kind::Delay], &[worker, spinners])?;
/// // It always finds all four at the bus.
/// assert_eq!(solved[0].centres[0].found, 4.0);
/// assert!((solved[0].cycle - (5.0 + 9.0)).abs() < 1e-12);
/// # Ok::<(), stanchion_formulas::mva::MvaError>(())
/// ```
pub fn exact_classes(kinds: &[Kind], classes: &[Class<'_>]) -> Result<Vec<Solution>, MvaError> {
    for (index, class) in classes.iter().enumerate() {
        check_customers(index, class.customers)?;
        if class.demands.len() != kinds.len() {
            let (demands, centres) = (class.demands.len(), kinds.len());
            return Err(MvaError::Demands { class: index, demands, centres });
        }
        check_demands(index, class.demands.iter().copied())?;
    }
    let (weights, mixes) = weights(classes)?;

    let centres = kinds.len();
    // Queue of all classes at centre k in mix m: queues[m·centres + k].
    let mut queues = vec![0.0; mixes * centres];
    let mut solutions = Vec::new();
    for mix in 1..mixes {
        solutions.clear();
        let mut here = vec![0.0; centres];
        for (class, &weight) in classes.iter().zip(&weights) {
            let present = mix / weight % (class.customers as usize + 1);
            if present == 0 {
                continue;
            }
            // Invariant 1: this mix without one of the class.
            let fewer = (mix - weight) * centres;
            let solution = solve(kinds, class.demands, present, &queues[fewer..fewer + centres]);
            for (sum, station) in here.iter_mut().zip(&solution.centres) {
                *sum += station.queue;
            }
            solutions.push(solution);
        }
        queues[mix * centres..(mix + 1) * centres].copy_from_slice(&here);
    }
    // The last mix is the full one, in which every class is present.
    Ok(solutions)
}

/// Returns the amounts that one customer more of each class adds to the number of a mix, and the
/// number of mixes.
fn weights(classes: &[Class<'_>]) -> Result<(Vec<usize>, usize), MvaError> {
    let mut weights = Vec::with_capacity(classes.len());
    let mut mixes: usize = 1;
    for class in classes {
        weights.push(mixes);
        mixes = mixes
            .checked_mul(class.customers as usize + 1)
            .filter(|&mixes| mixes <= MOST_STATES)
            .ok_or(MvaError::TooManyStates { classes: classes.len() })?;
    }
    Ok((weights, mixes))
}

/// Returns the result for `present` customers that find `found`.
fn solve(kinds: &[Kind], demands: &[f64], present: usize, found: &[f64]) -> Solution {
    let mut centres: Vec<Station> = (kinds.iter().zip(demands).zip(found))
        .map(|((&kind, &demand), &found)| {
            let residence = residence(kind, demand, found);
            Station { residence, found, queue: 0.0, utilization: 0.0 }
        })
        .collect();
    let cycle: f64 = centres.iter().map(|station| station.residence).sum();
    let throughput = present as f64 / cycle;
    for (station, &demand) in centres.iter_mut().zip(demands) {
        station.queue = throughput * station.residence;
        station.utilization = throughput * demand;
    }
    Solution { throughput, cycle, centres }
}
