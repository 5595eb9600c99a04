//! The totals of waits: how often, and how long, threads waited for what.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::path::CallPath;
use crate::report::{Lock, Report, WaitClass, WaitTotal};

/// The most totals that are kept.
const TOTALS: usize = 256;

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
    /// The number of waits without a total.
    unnamed: u64,
}

static TOTALS_OF_ALL: Mutex<Totals> = Mutex::new(Totals { of: BTreeMap::new(), unnamed: 0 });

/// Locks the totals. A panic while they were locked leaves them whole: each change is one call.
fn totals() -> MutexGuard<'static, Totals> {
    TOTALS_OF_ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Totals {
    /// Counts a wait into a total that is there. Returns false if there is none, and room for one.
    fn count(&mut self, target: Target, length: Duration) -> bool {
        let has_room = self.of.len() < TOTALS;
        match self.of.get_mut(&target) {
            Some(total) => {
                total.count += 1;
                total.total += length;
                total.longest = total.longest.max(length);
            }
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
    let path = Arc::new(CallPath::capture());
    let mut totals = totals();
    // Another thread may have been the first meanwhile.
    if !totals.count(target, length) {
        let class = target.class();
        let (count, total, longest) = (1, length, length);
        totals.of.insert(target, WaitTotal { class, lock, address, count, total, longest, path });
    }
}

/// Writes the totals into a report, those with the most time first.
pub(crate) fn write_into(report: &mut Report) {
    let totals = totals();
    report.waits = totals.of.values().cloned().collect();
    report.waits.sort_by_key(|wait| Reverse(wait.total));
    report.losses.unnamed_waits = totals.unnamed;
}
