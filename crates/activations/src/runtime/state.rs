//! What a runtime is to all its workers.
//!
//! # Invariants
//!
//! 1. Carriers are added and never removed: those below `started` have a kernel thread.

use core::iter::Chain;
use core::ops::Range;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use machine::clock::Deadline;
use machine::thread::{Builder, JoinHandle as KernelHandle};
use machine::topology::Affinity;
use machine::watch::Watch;
use stanchion_competitive::Mutex;
use stanchion_threadpool::Told;

use crate::processors::arbiter::Arbiter;
use crate::api::capabilities::{Capabilities, Tier};
use crate::processors::worker_record::WorkerRecord;
use crate::stats::live_threads::{LiveThreads, ThreadCounts};
use crate::processors::limit::ProcessorLimit;
use crate::thread::fiber::Fiber;
use crate::reports::held_up::ObservedTurns;
use crate::thread::home::ThreadHome;
use crate::worker::context;
use crate::upcalls::monitor::{self as monitor, Monitor};
use crate::reports::metrics::Metrics;
use crate::detection::handoff_delay::HandoffDelay;
use crate::queues::prioritized::PrioritizedQueues;
use crate::thread::priority::Priority;
use crate::thread::process::Process;
use crate::queues::ready::ReadyQueue;
use crate::processors::idle_workers::IdleWorkers;
use crate::processors::slot::Slot;
use crate::upcalls::lost_time::{LostTime, SlotTimes};
use crate::processors::parking::ParkedSlots;
use crate::thread::stacks::{StackError, Stacks};
use crate::processors::overcommit::{self as overcommit, Overcommit};
use crate::thread::header::Thread;
use crate::queues::timers::{TimerKey, Timers};
use crate::stats::trace::Tracer;
use crate::worker::scheduler_loop as scheduler_loop;
use crate::stats::upcalls::{Counters, Upcall};

/// What a runtime was built with.
pub(crate) struct Settings {
    pub(crate) idle_spin_ns: u64,
    /// Whether somebody looks who is stuck.
    pub(crate) activations: bool,
    /// How many events of each worker are kept.
    pub(crate) trace: Option<usize>,
    /// The processor of each slot, if its workers stay there.
    pub(crate) processors: Option<Box<[usize]>>,
    /// Where its kernel threads may run, whichever thread starts them.
    pub(crate) affinity: Affinity,
}

/// Free fibers that are kept beside those that workers keep; the stacks of others are given back.
const MOST_FREE: usize = 256;

/// The kernel threads of a runtime.
#[derive(Default)]
struct KernelThreads {
    /// Those that nobody has waited for.
    handles: Vec<KernelHandle<()>>,
    /// How many workers have been started.
    workers: usize,
}

/// A runtime.
pub(crate) struct RuntimeState {
    settings: Settings,
    slots: Box<[Slot]>,
    workers: Box<[WorkerRecord]>,
    ready: Box<dyn ReadyQueue>,
    prioritized: PrioritizedQueues,
    parked: ParkedSlots,
    idle_workers: IdleWorkers,
    overcommit: Overcommit,
    timers: Timers,
    stacks: Stacks,
    fibers: Mutex<Vec<Fiber>>,
    kernel_threads: Mutex<KernelThreads>,
    slot_times: Box<[SlotTimes]>,
    lost: LostTime,
    monitor: Monitor,
    tracer: Option<Tracer>,
    limit: ProcessorLimit,
    counters: Counters,
    delay: HandoffDelay,
    live_threads: LiveThreads,
    turns: ObservedTurns,
    process: Process,
}

impl RuntimeState {
    /// One whose workers have not been started: with so many slots that are always there, and so
    /// many that are not.
    pub(crate) fn new(
        settings: Settings,
        stacks: Stacks,
        slots: usize,
        overcommit: usize,
        most_carriers: usize,
        ready: Box<dyn ReadyQueue>,
        arbiter: Option<Arbiter>,
    ) -> Self {
        let monitor = Monitor::new(settings.activations);
        let tracer = settings.trace.map(|events| Tracer::new(most_carriers, events));
        Self {
            settings,
            slots: (0..slots + overcommit).map(Slot::new).collect(),
            workers: (0..most_carriers)
                .map(|index| WorkerRecord::new((index < slots).then_some(index)))
                .collect(),
            ready,
            prioritized: PrioritizedQueues::new(),
            parked: ParkedSlots::new(slots),
            idle_workers: IdleWorkers::new(),
            overcommit: Overcommit::new(slots, overcommit),
            timers: Timers::new(),
            stacks,
            fibers: Mutex::new(Vec::new()),
            kernel_threads: Mutex::new(KernelThreads::default()),
            slot_times: (0..slots + overcommit).map(|_| SlotTimes::new()).collect(),
            lost: LostTime::default(),
            monitor,
            tracer,
            limit: ProcessorLimit::new(slots, arbiter),
            counters: Counters::default(),
            delay: HandoffDelay::new(),
            live_threads: LiveThreads::new(),
            turns: ObservedTurns::default(),
            process: Process::here(),
        }
    }

    /// Starts the kernel thread of the next worker, which begins as it stands; `None` if there are
    /// as many as there may be.
    pub(crate) fn start_carrier(self: &Arc<Self>) -> io::Result<Option<usize>> {
        let mut threads = self.kernel_threads.lock();
        let index = threads.workers;
        if index == self.workers.len() {
            return Ok(None);
        }
        let runtime = self.clone();
        let builder = Builder::new().name(format!("worker-{index}"));
        let handle = builder.spawn(move || {
            runtime.settings.affinity.adopt();
            scheduler_loop::carry(runtime, index);
        })?;
        threads.handles.push(handle);
        threads.workers += 1;
        Ok(Some(index))
    }

    /// Starts the monitor, if there is to be one.
    pub(crate) fn start_monitor(self: &Arc<Self>) -> io::Result<()> {
        if self.settings.activations {
            let runtime = self.clone();
            let builder = Builder::new().name("monitor".into());
            let handle = builder.spawn(move || {
                runtime.settings.affinity.adopt();
                monitor::watch_workers(&runtime);
            })?;
            self.kernel_threads.lock().handles.push(handle);
        }
        Ok(())
    }

    pub(crate) fn activations(&self) -> bool {
        self.settings.activations
    }

    pub(crate) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    pub(crate) fn limit(&self) -> &ProcessorLimit {
        &self.limit
    }

    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    pub(crate) fn slot_times(&self, slot: usize) -> &SlotTimes {
        &self.slot_times[slot]
    }

    pub(crate) fn lost(&self) -> &LostTime {
        &self.lost
    }

    /// The kernel has told something of the worker on that slot, so many nanoseconds after it
    /// happened, if that is known.
    pub(crate) fn told(&self, upcall: Upcall, slot: usize, latency: Option<u64>) {
        // First the trace, whose clock says when.
        if let Some(tracer) = &self.tracer {
            tracer.told(upcall, slot, latency);
        }
        self.counters.wake(upcall, latency);
    }

    pub(crate) fn delay(&self) -> &HandoffDelay {
        &self.delay
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether there are as many workers as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.started() == self.workers.len()
    }

    /// Whether there is a worker for a slot that would be taken from another, as far as is known.
    pub(crate) fn can_replace(&self) -> bool {
        self.idle_workers.has_any() || !self.is_full()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let tier = match self.monitor.watch().map(Watch::refused) {
            None => Tier::Off,
            Some(None) => Tier::Records,
            Some(Some(refused)) => Tier::Heartbeats(refused.clone()),
        };
        Capabilities {
            tier,
            guards: self.stacks.guards(),
            pinned: self.settings.processors.is_some(),
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let (ended, created) = self.live_threads.ended_and_created(self.counts());
        Metrics {
            spawned: created,
            ended,
            upcalls: Upcall::ALL.map(|upcall| self.counters.told(upcall)),
            latencies: Upcall::ALL.map(|upcall| self.counters.latencies(upcall)),
            handovers: self.counters.handovers.get(),
            false_handovers: self.counters.false_handovers.get(),
            returns_at_once: self.counters.overcommit.get(),
            blocks_without_spare: self.counters.unreplaced.get(),
            handover_latencies: self.lost.handovers.read(),
            processor_time_lost: Duration::from_nanos(self.lost.nanos()),
            processors: self.limit.allowed(),
            kernel_threads: self.started(),
            ready: self.ready.len(),
            waiting_kernel_threads: self.idle_workers.waiting(),
            held_up: self.held_up(),
        }
    }

    pub(crate) fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    pub(crate) fn worker(&self, index: usize) -> &WorkerRecord {
        &self.workers[index]
    }

    pub(crate) fn ready_queue(&self) -> &dyn ReadyQueue {
        &*self.ready
    }

    pub(crate) fn parked(&self) -> &ParkedSlots {
        &self.parked
    }

    pub(crate) fn idle_workers(&self) -> &IdleWorkers {
        &self.idle_workers
    }

    pub(crate) fn idle_spin(&self) -> u64 {
        self.settings.idle_spin_ns
    }

    pub(crate) fn processor_of(&self, slot: usize) -> Option<usize> {
        let processors = self.settings.processors.as_ref()?;
        Some(processors[slot % processors.len()])
    }

    /// How many slots are always there: one a processor.
    pub(crate) fn slots(&self) -> usize {
        self.limit.slots()
    }

    pub(crate) fn overcommit(&self) -> &Overcommit {
        &self.overcommit
    }

    /// The slots that are in use, as far as is known.
    pub(crate) fn slots_in_use(&self) -> Chain<Range<usize>, overcommit::Seats> {
        (0..self.limit.allowed()).chain(self.overcommit.slots())
    }

    /// A thread begins that has just been made.
    pub(crate) fn admit(self: &Arc<Self>, thread: Thread) {
        context::with(|local| match local.filter(|local| Arc::ptr_eq(&local.runtime, self)) {
            Some(local) => {
                local.thread_created();
                local.make_ready(thread, false);
            }
            None => {
                self.live_threads.creation_outside();
                self.put_outside(thread);
            }
        });
    }

    /// A thread is ready that any worker may run, and is none of the usual priority.
    pub(crate) fn put_prioritized(&self, thread: Thread) {
        self.prioritized.put(thread);
        self.wake(Told::Anyone(1));
    }

    /// A thread is ready that any worker may run; the caller is none.
    fn put_outside(&self, thread: Thread) {
        if thread.header().priority() == Priority::Normal {
            let told = self.ready.put(None, thread, false);
            self.wake(told);
        } else {
            self.put_prioritized(thread);
        }
    }

    pub(crate) fn prioritized(&self) -> &PrioritizedQueues {
        &self.prioritized
    }

    /// A thread that began on that worker is ready again.
    pub(crate) fn mail(&self, index: usize, thread: Thread) {
        let worker = self.worker(index);
        let priority = thread.header().priority();
        worker.mail(thread);
        if self.idle_workers.call(index, worker, priority) {
            self.wake(Told::Anyone(1));
        } else if !self.overcommit.has(worker.slot()) {
            // On the others nobody sleeps.
            self.parked.wake_slot(worker.slot());
        }
    }

    /// Wakes those who should be told.
    pub(crate) fn wake(&self, told: Told) {
        self.wake_for(told, false);
    }

    /// Wakes those who should be told; not those who doze, if it is of what lies at the caller's
    /// `own` slot.
    pub(crate) fn wake_for(&self, told: Told, own: bool) {
        let woken = match told {
            Told::Anyone(count) => self.parked.wake(count, own),
            Told::Lone => self.parked.wake(1, own),
            Told::Place(slot) => return self.parked.wake_slot(slot),
        };
        if woken == 0 {
            self.limit.increment();
            self.watch();
        }
    }

    pub(crate) fn add_timer(&self, due: Deadline, thread: Thread) -> TimerKey {
        let (key, late) = self.timers.add(due, thread);
        if late.monitor {
            self.monitor.wake();
        }
        // Who sleeps does so until a later time, and who runs may do so for long, or block.
        if late.watch && self.parked.wake(1, false) == 0 {
            self.watch();
        }
        key
    }

    /// Whether threads wait for times, and no worker sleeps who would watch the clock.
    pub(crate) fn is_time_unwatched(&self) -> bool {
        self.timers.any() && !self.parked.any()
    }

    /// Until when the monitor sleeps at most, if it is to wake up for a time.
    pub(crate) fn monitor_deadline(&self, for_times: bool) -> Deadline {
        self.timers.watch_workers(for_times)
    }

    pub(crate) fn remove_timer(&self, key: TimerKey) {
        self.timers.remove(key);
    }

    /// Calls whose time has come.
    pub(crate) fn run_timers(&self) {
        self.timers.run();
    }

    /// Whether a time has come.
    #[inline]
    pub(crate) fn is_time(&self) -> bool {
        self.timers.is_due()
    }

    /// Until when whoever has that slot may sleep.
    pub(crate) fn watch(&self, slot: usize) -> Deadline {
        self.timers.watch(slot)
    }

    /// Whoever has that slot does not watch the clock any more; whether somebody else should.
    pub(crate) fn unwatch(&self, slot: usize) -> bool {
        self.timers.unwatch(slot)
    }

    pub(crate) fn take_fiber(&self) -> Option<Fiber> {
        self.fibers.lock().pop()
    }

    pub(crate) fn new_fiber(&self) -> Result<Fiber, StackError> {
        self.stacks.take().map(Fiber::new)
    }

    pub(crate) fn keep_fiber(&self, fiber: Fiber) {
        let mut fibers = self.fibers.lock();
        if fibers.len() < MOST_FREE {
            fibers.push(fiber);
        } else {
            drop(fibers);
            fiber.quit();
        }
    }

    fn counts(&self) -> impl Iterator<Item = &ThreadCounts> + Clone {
        self.workers.iter().map(WorkerRecord::count)
    }

    /// Whether all has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.live_threads.is_over()
    }

    /// Ends the runtime if it is closing and has no thread any more; whether it has ended.
    pub(crate) fn end_if_done(&self) -> bool {
        if !self.live_threads.is_done(self.counts()) {
            return self.is_over();
        }
        self.live_threads.end();
        self.parked.wake(usize::MAX, false);
        self.monitor.wake();
        self.idle_workers.end(|index| self.worker(index).ownership().end());
        true
    }

    /// Whether any thread waits for a time.
    pub(crate) fn awaits_time(&self) -> bool {
        self.timers.any()
    }

    /// The turns that were last seen.
    pub(crate) fn turns(&self) -> &ObservedTurns {
        &self.turns
    }

    pub(crate) fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// How many workers have been started.
    pub(crate) fn started(&self) -> usize {
        self.kernel_threads.lock().workers
    }

    /// How many threads have ended, and, read after that, how many have been created.
    pub(crate) fn ended_and_created(&self) -> (u64, u64) {
        self.live_threads.ended_and_created(self.counts())
    }

    /// No more threads will come from outside: when the last has ended, the workers end.
    pub(crate) fn close(&self) {
        self.live_threads.close();
        // If no worker could be started, nobody else would see that it is over.
        if !self.end_if_done() {
            self.parked.wake(usize::MAX, false);
        }
    }

    /// Where it was made.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// Waits for the workers' end: as a thread while threads run, and for the rest, which is
    /// short, as a kernel thread.
    pub(crate) fn join(&self) {
        self.live_threads.wait_for_end();
        loop {
            // One that ends may have started another.
            let Some(thread) = self.kernel_threads.lock().handles.pop() else { break };
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "workers catch what their threads panic with");
        }
        self.quit_fibers();
    }

    fn quit_fibers(&self) {
        let fibers = core::mem::take(&mut *self.fibers.lock());
        fibers.into_iter().for_each(Fiber::quit);
    }
}

impl Drop for RuntimeState {
    /// Nobody has joined the workers if the runtime was dropped inside.
    fn drop(&mut self) {
        self.quit_fibers();
    }
}

/// A user-level thread is ready again.
pub(crate) fn ready(thread: Thread) {
    context::with(|local| {
        let ThreadHome::Runtime(home) = thread.header().home() else {
            unreachable!("the kernel readies its threads")
        };
        if let Some(local) = local.filter(|local| home.is_of(&local.runtime)) {
            return local.make_ready(thread, false);
        }
        // SAFETY: it has not ended: it is not even ready yet.
        let runtime = unsafe { home.share() };
        match thread.header().bound_to() {
            Some(index) => runtime.mail(index, thread),
            None => runtime.put_outside(thread),
        }
    });
}
