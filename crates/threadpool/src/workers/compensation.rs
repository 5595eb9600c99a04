//! The end of a compensation, and the look at whether a worker is blocked.

use stanchion_machine::atomic::Ordering;
use stanchion_machine::presence::{self, Presence};

use super::monitor::BRIEF_US;
use crate::threads::ThreadTable;
use crate::workers::{COMPENSATED, Monitor, PoolState, UNSEEN, WorkerInfo};

impl PoolState {
    /// Ends the compensation of a worker that runs again. The first thread that sees it does so.
    #[cold]
    pub(crate) fn come_back(&self, slot: usize) {
        let mut table = self.threads.lock();
        self.settle(&mut table, slot);
    }

    /// Does the same with the lock of the thread table held (Invariant 1 of `registry/monitor.rs`).
    pub(crate) fn settle(&self, table: &mut ThreadTable, slot: usize) {
        let Some(monitor) = &self.monitor else { return };
        let one = self.info(slot);
        // Relaxed: the lock of the thread table is held.
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

    /// Returns whether the thread of a slot is blocked in a task. With `closely` it asks the
    /// process table where the kernel's records are refused.
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
    /// Returns whether the kernel's records do not tell of the slot's thread.
    pub(crate) fn is_blind(&self, slot: &WorkerInfo) -> bool {
        // Relaxed: a hint.
        let number = slot.presence.load(Ordering::Relaxed);
        self.watch.refused().is_some()
            || number == UNSEEN
            || presence::of(number.wrapping_sub(1)) == Presence::Unknown
    }
}
