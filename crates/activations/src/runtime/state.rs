//! What a runtime is to all its carriers.
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
use crate::processors::worker_record::Carrier;
use crate::stats::live_threads::{Census, Count};
use crate::processors::limit::Demand;
use crate::thread::fiber::Fiber;
use crate::reports::held_up::Turns;
use crate::thread::home::Home;
use crate::worker::context as local;
use crate::upcalls::monitor::{self as lookout, Lookout};
use crate::reports::metrics::Metrics;
use crate::detection::handoff_delay::Patience;
use crate::queues::prioritized::Unusual;
use crate::thread::priority::Priority;
use crate::thread::process::Process;
use crate::queues::ready::Ready;
use crate::processors::idle_workers::Reserve;
use crate::processors::slot::Seat;
use crate::upcalls::lost_time::{Lost, Shortage};
use crate::processors::parking::Sleeping;
use crate::thread::stacks::{StackError, Stacks};
use crate::processors::overcommit::{self as surplus, Surplus};
use crate::thread::header::Thread;
use crate::queues::timers::{Key, Timers};
use crate::stats::trace::Tracer;
use crate::worker::scheduler_loop as trunk;
use crate::stats::upcalls::{Counters, Upcall};

/// What a runtime was built with.
pub(crate) struct Settings {
    pub(crate) idle_spin_ns: u64,
    /// Whether somebody looks who is stuck.
    pub(crate) activations: bool,
    /// How many events of each carrier are kept.
    pub(crate) trace: Option<usize>,
    /// The processor of each seat, if its carriers stay there.
    pub(crate) processors: Option<Box<[usize]>>,
    /// Where its kernel threads may run, whichever thread starts them.
    pub(crate) affinity: Affinity,
}

/// Free fibers that are kept beside those that carriers keep; the stacks of others are given back.
const MOST_FREE: usize = 256;

/// The kernel threads of a runtime.
#[derive(Default)]
struct KernelThreads {
    /// Those that nobody has waited for.
    handles: Vec<KernelHandle<()>>,
    /// How many carriers have been started.
    carriers: usize,
}

/// A runtime.
pub(crate) struct Shared {
    settings: Settings,
    seats: Box<[Seat]>,
    carriers: Box<[Carrier]>,
    ready: Box<dyn Ready>,
    unusual: Unusual,
    sleeping: Sleeping,
    reserve: Reserve,
    surplus: Surplus,
    timers: Timers,
    stacks: Stacks,
    fibers: Mutex<Vec<Fiber>>,
    kernel_threads: Mutex<KernelThreads>,
    shortages: Box<[Shortage]>,
    lost: Lost,
    lookout: Lookout,
    tracer: Option<Tracer>,
    demand: Demand,
    counters: Counters,
    patience: Patience,
    census: Census,
    turns: Turns,
    process: Process,
}

impl Shared {
    /// One whose carriers have not been started: with so many seats that are always there, and so
    /// many that are not.
    pub(crate) fn new(
        settings: Settings,
        stacks: Stacks,
        seats: usize,
        surplus: usize,
        most_carriers: usize,
        ready: Box<dyn Ready>,
        arbiter: Option<Arbiter>,
    ) -> Self {
        let lookout = Lookout::new(settings.activations);
        let tracer = settings.trace.map(|events| Tracer::new(most_carriers, events));
        Self {
            settings,
            seats: (0..seats + surplus).map(Seat::new).collect(),
            carriers: (0..most_carriers)
                .map(|index| Carrier::new((index < seats).then_some(index)))
                .collect(),
            ready,
            unusual: Unusual::new(),
            sleeping: Sleeping::new(seats),
            reserve: Reserve::new(),
            surplus: Surplus::new(seats, surplus),
            timers: Timers::new(),
            stacks,
            fibers: Mutex::new(Vec::new()),
            kernel_threads: Mutex::new(KernelThreads::default()),
            shortages: (0..seats + surplus).map(|_| Shortage::new()).collect(),
            lost: Lost::default(),
            lookout,
            tracer,
            demand: Demand::new(seats, arbiter),
            counters: Counters::default(),
            patience: Patience::new(),
            census: Census::new(),
            turns: Turns::default(),
            process: Process::here(),
        }
    }

    /// Starts the kernel thread of the next carrier, which begins as it stands; `None` if there are
    /// as many as there may be.
    pub(crate) fn start_carrier(self: &Arc<Self>) -> io::Result<Option<usize>> {
        let mut threads = self.kernel_threads.lock();
        let index = threads.carriers;
        if index == self.carriers.len() {
            return Ok(None);
        }
        let shared = self.clone();
        let builder = Builder::new().name(format!("carrier-{index}"));
        let handle = builder.spawn(move || {
            shared.settings.affinity.adopt();
            trunk::carry(shared, index);
        })?;
        threads.handles.push(handle);
        threads.carriers += 1;
        Ok(Some(index))
    }

    /// Starts the lookout, if there is to be one.
    pub(crate) fn start_lookout(self: &Arc<Self>) -> io::Result<()> {
        if self.settings.activations {
            let shared = self.clone();
            let builder = Builder::new().name("lookout".into());
            let handle = builder.spawn(move || {
                shared.settings.affinity.adopt();
                lookout::look_out(&shared);
            })?;
            self.kernel_threads.lock().handles.push(handle);
        }
        Ok(())
    }

    pub(crate) fn activations(&self) -> bool {
        self.settings.activations
    }

    pub(crate) fn lookout(&self) -> &Lookout {
        &self.lookout
    }

    pub(crate) fn demand(&self) -> &Demand {
        &self.demand
    }

    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    pub(crate) fn shortage(&self, seat: usize) -> &Shortage {
        &self.shortages[seat]
    }

    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// The kernel has told something of the carrier on that seat, so many nanoseconds after it
    /// happened, if that is known.
    pub(crate) fn told(&self, upcall: Upcall, seat: usize, latency: Option<u64>) {
        // First the trace, whose clock says when.
        if let Some(tracer) = &self.tracer {
            tracer.told(upcall, seat, latency);
        }
        self.counters.tell(upcall, latency);
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether there are as many carriers as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.started() == self.carriers.len()
    }

    /// Whether there is a carrier for a seat that would be taken from another, as far as is known.
    pub(crate) fn can_replace(&self) -> bool {
        self.reserve.has_any() || !self.is_full()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let tier = match self.lookout.watch().map(Watch::refused) {
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
        let (ended, created) = self.census.ended_and_created(self.counts());
        Metrics {
            spawned: created,
            ended,
            upcalls: Upcall::ALL.map(|upcall| self.counters.told(upcall)),
            latencies: Upcall::ALL.map(|upcall| self.counters.latencies(upcall)),
            handovers: self.counters.handovers.get(),
            false_handovers: self.counters.false_handovers.get(),
            returns_at_once: self.counters.surplus.get(),
            blocks_without_spare: self.counters.unreplaced.get(),
            handover_latencies: self.lost.handovers.read(),
            processor_time_lost: Duration::from_nanos(self.lost.nanos()),
            processors: self.demand.allowed(),
            kernel_threads: self.started(),
            ready: self.ready.len(),
            waiting_kernel_threads: self.reserve.waiting(),
            held_up: self.held_up(),
        }
    }

    pub(crate) fn seat(&self, index: usize) -> &Seat {
        &self.seats[index]
    }

    pub(crate) fn carrier(&self, index: usize) -> &Carrier {
        &self.carriers[index]
    }

    pub(crate) fn ready_queue(&self) -> &dyn Ready {
        &*self.ready
    }

    pub(crate) fn sleeping(&self) -> &Sleeping {
        &self.sleeping
    }

    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    pub(crate) fn idle_spin(&self) -> u64 {
        self.settings.idle_spin_ns
    }

    pub(crate) fn processor_of(&self, seat: usize) -> Option<usize> {
        let processors = self.settings.processors.as_ref()?;
        Some(processors[seat % processors.len()])
    }

    /// How many seats are always there: one a processor.
    pub(crate) fn seats(&self) -> usize {
        self.demand.seats()
    }

    pub(crate) fn surplus(&self) -> &Surplus {
        &self.surplus
    }

    /// The seats that are in use, as far as is known.
    pub(crate) fn seats_in_use(&self) -> Chain<Range<usize>, surplus::Seats> {
        (0..self.demand.allowed()).chain(self.surplus.seats())
    }

    /// A thread begins that has just been made.
    pub(crate) fn admit(self: &Arc<Self>, thread: Thread) {
        local::with(|local| match local.filter(|local| Arc::ptr_eq(&local.shared, self)) {
            Some(local) => {
                local.thread_created();
                local.make_ready(thread, false);
            }
            None => {
                self.census.creation_outside();
                self.put_outside(thread);
            }
        });
    }

    /// A thread is ready that any carrier may run, and is none of the usual priority.
    pub(crate) fn put_unusual(&self, thread: Thread) {
        self.unusual.put(thread);
        self.tell(Told::Anyone(1));
    }

    /// A thread is ready that any carrier may run; the caller is none.
    fn put_outside(&self, thread: Thread) {
        if thread.inner().priority() == Priority::Normal {
            let told = self.ready.put(None, thread, false);
            self.tell(told);
        } else {
            self.put_unusual(thread);
        }
    }

    pub(crate) fn unusual(&self) -> &Unusual {
        &self.unusual
    }

    /// A thread that began on that carrier is ready again.
    pub(crate) fn mail(&self, index: usize, thread: Thread) {
        let carrier = self.carrier(index);
        let priority = thread.inner().priority();
        carrier.mail(thread);
        if self.reserve.call(index, carrier, priority) {
            self.tell(Told::Anyone(1));
        } else if !self.surplus.has(carrier.seat()) {
            // On the others nobody sleeps.
            self.sleeping.tell_seat(carrier.seat());
        }
    }

    /// Wakes those who should be told.
    pub(crate) fn tell(&self, told: Told) {
        self.tell_of(told, false);
    }

    /// Wakes those who should be told; not those who doze, if it is of what lies at the caller's
    /// `own` seat.
    pub(crate) fn tell_of(&self, told: Told, own: bool) {
        let woken = match told {
            Told::Anyone(count) => self.sleeping.tell(count, own),
            Told::Lone => self.sleeping.tell(1, own),
            Told::Place(seat) => return self.sleeping.tell_seat(seat),
        };
        if woken == 0 {
            self.demand.more();
            self.guard();
        }
    }

    pub(crate) fn add_timer(&self, due: Deadline, thread: Thread) -> Key {
        let (key, late) = self.timers.add(due, thread);
        if late.lookout {
            self.lookout.wake();
        }
        // Who sleeps does so until a later time, and who runs may do so for long, or block.
        if late.watch && self.sleeping.tell(1, false) == 0 {
            self.guard();
        }
        key
    }

    /// Whether threads wait for times, and no carrier sleeps who would watch the clock.
    pub(crate) fn is_time_unwatched(&self) -> bool {
        self.timers.any() && !self.sleeping.any()
    }

    /// Until when the lookout sleeps at most, if it is to wake up for a time.
    pub(crate) fn look_out_until(&self, for_times: bool) -> Deadline {
        self.timers.look_out(for_times)
    }

    pub(crate) fn remove_timer(&self, key: Key) {
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

    /// Until when whoever has that seat may sleep.
    pub(crate) fn watch(&self, seat: usize) -> Deadline {
        self.timers.watch(seat)
    }

    /// Whoever has that seat does not watch the clock any more; whether somebody else should.
    pub(crate) fn unwatch(&self, seat: usize) -> bool {
        self.timers.unwatch(seat)
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

    fn counts(&self) -> impl Iterator<Item = &Count> + Clone {
        self.carriers.iter().map(Carrier::count)
    }

    /// Whether all has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.census.is_over()
    }

    /// Ends the runtime if it is closing and has no thread any more; whether it has ended.
    pub(crate) fn end_if_done(&self) -> bool {
        if !self.census.is_done(self.counts()) {
            return self.is_over();
        }
        self.census.end();
        self.sleeping.tell(usize::MAX, false);
        self.lookout.wake();
        self.reserve.end(|index| self.carrier(index).standing().end());
        true
    }

    /// Whether any thread waits for a time.
    pub(crate) fn awaits_time(&self) -> bool {
        self.timers.any()
    }

    /// The turns that were last seen.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// How many carriers have been started.
    pub(crate) fn started(&self) -> usize {
        self.kernel_threads.lock().carriers
    }

    /// How many threads have ended, and, read after that, how many have been created.
    pub(crate) fn ended_and_created(&self) -> (u64, u64) {
        self.census.ended_and_created(self.counts())
    }

    /// No more threads will come from outside: when the last has ended, the carriers end.
    pub(crate) fn close(&self) {
        self.census.close();
        // If no carrier could be started, nobody else would see that it is over.
        if !self.end_if_done() {
            self.sleeping.tell(usize::MAX, false);
        }
    }

    /// Where it was made.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// Waits for the carriers' end: as a thread while threads run, and for the rest, which is
    /// short, as a kernel thread.
    pub(crate) fn join(&self) {
        self.census.wait_for_end();
        loop {
            // One that ends may have started another.
            let Some(thread) = self.kernel_threads.lock().handles.pop() else { break };
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "carriers catch what their threads panic with");
        }
        self.quit_fibers();
    }

    fn quit_fibers(&self) {
        let fibers = core::mem::take(&mut *self.fibers.lock());
        fibers.into_iter().for_each(Fiber::quit);
    }
}

impl Drop for Shared {
    /// Nobody has joined the carriers if the runtime was dropped inside.
    fn drop(&mut self) {
        self.quit_fibers();
    }
}

/// A user-level thread is ready again.
pub(crate) fn ready(thread: Thread) {
    local::with(|local| {
        let Home::Runtime(home) = thread.inner().home() else {
            unreachable!("the kernel readies its threads")
        };
        if let Some(local) = local.filter(|local| home.is_of(&local.shared)) {
            return local.make_ready(thread, false);
        }
        // SAFETY: it has not ended: it is not even ready yet.
        let shared = unsafe { home.share() };
        match thread.inner().bound_to() {
            Some(index) => shared.mail(index, thread),
            None => shared.put_outside(thread),
        }
    });
}
