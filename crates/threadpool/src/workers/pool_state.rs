//! What is the same in every pool, whatever its strategy: seats, orders, behaviour, and how long an
//! idle worker spins.
//!

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::{clock, topology, wait};
use stanchion_competitive::Mutex;

use crate::queues::fifo::Fifo;
use crate::shutdown::drain::Drain;
use crate::shutdown::termination::Termination;
use crate::sleep::Sleep;
use crate::threads::table::{self, ThreadTable};
use crate::workers::config::{Config, Wait};
use crate::workers::monitor::{Excused, Monitor};
use crate::workers::worker::Worker;
use crate::workers::worker_info::{Detached, WorkerInfo};

/// What is to become of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It runs.
    Run,
    /// It is dropped: the pool shuts down and was told to leave undone what has not begun.
    Dropped,
}

/// The seat of the thread that has built the pool.
pub(crate) const CURRENT_THREAD_SLOT: usize = 0;

/// What is shared whatever the strategy.
pub(crate) struct PoolState {
    pub(crate) sleep: Sleep,
    infos: Box<[CachePadded<WorkerInfo>]>,
    /// Seats below have had a thread.
    used: AtomicUsize,
    pub(crate) config: Config,
    /// Processors that the process may use, asked for once.
    pub(crate) processors: usize,
    /// How tasks that have not begun end: a [`Fate`].
    discards: AtomicU32,
    pub(crate) panics: AtomicUsize,
    /// What threads outside of the pool have created by `spawn_fifo`.
    outside_fifo: Fifo<Detached>,
    pub(crate) termination: Termination,
    pub(crate) drain: Drain,
    /// Threads that take part.
    pub(crate) active_threads: AtomicUsize,
    /// Spares that are to go back to sleep: those that serve beyond the leases. A hint; the roster
    /// knows.
    pub(crate) surplus_spares: AtomicU32,
    pub(crate) first_spare: usize,
    pub(crate) threads: Mutex<ThreadTable>,
    /// If workers that block are to be compensated.
    pub(crate) monitor: Option<Monitor>,
}

impl PoolState {
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

    pub(crate) fn wait(&self) -> Wait {
        self.config.wait
    }

    pub(crate) fn info(&self, index: usize) -> &WorkerInfo {
        &self.infos[index]
    }

    /// Returns the queue for what is created by `spawn_fifo`: by the worker of a seat, or outside.
    pub(crate) fn fifo(&self, creator: Option<usize>) -> &Fifo<Detached> {
        creator.map_or(&self.outside_fifo, |slot| &self.info(slot).fifo)
    }

    /// Whether a spare thread has ever been started.
    pub(crate) fn has_started_spares(&self) -> bool {
        // Relaxed: a worker that waits for the fork of a spare has been told of the theft, and so
        // of the thread; for others it is a hint.
        self.used.load(Ordering::Relaxed) > self.first_spare
    }

    pub(crate) fn num_slots(&self) -> usize {
        self.infos.len()
    }

    /// What becomes of a task that has not begun.
    pub(crate) fn fate(&self) -> Fate {
        // Relaxed: nothing is published with it.
        if self.discards.load(Ordering::Relaxed) == 0 { Fate::Run } else { Fate::Dropped }
    }

    /// From now on tasks that have not begun are dropped.
    pub(crate) fn discard(&self) {
        // Relaxed: as above.
        self.discards.store(1, Ordering::Relaxed);
    }

    /// Somebody's task or handler panicked, and nobody waits for it.
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
            // Its drop may panic as well; there is nobody left to tell.
            core::mem::forget(second);
        }
    }

    /// Runs `body`, whose panic concerns nobody who waits.
    pub(crate) fn contain(&self, body: impl FnOnce()) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
            self.panicked(payload);
        }
    }

    /// The worker may sleep from now on, and it is not for blocking in a task.
    pub(crate) fn excuse(&self, worker: &Worker) -> Option<Excused<'_>> {
        self.excuse_slot(worker.index())
    }

    /// The same by the number of the calling worker's seat. Nothing where nobody looks for it.
    pub(crate) fn excuse_slot(&self, slot: usize) -> Option<Excused<'_>> {
        self.monitor.is_some().then(|| Excused::from(&self.info(slot).observed))
    }

    /// What the seat's thread is to be called. Not under the roster's lock: it calls what is the
    /// user's.
    pub(crate) fn name(&self, slot: usize) -> io::Result<Option<String>> {
        self.config.thread_names.as_ref().map(|names| table::name(names, slot)).transpose()
    }

    /// Spins until `done`, for as long as it is worth to spin.
    pub(crate) fn spin_until(&self, done: impl Fn() -> bool) -> bool {
        self.spin(|| done().then_some(())).is_some()
    }

    /// Repeats `attempt` for as long as an idle worker should spin before it sleeps: not at all, if
    /// more workers are awake than there are processors.
    ///
    /// Yields between two attempts if the pool has a worker for each processor: the thread that the
    /// worker waits for may need this one.
    pub(crate) fn spin<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
        let begin = clock::now();
        let mut yields = false;
        let attempt = || {
            // Not before the first attempt.
            if core::mem::replace(&mut yields, self.first_spare >= self.processors) {
                machine::thread::yield_now();
            }
            attempt()
        };
        wait::retry_for(attempt, 50..1_000, || {
            !self.crowded() && clock::now().nanos_since(begin) < self.config.idle_spin_ns
        })
    }

    /// Whether a worker that spins may keep one from its processor that has work: whether more
    /// workers can run than there are processors.
    fn crowded(&self) -> bool {
        let awake = self.active_threads().saturating_sub(self.sleep.asleep());
        // Some of those awake may be blocked; the kernel's records tell, where there are any.
        awake > self.processors
            && self.infos.iter().filter(|info| info.can_run()).count() > self.processors
    }

    /// Returns whether some worker has something to do. A guest may have, and is not waited for.
    pub(crate) fn others_work(&self) -> bool {
        self.active_threads() > self.sleep.idle() + usize::from(self.config.uses_current_thread)
    }

    /// Returns whether a seat is that of the thread that has built the pool.
    #[inline]
    pub(crate) fn is_current_thread(&self, slot: usize) -> bool {
        self.config.uses_current_thread && slot == CURRENT_THREAD_SLOT
    }

    /// The seat has a thread.
    pub(crate) fn use_slot(&self, slot: usize) {
        // Relaxed: the forks that the seat's worker makes, it makes after this (see `forks.rs`).
        self.used.fetch_max(slot + 1, Ordering::Relaxed);
    }

    /// Seats that have had a thread.
    pub(super) fn used_slots(&self) -> &[CachePadded<WorkerInfo>] {
        // Relaxed: as above.
        &self.infos[..self.used.load(Ordering::Relaxed)]
    }

    /// Whether [`steal_fork`](Self::steal_fork) may find something. Exact for a worker that has
    /// said that it goes to sleep and has called `heavy` since; a fork to which a thief is on its
    /// way does not count (see `forks.rs`).
    pub(crate) fn has_forks(&self) -> bool {
        self.used_slots().iter().any(|info| info.forks().ready_after_barrier() > 0)
    }

    /// Whether somebody asks where workers are: there may be more of them than processors, so that
    /// it matters which can run; or those that block are compensated.
    pub(crate) fn are_seen(&self) -> bool {
        self.first_spare > self.processors || self.monitor.is_some()
    }

    /// Returns the number of threads, spare ones apart. Takes the roster's lock.
    pub(crate) fn num_threads(&self) -> usize {
        self.threads.lock().members
    }

    /// Threads that take part.
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

    /// Whether no thread is to begin any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.termination.is_closed()
    }

    /// Says how many spares are too many. The roster's lock is held.
    pub(crate) fn note_surplus(&self, table: &ThreadTable) {
        let surplus = table.active_spares.saturating_sub(table.leases);
        // Relaxed: a hint.
        self.surplus_spares.store(surplus as u32, Ordering::Relaxed);
    }

    /// Whether the worker is a spare, and one too many.
    #[inline]
    pub(crate) fn is_surplus(&self, worker: &Worker) -> bool {
        // Relaxed: a hint; `rest` asks again under the roster's lock.
        worker.index() >= self.first_spare && self.surplus_spares.load(Ordering::Relaxed) > 0
    }
}
