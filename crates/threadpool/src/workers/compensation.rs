//! Spare threads that were lent for a worker that was seen blocked, and their return.

use machine::atomic::Ordering;
use machine::presence::{self, Presence};

use super::monitor::{BRIEF_US, Monitor};
use super::pool_state::PoolState;
use super::signals::COMPENSATED;
use super::worker_info::{UNSEEN, WorkerInfo};
use crate::threads::table::ThreadTable;

impl PoolState {
    /// A worker that was compensated works again: the lease ends. Whoever sees it first does it.
    #[cold]
    pub(crate) fn come_back(&self, slot: usize) {
        let mut table = self.threads.lock();
        self.settle(&mut table, slot);
    }

    /// The same, with the roster's lock held; Invariant 1.
    pub(crate) fn settle(&self, table: &mut ThreadTable, slot: usize) {
        let Some(monitor) = &self.monitor else { return };
        let one = self.info(slot);
        // Relaxed: the roster's lock is held.
        if one.signals.fetch_and(!COMPENSATED, Ordering::Relaxed) & COMPENSATED == 0 {
            return;
        }
        table.leases -= 1;
        self.note_surplus(table);
        // Relaxed: statistics.
        let lent = one.observed.lent.load(Ordering::Relaxed);
        if monitor.micros().wrapping_sub(lent) < BRIEF_US {
            monitor.brief.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the thread of a seat that can be seen is blocked in a task. `closely`, where records
    /// are refused: by the process table.
    pub(crate) fn is_blocked(&self, slot: &WorkerInfo, closely: bool) -> bool {
        // Relaxed: hints.
        let number = slot.presence.load(Ordering::Relaxed);
        if number == 0 || number == UNSEEN || slot.observed.excuses.load(Ordering::Relaxed) != 0 {
            return false;
        }
        match presence::of(number - 1) {
            Presence::Unknown => closely && presence::examine(number - 1) == Presence::Blocked,
            seen => seen == Presence::Blocked,
        }
    }
}

impl Monitor {
    /// Whether the records do not tell of the seat's thread.
    pub(crate) fn is_blind(&self, slot: &WorkerInfo) -> bool {
        // Relaxed: a hint.
        let number = slot.presence.load(Ordering::Relaxed);
        self.watch.refused().is_some()
            || number == UNSEEN
            || presence::of(number.wrapping_sub(1)) == Presence::Unknown
    }
}
