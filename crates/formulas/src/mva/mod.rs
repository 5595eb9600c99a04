//! Mean value analysis: the queueing times of customers in a closed network of service centres.
//!
//! A closed network has a fixed number of customers that go round for ever: processors that
//! compute, use a bus, wait for a lock and compute again. Anderson, Lazowska and Levy (SIGMETRICS
//! 1989, section 5) model both the bus and the locks of a thread package in this way, each
//! processor being a customer. [`contention`](crate::contention) is their model.
//!
//! # Centres
//!
//! | centre | a customer there | example |
//! | --- | --- | --- |
//! | [`Kind::Queueing`] | waits for those it finds, then is served | a bus, a lock |
//! | [`Kind::Delay`] | is served at once, whatever others are there | computing out of its cache |
//!
//! A centre's *demand* is the service that a customer gets there in one whole cycle, all its visits
//! together: visits times service of a visit. All times are in one unit of the caller's choice.
//!
//! # The recurrence
//!
//! By the arrival theorem (Reiser and Lavenberg, JACM 1980) a customer that arrives at a centre
//! finds as many others as there would be on average if it did not exist. So with n customers, at
//! each centre k, and Z the sum of the delays:
//!
//! ```text
//! residence  Rₖ(n) = Dₖ·(1 + Qₖ(n-1))
//! throughput X(n)  = n / (Z + Σ Rₖ(n))
//! queue      Qₖ(n) = X(n)·Rₖ(n)                 from Qₖ(0) = 0 up to n = N
//! ```
//!
//! It is exact for exponential service in order of arrival, and for any distribution if a centre
//! shares itself among its customers. It takes N·K steps, so for networks of this size the
//! approximations of Schweitzer and Bard would save nothing, and they are not here. All terms are
//! positive: nothing cancels.
//!
//! | function | result | cost |
//! | --- | --- | --- |
//! | [`exact`] | for customers that are all alike | N·K |
//! | [`exact_classes`] | for several kinds of customers | K·Π(Nᵢ + 1) |
//! | [`throughput_bounds`] | the bounds that hold for any distribution of service | K |
//!
//! Not for: service that is *regular*. Two processors that have met at the bus are then unlikely to
//! meet there again, and queues are shorter than these (sections 5.1 and 5.2 of the paper). The
//! true curve lies between this one and the upper bound.

mod classes;

pub use classes::{Class, MOST_STATES, exact_classes};

/// Most customers that [`exact`] takes.
pub const MOST_CUSTOMERS: u32 = 1_000_000;

/// A demand is 0 or lies between these, so that no quotient or sum leaves the range of numbers.
const LEAST_DEMAND: f64 = 1e-100;
const MOST_DEMAND: f64 = 1e100;

/// Why a network has no solution.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum MvaError {
    /// There are no customers in the network.
    #[error("class {class} has no customers: give at least 1, or leave the class out")]
    NoCustomers {
        /// The number of the class, from 0.
        class: usize,
    },
    /// There are too many.
    #[error(
        "{customers} customers: at most {MOST_CUSTOMERS} are counted through; scale the network down"
    )]
    TooManyCustomers {
        /// The number of customers.
        customers: u32,
    },
    /// There are too many mixes of customers.
    #[error(
        "{classes} classes have more than {MOST_STATES} mixes of customers to go through; join \
         classes that are alike"
    )]
    TooManyStates {
        /// The number of classes.
        classes: usize,
    },
    /// A demand is not one.
    #[error(
        "the demand of class {class} at centre {centre} is {demand}: give 0, or a time from 1e-100 \
         to 1e100"
    )]
    Demand {
        /// The number of the class, from 0.
        class: usize,
        /// The number of the centre, from 0.
        centre: usize,
        /// The demand.
        demand: f64,
    },
    /// Customers would go round in no time.
    #[error("class {class} has no demand anywhere: its cycle takes no time; give it some work")]
    NoDemand {
        /// The number of the class, from 0.
        class: usize,
    },
    /// A class lacks the demands of some centres, or has too many.
    #[error("class {class} has {demands} demands for {centres} centres: give one for each")]
    Demands {
        /// The number of the class, from 0.
        class: usize,
        /// The number of its demands.
        demands: usize,
        /// The number of centres.
        centres: usize,
    },
}

/// The fate of a customer that comes while others are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It waits: there is one server.
    Queueing,
    /// It does not: there is a server for everyone.
    Delay,
}

/// A centre, as customers that are all alike use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// The kind of centre: whether customers queue.
    pub kind: Kind,
    /// Service that a customer gets in one cycle, in the caller's unit of time.
    pub demand: f64,
}

impl Centre {
    /// A centre with one server and a queue.
    #[must_use]
    pub const fn queueing(demand: f64) -> Self {
        Self { kind: Kind::Queueing, demand }
    }

    /// A centre with a server for everyone.
    #[must_use]
    pub const fn delay(demand: f64) -> Self {
        Self { kind: Kind::Delay, demand }
    }
}

/// The result of a network for customers that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Cycles that all of them complete in a unit of time.
    pub throughput: f64,
    /// Time of one customer's cycle: customers / throughput.
    pub cycle: f64,
    /// The result at each centre, in the order given.
    pub centres: Vec<Station>,
}

/// The result at one centre for customers that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Time that a customer spends there in one cycle, waiting and being served.
    pub residence: f64,
    /// The number of others that a customer finds on arrival, of all classes. At a queueing centre
    /// residence is demand·(1 + found).
    pub found: f64,
    /// The number of these customers there, on average over time.
    pub queue: f64,
    /// Share of time for which these customers keep a server busy; at a delay centre how many
    /// servers they do.
    pub utilization: f64,
}

fn check_customers(class: usize, customers: u32) -> Result<(), MvaError> {
    match customers {
        0 => Err(MvaError::NoCustomers { class }),
        1..=MOST_CUSTOMERS => Ok(()),
        _ => Err(MvaError::TooManyCustomers { customers }),
    }
}

fn check_demands(class: usize, demands: impl Iterator<Item = f64>) -> Result<(), MvaError> {
    let mut any = false;
    for (centre, demand) in demands.enumerate() {
        let sound = demand == 0.0 || (LEAST_DEMAND..=MOST_DEMAND).contains(&demand);
        if !sound {
            return Err(MvaError::Demand { class, centre, demand });
        }
        any |= demand > 0.0;
    }
    if any { Ok(()) } else { Err(MvaError::NoDemand { class }) }
}

/// Solves a network for `customers` that are all alike, exactly; takes customers·centres steps.
///
/// # Errors
///
/// [`MvaError`] if there are no customers or more than [`MOST_CUSTOMERS`], or if demands are not
/// times or are all 0.
///
/// ```
/// use stanchion_formulas::mva::{Centre, exact};
/// // 20 processors: each uses the bus for 1 µs, then computes out of its cache for 9 µs.
/// let solved = exact(&[Centre::queueing(1.0), Centre::delay(9.0)], 20)?;
/// let bus = solved.centres[0];
/// assert!(bus.utilization > 0.999); // ten processors would fill it
/// assert!((solved.cycle - 20.0).abs() < 0.02); // 20 µs in place of 10
/// assert!((bus.residence - 11.0).abs() < 0.02); // of which 10 in its queue
/// # Ok::<(), stanchion_formulas::mva::MvaError>(())
/// ```
pub fn exact(centres: &[Centre], customers: u32) -> Result<Solution, MvaError> {
    let single: Vec<(Centre, u32)> = centres.iter().map(|&centre| (centre, 1)).collect();
    exact_with_copies(&single, customers)
}

/// Does the same as [`exact`] if a centre stands for so many equal ones, each with its own queue.
/// The result at a centre holds for each copy.
pub(crate) fn exact_with_copies(
    centres: &[(Centre, u32)],
    customers: u32,
) -> Result<Solution, MvaError> {
    check_customers(0, customers)?;
    check_demands(0, centres.iter().map(|(centre, _)| centre.demand))?;
    let mut stations =
        vec![Station { residence: 0.0, found: 0.0, queue: 0.0, utilization: 0.0 }; centres.len()];
    let (mut throughput, mut cycle) = (0.0, 0.0);
    for present in 1..=customers {
        cycle = 0.0;
        for (&(centre, copies), station) in centres.iter().zip(&mut stations) {
            station.found = station.queue;
            station.residence = residence(centre.kind, centre.demand, station.found);
            cycle += station.residence * f64::from(copies);
        }
        throughput = f64::from(present) / cycle;
        for station in &mut stations {
            station.queue = throughput * station.residence;
        }
    }
    for ((centre, _), station) in centres.iter().zip(&mut stations) {
        station.utilization = throughput * centre.demand;
    }
    Ok(Solution { throughput, cycle, centres: stations })
}

/// Returns the time that a customer stays if it finds `found` others.
fn residence(kind: Kind, demand: f64, found: f64) -> f64 {
    match kind {
        Kind::Queueing => demand * (1.0 + found),
        Kind::Delay => demand,
    }
}

/// Returns asymptotic bounds on the throughput of `customers` that are all alike, least first.
/// Takes as many steps as there are centres.
///
/// D is the sum of the queueing demands, Z that of the delays. At worst each customer finds all
/// others before it everywhere, `N/(N·D + Z)`. At best no customer waits, `N/(D + Z)`, or the
/// busiest centre never idles, `1/Dmax`, whichever is less (Lazowska, Zahorjan, Graham, Sevcik:
/// Quantitative System Performance, 1984, section 5.2). Both hold for any distribution of service.
///
/// # Errors
///
/// As [`exact`].
///
/// ```
/// use stanchion_formulas::mva::{Centre, exact, throughput_bounds};
/// let network = [Centre::queueing(1.0), Centre::delay(9.0)];
/// let (least, most) = throughput_bounds(&network, 5)?;
/// assert_eq!((least, most), (5.0 / 14.0, 0.5));
/// let solved = exact(&network, 5)?.throughput;
/// assert!(least < solved && solved < most);
/// # Ok::<(), stanchion_formulas::mva::MvaError>(())
/// ```
pub fn throughput_bounds(centres: &[Centre], customers: u32) -> Result<(f64, f64), MvaError> {
    check_customers(0, customers)?;
    check_demands(0, centres.iter().map(|centre| centre.demand))?;
    let customers = f64::from(customers);
    let (mut queueing, mut delay, mut busiest) = (0.0, 0.0, 0.0_f64);
    for centre in centres {
        match centre.kind {
            Kind::Queueing => {
                queueing += centre.demand;
                busiest = busiest.max(centre.demand);
            }
            Kind::Delay => delay += centre.demand,
        }
    }
    let least = customers / (customers * queueing + delay);
    let most = (customers / (queueing + delay)).min(1.0 / busiest);
    Ok((least, most))
}

#[cfg(test)]
mod tests;
