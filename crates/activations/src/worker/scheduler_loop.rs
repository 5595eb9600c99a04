//! The scheduler_loop of a worker: what runs on the kernel thread's own stack, chooses what goes on, and
//! resumes the stack that it is on.
//!
//! The order in which it looks for a thread is in `order.rs`. If there is none, it spins, then
//! sleeps on its slot.
//!
//! # Invariants
//!
//! 1. A [`Worker`] lies on its kernel thread's stack, and `local.rs` points to it while it does.
//! 2. `current` points to the running thread's handle, and `exit` to what its fiber is left
//!    through, while a thread runs; both are null in the scheduler_loop. From a thread's last exchange
//!    (`completion.rs`) to `thread_ended`, which follows at once, nobody looks at `current`.

use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::sync::Arc;

use machine::clock::{self, Deadline};
use machine::presence;
use machine::topology::Pinned;
use machine::wait::retry_for;
use stanchion_threadpool::Told;

use crate::processors::worker_record::WorkerRecord;
use crate::thread::completion::CompletionNotice;
use crate::thread::fiber::{Suspender, Fiber, Resume, Suspended};
use crate::upcalls::handoff::Looks;
use crate::queues::prioritized::LocalQueue;
use crate::thread::priority::Priority;
use crate::processors::slot::SlotContents;
use crate::runtime::state::RuntimeState;
use crate::thread::stacks::{self as stack, StackError};
use crate::processors::ownership::Woken;
use crate::thread::park_state::Pause;
use crate::thread::header::{Thread, ThreadId};
use crate::worker::steal_throttle::StealThrottle;

use super::bound_threads::{BoundThreads, CurrentTurn};
use super::order::TurnCounts;

/// At one in so many looks the worker asks what costs too much to be asked at each.
pub(super) const SHARE: u32 = 61;

/// How far apart an idle worker's looks are, in ns.
const PAUSES: core::ops::Range<u64> = 50..1_000;

/// Free stacks that a worker keeps for itself.
const KEPT: usize = 4;

/// What only the worker itself touches.
pub(crate) struct Worker {
    pub(crate) runtime: Arc<RuntimeState>,
    pub(super) index: usize,
    /// It is in the scheduler, with its slot.
    pub(super) has_slot: Cell<bool>,
    pub(super) current: Cell<*const Thread>,
    pub(super) exit: Cell<*const Suspender>,
    pub(super) local_queue: RefCell<LocalQueue>,
    pub(super) free: RefCell<Vec<Fiber>>,
    pub(super) looks: Cell<u32>,
    pub(super) turns: TurnCounts,
    /// The slot at which it looks next.
    pub(super) looks_at: Cell<usize>,
    pub(super) steal_throttle: StealThrottle,
    pub(super) bound_threads: BoundThreads,
    pub(super) turn: CurrentTurn,
    /// It was woken and has not gone on yet.
    pub(super) was_told: Cell<bool>,
    /// It may have been the watch (`timers.rs`) when it last slept.
    pub(super) watched: Cell<bool>,
    pub(super) pinned: RefCell<Option<(usize, Pinned)>>,
    /// Until when a thread that panics keeps others here waiting (`panicking.rs`).
    pub(super) delay: Cell<Option<(ThreadId, Deadline)>>,
    /// How many threads have left their stacks here while they panicked, and have not gone on.
    pub(super) panicking: Cell<usize>,
}

/// The kernel thread's body.
pub(crate) fn carry(runtime: Arc<RuntimeState>, index: usize) {
    let local = Worker {
        runtime,
        index,
        has_slot: Cell::new(true),
        current: Cell::new(core::ptr::null()),
        exit: Cell::new(core::ptr::null()),
        local_queue: RefCell::default(),
        free: RefCell::default(),
        looks: Cell::new(0),
        turns: TurnCounts::new(),
        looks_at: Cell::new(0),
        steal_throttle: StealThrottle::new(),
        bound_threads: BoundThreads::default(),
        turn: CurrentTurn::new(),
        was_told: Cell::new(false),
        watched: Cell::new(false),
        pinned: RefCell::default(),
        delay: Cell::new(None),
        panicking: Cell::new(0),
    };
    // What overflows on this kernel thread is told by name. Without, it is an ordinary fault.
    let _watched = stack::watch().ok();
    let registered = local.runtime.activations().then(presence::register).and_then(Result::ok);
    if let Some(registered) = &registered {
        local.worker().set_presence_index(Some(registered.index()));
    }
    crate::worker::context::enter(&local, || local.scheduler_loop());
    local.worker().set_presence_index(None);
    drop(registered);
    for fiber in local.free.take() {
        fiber.quit();
    }
}

impl Worker {
    pub(crate) fn worker(&self) -> &WorkerRecord {
        self.runtime.worker(self.index)
    }

    /// The thread that runs; null in the scheduler_loop.
    pub(crate) fn current(&self) -> *const Thread {
        self.current.get()
    }

    /// Calls `body` with the thread that runs, if one does.
    pub(crate) fn with_current<R>(&self, body: impl FnOnce(&Thread) -> R) -> Option<R> {
        // SAFETY: Invariant 2.
        unsafe { self.current.get().as_ref() }.map(body)
    }

    /// What the current thread leaves its fiber through, which it is about to do; null in the
    /// scheduler_loop.
    pub(crate) fn exit_to_leave(&self) -> *const Suspender {
        // The standard library counts panics by kernel thread.
        self.with_current(|thread| thread.header().note_leaving(self.index, machine::thread::panicking));
        self.exit.get()
    }

    /// From one thread to the next, until the runtime ends.
    fn scheduler_loop(&self) {
        if self.worker().ownership().sleep() == Woken::End {
            return;
        }
        self.settle();
        loop {
            if self.runtime.is_over() {
                return;
            }
            let Some(thread) = self.find() else {
                if !self.rest() {
                    return;
                }
                continue;
            };
            self.unwatch();
            // One that may run elsewhere does, if it could keep this worker's bound_threads waiting.
            let stays = if self.may_run(&thread) { Some(thread) } else { self.send_elsewhere(thread) };
            if let Some(thread) = stays {
                self.go_on(thread);
            }
            if !self.has_slot.get() && !self.await_slot() {
                return;
            }
        }
    }

    /// Runs `thread`, and what else its stack finds to run, until the stack is left.
    fn go_on(&self, thread: Thread) {
        // SAFETY: the thread is out of its queue, so that nobody else runs it (Invariant 1 of
        // `thread.rs`).
        let laid_aside = unsafe { thread.header().take_up() };
        match laid_aside {
            Some(mut fiber) => {
                // Its own share goes around with it.
                let thread = ManuallyDrop::new(thread);
                self.current.set(&raw const *thread);
                self.trace_run(&thread);
                self.turn_goes_on(&thread);
                self.worker().goes_to(fiber.base());
                self.leave();
                let left = fiber.resume(Resume::Continue);
                self.put_away(left, fiber);
            }
            None => match self.take_fiber() {
                Ok(mut fiber) => {
                    self.worker().goes_to(fiber.base());
                    let left = fiber.resume(Resume::Run(thread));
                    self.put_away(left, fiber);
                }
                Err(error) => {
                    self.leave();
                    // SAFETY: it is out of its queue, and does not run.
                    let notice = unsafe { ManuallyDrop::new(thread).refuse(error) };
                    self.thread_ended(notice);
                    self.enter();
                }
            },
        }
    }

    /// A fiber has been left; by whom, null if nobody runs on it.
    pub(super) fn left(&self) -> *const Thread {
        self.exit.set(core::ptr::null());
        self.current.replace(core::ptr::null())
    }

    /// The fiber has been left, with a thread on it if it is not free.
    fn put_away(&self, left: Suspended, fiber: Fiber) {
        let ran = self.left();
        let ran = || {
            // SAFETY: Invariant 2: it has just left.
            let thread = unsafe { &*ran };
            // SAFETY: its own share is whose it was to run it, and where this handle lies nobody
            // drops it.
            unsafe { Thread::from_pointer(thread.pointer()) }
        };
        match left {
            Suspended::Free => self.keep_fiber(fiber),
            Suspended::Yielded => {
                self.has_yielded();
                self.lay_aside(ran(), fiber, None);
            }
            Suspended::Paused(pause) => self.lay_aside(ran(), fiber, Some(pause)),
            Suspended::Settled => self.lay_aside_settled(ran(), fiber),
        }
    }

    /// `thread` has left its fiber, to pause or to yield.
    fn lay_aside(&self, thread: Thread, fiber: Fiber, pause: Option<Pause>) {
        self.trace_leave();
        self.turn_ends(Some(&thread));
        self.receive(&thread);
        self.enter();
        // SAFETY: this worker has just run it.
        unsafe { thread.header().lay_aside(fiber) };
        let awake = match pause {
            Some(pause) => thread.settle(pause),
            None => Some(thread),
        };
        if let Some(thread) = awake {
            self.make_ready(thread, true);
        }
    }

    /// Likewise, and the thread that makes it ready has its own share.
    fn lay_aside_settled(&self, thread: Thread, fiber: Fiber) {
        let thread = ManuallyDrop::new(thread);
        self.trace_leave();
        self.turn_ends(Some(&thread));
        self.receive(&thread);
        self.enter();
        // SAFETY: this worker has just run it. If it is ready by now, then only for this worker,
        // which takes it up later.
        unsafe { thread.header().lay_aside(fiber) };
    }

    /// A thread that runs on this worker begins, on the fiber that `exit` leaves.
    pub(crate) fn begin(&self, exit: &Suspender, thread: &Thread) {
        self.exit.set(exit);
        self.current.set(thread);
        thread.header().begin(self.index);
        if let Some(tracer) = self.runtime.tracer() {
            tracer.begins(thread);
            tracer.runs(self.index, thread.id());
        }
        self.turn_begins(thread);
        self.leave();
    }

    /// What is to be left through, from now on.
    pub(crate) fn on_fiber(&self, exit: *const Suspender) {
        self.exit.set(exit);
    }

    #[inline]
    fn trace_run(&self, thread: &Thread) {
        if let Some(tracer) = self.runtime.tracer() {
            tracer.runs(self.index, thread.id());
        }
    }

    #[inline]
    fn trace_leave(&self) {
        if let Some(tracer) = self.runtime.tracer() {
            tracer.note_leaving(self.index);
        }
    }

    /// The thread that ran has ended, and may not be there any more: nobody runs on its fiber.
    pub(crate) fn thread_ended(&self, notice: CompletionNotice) {
        self.left();
        self.trace_leave();
        self.turn_ends(None);
        notice.wake();
        self.worker().count().end();
    }

    pub(crate) fn thread_created(&self) {
        self.worker().count().creation();
    }

    /// Another thread for the same stack: one that has not begun, and only if it is this worker's
    /// turn to run one.
    pub(crate) fn next_to_begin(&self) -> Option<Thread> {
        if !self.enter()
            || !self.local_queue.borrow().is_empty()
            || self.worker().has_mail()
            || self.has_urgent()
            || self.runtime.is_time()
            || self.owes_slot(Priority::Normal)
        {
            return None;
        }
        let looks = self.looks.get().wrapping_add(1);
        if looks.is_multiple_of(SHARE) {
            return None;
        }
        self.looks.set(looks);
        self.look_around();
        let thread = self.take_ready()?;
        if thread.header().has_begun() || !self.may_run(&thread) {
            // It has a stack of its own, or the scheduler_loop sends it on.
            self.local_queue.borrow_mut().push_front(thread);
            return None;
        }
        Some(thread)
    }

    /// Into the scheduler; whether it has its slot.
    pub(crate) fn enter(&self) -> bool {
        let has = self.has_slot.get() || self.worker().ownership().enter(self.worker().slot());
        self.has_slot.set(has);
        has
    }

    /// Out of the scheduler, with its slot.
    pub(super) fn leave(&self) {
        self.has_slot.set(false);
        self.worker().leaves_ready(self.local_queue.borrow().len());
        self.worker().ownership().leave(self.worker().slot());
    }

    /// Calls `body` with what belongs to its slot, if it has it.
    pub(crate) fn with_hold<R>(&self, body: impl FnOnce(Option<&mut SlotContents>) -> R) -> R {
        let was_inside = self.has_slot.get();
        if !self.enter() {
            return body(None);
        }
        let slot = self.runtime.slot(self.worker().slot());
        // SAFETY: the worker has the slot, and is in the scheduler.
        let result = unsafe { slot.with(|hold| body(Some(hold))) };
        if !was_inside {
            self.leave();
        }
        result
    }

    /// A thread of this runtime is ready, and this is a worker of it.
    pub(crate) fn make_ready(&self, thread: Thread, last: bool) {
        match thread.header().bound_to() {
            Some(index) if index == self.index => {
                let mut bound = self.local_queue.borrow_mut();
                bound.push_back(thread);
                self.worker().leaves_ready(bound.len());
            }
            Some(index) => self.runtime.mail(index, thread),
            None if thread.header().priority() != Priority::Normal => {
                self.runtime.put_prioritized(thread);
            }
            None => {
                self.put_ready(thread, last);
            }
        }
    }

    /// Looks whether another worker is stuck: at one slot after the other, one each time.
    #[inline]
    pub(super) fn look_around(&self) {
        let runtime = &self.runtime;
        if !runtime.activations() {
            return;
        }
        runtime.runs_here(self.index);
        if runtime.slots() == 1 {
            return;
        }
        let slot = self.looks_at.get();
        self.looks_at.set(if slot + 1 < runtime.slots() { slot + 1 } else { 0 });
        if slot != self.worker().slot() {
            runtime.look_at(slot, Looks::Passing);
        }
    }

    /// What comes next on this slot.
    pub(super) fn find(&self) -> Option<Thread> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        self.look_around();
        if !self.stays_open(looks) {
            return None;
        }
        self.runtime.run_timers();
        if self.worker().has_mail() {
            self.read_mail();
        }
        let thread = self.choose();
        if self.was_told.take() && thread.is_some() {
            self.pass_on();
        }
        thread
    }

    pub(super) fn read_mail(&self) {
        self.worker().read_mail(&mut self.local_queue.borrow_mut());
    }

    /// It has better to do than to watch the clock.
    pub(super) fn unwatch(&self) {
        if self.watched.replace(false) && self.runtime.unwatch(self.worker().slot()) {
            self.runtime.wake(Told::Anyone(1));
        }
    }

    /// Whether there is something to do for whoever sits here.
    pub(super) fn is_called(&self) -> bool {
        let runtime = &self.runtime;
        !self.local_queue.borrow().is_empty()
            || self.worker().has_mail()
            || runtime.is_over()
            || runtime.idle_workers().waiting() > 0
            || runtime.prioritized().any()
            || self.may_take_ready()
    }

    /// It has found nothing: spins, then sleeps, until there may be something. `false` if the
    /// runtime has ended.
    pub(super) fn rest(&self) -> bool {
        let runtime = &self.runtime;
        if !self.has_slot.get() {
            // `find` has given it away.
            return self.await_slot();
        }
        if runtime.idle_workers().waiting() > 0 && self.give_slot() {
            return self.await_slot();
        }
        let slot = self.worker().slot();
        if runtime.overcommit().has(slot) {
            // Others sleep on theirs, and look for work before they do.
            let told = self.leave_place();
            self.has_slot.set(false);
            runtime.overcommit().close(slot);
            if let Some(told) = told {
                runtime.wake(told);
            }
            return self.await_slot();
        }
        let started = clock::now();
        let delay = runtime.idle_spin();
        // A runtime that closes may have ended since the last thread did, and a spin may be long.
        let is_needed = || self.is_called() || runtime.is_time() || runtime.end_if_done();
        let found = || is_needed().then_some(());
        if retry_for(found, PAUSES, || clock::now().nanos_since(started) < delay).is_some() {
            return true;
        }
        self.with_hold(|hold| hold.map(|hold| runtime.ready_queue().idle(&hold.place)));
        let pause = self.steal_throttle.pause();
        runtime.parked().announce(slot, pause.is_some());
        let until = runtime.watch(slot);
        self.watched.set(self.watched.get() || until != Deadline::NEVER);
        // Only looks: who sleeps, or is about to, takes nothing (`stall.rs`).
        if self.is_called() || runtime.is_time() {
            runtime.parked().retract(slot);
        } else if runtime.end_if_done() {
            runtime.parked().retract(slot);
            return false;
        } else {
            runtime.stop_all_lost_time();
            runtime.monitor().pause(self.worker());
            runtime.limit().sleeps();
            runtime.parked().sleep(slot, pause.map_or(until, |pause| pause.min(until)));
            runtime.limit().wakes();
            runtime.monitor().begin(self.worker());
        }
        self.was_told.set(true);
        if let Some(told) = self.leave_place() {
            runtime.wake(told);
        }
        true
    }

    pub(super) fn take_fiber(&self) -> Result<Fiber, StackError> {
        let own = self.free.borrow_mut().pop();
        own.or_else(|| self.runtime.take_fiber()).map_or_else(|| self.runtime.new_fiber(), Ok)
    }

    pub(super) fn keep_fiber(&self, fiber: Fiber) {
        let mut free = self.free.borrow_mut();
        if free.len() < KEPT {
            free.push(fiber);
        } else {
            self.runtime.keep_fiber(fiber);
        }
    }
}
