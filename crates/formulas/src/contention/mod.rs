//! The speed of a thread package whose processors contend for a bus and for locks.
//!
//! Anderson, Lazowska and Levy (SIGMETRICS 1989, section 5) explain their measurements on a
//! 20-processor machine by two models that feed each other:
//!
//! ```text
//!            the time of a bus access in a queue
//!        ┌──────────────────────────────────────────────┐
//!   low: bus and caches                          high: locks and the rest
//!   bus = queueing centre                        each lock = queueing centre
//!   all else = delay                             all else = delay
//!        └──────────────────────────────────────────────┘
//!            the share of its time that a processor spins for locks
//! ```
//!
//! A crowded bus makes critical sections longer. Longer sections make more processors wait. Those
//! that wait spin, and spinning uses the bus. [`solve`] finds where the two levels agree. Why two
//! levels and not one network: a processor may hold a lock *while* it waits for the bus, and no
//! network of simple centres can express that.
//!
//! # Input
//!
//! Every piece of code has a [`Demand`]: the time that it uses the bus and the time that it
//! computes out of its cache, when it runs alone. All times are in one unit of the caller's choice.
//! The paper measures them ("inductively", section 5.1):
//!
//! - The bus time of a section is found by running it on private copies of its data by 1, 2, …
//!   processors. Then only the bus slows it. See [`fit_bus_demand`].
//! - The bus time of spinning is found by running a section on P private copies beside Q processors
//!   that share one. See [`fit_spinning`].
//!
//! # Exchange between the levels
//!
//! 1. r is the response time of the bus in units of its service: 1 when it is idle. Of each demand
//!    the bus part is multiplied by it.
//! 2. High level: with the longer demands, a processor finds Aₖ others at lock k, so it waits while
//!    Aₖ critical sections go by.
//! 3. A waiting processor asks for `spinning` bus time in each section that goes by: two cache
//!    misses with backoff, whatever the number of others (section 5.1). It cannot ask for more than
//!    fits into its wait.
//! 4. Low level: with that on the bus, the response time of the bus is r' = 1 + (others found at
//!    the bus).
//! 5. They agree where r' = r. Both levels then have the same throughput.
//!
//! r' is a continuous function of r with 1 <= r' <= P, so there is such an r. The paper iterates.
//! If that swings (a full bus and a full lock answer each other), the interval is halved instead.
//! If that does not settle, the answer is [`ContentionError::NotConverged`].
//!
//! Not for: programs with a parallelism that varies (the paper's advice is to solve for each number
//! of threads and take the mean), and code with cache misses that rise with the number of
//! processors, which the model counts too low.

mod fit;
mod settle;

pub use fit::{
    BusFit, SpinningFit, fit_bus_demand, fit_spinning, time_beside_spinners, time_on_copies,
};

use crate::mva::{self, Centre, MvaError};
use settle::settle;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ContentionError {
    /// A time is not one.
    #[error("{what} = {value}: give a finite time of 0 or more")]
    Time {
        /// The name of the parameter.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number of visits is not one.
    #[error("a thread visits lock number {lock} {visits} times: give a finite number above 0")]
    Visits {
        /// The number of the lock, from 0.
        lock: usize,
        /// The visits.
        visits: f64,
    },
    /// A lock that stands for none.
    #[error("lock number {lock} has 0 copies: leave it out")]
    NoCopies {
        /// The number of the lock, from 0.
        lock: usize,
    },
    /// Bus spinning is not a time.
    #[error(
        "spinning = {spinning}: give a bus time of 0 or more, infinity for all that the bus gives"
    )]
    Spinning {
        /// The bus time.
        spinning: f64,
    },
    /// The two levels did not come to agree.
    #[error(
        "no agreement after {steps} steps: at a bus response of {at} the two levels still differ by \
         {off}; check that the demands are of one unit"
    )]
    NotConverged {
        /// Steps that were taken.
        steps: u32,
        /// The last value that was tried.
        at: f64,
        /// The distance of its result from it.
        off: f64,
    },
    /// No measurement gives the time of the code alone.
    #[error("no time on 1 processor among those measured: measure the code alone too")]
    NoneAlone,
    /// No measurement gives its time under contention.
    #[error("no time under contention among those measured: measure with more processors too")]
    NoneTogether,
    /// A measured time is not one.
    #[error("the time measured with {processors} processors is {time}: give a finite time above 0")]
    Measured {
        /// Processors, or spinners.
        processors: u32,
        /// The time.
        time: f64,
    },
    /// Spinning cannot be seen by what never uses the bus.
    #[error("the section has no bus demand, so nothing that spins can slow it; fit that first")]
    NoBusDemand,
    /// Spinning cannot slow a section so much.
    #[error(
        "{spinners} spinners that do nothing but use the bus would make the section take {most}, \
         but {time} was measured: its bus demand is larger than given, or something else slows it"
    )]
    TooSlow {
        /// The number of spinners.
        spinners: u32,
        /// The measured time.
        time: f64,
        /// The longest time there is.
        most: f64,
    },
    /// One of the two networks has no solution.
    #[error(transparent)]
    Network(#[from] MvaError),
}

/// The demands of a piece of code when it runs alone, in the caller's unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Time on the bus.
    pub bus: f64,
    /// Time computing out of the processor's own cache.
    pub cache: f64,
}

impl Demand {
    /// Nothing.
    pub const NONE: Self = Self { bus: 0.0, cache: 0.0 };

    /// Code that takes `time` alone, a `share` of it (0 to 1) on the bus.
    #[must_use]
    pub const fn with_share(time: f64, share: f64) -> Self {
        Self { bus: time * share, cache: time * (1.0 - share) }
    }

    /// Returns the time that it takes alone.
    #[must_use]
    pub const fn alone(self) -> f64 {
        self.bus + self.cache
    }

    /// Returns the time that it takes when a bus access takes `response` times its service.
    fn at(self, response: f64) -> f64 {
        self.bus * response + self.cache
    }

    fn check(self, bus: &'static str, cache: &'static str) -> Result<(), ContentionError> {
        check_time(bus, self.bus)?;
        check_time(cache, self.cache)
    }
}

fn check_time(what: &'static str, value: f64) -> Result<(), ContentionError> {
    let sound = value >= 0.0 && value.is_finite();
    if sound { Ok(()) } else { Err(ContentionError::Time { what, value }) }
}

fn check_spinning(spinning: f64) -> Result<(), ContentionError> {
    if spinning >= 0.0 { Ok(()) } else { Err(ContentionError::Spinning { spinning }) }
}

/// A lock, or several equal ones of which a visit needs any one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// The number of times that a thread takes it, or one of them, in its life.
    pub visits: f64,
    /// The critical section of one visit, taking and releasing the lock included.
    pub section: Demand,
    /// The number of equal locks that share the visits evenly: 1, or one for each processor.
    pub copies: u32,
}

impl Lock {
    /// One lock that all processors share.
    #[must_use]
    pub const fn central(visits: f64, section: Demand) -> Self {
        Self { visits, section, copies: 1 }
    }

    /// `copies` equal locks, of which each visit takes one at random.
    #[must_use]
    pub const fn spread(visits: f64, section: Demand, copies: u32) -> Self {
        Self { visits, section, copies }
    }
}

/// The demands of a program, for each thread in its life.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The program's own work.
    pub user: Demand,
    /// Thread management outside critical sections.
    pub outside: Demand,
    /// Thread management inside them.
    pub locks: Vec<Lock>,
    /// Bus time that a waiting processor asks for while one critical section of its lock goes by:
    /// two cache misses with backoff. Infinite for processors that spin on an atomic exchange,
    /// which take all that the bus gives (section 4.2).
    pub spinning: f64,
}

impl Workload {
    fn check(&self) -> Result<(), ContentionError> {
        self.user.check("user bus time", "user cache time")?;
        self.outside.check("bus time outside sections", "cache time outside sections")?;
        for (index, lock) in self.locks.iter().enumerate() {
            lock.section.check("bus time of a section", "cache time of a section")?;
            if lock.visits <= 0.0 || !lock.visits.is_finite() {
                return Err(ContentionError::Visits { lock: index, visits: lock.visits });
            }
            if lock.copies == 0 {
                return Err(ContentionError::NoCopies { lock: index });
            }
        }
        check_spinning(self.spinning)
    }
}

/// The point where the two levels agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equilibrium {
    /// Threads that finish in a unit of time, on all processors.
    pub throughput: f64,
    /// Time that a processor spends on one thread: processors / throughput.
    pub cycle: f64,
    /// Response time of the bus in units of its service: 1 if no processor waits for it.
    pub bus_response: f64,
    /// Share of time for which the bus is busy, 0 to 1.
    pub bus_utilization: f64,
    /// Share of it that spinning takes, 0 to 1 of all time.
    pub bus_spinning: f64,
    /// Speed of a processor: the share of time in which it does not queue for the bus, 0 to 1
    /// (section 5.1).
    pub speed: f64,
    /// Share of time for which a processor waits for locks, 0 to 1.
    pub waiting: f64,
    /// Share of time for which the busiest lock is held, 0 to 1.
    pub busiest_lock: f64,
    /// The number of times that the levels were solved to come here.
    pub steps: u32,
}

/// The result of one pass through both levels.
struct Pass {
    /// Threads finished in a unit of time.
    throughput: f64,
    /// The time that a thread waits for locks in its life.
    waiting: f64,
    /// The utilization of the busiest lock.
    busiest_lock: f64,
    /// The bus time that a thread asks for in its life, spinning included.
    bus: f64,
    /// The part of that bus time that is spinning.
    spinning: f64,
    /// The response time of the bus, in units of its service.
    response: f64,
}

/// Solves both levels for `processors` and lets them agree; takes some ten to a hundred times
/// processors·locks steps.
///
/// # Errors
///
/// [`ContentionError`] if there are no processors, a demand is not a time, there is no work at all,
/// or the levels do not come to agree.
///
/// ```
/// use stanchion_formulas::contention::{Demand, Lock, Workload, solve};
/// // Times in µs. A thread computes for 300, is managed for 40 and takes the lock of the ready
/// // queue twice, for 10 each.
/// let mut work = Workload {
///     user: Demand::with_share(300.0, 0.01),
///     outside: Demand::with_share(40.0, 0.1),
///     locks: vec![Lock::central(2.0, Demand::with_share(10.0, 0.2))],
///     spinning: 1.0,
/// };
/// let central = solve(&work, 20)?;
/// work.locks = vec![Lock::spread(2.0, Demand::with_share(10.0, 0.2), 20)];
/// let local = solve(&work, 20)?;
/// assert!(central.busiest_lock > 0.9); // the one ready queue is the bottleneck
/// assert!(local.throughput > 1.2 * central.throughput); // one for each processor is not
/// # Ok::<(), stanchion_formulas::contention::ContentionError>(())
/// ```
pub fn solve(work: &Workload, processors: u32) -> Result<Equilibrium, ContentionError> {
    work.check()?;
    if processors == 0 {
        return Err(MvaError::NoCustomers { class: 0 }.into());
    }
    let most = f64::from(processors);
    let (found, steps) = settle(1.0, most, |response| {
        let pass = pass(work, processors, response)?;
        Ok((pass.response, pass))
    })?;
    let cycle = most / found.throughput;
    Ok(Equilibrium {
        throughput: found.throughput,
        cycle,
        bus_response: found.response,
        bus_utilization: found.throughput * found.bus,
        bus_spinning: found.throughput * found.spinning,
        speed: 1.0 - found.bus * (found.response - 1.0) / cycle,
        waiting: found.waiting / cycle,
        busiest_lock: found.busiest_lock,
        steps,
    })
}

/// From a response time of the bus through the locks to a response time of the bus.
fn pass(work: &Workload, processors: u32, response: f64) -> Result<Pass, ContentionError> {
    // High level: the locks, with sections and all else as long as the bus makes them.
    let rest = work.user.at(response) + work.outside.at(response);
    let mut centres = vec![(Centre::delay(rest), 1)];
    for lock in &work.locks {
        let demand = lock.visits * lock.section.at(response) / f64::from(lock.copies);
        centres.push((Centre::queueing(demand), lock.copies));
    }
    let high = mva::exact_with_copies(&centres, processors)?;
    let (mut waiting, mut sections, mut busiest_lock) = (0.0, 0.0, 0.0_f64);
    for ((lock, (centre, copies)), at) in
        work.locks.iter().zip(&centres[1..]).zip(&high.centres[1..])
    {
        waiting += f64::from(*copies) * centre.demand * at.found;
        sections += lock.visits * at.found;
        busiest_lock = busiest_lock.max(at.utilization);
    }

    // Low level: the bus, with what spinning adds. In its wait a processor makes as many accesses
    // as there is time for.
    let spinning =
        if sections > 0.0 { (work.spinning * sections).min(waiting / response) } else { 0.0 };
    let mut all = Demand {
        bus: work.user.bus + work.outside.bus + spinning,
        cache: work.user.cache + work.outside.cache + (waiting - spinning * response).max(0.0),
    };
    for lock in &work.locks {
        all.bus += lock.visits * lock.section.bus;
        all.cache += lock.visits * lock.section.cache;
    }
    let low = mva::exact(&[Centre::queueing(all.bus), Centre::delay(all.cache)], processors)?;
    Ok(Pass {
        throughput: high.throughput,
        waiting,
        busiest_lock,
        bus: all.bus,
        spinning,
        response: 1.0 + low.centres[0].found,
    })
}

#[cfg(test)]
mod tests;
