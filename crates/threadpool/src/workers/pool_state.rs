//! The state that all threads of a pool share, whatever its strategy: the slots, the configuration,
//! the idle workers, and the parts by which the pool ends.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use crossbeam_utils::CachePadded;
use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use stanchion_machine::topology;

use crate::queues::Fifo;
use crate::shutdown::{Drain, Termination};
use crate::sleep::Sleep;
use crate::threads::{ThreadTable, table};
use crate::workers::{Config, Detached, Excused, Monitor, Wait, Worker, WorkerInfo};

/// The end of a task that has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It runs.
    Run,
    /// It is dropped: `shutdown_now` was called before it began.
    Dropped,
}

/// The slot of the thread that has built the pool (`use_current_thread`).
pub(crate) const CURRENT_THREAD_SLOT: usize = 0;

/// The state of a pool.
pub(crate) struct PoolState {
    /// Idle workers, and those that sleep.
    pub(crate) sleep: Sleep,
    /// The part of each worker that other threads see, by slot.
    infos: Box<[CachePadded<WorkerInfo>]>,
    /// Slots below have had a thread. Written by each thread that begins.
    used: AtomicUsize,
    /// Fixed when the pool is built.
    pub(crate) config: Config,
    /// Processors that the process may use, asked for once.
    pub(crate) processors: usize,
    /// The [`Fate`] of tasks that have not begun. Written by `shutdown_now`.
    discards: AtomicU32,
    /// Panics for which no thread waits. Written by the thread that catches one.
    pub(crate) panics: AtomicUsize,
    /// The closures that threads outside of the pool have created by `spawn_fifo`.
    outside_fifo: Fifo<Detached>,
    /// Says when a closed pool is done.
    pub(crate) termination: Termination,
    /// Drops the tasks that come after the last thread.
    pub(crate) drain: Drain,
    /// Threads that take part. Written by each of them.
    pub(crate) active_threads: AtomicUsize,
    /// Active spares beyond the leases: so many are to go back to sleep. Written under the lock of
    /// the thread table, which is exact. This is a hint.
    pub(crate) surplus_spares: AtomicU32,
    /// Slots from here on are for spares.
    pub(crate) first_spare: usize,
    /// Says which slots have a thread.
    pub(crate) threads: Mutex<ThreadTable>,
    /// Present if workers that block are compensated.
    pub(crate) monitor: Option<Monitor>,
}

impl PoolState {
    /// Creates the state of a pool with so many slots and no thread.
    pub(crate) fn new(slots: usize, config: Config, table: ThreadTable) -> Self {
        let info = |index| CachePadded::new(WorkerInfo::new(index));
        Self {
            sleep: Sleep::new(),
            infos: (0..slots).map(info).collect(),
            used: AtomicUsize::fresh(0),
            monitor: config.compensate_blocking.then(Monitor::new),
            config,
            processors: topology::parallelism(),
            discards: AtomicU32::fresh(0),
            panics: AtomicUsize::fresh(0),
            outside_fifo: Fifo::new(),
            termination: Termination::new(),
            drain: Drain::new(),
            active_threads: AtomicUsize::fresh(0),
            surplus_spares: AtomicU32::fresh(0),
            first_spare: table.first_spare,
            threads: Mutex::new(table),
        }
    }

    /// Returns what workers do while they wait.
    pub(crate) fn wait(&self) -> Wait {
        self.config.wait
    }

    /// Returns what other threads see of the worker of a slot.
    pub(crate) fn info(&self, index: usize) -> &WorkerInfo {
        &self.infos[index]
    }

    /// Returns the queue of `spawn_fifo` of a creator: the worker of a slot, or a thread outside.
    pub(crate) fn fifo(&self, creator: Option<usize>) -> &Fifo<Detached> {
        creator.map_or(&self.outside_fifo, |slot| &self.info(slot).fifo)
    }

    /// Returns whether a spare thread has ever been started.
    pub(crate) fn has_started_spares(&self) -> bool {
        // Relaxed: a worker that waits for the fork of a spare has been told of the theft, and so
        // of the thread. For others it is a hint.
        self.used.load(Ordering::Relaxed) > self.first_spare
    }

    /// Returns how many slots there are.
    pub(crate) fn num_slots(&self) -> usize {
        self.infos.len()
    }

    /// Returns the fate of a task that has not begun.
    pub(crate) fn fate(&self) -> Fate {
        // Relaxed: it publishes nothing.
        if self.discards.load(Ordering::Relaxed) == 0 { Fate::Run } else { Fate::Dropped }
    }

    /// Lets tasks that have not begun be dropped from now on.
    pub(crate) fn discard(&self) {
        // Relaxed: as above.
        self.discards.store(1, Ordering::Relaxed);
    }

    /// Hands on the payload of a panic for which no thread waits.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        // Relaxed: statistics.
        self.panics.fetch_add(1, Ordering::Relaxed);
        let handled = panic::catch_unwind(AssertUnwindSafe(|| match &self.config.panic_handler {
            Some(handler) => handler(payload),
            None => drop(payload),
        }));
        if let Err(second) = handled {
            // Relaxed: statistics.
            self.panics.fetch_add(1, Ordering::Relaxed);
            // Its drop may panic as well, and no handler is left that could be told.
            core::mem::forget(second);
        }
    }

    /// Runs `body`, and hands on its panic, for which no thread waits.
    pub(crate) fn contain(&self, body: impl FnOnce()) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
            self.panicked(payload);
        }
    }

    /// Excuses the worker from compensation while the returned value is alive: it may sleep, but it
    /// does not block in a task.
    pub(crate) fn excuse(&self, worker: &Worker) -> Option<Excused<'_>> {
        self.excuse_slot(worker.index())
    }

    /// Does the same by the calling worker's slot. Returns `None` in a pool without a monitor.
    pub(crate) fn excuse_slot(&self, slot: usize) -> Option<Excused<'_>> {
        self.monitor.is_some().then(|| Excused::from(&self.info(slot).observed))
    }

    /// Returns the name for the thread of a slot. The lock of the thread table must not be held, as
    /// this calls the user's function.
    pub(crate) fn name(&self, slot: usize) -> io::Result<Option<String>> {
        self.config.thread_names.as_ref().map(|names| table::name(names, slot)).transpose()
    }

    /// Returns whether some worker has work. The thread that has built the pool may have some, and
    /// is not counted.
    pub(crate) fn others_work(&self) -> bool {
        self.active_threads() > self.sleep.idle() + usize::from(self.config.uses_current_thread)
    }

    /// Returns whether a slot is that of the thread that has built the pool.
    #[inline]
    pub(crate) fn is_current_thread(&self, slot: usize) -> bool {
        self.config.uses_current_thread && slot == CURRENT_THREAD_SLOT
    }

    /// Notes that a slot has a thread.
    pub(crate) fn use_slot(&self, slot: usize) {
        // Relaxed: the worker of the slot makes its forks after this (see `fork_stack.rs`).
        self.used.fetch_max(slot + 1, Ordering::Relaxed);
    }

    /// Returns the slots that have had a thread.
    pub(super) fn used_slots(&self) -> &[CachePadded<WorkerInfo>] {
        // Relaxed: as above.
        &self.infos[..self.used.load(Ordering::Relaxed)]
    }

    /// Returns whether a thief may find a fork. Exact for a worker that has said that it goes to
    /// sleep and has called `heavy` since.
    pub(crate) fn has_forks(&self) -> bool {
        self.used_slots().iter().any(|info| info.forks().ready_after_barrier() > 0)
    }

    /// Returns the number of threads without spares. Takes the lock of the thread table.
    pub(crate) fn num_threads(&self) -> usize {
        self.threads.lock().members
    }

    /// Returns how many threads take part.
    fn active_threads(&self) -> usize {
        // Relaxed: a hint.
        self.active_threads.load(Ordering::Relaxed)
    }

    /// Aborts the futures that wait, and lets no more begin to wait.
    pub(crate) fn abort_futures(&self) {
        for info in &self.infos {
            info.waiting_futures.abort_all();
        }
    }

    /// Returns whether the pool is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.termination.is_closed()
    }

    /// Updates the number of surplus spares. The lock of the thread table is held.
    pub(crate) fn note_surplus(&self, table: &ThreadTable) {
        let surplus = table.active_spares.saturating_sub(table.leases);
        // Relaxed: a hint.
        self.surplus_spares.store(surplus as u32, Ordering::Relaxed);
    }

    /// Returns whether the worker is a spare and some spare is to go back to sleep.
    #[inline]
    pub(crate) fn is_surplus(&self, worker: &Worker) -> bool {
        // Relaxed: a hint. `retire_spare` decides under the lock of the thread table.
        worker.index() >= self.first_spare && self.surplus_spares.load(Ordering::Relaxed) > 0
    }
}
