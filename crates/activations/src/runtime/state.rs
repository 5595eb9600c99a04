//! The state of a runtime, and its end. The parts have their methods in their own files.

use std::io;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use stanchion_competitive::Mutex;
use stanchion_machine::presence::Presence;
use stanchion_machine::topology::Affinity;

use super::workers::Workers;
use crate::detection::Detection;
use crate::detection::monitor::{Monitor, Monitored, MonitoredWorker as _};
use crate::processors::Processors;
use crate::processors::arbiter::Arbiter;
use crate::processors::worker_record::WorkerRecord;
use crate::queues::ReadyThreads;
use crate::queues::ready::ReadyQueue;
use crate::stats::live_threads::LiveThreads;
use crate::stats::trace::Tracer;
use crate::thread::free_fibers::FreeFibers;
use crate::thread::process::Process;
use crate::thread::stacks::Stacks;

/// The settings of a runtime that is built.
pub(crate) struct Settings {
    /// The slots that are always there: one for each processor.
    pub(crate) slots: usize,
    /// The slots beyond those.
    pub(crate) overcommit: usize,
    /// The most workers.
    pub(crate) most_workers: usize,
    /// The time for which an idle worker spins before it sleeps, in ns.
    pub(crate) idle_spin_ns: u64,
    /// `true` if stuck workers are detected.
    pub(crate) activations: bool,
    /// The events of each worker that are kept, if the runtime is traced.
    pub(crate) trace: Option<usize>,
    /// The machine's processor for each slot, if workers are pinned.
    pub(crate) pinned: Option<Box<[usize]>>,
    /// The processors on which kernel threads may run.
    pub(crate) affinity: Affinity,
    pub(crate) arbiter: Option<Arbiter>,
    /// The function that a worker's kernel thread runs.
    pub(crate) worker_main: fn(Arc<RuntimeState>, usize),
}

/// The turns that were last seen, for each worker the turn and the time since which it has been
/// seen (`reports/held_up.rs`).
pub(crate) type SeenTurns = Mutex<Vec<(u64, u64)>>;

/// The state of a runtime.
pub(crate) struct RuntimeState {
    /// The slots, and the workers that have none.
    pub(crate) processors: Processors,
    /// The records of the workers, and their kernel threads.
    pub(crate) workers: Workers,
    /// The threads that are ready, and those that wait for a time.
    pub(crate) ready: ReadyThreads,
    /// The search for blocked workers.
    pub(crate) detection: Detection,
    /// Its lock has a line of its own, because all workers read the words beside it.
    pub(crate) fibers: CachePadded<FreeFibers>,
    /// The threads that have not ended, and whether the runtime has.
    pub(crate) live_threads: LiveThreads,
    /// Written by the threads that ask for long-running threads.
    pub(crate) seen_turns: SeenTurns,
    /// The process that has the kernel threads.
    pub(crate) process: Process,
    /// The time for which an idle worker spins before it sleeps, in ns.
    pub(crate) idle_spin_ns: u64,
    /// The function that a worker's kernel thread runs.
    worker_main: fn(Arc<Self>, usize),
}

impl RuntimeState {
    /// Returns the state of a runtime without started workers.
    pub(crate) fn new(settings: Settings, stacks: Stacks, normal: Box<dyn ReadyQueue>) -> Self {
        let Settings { slots, overcommit, most_workers, activations, .. } = settings;
        let tracer = settings.trace.map(|events| Tracer::new(most_workers, events));
        Self {
            processors: Processors::new(slots, overcommit, settings.pinned, settings.arbiter),
            workers: Workers::new(most_workers, slots, settings.affinity),
            ready: ReadyThreads::new(normal),
            detection: Detection::new(activations, slots + overcommit, tracer),
            fibers: CachePadded::new(FreeFibers::new(stacks)),
            live_threads: LiveThreads::new(),
            seen_turns: Mutex::new(Vec::new()),
            process: Process::current(),
            idle_spin_ns: settings.idle_spin_ns,
            worker_main: settings.worker_main,
        }
    }

    /// Starts the next worker. Returns its number; `None` if all have been started.
    pub(crate) fn start_worker(self: &Arc<Self>) -> io::Result<Option<usize>> {
        let (runtime, main) = (self.clone(), self.worker_main);
        self.workers.start(move |index| main(runtime, index))
    }

    /// Returns the record of the worker that owns this slot, as far as is known.
    pub(crate) fn owner(&self, slot: usize) -> &WorkerRecord {
        self.workers.record(self.processors.slot(slot).owner())
    }

    /// Returns the number of slots in use with an owner of this sort.
    pub(crate) fn count_owners(&self, is_counted: impl Fn(&WorkerRecord) -> bool) -> usize {
        self.processors.in_use().filter(|&slot| is_counted(self.owner(slot))).count()
    }

    /// Returns whether a processor would be idle for want of a worker that can run. A worker that
    /// has been given a slot is about to run.
    pub(crate) fn lacks_runners(&self) -> bool {
        let runs = |worker: &WorkerRecord| {
            worker.presence() != Presence::Blocked || !worker.ownership().is_in_thread()
        };
        self.count_owners(runs) < self.processors.limit.allowed()
    }

    /// Returns whether a processor is idle, as far as this runtime goes.
    pub(crate) fn has_idle_processor(&self) -> bool {
        let runs = |worker: &WorkerRecord| worker.presence() != Presence::Blocked;
        self.count_owners(runs) < self.processors.limit.allowed()
    }

    /// Returns whether there is a worker for a slot that would be taken, as far as is known.
    pub(crate) fn can_replace(&self) -> bool {
        self.processors.idle_workers.any() || !self.workers.are_all_started()
    }

    /// Returns whether there is something that another worker could do: a ready thread that is not
    /// bound to a worker with a slot, or a time that has come.
    pub(crate) fn has_work(&self) -> bool {
        self.processors.idle_workers.waiting() > 0 || self.ready.has_any()
    }

    /// Returns whether threads wait for times, and no worker sleeps that would watch the clock.
    pub(crate) fn is_time_unwatched(&self) -> bool {
        self.ready.timers.any() && !self.processors.parked.any()
    }

    /// Returns the number of threads that have ended and, read after that, of those that have been
    /// created.
    pub(crate) fn ended_and_created(&self) -> (u64, u64) {
        self.live_threads.ended_and_created(self.workers.counts())
    }

    /// Returns whether all has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.live_threads.is_over()
    }

    /// Ends the runtime if it is closing and has no thread any more. Returns whether it has ended.
    pub(crate) fn end_if_done(&self) -> bool {
        if !self.live_threads.is_done(self.workers.counts()) {
            return self.is_over();
        }
        self.live_threads.end();
        self.processors.parked.wake(usize::MAX, false);
        self.detection.monitor.wake();
        self.processors.idle_workers.end(|worker| self.workers.record(worker).ownership().end());
        true
    }

    /// Says that no more threads come from outside. The workers end when the last thread has ended.
    pub(crate) fn close(&self) {
        self.live_threads.close();
        // If no worker could be started, no other thread would see that all has ended.
        if !self.end_if_done() {
            self.processors.parked.wake(usize::MAX, false);
        }
    }
}

impl Monitored for RuntimeState {
    type Worker = WorkerRecord;

    fn monitor(&self) -> &Monitor {
        &self.detection.monitor
    }

    fn owner_of(&self, slot: usize) -> &WorkerRecord {
        self.owner(slot)
    }

    fn slots_in_use(&self) -> impl Iterator<Item = usize> {
        self.processors.in_use()
    }

    fn is_overcommitted(&self) -> bool {
        self.processors.overcommit.is_any_open()
    }
}
