//! The trunk of a carrier: what runs on the kernel thread's own stack, chooses what goes on, and
//! resumes the stack that it is on.
//!
//! The order in which it looks for a thread is in `order.rs`. If there is none, it spins, then
//! sleeps on its seat.
//!
//! # Invariants
//!
//! 1. A [`Local`] lies on its kernel thread's stack, and `local.rs` points to it while it does.
//! 2. `current` points to the running thread's handle, and `exit` to what its fiber is left
//!    through, while a thread runs; both are null in the trunk. From a thread's last exchange
//!    (`ending.rs`) to `thread_ended`, which follows at once, nobody looks at `current`.

use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::sync::Arc;

use machine::clock::{self, Deadline};
use machine::presence;
use machine::topology::Pinned;
use machine::wait::retry_for;
use stanchion_threadpool::Told;

use crate::processors::worker_record::Carrier;
use crate::thread::completion::News;
use crate::thread::fiber::{Exit, Fiber, Given, Left};
use crate::upcalls::handoff::Looks;
use crate::queues::prioritized::Bound;
use crate::thread::priority::Priority;
use crate::processors::slot::Hold;
use crate::runtime::state::Shared;
use crate::thread::stacks::{self as stack, StackError};
use crate::processors::ownership::Called;
use crate::thread::park_state::Pause;
use crate::thread::header::{Thread, ThreadId};
use crate::worker::steal_throttle::Thrift;

use super::guests::{Guests, Turn};
use super::order::Turns;

/// At one in so many looks the carrier asks what costs too much to be asked at each.
pub(super) const SHARE: u32 = 61;

/// How far apart an idle carrier's looks are, in ns.
const PAUSES: core::ops::Range<u64> = 50..1_000;

/// Free stacks that a carrier keeps for itself.
const KEPT: usize = 4;

/// What only the carrier itself touches.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(super) index: usize,
    /// It is in the scheduler, with its seat.
    pub(super) has_seat: Cell<bool>,
    pub(super) current: Cell<*const Thread>,
    pub(super) exit: Cell<*const Exit>,
    pub(super) bound: RefCell<Bound>,
    pub(super) free: RefCell<Vec<Fiber>>,
    pub(super) looks: Cell<u32>,
    pub(super) turns: Turns,
    /// The seat at which it looks next.
    pub(super) looks_at: Cell<usize>,
    pub(super) thrift: Thrift,
    pub(super) guests: Guests,
    pub(super) turn: Turn,
    /// It was woken and has not gone on yet.
    pub(super) was_told: Cell<bool>,
    /// It may have been the watch (`timers.rs`) when it last slept.
    pub(super) watched: Cell<bool>,
    pub(super) pinned: RefCell<Option<(usize, Pinned)>>,
    /// Until when a thread that panics keeps others here waiting (`panicking.rs`).
    pub(super) patience: Cell<Option<(ThreadId, Deadline)>>,
    /// How many threads have left their stacks here while they panicked, and have not gone on.
    pub(super) panicking: Cell<usize>,
}

/// The kernel thread's body.
pub(crate) fn carry(shared: Arc<Shared>, index: usize) {
    let local = Local {
        shared,
        index,
        has_seat: Cell::new(true),
        current: Cell::new(core::ptr::null()),
        exit: Cell::new(core::ptr::null()),
        bound: RefCell::default(),
        free: RefCell::default(),
        looks: Cell::new(0),
        turns: Turns::new(),
        looks_at: Cell::new(0),
        thrift: Thrift::new(),
        guests: Guests::default(),
        turn: Turn::new(),
        was_told: Cell::new(false),
        watched: Cell::new(false),
        pinned: RefCell::default(),
        patience: Cell::new(None),
        panicking: Cell::new(0),
    };
    // What overflows on this kernel thread is told by name. Without, it is an ordinary fault.
    let _watched = stack::watch().ok();
    let registered = local.shared.activations().then(presence::register).and_then(Result::ok);
    if let Some(registered) = &registered {
        local.carrier().be_seen_as(Some(registered.index()));
    }
    crate::worker::context::enter(&local, || local.trunk());
    local.carrier().be_seen_as(None);
    drop(registered);
    for fiber in local.free.take() {
        fiber.quit();
    }
}

impl Local {
    pub(crate) fn carrier(&self) -> &Carrier {
        self.shared.carrier(self.index)
    }

    /// The thread that runs; null in the trunk.
    pub(crate) fn current(&self) -> *const Thread {
        self.current.get()
    }

    /// Calls `body` with the thread that runs, if one does.
    pub(crate) fn with_current<R>(&self, body: impl FnOnce(&Thread) -> R) -> Option<R> {
        // SAFETY: Invariant 2.
        unsafe { self.current.get().as_ref() }.map(body)
    }

    /// What the current thread leaves its fiber through, which it is about to do; null in the
    /// trunk.
    pub(crate) fn exit_to_leave(&self) -> *const Exit {
        // The standard library counts panics by kernel thread.
        self.with_current(|thread| thread.inner().leaves(self.index, machine::thread::panicking));
        self.exit.get()
    }

    /// From one thread to the next, until the runtime ends.
    fn trunk(&self) {
        if self.carrier().standing().sleep() == Called::End {
            return;
        }
        self.settle();
        loop {
            if self.shared.is_over() {
                return;
            }
            let Some(thread) = self.find() else {
                if !self.rest() {
                    return;
                }
                continue;
            };
            self.unwatch();
            // One that may run elsewhere does, if it could keep this carrier's guests waiting.
            let stays = if self.may_run(&thread) { Some(thread) } else { self.send_on(thread) };
            if let Some(thread) = stays {
                self.go_on(thread);
            }
            if !self.has_seat.get() && !self.await_seat() {
                return;
            }
        }
    }

    /// Runs `thread`, and what else its stack finds to run, until the stack is left.
    fn go_on(&self, thread: Thread) {
        // SAFETY: the thread is out of its queue, so that nobody else runs it (Invariant 1 of
        // `thread.rs`).
        let laid_aside = unsafe { thread.inner().take_up() };
        match laid_aside {
            Some(mut fiber) => {
                // Its own share goes around with it.
                let thread = ManuallyDrop::new(thread);
                self.current.set(&raw const *thread);
                self.trace_run(&thread);
                self.turn_goes_on(&thread);
                self.carrier().goes_to(fiber.base());
                self.leave();
                let left = fiber.resume(Given::Go);
                self.put_away(left, fiber);
            }
            None => match self.take_fiber() {
                Ok(mut fiber) => {
                    self.carrier().goes_to(fiber.base());
                    let left = fiber.resume(Given::Run(thread));
                    self.put_away(left, fiber);
                }
                Err(error) => {
                    self.leave();
                    // SAFETY: it is out of its queue, and does not run.
                    let news = unsafe { ManuallyDrop::new(thread).refuse(error) };
                    self.thread_ended(news);
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
    fn put_away(&self, left: Left, fiber: Fiber) {
        let ran = self.left();
        let ran = || {
            // SAFETY: Invariant 2: it has just left.
            let thread = unsafe { &*ran };
            // SAFETY: its own share is whose it was to run it, and where this handle lies nobody
            // drops it.
            unsafe { Thread::from_pointer(thread.pointer()) }
        };
        match left {
            Left::Free => self.keep_fiber(fiber),
            Left::Yielded => {
                self.has_yielded();
                self.lay_aside(ran(), fiber, None);
            }
            Left::Paused(pause) => self.lay_aside(ran(), fiber, Some(pause)),
            Left::Settled => self.lay_aside_settled(ran(), fiber),
        }
    }

    /// `thread` has left its fiber, to pause or to yield.
    fn lay_aside(&self, thread: Thread, fiber: Fiber, pause: Option<Pause>) {
        self.trace_leave();
        self.turn_ends(Some(&thread));
        self.receive(&thread);
        self.enter();
        // SAFETY: this carrier has just run it.
        unsafe { thread.inner().lay_aside(fiber) };
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
        // SAFETY: this carrier has just run it. If it is ready by now, then only for this carrier,
        // which takes it up later.
        unsafe { thread.inner().lay_aside(fiber) };
    }

    /// A thread that runs on this carrier begins, on the fiber that `exit` leaves.
    pub(crate) fn begin(&self, exit: &Exit, thread: &Thread) {
        self.exit.set(exit);
        self.current.set(thread);
        thread.inner().begin(self.index);
        if let Some(tracer) = self.shared.tracer() {
            tracer.begins(thread);
            tracer.runs(self.index, thread.id());
        }
        self.turn_begins(thread);
        self.leave();
    }

    /// What is to be left through, from now on.
    pub(crate) fn on_fiber(&self, exit: *const Exit) {
        self.exit.set(exit);
    }

    #[inline]
    fn trace_run(&self, thread: &Thread) {
        if let Some(tracer) = self.shared.tracer() {
            tracer.runs(self.index, thread.id());
        }
    }

    #[inline]
    fn trace_leave(&self) {
        if let Some(tracer) = self.shared.tracer() {
            tracer.leaves(self.index);
        }
    }

    /// The thread that ran has ended, and may not be there any more: nobody runs on its fiber.
    pub(crate) fn thread_ended(&self, news: News) {
        self.left();
        self.trace_leave();
        self.turn_ends(None);
        news.tell();
        self.carrier().count().end();
    }

    pub(crate) fn thread_created(&self) {
        self.carrier().count().creation();
    }

    /// Another thread for the same stack: one that has not begun, and only if it is this carrier's
    /// turn to run one.
    pub(crate) fn next_to_begin(&self) -> Option<Thread> {
        if !self.enter()
            || !self.bound.borrow().is_empty()
            || self.carrier().has_mail()
            || self.has_urgent()
            || self.shared.is_time()
            || self.owes_seat(Priority::Normal)
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
        if thread.inner().has_begun() || !self.may_run(&thread) {
            // It has a stack of its own, or the trunk sends it on.
            self.bound.borrow_mut().push_front(thread);
            return None;
        }
        Some(thread)
    }

    /// Into the scheduler; whether it has its seat.
    pub(crate) fn enter(&self) -> bool {
        let has = self.has_seat.get() || self.carrier().standing().enter(self.carrier().seat());
        self.has_seat.set(has);
        has
    }

    /// Out of the scheduler, with its seat.
    pub(super) fn leave(&self) {
        self.has_seat.set(false);
        self.carrier().leaves_ready(self.bound.borrow().len());
        self.carrier().standing().leave(self.carrier().seat());
    }

    /// Calls `body` with what belongs to its seat, if it has it.
    pub(crate) fn with_hold<R>(&self, body: impl FnOnce(Option<&mut Hold>) -> R) -> R {
        let was_inside = self.has_seat.get();
        if !self.enter() {
            return body(None);
        }
        let seat = self.shared.seat(self.carrier().seat());
        // SAFETY: the carrier has the seat, and is in the scheduler.
        let result = unsafe { seat.with(|hold| body(Some(hold))) };
        if !was_inside {
            self.leave();
        }
        result
    }

    /// A thread of this runtime is ready, and this is a carrier of it.
    pub(crate) fn make_ready(&self, thread: Thread, last: bool) {
        match thread.inner().bound_to() {
            Some(index) if index == self.index => {
                let mut bound = self.bound.borrow_mut();
                bound.push_back(thread);
                self.carrier().leaves_ready(bound.len());
            }
            Some(index) => self.shared.mail(index, thread),
            None if thread.inner().priority() != Priority::Normal => {
                self.shared.put_unusual(thread);
            }
            None => {
                self.put_ready(thread, last);
            }
        }
    }

    /// Looks whether another carrier is stuck: at one seat after the other, one each time.
    #[inline]
    pub(super) fn look_around(&self) {
        let shared = &self.shared;
        if !shared.activations() {
            return;
        }
        shared.runs_here(self.index);
        if shared.seats() == 1 {
            return;
        }
        let seat = self.looks_at.get();
        self.looks_at.set(if seat + 1 < shared.seats() { seat + 1 } else { 0 });
        if seat != self.carrier().seat() {
            shared.look_at(seat, Looks::Passing);
        }
    }

    /// What comes next on this seat.
    pub(super) fn find(&self) -> Option<Thread> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        self.look_around();
        if !self.stays_open(looks) {
            return None;
        }
        self.shared.run_timers();
        if self.carrier().has_mail() {
            self.read_mail();
        }
        let thread = self.choose();
        if self.was_told.take() && thread.is_some() {
            self.pass_on();
        }
        thread
    }

    pub(super) fn read_mail(&self) {
        self.carrier().read_mail(&mut self.bound.borrow_mut());
    }

    /// It has better to do than to watch the clock.
    pub(super) fn unwatch(&self) {
        if self.watched.replace(false) && self.shared.unwatch(self.carrier().seat()) {
            self.shared.tell(Told::Anyone(1));
        }
    }

    /// Whether there is something to do for whoever sits here.
    pub(super) fn is_called(&self) -> bool {
        let shared = &self.shared;
        !self.bound.borrow().is_empty()
            || self.carrier().has_mail()
            || shared.is_over()
            || shared.reserve().waiting() > 0
            || shared.unusual().any()
            || self.may_take_ready()
    }

    /// It has found nothing: spins, then sleeps, until there may be something. `false` if the
    /// runtime has ended.
    pub(super) fn rest(&self) -> bool {
        let shared = &self.shared;
        if !self.has_seat.get() {
            // `find` has given it away.
            return self.await_seat();
        }
        if shared.reserve().waiting() > 0 && self.give_seat() {
            return self.await_seat();
        }
        let seat = self.carrier().seat();
        if shared.surplus().has(seat) {
            // Others sleep on theirs, and look for work before they do.
            let told = self.leave_place();
            self.has_seat.set(false);
            shared.surplus().close(seat);
            if let Some(told) = told {
                shared.tell(told);
            }
            return self.await_seat();
        }
        let started = clock::now();
        let patience = shared.idle_spin();
        // A runtime that closes may have ended since the last thread did, and a spin may be long.
        let is_needed = || self.is_called() || shared.is_time() || shared.end_if_done();
        let found = || is_needed().then_some(());
        if retry_for(found, PAUSES, || clock::now().nanos_since(started) < patience).is_some() {
            return true;
        }
        self.with_hold(|hold| hold.map(|hold| shared.ready_queue().idle(&hold.place)));
        let pause = self.thrift.pause();
        shared.sleeping().announce(seat, pause.is_some());
        let until = shared.watch(seat);
        self.watched.set(self.watched.get() || until != Deadline::NEVER);
        // Only looks: who sleeps, or is about to, takes nothing (`stall.rs`).
        if self.is_called() || shared.is_time() {
            shared.sleeping().retract(seat);
        } else if shared.end_if_done() {
            shared.sleeping().retract(seat);
            return false;
        } else {
            shared.is_short_of_none();
            shared.lookout().pause(self.carrier());
            shared.demand().sleeps();
            shared.sleeping().sleep(seat, pause.map_or(until, |pause| pause.min(until)));
            shared.demand().wakes();
            shared.lookout().begin(self.carrier());
        }
        self.was_told.set(true);
        if let Some(told) = self.leave_place() {
            shared.tell(told);
        }
        true
    }

    pub(super) fn take_fiber(&self) -> Result<Fiber, StackError> {
        let own = self.free.borrow_mut().pop();
        own.or_else(|| self.shared.take_fiber()).map_or_else(|| self.shared.new_fiber(), Ok)
    }

    pub(super) fn keep_fiber(&self, fiber: Fiber) {
        let mut free = self.free.borrow_mut();
        if free.len() < KEPT {
            free.push(fiber);
        } else {
            self.shared.keep_fiber(fiber);
        }
    }
}
