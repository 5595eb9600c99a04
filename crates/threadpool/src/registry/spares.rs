//! Spare threads: leased for workers that block, and put to sleep afterwards.

use std::io;

use stanchion_machine::atomic::Ordering;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::ThreadTable;
use crate::workers::{START, Worker};

impl<S: Strategy> Registry<S> {
    /// Adds a lease, and has a spare take part for each lease, as far as there are spares. Returns
    /// whether all leases are met.
    pub(crate) fn lease_spare(&self) -> bool {
        self.lease_spare_if(|_| true)
    }

    /// Does the same if `may` says so under the lock of the thread table. Returns whether all
    /// leases are met.
    pub(crate) fn lease_spare_if(&self, may: impl FnOnce(&ThreadTable) -> bool) -> bool {
        let pool = &self.pool;
        let mut named: Option<(usize, io::Result<Option<String>>)> = None;
        let mut table = pool.threads.lock();
        if !may(&table) {
            return false;
        }
        table.leases += 1;
        while table.active_spares < table.leases {
            // An idle spare starts; else a new thread is started, if there is a free slot.
            if let Some(slot) = table.idle_spares.pop_front() {
                pool.termination.register();
                pool.signal(slot, START);
            } else {
                let slot = table.first_spare + table.started_spares;
                if slot == pool.num_slots() {
                    break;
                }
                let Some((_, name)) = named.take_if(|(whose, _)| *whose == slot) else {
                    drop(table);
                    named = Some((slot, pool.name(slot)));
                    table = pool.threads.lock();
                    continue;
                };
                if name.and_then(|name| self.spawn_thread(&mut table, slot, name)).is_err() {
                    break;
                }
                table.started_spares += 1;
            }
            table.active_spares += 1;
        }
        pool.note_surplus(&table);
        table.active_spares >= table.leases
    }

    /// Returns whether this active spare is one too many. If so, it is not active any more, and may
    /// be started again at once.
    pub(super) fn retire_spare(&self, worker: &Worker) -> bool {
        let mut table = self.pool.threads.lock();
        // A thread that leases from now on sees that this one is not active.
        self.pool.settle(&mut table, worker.index());
        let retires = table.active_spares > table.leases;
        if retires {
            table.active_spares -= 1;
            table.idle_spares.push_back(worker.index());
            self.pool.note_surplus(&table);
        }
        retires
    }

    /// Puts a [retired](Self::retire_spare) spare to sleep until it is started again. Returns false
    /// if it is to end. That is when the pool is done, because a task of a closed pool may block
    /// too.
    pub(super) fn park_spare(&self, worker: &Worker) -> bool {
        let pool = &self.pool;
        // Relaxed: a hint.
        pool.active_threads.fetch_sub(1, Ordering::Relaxed);
        let _excused = pool.excuse(worker);
        if self.deregister(worker.slot()) {
            // This one, if there is no other.
            self.lease_spare();
        }
        let serves = || pool.signals(worker) & START != 0;
        let stays = || !serves() && !pool.termination.is_done();
        while stays() {
            pool.sleep.sleep_until_named(worker.index(), stays);
        }
        let serves = serves();
        // Relaxed: set under the lock of the thread table, once for each time it was idle.
        pool.info(worker.index()).signals.fetch_and(!START, Ordering::Relaxed);
        // Relaxed: a hint.
        pool.active_threads.fetch_add(1, Ordering::Relaxed);
        serves
    }
}
