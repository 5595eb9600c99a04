//! Bus demands from measured times, as section 5.1 of the paper finds them.
//!
//! Counting the bus accesses of a piece of code is hard. Seeing how much others on the bus slow it
//! is not. So the code runs where *only* the bus can slow it, each processor having its own copy of
//! all data, and a curve of the model is laid through the times.
//!
//! Spinning is found in the same way, at second hand. P processors run a section on private copies.
//! Q others share one copy, so that one of those runs the section and Q - 1 spin. The P copies see
//! P runners and Q - 1 spinners on the bus. The network has two classes, P + 1 runners and Q - 1
//! spinners, and a spinner's cycle is one section: that is the meaning of "bus time for each
//! section". A class's queues do not depend on the unit of its demands. So a spinner is described
//! by the *share* of its uncontended cycle that is bus time, and one equation in one number is
//! left.

use super::{ContentionError, Demand, check_spinning};
use crate::mva::{self, Centre, Class, Kind};

/// Halvings of an interval: to the last digit.
const HALVINGS: u32 = 60;

/// A bus demand that was fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusFit {
    /// The code's time alone, divided into bus and cache.
    pub demand: Demand,
    /// Largest difference between a measured time and the curve, as a share of the curve.
    pub worst: f64,
}

/// Bus demands of spinning that were fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct SpinningFit {
    /// Bus time that one spinner asks for in each critical section that goes by: the slope of the
    /// line through the origin and `aggregate`.
    pub each: f64,
    /// For each number of spinners what all of them ask for in a section.
    pub aggregate: Vec<(u32, f64)>,
    /// Largest difference between an aggregate and that line, as a share of the line. Small if
    /// spinning is linear.
    pub worst: f64,
}

/// Returns the time that code with demand `code` takes when `processors` run it, each on its own
/// copy of all data; in the unit of `code`.
///
/// # Errors
///
/// [`ContentionError`] if there are no processors, or `code` is not made of times or takes none.
///
/// ```
/// use stanchion_formulas::contention::{Demand, time_on_copies};
/// let section = Demand { bus: 2.0, cache: 8.0 };
/// assert_eq!(time_on_copies(section, 1)?, 10.0);
/// assert!(time_on_copies(section, 20)? > 39.9); // 20 of them have 2.0 each on one bus
/// # Ok::<(), stanchion_formulas::contention::ContentionError>(())
/// ```
pub fn time_on_copies(code: Demand, processors: u32) -> Result<f64, ContentionError> {
    code.check("bus time", "cache time")?;
    let network = [Centre::queueing(code.bus), Centre::delay(code.cache)];
    Ok(mva::exact(&network, processors)?.cycle)
}

/// Finds the bus demand of code from `(processors, time)` measured on private copies: the least
/// squares of relative differences.
///
/// The times on 1 processor give the time alone (their mean). The others give the part of that
/// which is bus time. Times are in one unit, which is that of the answer. Takes some 200 times the
/// number of samples times processors steps.
///
/// # Errors
///
/// [`ContentionError`] if a time is not finite and above 0, none is of 1 processor, or all are.
///
/// ```
/// use stanchion_formulas::contention::fit_bus_demand;
/// let fit = fit_bus_demand(&[(1, 10.0), (4, 11.1), (8, 13.8), (16, 25.7)])?;
/// assert!((fit.demand.bus - 1.6).abs() < 0.05);
/// assert!(fit.worst < 0.02);
/// # Ok::<(), stanchion_formulas::contention::ContentionError>(())
/// ```
pub fn fit_bus_demand(measured: &[(u32, f64)]) -> Result<BusFit, ContentionError> {
    check_measured(measured)?;
    let (mut alone, mut runs) = (0.0, 0_u32);
    for &(_, time) in measured.iter().filter(|sample| sample.0 == 1) {
        runs += 1;
        alone += (time - alone) / f64::from(runs);
    }
    if runs == 0 {
        return Err(ContentionError::NoneAlone);
    }
    if measured.iter().all(|sample| sample.0 == 1) {
        return Err(ContentionError::NoneTogether);
    }

    let split = |share: f64| Demand::with_share(alone, share);
    let off = |share: f64| -> Result<f64, ContentionError> {
        measured.iter().map(|sample| Ok(difference(split(share), sample)?.powi(2))).sum()
    };
    // A sum of squares of rising functions may have more than one dip: the deepest of a coarse
    // look, then narrower.
    let looks = 64_u32;
    let (mut best, mut least) = (0, f64::INFINITY);
    for look in 0..=looks {
        let here = off(f64::from(look) / f64::from(looks))?;
        if here < least {
            (best, least) = (look, here);
        }
    }
    let mut low = f64::from(best.saturating_sub(1)) / f64::from(looks);
    let mut high = f64::from((best + 1).min(looks)) / f64::from(looks);
    for _ in 0..HALVINGS {
        let third = (high - low) / 3.0;
        if off(low + third)? <= off(high - third)? {
            high -= third;
        } else {
            low += third;
        }
    }
    // A third does not reach an end of the range; look there itself.
    let middle = low + 0.5 * (high - low);
    let share = if off(low)? <= off(middle)? { low } else { middle };
    let demand = split(share);
    let mut worst: f64 = 0.0;
    for sample in measured {
        worst = worst.max(difference(demand, sample)?.abs());
    }
    Ok(BusFit { demand, worst })
}

/// Returns the distance of a measured time from the curve, as a share of the curve.
fn difference(demand: Demand, &(processors, time): &(u32, f64)) -> Result<f64, ContentionError> {
    Ok(time / time_on_copies(demand, processors)? - 1.0)
}

fn check_measured(measured: &[(u32, f64)]) -> Result<(), ContentionError> {
    for &(processors, time) in measured {
        if processors == 0 || time <= 0.0 || !time.is_finite() {
            return Err(ContentionError::Measured { processors, time });
        }
    }
    Ok(())
}

/// Two classes on one bus.
struct Beside {
    /// The time of a section for the processors that run it.
    section: f64,
    /// Bus time that a spinner asks for while one goes by.
    spinning: f64,
}

/// `running` processors run `section`, `spinners` use the bus for `share` of their uncontended
/// time.
fn beside(
    section: Demand,
    running: u32,
    spinners: u32,
    share: f64,
) -> Result<Beside, ContentionError> {
    let kinds = [Kind::Queueing, Kind::Delay];
    let runs = Class { customers: running, demands: &[section.bus, section.cache] };
    let spins = Class { customers: spinners, demands: &[share, 1.0 - share] };
    let solved = mva::exact_classes(&kinds, &[runs, spins])?;
    // A spinner's cycle is to be one section, whatever unit makes it so.
    let unit = solved[0].cycle / solved[1].cycle;
    Ok(Beside { section: solved[0].cycle, spinning: unit * share })
}

/// The share at which `meets` begins to hold; it does at 1 and, if it does at one share, at all
/// above.
fn least_share(
    meets: impl Fn(f64) -> Result<bool, ContentionError>,
) -> Result<f64, ContentionError> {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = low + 0.5 * (high - low);
        if meets(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Returns the time that `section` takes each of `copies` processors that run it on private copies.
/// Beside them one processor runs it under a lock, and `spinners` wait for that lock and ask for
/// `spinning` bus time in each section. In the unit of `section`.
///
/// An infinite `spinning` is all that the bus gives. Takes some 60 times copies·spinners steps.
///
/// # Errors
///
/// [`ContentionError`] if `section` is not made of times or takes none, or `spinning` is negative
/// or NaN.
///
/// ```
/// use stanchion_formulas::contention::{Demand, time_beside_spinners, time_on_copies};
/// let section = Demand { bus: 2.0, cache: 8.0 };
/// let quiet = time_beside_spinners(section, 3, 8, 0.0)?;
/// assert!((quiet - time_on_copies(section, 4)?).abs() < 1e-9); // the three and the lock's holder
/// assert!(time_beside_spinners(section, 3, 8, 0.8)? > 1.2 * quiet);
/// # Ok::<(), stanchion_formulas::contention::ContentionError>(())
/// ```
pub fn time_beside_spinners(
    section: Demand,
    copies: u32,
    spinners: u32,
    spinning: f64,
) -> Result<f64, ContentionError> {
    section.check("bus time of a section", "cache time of a section")?;
    check_spinning(spinning)?;
    let running = copies.saturating_add(1);
    if spinners == 0 || spinning == 0.0 {
        return time_on_copies(section, running);
    }
    let full = beside(section, running, spinners, 1.0)?;
    if spinning >= full.spinning {
        return Ok(full.section);
    }
    let share =
        least_share(|share| Ok(beside(section, running, spinners, share)?.spinning >= spinning))?;
    Ok(beside(section, running, spinners, share)?.section)
}

/// Finds the bus demand of spinning from `(spinners, time)`. `time` is that of `section` for each
/// of `copies` processors on private copies, while one more ran it under a lock and so many spun
/// for that lock (Q - 1 in the paper).
///
/// `section` is the result of [`fit_bus_demand`]; times are in its unit. Takes some 60 times the
/// number of samples times copies·spinners steps.
///
/// # Errors
///
/// [`ContentionError`] if a time is not finite and above 0, there is none with spinners, `section`
/// does not use the bus, or a time is longer than spinning can make it.
///
/// ```
/// use stanchion_formulas::contention::{Demand, fit_spinning, time_beside_spinners};
/// let section = Demand { bus: 2.0, cache: 8.0 };
/// let mut measured = Vec::new();
/// for spinners in [2, 4, 8] {
///     measured.push((spinners, time_beside_spinners(section, 3, spinners, 0.8)?));
/// }
/// let fit = fit_spinning(section, 3, &measured)?;
/// // Each spinner asks for the same, however many there are.
/// assert!((fit.each - 0.8).abs() < 1e-6);
/// assert!(fit.worst < 1e-6);
/// # Ok::<(), stanchion_formulas::contention::ContentionError>(())
/// ```
pub fn fit_spinning(
    section: Demand,
    copies: u32,
    measured: &[(u32, f64)],
) -> Result<SpinningFit, ContentionError> {
    section.check("bus time of a section", "cache time of a section")?;
    check_measured(measured)?;
    if measured.is_empty() {
        return Err(ContentionError::NoneTogether);
    }
    if section.bus == 0.0 {
        return Err(ContentionError::NoBusDemand);
    }
    let running = copies.saturating_add(1);
    let quiet = time_on_copies(section, running)?;
    let mut aggregate = Vec::with_capacity(measured.len());
    for &(spinners, time) in measured {
        let full = beside(section, running, spinners, 1.0)?;
        let each = if time <= quiet {
            0.0
        } else if time >= full.section {
            return Err(ContentionError::TooSlow { spinners, time, most: full.section });
        } else {
            let slow = |share| Ok(beside(section, running, spinners, share)?.section >= time);
            beside(section, running, spinners, least_share(slow)?)?.spinning
        };
        aggregate.push((spinners, each * f64::from(spinners)));
    }
    let (mut products, mut squares) = (0.0, 0.0);
    for &(spinners, demand) in &aggregate {
        products += f64::from(spinners) * demand;
        squares += f64::from(spinners).powi(2);
    }
    let each = products / squares;
    let off = |&(spinners, demand): &(u32, f64)| {
        let line = f64::from(spinners) * each;
        if line > 0.0 { (demand / line - 1.0).abs() } else { 0.0 }
    };
    let worst = aggregate.iter().map(off).fold(0.0, f64::max);
    Ok(SpinningFit { each, aggregate, worst })
}
