//! What the threads of a pool share, and the loop that each of them runs.
//!
//! [`Registry`] adds the strategy to what is [`Common`] to all pools, and is seen through [`Core`]
//! by whoever does not know its type: the free functions, scopes, workers that wait.
//!
//! # A worker's life
//!
//! ```text
//! start ─► take the next task, giving back the last block ─► run it ─┐        orders, looked at between two tasks:
//!            ^   │ none                                              │          mail    run what is meant for this worker
//!            │   v                                                   │          leave   end: the pool has become smaller, or is closed
//!            │  search: spin a while, then sleep ────────────────────┤          serve   (a spare) take part
//!            └───────────────────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! 1. A seat has one thread at a time, which has its place. A thread is started on a free seat
//!    under the roster's lock, and frees it under that lock when it is through, after its exit
//!    handler: nobody has to wait for it.
//! 2. A worker that is told to leave a pool that is open leaves between two tasks; when the pool is
//!    closed, when all have nothing to do (see `closing.rs`). So all that tasks create is run; what
//!    others create while the last one goes, and later, see `ending.rs`.
//! 3. Whoever creates a task holds the registry, so it is alive.

mod threads;

use std::sync::Arc;

use machine::atomic::Ordering;
use machine::bomb::AbortOnUnwind;
use machine::{presence, topology};

use crate::closing;
use crate::common::{Common, LEAVE, SERVE, UNSEEN};
use crate::control_block::Task;
use crate::job::{self, Fate};
use crate::lookout::Lookout;
use crate::metrics::{Metrics, WorkerMetrics};
use crate::sleeping::{Looks, MOST_WORKERS};
use crate::strategy::{Place, Strategy, Told};
use crate::worker::{Work, Worker};

/// Where among the ready tasks of its place a new one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Wherever the strategy puts it.
    Usual,
    /// Behind what is ready.
    Last,
}

/// How often who takes out the last tasks looks in vain for one that is said to be there:
/// strategies leave a place's only task to its owner for some looks.
const LAST_LOOKS: u32 = 16;

const _: () = assert!(2 * MOST_WORKERS <= closing::COUNT, "see `closing.rs`");

/// A registry to whoever does not know its strategy.
pub(crate) trait Core: Send + Sync {
    fn common(&self) -> &Common;

    /// Creates a task, and tells whoever should know.
    fn create(&self, place: Option<&Place>, order: Order, fill: &mut dyn FnMut(&Task));

    /// Takes what is ready: a task, else a fork.
    fn next(&self, worker: &Worker) -> Option<Work>;

    /// Takes what is ready and need not be taken from another worker: a task, else a fork.
    fn next_here(&self, worker: &Worker) -> Option<Work>;

    /// Takes what another worker has ready: a fork, else a task.
    fn next_of(&self, worker: &Worker, victim: usize) -> Option<Work>;

    fn release(&self, place: &Place, finished: Task);

    /// The worker has found nothing: searches and sleeps until there is a task, or `stop` says that
    /// the worker need not go on, or it has orders. `watch` is asked before it sleeps: whether it
    /// may, and whoever makes `stop` true will tell it.
    fn search(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work>;

    /// Has a spare thread take part until [`take_back`](Self::take_back), as soon as there is one
    /// to be had. Says whether there was at once.
    fn lend(&self) -> bool;

    /// A thread for which a spare was to be lent works again.
    fn take_back(&self);

    fn metrics(&self) -> Metrics;

    /// Another owner of the same; none while it is being dropped.
    fn arc(&self) -> Option<Arc<dyn Core>>;
}

/// A pool's threads, tasks and sleepers.
pub(crate) struct Registry<S> {
    common: Common,
    strategy: S,
    /// Itself, for the threads that it starts.
    me: std::sync::Weak<Self>,
}

impl<S: Strategy> Registry<S> {
    pub(crate) fn new(common: Common, strategy: S) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { common, strategy, me: me.clone() })
    }

    pub(crate) fn common(&self) -> &Common {
        &self.common
    }

    pub(crate) fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Another owner of the same; none while it is being dropped.
    pub(crate) fn itself(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Whether a task or a fork is ready.
    pub(crate) fn has_ready(&self) -> bool {
        self.strategy.len() > 0 || self.common.has_forks()
    }

    fn tell(&self, told: Told) -> usize {
        match told {
            Told::Anyone(ready) => self.common.sleeping.tell(ready),
            Told::Lone => self.common.sleeping.tell_lone(),
            Told::Place(place) => usize::from(self.common.sleeping.tell_only(place)),
        }
    }

    /// Creates a task that its creator may not run soon, though it is the creator's only one.
    fn create_for_others(&self, place: Option<&Place>, fill: &mut dyn FnMut(&Task)) -> Told {
        match self.strategy.create(place, fill) {
            Told::Lone => Told::Anyone(1),
            told => told,
        }
    }

    /// The strategy's next task; tells whoever should know of those that were moved on the way.
    #[inline]
    fn take_next(&self, place: &Place, finished: Option<Task>) -> Option<Task> {
        let task = self.strategy.next(place, finished, &mut None);
        if let Some(told) = self.strategy.moved(place) {
            self.tell(told);
        }
        // While tasks were on their way from one place to another none seemed ready, and the
        // lookout may have gone off duty.
        if let Some(lookout) = &self.common.lookout
            && task.is_some()
            && self.strategy.len() > 0
        {
            lookout.created();
        }
        task
    }

    /// The thread of `seat`, from its first instruction to its last.
    ///
    /// # Safety
    ///
    /// The seat is this thread's (Invariant 1).
    pub(crate) unsafe fn work(self: &Arc<Self>, seat: usize) {
        let bomb =
            AbortOnUnwind::armed("a worker of a thread pool unwound: its tasks would be lost");
        let common = &self.common;
        let _pinned = common.behaviour.pinned.then(|| {
            let processors = topology::processors();
            (!processors.is_empty())
                .then(|| topology::pin(processors[seat % processors.len()]).ok())
        });
        let core: &dyn Core = &**self;
        // SAFETY: the seat is this thread's, which has an `Arc` of the registry.
        let worker = unsafe { common.seat(seat).begin_worker(core) };
        let registration = common.are_seen().then(presence::register).and_then(Result::ok);
        let number = registration.as_ref().map_or(UNSEEN, |registration| registration.index() + 1);
        let presence = &common.seat(seat).presence;
        loop {
            // Relaxed: hints, here and below.
            presence.store(number, Ordering::Relaxed);
            if let Some(lookout) = &common.lookout {
                lookout.joined();
            }
            common.members.fetch_add(1, Ordering::Relaxed);
            worker.enter(|| {
                if let Some(handler) = &common.behaviour.start_handler {
                    common.contain(|| handler(seat));
                }
                while self.serve(worker) == Served::Surplus && self.rest(worker) {}
                if let Some(handler) = &common.behaviour.exit_handler {
                    common.contain(|| handler(seat));
                    // Nobody else may be left who would run what it created (Invariant 2).
                    while common.is_closed() && worker.yield_now() {}
                }
            });
            // Relaxed: hints.
            common.members.fetch_sub(1, Ordering::Relaxed);
            presence.store(0, Ordering::Relaxed);
            if !self.begins_again(worker) {
                break;
            }
        }
        // From here on the worker, and with it the place, is not used.
        self.left();
        bomb.defuse();
    }

    /// A thread does not use its place any more. The last one ends the pool.
    fn left(&self) {
        let common = &self.common;
        if common.ending.leave() {
            common.ending.end(|| self.take_out());
            // Each makes a task, which is taken out at once.
            common.abort_futures();
            if let Some(lookout) = &common.lookout {
                lookout.end();
            }
        }
    }

    /// The thread that has built the pool ends, and leaves what it has to the others.
    pub(crate) fn leave_seat(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that leaves a pool unwound");
        if let Some(told) = self.strategy.leave(worker.place()) {
            self.tell(told);
        }
        // What it spawned may lie where no thread looks that was told of nothing.
        self.common.sleeping.tell_all();
        self.common.abandon(worker.index());
        // Relaxed: a hint.
        self.common.members.fetch_sub(1, Ordering::Relaxed);
        self.left();
        bomb.defuse();
    }

    /// The thread that has built the pool, and shuts it down, works until all is over.
    pub(crate) fn serve_to_the_end(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that shuts a pool down unwound");
        // Before it is closed, so that the others do not declare all over.
        self.common.closing.enlist();
        self.close();
        while self.serve(worker) != Served::ToTheEnd {}
        if self.common.closing.release() {
            self.common.sleeping.tell_all();
        }
        bomb.defuse();
    }

    /// Takes out what is ready after the last thread has left, and drops it.
    #[cold]
    fn take_out(&self) {
        let core: &dyn Core = self;
        // SAFETY: all threads have left their seats, and `Ending` lets one in at a time. `self` is
        // borrowed for longer.
        let worker = unsafe { self.common.seat(0).begin_worker(core) };
        let place = worker.place();
        let mut in_vain = 0;
        while in_vain < LAST_LOOKS {
            match self.strategy.next(place, None, &mut None) {
                Some(task) => {
                    // SAFETY: out of the strategy, so filled and not run yet.
                    let block = unsafe { job::run(task, worker, Fate::Dropped) };
                    self.strategy.release(Some(place), block);
                    in_vain = 0;
                }
                None if self.strategy.is_ready(place) => in_vain += 1,
                None => break,
            }
        }
    }

    /// Runs tasks until the worker is to end, or is a spare that is not needed.
    fn serve(&self, worker: &Worker) -> Served {
        let common = &self.common;
        let place = worker.place();
        let mut finished = None;
        let served = loop {
            let orders = common.orders(worker);
            if orders != 0 {
                common.run_mail(worker);
                // In this order: who is told to leave because the pool is closed sees that it is,
                // and stays until all is over.
                if orders & LEAVE != 0 && !common.is_closed() && common.may_leave(worker) {
                    break Served::Dismissed;
                }
            }
            if common.is_surplus(worker) && self.retires(worker) {
                break Served::Surplus;
            }
            let task = self.take_next(place, finished.take()).map(Work::Task);
            let work = match task.or_else(|| common.steal_fork(worker).map(Work::Fork)) {
                Some(work) => work,
                None if common.is_closed() => {
                    if self.is_over(worker) {
                        break Served::ToTheEnd;
                    }
                    continue;
                }
                None => {
                    let stop = || common.orders(worker) & !SERVE != 0 || common.is_surplus(worker);
                    match self.search(worker, &stop, &|| !stop()) {
                        Some(work) => work,
                        None => continue,
                    }
                }
            };
            match work {
                Work::Task(task) => {
                    worker.counters().tasks.add(1);
                    // SAFETY: out of the strategy, so filled and not run yet.
                    finished = Some(unsafe { job::run(task, worker, common.fate()) });
                }
                Work::Fork(stolen) => worker.run_stolen(stolen),
            }
            if let Some(lookout) = &common.lookout
                && worker.may_look_out()
                && self.has_ready()
            {
                self.look_out(lookout, false);
            }
        };
        if let Some(block) = finished {
            self.strategy.release(Some(place), block);
        }
        if let Some(told) = self.strategy.leave(place) {
            self.tell(told);
        }
        if served == Served::Dismissed {
            // Now that the others can see all that it had.
            if self.release(place) {
                self.lend_spare();
            }
        }
        served
    }

    /// A worker of a closed pool has found nothing: it waits until there is something, or all is
    /// over. Says which.
    fn is_over(&self, worker: &Worker) -> bool {
        let (common, place) = (&self.common, worker.place());
        let _away = common.away(worker);
        common.closing.rest();
        common.sleeping.begin();
        let more =
            || self.strategy.is_ready(place) || common.has_mail(worker) || common.has_forks();
        let changed = || more() || common.closing.all_rest().is_some();
        let over = loop {
            // Both, in this order: what was made ready before all rested is seen.
            let rested = common.closing.all_rest();
            if more() {
                common.closing.go_on();
                break false;
            }
            match rested {
                Some(rested) if common.closing.declare(rested) => {
                    // Spares that are not needed as well.
                    common.sleeping.tell_all();
                    break true;
                }
                // Somebody has gone on since: there was something.
                Some(_) => {}
                None if common.spin_until(changed) => {}
                None => {
                    common.sleeping.sleep(place.index(), None, |_| changed());
                }
            }
        };
        common.sleeping.found(|| self.has_ready());
        over
    }

    /// The calling worker does not take part any more. If the pool is closed it may have been the
    /// last that was busy, and those who rest may all be such as look for nothing: they wait in
    /// `shutdown`. Then it says so itself that all is over; or, with true, that something is ready.
    fn release(&self, place: &Place) -> bool {
        let closing = &self.common.closing;
        if !closing.release() {
            return false;
        }
        let rested = closing.all_rest();
        let ready = self.strategy.is_ready(place);
        if let Some(rested) = rested
            && !ready
        {
            closing.declare(rested);
        }
        self.common.sleeping.tell_all();
        ready && rested.is_some()
    }

    /// Whether a spare that serves is one too many; it does not serve any more then, and may be
    /// told at once to do so again.
    fn retires(&self, worker: &Worker) -> bool {
        let mut roster = self.common.roster.lock();
        // Whoever lends from now on sees that it does not serve.
        self.common.settle(&mut roster, worker.index());
        let retires = roster.serving > roster.leases;
        if retires {
            roster.serving -= 1;
            roster.idle_spares.push_back(worker.index());
            self.common.note_surplus(&roster);
        }
        retires
    }

    /// A spare, which [retires](Self::retires), sleeps until it is to serve again. False, if it is
    /// to end: that is when all is over, because a task of a closed pool may block as well.
    fn rest(&self, worker: &Worker) -> bool {
        let common = &self.common;
        // Relaxed: a hint.
        common.members.fetch_sub(1, Ordering::Relaxed);
        let _away = common.away(worker);
        if self.release(worker.place()) {
            // This one, if there is no other.
            self.lend_spare();
        }
        let serves = || common.orders(worker) & SERVE != 0;
        let stays = || !serves() && !common.closing.is_over();
        while stays() {
            common.sleeping.sleep_apart(worker.index(), stays);
        }
        let serves = serves();
        // Relaxed: given under the roster's lock, once for each time it lay idle.
        common.seat(worker.index()).orders.fetch_and(!SERVE, Ordering::Relaxed);
        // Relaxed: a hint.
        common.members.fetch_add(1, Ordering::Relaxed);
        serves
    }
}

/// Why a worker has stopped to run tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// All is over.
    ToTheEnd,
    /// The pool has become smaller.
    Dismissed,
    /// It is a spare that is not needed now.
    Surplus,
}

impl<S: Strategy> Core for Registry<S> {
    fn common(&self) -> &Common {
        &self.common
    }

    fn create(&self, place: Option<&Place>, order: Order, fill: &mut dyn FnMut(&Task)) {
        let told = match order {
            // A guest need not run anything for a long time.
            Order::Usual if place.is_some_and(|place| self.common.is_guest(place.index())) => {
                self.create_for_others(place, fill)
            }
            Order::Usual => self.strategy.create(place, fill),
            Order::Last => self.strategy.create_last(place, fill),
        };
        let woken = self.tell(told);
        if woken > 0
            && let Some(place) = place
        {
            self.common.seat(place.index()).counters.wakeups.add(woken);
        }
        if let Some(lookout) = &self.common.lookout {
            lookout.created();
        }
        if place.is_none() {
            self.common.ending.created(|| self.take_out());
        }
    }

    fn next(&self, worker: &Worker) -> Option<Work> {
        let task = self.take_next(worker.place(), None).map(Work::Task);
        task.or_else(|| self.common.steal_fork(worker).map(Work::Fork))
    }

    fn next_here(&self, worker: &Worker) -> Option<Work> {
        let place = worker.place();
        let task =
            self.strategy.is_ready_here(place).then(|| self.take_next(place, None)).flatten();
        let own = || worker.steal_fork_of(worker.index()).map(Work::Fork);
        task.map(Work::Task).or_else(own)
    }

    fn next_of(&self, worker: &Worker, victim: usize) -> Option<Work> {
        let fork = worker.steal_fork_of(victim).map(Work::Fork);
        fork.or_else(|| self.strategy.next_of(worker.place(), victim).map(Work::Task))
    }

    fn release(&self, place: &Place, finished: Task) {
        self.strategy.release(Some(place), finished);
    }

    fn search(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work> {
        let common = &self.common;
        let place = worker.place();
        let _away = common.away(worker);
        common.sleeping.begin();
        let mut kept_awake = false;
        let work = loop {
            self.strategy.idle(place);
            let found = common.spin(|| {
                if stop() || common.has_mail(worker) {
                    return Some(None);
                }
                if self.strategy.is_ready(place) {
                    if let Some(task) = self.take_next(place, None) {
                        return Some(Some(Work::Task(task)));
                    }
                    self.strategy.idle(place);
                }
                common.steal_fork(worker).map(|stolen| Some(Work::Fork(stolen)))
            });
            if let Some(work) = found {
                break work;
            }
            // What is handed to a place that sleeps waits for a wake-up: it is better left to
            // whoever comes first.
            if let Some(told) = self.strategy.leave(place) {
                self.tell(told);
            }
            let doze = common.others_work().then(|| worker.doze()).flatten();
            let slept = common.sleeping.sleep(place.index(), doze, |looks| {
                let ready = match looks {
                    Looks::AtAll => self.strategy.is_ready(place),
                    Looks::PastLone => self.strategy.has_backlog(place),
                };
                ready || common.has_forks() || !watch() || common.has_mail(worker)
            });
            worker.counters().parks.add(usize::from(slept));
            if kept_awake && !slept {
                // What keeps it awake may be forks that their owners pop at once. An owner may need
                // this processor, and so may a worker that was woken and has not run yet.
                machine::thread::yield_now();
            }
            kept_awake = !slept;
        };
        if work.is_some() {
            worker.wake();
        }
        // It does not wait for a task any more.
        if !matches!(work, Some(Work::Task(_)))
            && let Some(told) = self.strategy.leave(place)
        {
            self.tell(told);
        }
        worker.counters().wakeups.add(common.sleeping.found(|| self.has_ready()));
        work
    }

    fn lend(&self) -> bool {
        self.lend_spare()
    }

    fn take_back(&self) {
        let mut roster = self.common.roster.lock();
        roster.leases -= 1;
        self.common.note_surplus(&roster);
    }

    fn arc(&self) -> Option<Arc<dyn Core>> {
        Some(self.me.upgrade()?)
    }

    fn metrics(&self) -> Metrics {
        let common = &self.common;
        let (workers, lent) = {
            let roster = common.roster.lock();
            (roster.regular + roster.spares, roster.serving.min(roster.leases))
        };
        let worker = |seat| {
            let (steals, failed_steals) = self.strategy.steals(seat);
            WorkerMetrics { steals, failed_steals, ..common.seat(seat).counters.read() }
        };
        let (compensations, brief_compensations) =
            common.lookout.as_ref().map_or((0, 0), Lookout::counts);
        Metrics {
            workers: (0..workers).map(worker).collect(),
            ready: self.strategy.len(),
            idle: common.sleeping.idle(),
            asleep: common.sleeping.asleep(),
            blocks: self.strategy.blocks(),
            // Relaxed: statistics.
            panics: common.panics.load(Ordering::Relaxed) as u64,
            lent,
            compensations,
            brief_compensations,
        }
    }
}
