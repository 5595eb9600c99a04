//! A carrier: a kernel thread that runs user-level ones.
//!
//! Its trunk, on the kernel thread's own stack, chooses what goes on, and resumes the stack that it is on. What the others may touch of a carrier is
//! [`Carrier`]; what only it touches is [`Local`].
//!
//! # Where it looks for a thread
//!
//! 1. Its own: threads that began here and are ready again, in the order in which they became so.
//! 2. The runtime's ready queue, and every [`SHARE`]th time that first.
//! 3. Nothing of that: the seat goes to a carrier that wants one, every [`SHARE`]th time before 1.
//! 4. It spins, then sleeps on its seat.
//!
//! # Invariants
//!
//! 1. A [`Local`] lies on its kernel thread's stack, and `local.rs` points to it while it does.
//! 2. `current` points to the running thread's handle, which is alive while the thread runs.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use machine::atomic::{AtomicBool, AtomicU32, AtomicU64, Fresh, Ordering};
use machine::topology::{self, Pinned};
use machine::wait::retry_for;
use machine::{clock, presence};
use stanchion_competitive::Mutex;
use stanchion_threadpool::Told;

use crate::fiber::{Exit, Fiber, Given, Left};
use crate::seat::Hold;
use crate::shared::Shared;
use crate::standing::{Called, Standing};
use crate::thread::Thread;

/// One in so many looks goes to the others first, so that nobody waits for ever.
const SHARE: u32 = 61;

/// How far apart an idle carrier's looks are, in ns.
const PAUSES: core::ops::Range<u64> = 50..1_000;

/// Free stacks that a carrier keeps for itself.
const KEPT: usize = 4;

/// What others may touch of a carrier.
pub(crate) struct Carrier {
    standing: Standing,
    /// Its seat, while it has one.
    seat: AtomicU32,
    /// Its number with [`machine::presence`], and one more; 0 while it is not registered.
    seen_as: AtomicU32,
    /// Threads that began here and that others have made ready.
    mail: Mutex<Vec<Thread>>,
    has_mail: AtomicBool,
    /// Threads that it has created, and that have ended on it. Only it writes them.
    created: AtomicU64,
    ended: AtomicU64,
}

impl Carrier {
    pub(crate) fn new(seat: Option<usize>) -> Self {
        Self {
            standing: if seat.is_some() { Standing::seated() } else { Standing::spare() },
            seat: AtomicU32::fresh(seat.unwrap_or(0) as u32),
            seen_as: AtomicU32::fresh(0),
            mail: Mutex::new(Vec::new()),
            has_mail: AtomicBool::fresh(false),
            created: AtomicU64::fresh(0),
            ended: AtomicU64::fresh(0),
        }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Its seat; the last one that it had, if it has none.
    pub(crate) fn seat(&self) -> usize {
        // Relaxed: written before it is given the seat; others take it for a hint.
        self.seat.load(Ordering::Relaxed) as usize
    }

    /// Gives it a seat, which the caller has, and wakes it.
    pub(crate) fn take_seat(&self, seat: usize) {
        // Relaxed: `give` is a Release.
        self.seat.store(seat as u32, Ordering::Relaxed);
        self.standing.give();
    }

    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: who must not miss it has a fence before.
        self.has_mail.load(Ordering::Relaxed)
    }

    /// A thread that began here is ready again. The caller sees to it that it is looked at.
    pub(crate) fn mail(&self, thread: Thread) {
        let mut mail = self.mail.lock();
        mail.push(thread);
        // Relaxed: under the lock; a fence follows.
        self.has_mail.store(true, Ordering::Relaxed);
    }

    /// Where it is, if it can be seen.
    pub(crate) fn presence(&self) -> presence::Presence {
        // Relaxed: a number.
        match self.seen_as.load(Ordering::Relaxed) {
            0 => presence::Presence::Unknown,
            index => presence::of(index as usize - 1),
        }
    }

    pub(crate) fn ended(&self) -> u64 {
        // Acquire: pairs with the Release of `count`: what the thread had created is counted before its end.
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn created(&self) -> u64 {
        // Relaxed: read after `ended`.
        self.created.load(Ordering::Relaxed)
    }
}

/// One more, of a counter that only the caller writes.
fn count(counter: &AtomicU64) {
    // Release: see `Carrier::ended`.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// What only the carrier itself touches.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    index: usize,
    /// It is in the scheduler, with its seat.
    has_seat: Cell<bool>,
    current: Cell<*const Thread>,
    exit: Cell<*const Exit>,
    bound: RefCell<VecDeque<Thread>>,
    free: RefCell<Vec<Fiber>>,
    looks: Cell<u32>,
    pinned: RefCell<Option<(usize, Pinned)>>,
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
        pinned: RefCell::default(),
    };
    let registered = presence::register().ok();
    if let Some(registered) = &registered {
        // Relaxed: a number.
        local.carrier().seen_as.store(registered.index() as u32 + 1, Ordering::Relaxed);
    }
    crate::local::enter(&local, || local.trunk());
    local.carrier().seen_as.store(0, Ordering::Relaxed);
    drop(registered);
    for fiber in local.free.take() {
        fiber.quit();
    }
}

impl Local {
    pub(crate) fn carrier(&self) -> &Carrier {
        self.shared.carrier(self.index)
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn current(&self) -> *const Thread {
        self.current.get()
    }

    pub(crate) fn exit(&self) -> *const Exit {
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
            self.go_on(&thread);
            if !self.has_seat.get() && !self.await_seat() {
                return;
            }
        }
    }

    /// Runs `thread`, and what else its stack finds to run, until the stack is left.
    fn go_on(&self, thread: &Thread) {
        // SAFETY: the thread is out of its queue, so that nobody else runs it (Invariant 2 of `thread.rs`).
        let laid_aside = unsafe { thread.inner().take_up() };
        let (mut fiber, given) = match laid_aside {
            Some(fiber) => {
                self.current.set(thread);
                self.leave();
                (fiber, Given::Go)
            }
            None => match self.take_fiber() {
                Ok(fiber) => (fiber, Given::Run(thread.clone())),
                Err(error) => {
                    self.leave();
                    thread.body().refuse(error);
                    self.thread_ended();
                    self.enter();
                    return;
                }
            },
        };
        match fiber.resume(given) {
            Left::Free => self.keep_fiber(fiber),
            left => self.lay_aside(fiber, left),
        }
    }

    /// The current thread has left its fiber.
    fn lay_aside(&self, fiber: Fiber, left: Left) {
        self.enter();
        // SAFETY: the thread has just left (Invariant 2), and cannot go on before it is settled.
        let thread = unsafe { &*self.current.get() }.clone();
        // SAFETY: this carrier has just run it.
        unsafe { thread.inner().lay_aside(fiber) };
        if left == Left::Yielded || !thread.inner().settle() {
            self.make_ready(thread, true);
        }
    }

    /// A thread that runs on this carrier begins, on the fiber that `exit` leaves.
    pub(crate) fn begin(&self, exit: &Exit, thread: &Thread) {
        self.exit.set(exit);
        self.current.set(thread);
        thread.inner().begin(self.index);
        self.leave();
    }

    /// What is to be left through, from now on.
    pub(crate) fn on_fiber(&self, exit: *const Exit) {
        self.exit.set(exit);
    }

    /// The thread that ran has ended.
    pub(crate) fn thread_ended(&self) {
        count(&self.carrier().ended);
    }

    pub(crate) fn thread_created(&self) {
        count(&self.carrier().created);
    }

    /// Another thread for the same stack: one that has not begun, and only if it is this carrier's turn to run one.
    pub(crate) fn next_to_begin(&self) -> Option<Thread> {
        if !self.enter() || !self.bound.borrow().is_empty() || self.carrier().has_mail() {
            return None;
        }
        let looks = self.looks.get() + 1;
        if looks % SHARE == 0 {
            return None;
        }
        self.looks.set(looks);
        let thread = self.take_ready()?;
        if thread.inner().has_begun() {
            // It has a stack of its own.
            self.bound.borrow_mut().push_front(thread);
            return None;
        }
        Some(thread)
    }

    /// Into the scheduler; whether it has its seat.
    pub(crate) fn enter(&self) -> bool {
        let has = self.has_seat.get() || self.carrier().standing().enter();
        self.has_seat.set(has);
        has
    }

    /// Out of the scheduler, with its seat.
    fn leave(&self) {
        self.has_seat.set(false);
        self.carrier().standing().leave();
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
            Some(index) if index == self.index => self.bound.borrow_mut().push_back(thread),
            Some(index) => self.shared.mail(index, thread),
            None => {
                let told = self.with_hold(|hold| {
                    self.shared.ready_queue().put(hold.map(|hold| &hold.place), thread, last)
                });
                self.shared.tell(told);
            }
        }
    }

    fn take_ready(&self) -> Option<Thread> {
        let (thread, moved) = self.with_hold(|hold| {
            let Some(Hold { place, spent }) = hold else { return (None, None) };
            let ready = self.shared.ready_queue();
            (ready.take(place, spent), ready.moved(place))
        });
        if let Some(told) = moved {
            self.shared.tell(told);
        }
        thread
    }

    /// What comes next on this seat.
    fn find(&self) -> Option<Thread> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        self.shared.run_timers();
        if self.carrier().has_mail() {
            self.read_mail();
        }
        if looks % SHARE == 0 {
            if self.shared.reserve().waiting() > 0 && self.give_seat(false) {
                return None;
            }
            if let Some(thread) = self.take_ready() {
                return Some(thread);
            }
        }
        let own = self.bound.borrow_mut().pop_front();
        own.or_else(|| self.take_ready())
    }

    fn read_mail(&self) {
        let carrier = self.carrier();
        let mut mail = carrier.mail.lock();
        // Relaxed: under the lock.
        carrier.has_mail.store(false, Ordering::Relaxed);
        self.bound.borrow_mut().extend(mail.drain(..));
    }

    /// Gives the seat away to a carrier that wants one, or to a spare one too; whether there was one.
    fn give_seat(&self, spare: bool) -> bool {
        let carrier = self.carrier();
        let seat = carrier.seat();
        let given = self.shared.reserve().give(spare, |to| {
            self.shared.seat(seat).hand_to(to);
            self.shared.carrier(to).take_seat(seat);
        });
        if given {
            self.has_seat.set(false);
        }
        given
    }

    /// It has no seat: waits until it is given one. `false` if the runtime ends.
    fn await_seat(&self) -> bool {
        if self.carrier().has_mail() {
            self.read_mail();
        }
        let wants = !self.bound.borrow().is_empty();
        self.pinned.take();
        if self.shared.reserve().rest(self.index, self.carrier(), wants) {
            self.shared.tell(Told::Anyone(1));
        } else {
            self.shared.end_if_done();
        }
        if self.carrier().standing().sleep() == Called::End {
            return false;
        }
        self.settle();
        true
    }

    /// It has been given a seat.
    fn settle(&self) {
        self.has_seat.set(true);
        let seat = self.carrier().seat();
        if let Some(processor) = self.shared.processor_of(seat) {
            let mut pinned = self.pinned.borrow_mut();
            if pinned.as_ref().is_none_or(|&(on, _)| on != processor) {
                // The old one first: guards are dropped in reverse order of their making.
                drop(pinned.take());
                *pinned = topology::pin(processor).ok().map(|pin| (processor, pin));
            }
        }
    }

    /// Whether there is something to do for whoever sits here.
    fn is_called(&self) -> bool {
        let shared = &self.shared;
        self.carrier().has_mail()
            || shared.is_over()
            || shared.reserve().waiting() > 0
            || self.with_hold(|hold| {
                hold.is_some_and(|hold| shared.ready_queue().is_ready(&hold.place))
            })
    }

    /// It has found nothing: spins, then sleeps, until there may be something. `false` if the runtime has ended.
    fn rest(&self) -> bool {
        let shared = &self.shared;
        if !self.has_seat.get() {
            // `find` has given it away.
            return self.await_seat();
        }
        if shared.reserve().waiting() > 0 && self.give_seat(false) {
            return self.await_seat();
        }
        let started = clock::now();
        let patience = shared.idle_spin();
        let found = || self.is_called().then_some(());
        if retry_for(found, PAUSES, || clock::now().nanos_since(started) < patience).is_some() {
            return true;
        }
        let seat = self.carrier().seat();
        self.with_hold(|hold| hold.map(|hold| shared.ready_queue().idle(&hold.place)));
        shared.sleeping().announce(seat);
        let first = shared.run_timers();
        if self.is_called() {
            shared.sleeping().retract(seat);
        } else if shared.end_if_done() {
            shared.sleeping().retract(seat);
            return false;
        } else {
            shared.sleeping().sleep(seat, first);
        }
        let told =
            self.with_hold(|hold| hold.and_then(|hold| shared.ready_queue().leave(&hold.place)));
        if let Some(told) = told {
            shared.tell(told);
        }
        true
    }

    fn take_fiber(&self) -> std::io::Result<Fiber> {
        let own = self.free.borrow_mut().pop();
        own.or_else(|| self.shared.take_fiber()).map_or_else(|| self.shared.new_fiber(), Ok)
    }

    fn keep_fiber(&self, fiber: Fiber) {
        let mut free = self.free.borrow_mut();
        if free.len() < KEPT {
            free.push(fiber);
        } else {
            self.shared.keep_fiber(fiber);
        }
    }
}
