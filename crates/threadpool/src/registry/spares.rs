//! Spare threads: lent for workers that block, and put to rest.

use std::io;

use machine::atomic::Ordering;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::table::ThreadTable;
use crate::workers::signals::START;
use crate::workers::worker::Worker;

impl<S: Strategy> Registry<S> {
    /// Has a spare serve for each lease, as far as there are spares. Says whether all leases are
    /// met.
    pub(crate) fn lease_spare(&self) -> bool {
        self.lease_spare_if(|_| true)
    }

    /// The same for one more lease, if `may` says so under the roster's lock. Says whether all
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

    /// Whether a spare that serves is one too many; it does not serve any more then, and may be
    /// told at once to do so again.
    pub(super) fn retire_spare(&self, worker: &Worker) -> bool {
        let mut table = self.pool.threads.lock();
        // Whoever lends from now on sees that it does not serve.
        self.pool.settle(&mut table, worker.index());
        let retires = table.active_spares > table.leases;
        if retires {
            table.active_spares -= 1;
            table.idle_spares.push_back(worker.index());
            self.pool.note_surplus(&table);
        }
        retires
    }

    /// A spare, which [retires](Self::retires), sleeps until it is to serve again. False, if it is
    /// to end: that is when all is over, because a task of a closed pool may block as well.
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
        // Relaxed: given under the roster's lock, once for each time it lay idle.
        pool.info(worker.index()).signals.fetch_and(!START, Ordering::Relaxed);
        // Relaxed: a hint.
        pool.active_threads.fetch_add(1, Ordering::Relaxed);
        serves
    }
}
