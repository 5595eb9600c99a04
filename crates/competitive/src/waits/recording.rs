//! A recording: the waits of all named locks of a program.

use std::collections::BTreeMap;

use super::distribution::{Distribution, UnitsDiffer};
use super::table;
use crate::cost;

/// The waits of a program's locks, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The program's name.
    pub program: String,
    /// The mutexes of a program that `stanchion record` ran: [`PTHREAD`](Recording::PTHREAD), or
    /// the policy that replaced them. `None` if the program has a [`Recorder`](super::Recorder).
    pub mutexes: Option<String>,
    /// C in nanoseconds, as it was known at the end.
    pub cost_ns: u64,
    /// The width of a linear bucket in nanoseconds: 0.08 C, as C was when the recording began.
    pub unit_ns: u64,
    /// Nanoseconds from the first wait to the end.
    pub elapsed_ns: u64,
    /// The locks that had contention, each name once, in the order of names.
    pub locks: Vec<(String, Distribution)>,
    /// The number of locks that were counted under [`OTHERS`](super::OTHERS), because the table of
    /// names was full.
    pub overflow: u64,
}

/// Returns the recording of this process so far.
///
/// Locks go on counting meanwhile: a wait that is just being counted may be missing. Takes some 100
/// µs, and allocates.
///
/// ```
/// use stanchion_competitive::waits::{self, Observation, Record};
/// Record::register("queue").add(&Observation { length_ns: 700, ..Observation::default() });
/// let recording = waits::snapshot();
/// assert_eq!(recording.lock("queue").map(|waits| waits.count()), Some(1));
/// assert!(recording.lock("stack").is_none());
/// ```
#[must_use]
pub fn snapshot() -> Recording {
    let unit = table::unit();
    let mut counted = BTreeMap::new();
    table::visit(|name, counters| {
        let counts = counters.read();
        if counts.waits() > 0 {
            counted
                .entry(name)
                .and_modify(|sum: &mut super::distribution::Counts| sum.add(&counts))
                .or_insert(counts);
        }
    });
    let locks = counted
        .into_iter()
        .map(|(name, counts)| (name.to_owned(), Distribution::reconcile(unit, counts)))
        .collect();
    Recording {
        program: program(),
        mutexes: None,
        cost_ns: cost::current(),
        unit_ns: unit,
        elapsed_ns: table::elapsed(),
        locks,
        overflow: table::overflow(),
    }
}

/// Begins anew: nothing is counted yet, buckets are as wide as C is now, and the time starts. Names
/// stay taken.
///
/// For a program that records several runs, one after another, or wants the time to start before
/// the first wait. A wait that is counted meanwhile may be lost, or counted in the old unit. If a
/// lock counts just then, a count may go on from its old value. To be exact, restart while no
/// thread waits.
pub fn restart() {
    table::restart(cost::current());
}

/// [`restart`], with buckets that are as wide as a C of `cost_ns` nanoseconds makes them: for waits
/// that are to be compared with a C measured beforehand. One outside of the bounds of
/// [`cost`](crate::cost) is taken to be the nearest within.
///
/// ```
/// use stanchion_competitive::waits;
/// waits::restart_with_cost(5_000);
/// assert_eq!(waits::snapshot().unit_ns, 400);
/// ```
pub fn restart_with_cost(cost_ns: u64) {
    table::restart(cost_ns);
}

/// Returns the name that the program was started by.
fn program() -> String {
    let name = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = name.as_deref().and_then(std::path::Path::file_name);
    let name = name.map(|name| name.to_string_lossy().replace(char::is_control, "?"));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| String::from("unknown"))
}

impl Recording {
    /// The mutexes of the C library, as [`mutexes`](Self::mutexes) names them.
    pub const PTHREAD: &str = "pthread";

    /// The waits of the lock of that name.
    #[must_use]
    pub fn lock(&self, name: &str) -> Option<&Distribution> {
        self.locks.iter().find(|lock| lock.0 == name).map(|lock| &lock.1)
    }

    /// The waits of all locks together.
    #[must_use]
    pub fn all(&self) -> Distribution {
        let mut all = Distribution::new(self.unit_ns);
        for (_, waits) in &self.locks {
            // A lock of another unit could only be put here by hand.
            let _ = all.merge(waits);
        }
        all
    }

    /// Adds another recording of the same unit: the waits of locks of the same name become one,
    /// times add up, C becomes the mean by waits.
    ///
    /// # Errors
    ///
    /// [`UnitsDiffer`] if the units are not the same; then nothing was added.
    pub fn merge(&mut self, other: &Self) -> Result<(), UnitsDiffer> {
        let differs = |theirs| UnitsDiffer { ours: self.unit_ns, theirs };
        let theirs = other.locks.iter().map(|lock| lock.1.unit_ns());
        let units = self.locks.iter().map(|lock| lock.1.unit_ns()).chain(theirs);
        if let Some(unit) = units.chain([other.unit_ns]).find(|&unit| unit != self.unit_ns) {
            return Err(differs(unit));
        }
        let [ours, theirs] = [&*self, other].map(|recording| u128::from(recording.all().count()));
        let costs = u128::from(self.cost_ns) * ours + u128::from(other.cost_ns) * theirs;
        if let Some(mean) = costs.checked_div(ours + theirs) {
            self.cost_ns = u64::try_from(mean).unwrap_or(u64::MAX);
        }
        for (name, waits) in &other.locks {
            match self.locks.binary_search_by(|lock| lock.0.as_str().cmp(name)) {
                Ok(index) => self.locks[index].1.merge(waits)?,
                Err(index) => self.locks.insert(index, (name.clone(), waits.clone())),
            }
        }
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        self.overflow = self.overflow.saturating_add(other.overflow);
        Ok(())
    }
}
