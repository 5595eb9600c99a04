//! The totals of waits: how often, and how long, threads waited for what.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::mode::Mode;
use crate::path::CallPath;
use crate::report::{CallSite, HeldAcross, Lock, Report, WaitClass, WaitTotal};

/// The most totals of each kind that are kept.
const TOTALS: usize = 256;

/// The length from which on a wait is long for a thread that holds a lock.
const LONG: Duration = Duration::from_millis(10);

/// The target of a wait: its class, and the number of the lock or else an address.
///
/// A lock is one from its creation to its end, and so is the mutex of a condition. Another address
/// that is used again keeps its total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The number of a lock.
    Lock(u64),
    /// The number of the mutex of a condition, and the address of the condition.
    Condition(u64, usize),
    /// An address.
    Other(usize),
}

impl Target {
    fn class(self) -> WaitClass {
        match self {
            Self::Lock(_) => WaitClass::Lock,
            Self::Condition(..) => WaitClass::Condition,
            Self::Other(_) => WaitClass::Other,
        }
    }
}

/// The totals of all threads.
struct Totals {
    /// A total for each target.
    of: BTreeMap<Target, WaitTotal>,
    /// A total of long waits for each target, and each lock that was held, by place.
    across: BTreeMap<(Target, u64, CallSite), HeldAcross>,
    /// The number of waits without a total.
    unnamed: u64,
}

static TOTALS_OF_ALL: Mutex<Totals> =
    Mutex::new(Totals { of: BTreeMap::new(), across: BTreeMap::new(), unnamed: 0 });

impl WaitTotal {
    /// Counts one more wait.
    fn add(&mut self, length: Duration) {
        self.count += 1;
        self.total += length;
        self.longest = self.longest.max(length);
    }
}

/// Locks the totals. A panic while they were locked leaves them whole: each change is one call.
fn totals() -> MutexGuard<'static, Totals> {
    TOTALS_OF_ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Totals {
    /// Counts a wait into a total that is there. Returns false if there is none, and room for one.
    fn count(&mut self, target: Target, length: Duration) -> bool {
        let has_room = self.of.len() < TOTALS;
        match self.of.get_mut(&target) {
            Some(total) => total.add(length),
            None if has_room => return false,
            None => self.unnamed += 1,
        }
        true
    }
}

/// Counts a wait. The first one for a target takes a call path, while the totals are free: taking
/// one may wait for another thread's backtrace.
pub(crate) fn count(target: Target, lock: Option<Lock>, address: usize, length: Duration) {
    if totals().count(target, length) {
        return;
    }
    let first = first(target, lock, address, length);
    let mut totals = totals();
    // Another thread may have been the first meanwhile.
    if !totals.count(target, length) {
        totals.of.insert(target, first);
    }
}

/// Returns true if a wait is so long that its thread should hold no lock.
pub(crate) fn is_long(length: Duration) -> bool {
    length >= LONG
}

/// Counts a long wait of a thread that holds `held` in a mode, since a place.
pub(crate) fn count_across(
    (target, lock, address, length): (Target, Option<Lock>, usize, Duration),
    (held, held_mode, held_place): (Lock, Mode, CallSite),
) {
    let key = (target, held.number, held_place);
    // A total that is new needs a call path, which is taken while the totals are free.
    let is_new = !totals().across.contains_key(&key);
    let waits = is_new.then(|| first(target, lock, address, length));
    let mut totals = totals();
    let has_room = totals.across.len() < TOTALS;
    match (totals.across.get_mut(&key), waits) {
        (Some(across), _) => across.waits.add(length),
        (None, Some(waits)) if has_room => {
            totals.across.insert(key, HeldAcross { held, held_mode, held_place, waits });
        }
        (None, _) => {}
    }
}

/// Returns the total of a first wait, and takes its call path.
fn first(target: Target, lock: Option<Lock>, address: usize, length: Duration) -> WaitTotal {
    let (class, path) = (target.class(), Arc::new(CallPath::capture()));
    WaitTotal { class, lock, address, count: 1, total: length, longest: length, path }
}

/// Writes the totals into a report, those with the most time first.
pub(crate) fn write_into(report: &mut Report) {
    let totals = totals();
    report.waits = totals.of.values().cloned().collect();
    report.waits.sort_by_key(|wait| Reverse(wait.total));
    report.held_across = totals.across.values().cloned().collect();
    report.held_across.sort_by_key(|across| Reverse(across.waits.total));
    report.losses.unnamed_waits = totals.unnamed;
}
