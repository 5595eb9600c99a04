//! The scheduler loop of a worker. It runs on the kernel thread's own stack, chooses the next
//! thread, and resumes the stack that the thread is on.
//!
//! `order.rs` says in which order it chooses. If there is no thread, it spins, then sleeps on its
//! slot.

use core::mem::ManuallyDrop;
use std::sync::Arc;

use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::presence;
use stanchion_machine::wait::{pauses, retry_for};

use super::context;
use super::state::Worker;
use crate::detection::monitor::Looker;
use crate::processors::ownership::WokenFor;
use crate::queues::ready::WakeTarget;
use crate::runtime::state::RuntimeState;
use crate::thread::fiber::{Fiber, Resume, Suspended, Suspender};
use crate::thread::handle::Thread;
use crate::thread::header::ThreadFiber;
use crate::thread::notice::CompletionNotice;
use crate::thread::park_state::Pause;
use crate::thread::priority::Priority;
use crate::thread::stacks;
use crate::upcalls::{look, lost_time};

/// The worker does expensive checks at one in so many looks.
pub(super) const RARELY: u32 = 61;

/// The longest pause between two looks of an idle worker, in transfers of a line. The first one is
/// half of one.
const LONGEST_PAUSE_TRANSFERS: u64 = 10;

/// The free fibers that a worker keeps for itself.
const KEPT_FIBERS: usize = 4;

/// Runs a worker on the calling kernel thread until the runtime has ended.
pub(crate) fn run(runtime: Arc<RuntimeState>, index: usize) {
    let worker = Worker::new(runtime, index);
    // An overflow on this kernel thread is reported with its name. Without, it is an ordinary
    // fault.
    let _watched = stacks::watch().ok();
    let is_on = worker.runtime.detection.is_on;
    let registered = is_on.then(presence::register).and_then(Result::ok);
    if let Some(registered) = &registered {
        worker.record().set_presence_index(Some(registered.index()));
    }
    context::enter(&worker, || worker.scheduler_loop());
    worker.record().set_presence_index(None);
    drop(registered);
    worker.free_fibers.take().into_iter().for_each(Fiber::quit);
}

impl Worker {
    /// Runs one thread after another until the runtime ends.
    fn scheduler_loop(&self) {
        // It begins without a slot, or with the one of its number.
        if self.record().ownership().sleep() == WokenFor::End {
            return;
        }
        self.begin_on_slot();
        loop {
            // The runtime has ended.
            if self.runtime.is_over() {
                return;
            }
            // There is no thread, or the slot was given away.
            let Some(thread) = self.find() else {
                if !self.rest() {
                    return;
                }
                continue;
            };
            self.resign_timekeeper();
            // A thread that any worker may run goes to another one, if it could keep the threads
            // waiting that are bound to this one.
            let stays = if self.may_run(&thread) { Some(thread) } else { self.send_away(thread) };
            if let Some(thread) = stays {
                self.run_on_fiber(thread);
            }
            // The slot was taken while the thread ran, or was given away with the thread.
            if !self.has_slot.get() && !self.await_slot() {
                return;
            }
        }
    }

    /// Runs `thread`, and the other threads that its fiber finds to run, until the fiber is left.
    fn run_on_fiber(&self, thread: Thread) {
        // SAFETY: the thread was taken out of its queue, so no other worker runs it (Invariant 1 of
        // `header.rs`).
        let laid_aside = unsafe { thread.header().take_up() };
        // It has begun, and continues on its own fiber.
        if let Some(mut fiber) = laid_aside {
            // The own reference travels with the thread.
            let thread = ManuallyDrop::new(thread);
            self.current.set(&raw const *thread);
            self.trace_run(&thread);
            self.turn_continues(&thread);
            self.record().set_stack(fiber.base());
            self.leave();
            let suspended = fiber.resume(Resume::Continue);
            return self.put_away(suspended, fiber);
        }
        match self.take_fiber() {
            // It begins on a free fiber.
            Ok(mut fiber) => {
                self.record().set_stack(fiber.base());
                let suspended = fiber.resume(Resume::Run(thread));
                self.put_away(suspended, fiber);
            }
            // There is no stack for it.
            Err(error) => {
                self.leave();
                // SAFETY: it was taken out of its queue, and does not run.
                let notice = unsafe { ManuallyDrop::new(thread).refuse(error) };
                self.thread_ended(notice);
                self.enter();
            }
        }
    }

    /// Forgets the thread that ran. Returns its handle's address; null if none ran.
    fn take_current(&self) -> *const Thread {
        self.suspender.set(core::ptr::null());
        self.current.replace(core::ptr::null())
    }

    /// Puts away a fiber that was left, with the thread on it if it is not free.
    fn put_away(&self, suspended: Suspended, fiber: ThreadFiber) {
        let ran = self.take_current();
        let ran = || {
            // SAFETY: Invariant 2 of `state.rs`: the thread has just left the fiber.
            let thread = unsafe { &*ran };
            // SAFETY: the own reference belongs to the worker that ran the thread, and the handle
            // at this address is not dropped.
            unsafe { Thread::from_pointer(thread.pointer()) }
        };
        match suspended {
            // The thread on it has ended.
            Suspended::Free => self.keep_fiber(fiber),
            // It lets others run, and stays ready.
            Suspended::Yielded => {
                self.thread_yielded();
                self.lay_aside(ran(), fiber, None);
            }
            // It waits, unless a wake-up has come.
            Suspended::Paused(pause) => self.lay_aside(ran(), fiber, Some(pause)),
            // It waits, and another thread may wake it already.
            Suspended::Settled => self.lay_aside_settled(ran(), fiber),
        }
    }

    /// Ends the turn of a thread that has left its fiber, and goes back into the scheduler.
    fn end_turn(&self, thread: &Thread) {
        self.trace_leave();
        self.turn_ends(Some(thread));
        self.count_bound(thread);
        self.enter();
    }

    /// Lays aside a thread that has left its fiber, to pause or to yield.
    fn lay_aside(&self, thread: Thread, fiber: ThreadFiber, pause: Option<Pause>) {
        self.end_turn(&thread);
        // SAFETY: this worker has just run it.
        unsafe { thread.header().lay_aside(fiber) };
        let awake = match pause {
            Some(pause) => thread.settle(pause),
            None => Some(thread),
        };
        // It yields, or a wake-up has come already.
        if let Some(thread) = awake {
            self.make_ready(thread, true);
        }
    }

    /// Does the same for a thread that has settled already. The thread that wakes it has the own
    /// reference.
    fn lay_aside_settled(&self, thread: Thread, fiber: ThreadFiber) {
        let thread = ManuallyDrop::new(thread);
        self.end_turn(&thread);
        // SAFETY: this worker has just run it. If it is ready by now, then only for this worker,
        // which takes it up later.
        unsafe { thread.header().lay_aside(fiber) };
    }

    /// Begins a thread on the fiber that `suspender` leaves.
    pub(super) fn begin(&self, suspender: &Suspender<Thread>, thread: &Thread) {
        self.suspender.set(suspender);
        self.current.set(thread);
        thread.header().begin(self.index);
        if let Some(tracer) = self.runtime.detection.tracer() {
            tracer.begins(thread);
        }
        self.trace_run(thread);
        self.turn_begins(thread);
        self.leave();
    }

    #[inline]
    fn trace_run(&self, thread: &Thread) {
        if let Some(tracer) = self.runtime.detection.tracer() {
            tracer.runs(self.index, thread.id());
        }
    }

    #[inline]
    fn trace_leave(&self) {
        if let Some(tracer) = self.runtime.detection.tracer() {
            tracer.leaves(self.index);
        }
    }

    /// Ends the thread that ran, which may be gone already. No thread is on its fiber.
    pub(super) fn thread_ended(&self, notice: CompletionNotice) {
        self.take_current();
        self.trace_leave();
        self.turn_ends(None);
        notice.send();
        self.record().counts().count_end();
    }

    /// Returns another thread for the same fiber: one that has not begun, and only if it is its
    /// turn.
    pub(super) fn next_to_begin(&self) -> Option<Thread> {
        // The slot is gone, or other threads come first.
        if !self.enter()
            || !self.local_queue.borrow().is_empty()
            || self.record().mailbox.is_full()
            || self.has_urgent()
            || self.runtime.ready.timers.is_due()
            || self.owes_slot(Priority::Normal)
        {
            return None;
        }
        let looks = self.looks.get().wrapping_add(1);
        // The scheduler loop does its expensive checks.
        if looks.is_multiple_of(RARELY) {
            return None;
        }
        self.looks.set(looks);
        self.observe_one();
        let thread = self.take_ready()?;
        // It has a fiber of its own, or the scheduler loop sends it away.
        if thread.header().has_begun() || !self.may_run(&thread) {
            self.local_queue.borrow_mut().push_front(thread);
            return None;
        }
        Some(thread)
    }

    /// Looks whether another worker is stuck: at one slot after the other, one each time.
    #[inline]
    fn observe_one(&self) {
        let runtime = &self.runtime;
        // Blocked workers are not looked for.
        if !runtime.detection.is_on {
            return;
        }
        look::worker_runs(runtime, self.index);
        let slots = runtime.processors.count();
        // There is no other.
        if slots == 1 {
            return;
        }
        let slot = self.next_observed.get();
        self.next_observed.set(if slot + 1 < slots { slot + 1 } else { 0 });
        // It is another worker's.
        if slot != self.record().slot() {
            look::look_at(runtime, slot, Looker::Worker);
        }
    }

    /// Returns the next thread of this slot; `None` if there is none, or if the slot was given
    /// away.
    fn find(&self) -> Option<Thread> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        self.observe_one();
        // The slot was closed.
        if !self.stays_open(looks) {
            return None;
        }
        self.runtime.ready.timers.run();
        // Other threads have sent this worker threads that are bound to it.
        if self.record().mailbox.is_full() {
            self.read_mailbox();
        }
        let thread = self.choose();
        // It was woken, and goes on with one thread: another worker is to do the rest.
        if self.was_woken.take() && thread.is_some() {
            self.pass_wake_on();
        }
        thread
    }

    /// Gives up the role of the timekeeper, because there is work.
    pub(super) fn resign_timekeeper(&self) {
        // It was the timekeeper: a sleeping worker is to be that now.
        if self.may_be_timekeeper.replace(false)
            && self.runtime.ready.timers.resign_timekeeper(self.record().slot())
        {
            self.runtime.wake(WakeTarget::Any(1));
        }
    }

    /// Returns whether there is something to do for a worker with this slot.
    fn has_work_here(&self) -> bool {
        let runtime = &self.runtime;
        !self.local_queue.borrow().is_empty()
            || self.record().mailbox.is_full()
            || runtime.is_over()
            || runtime.processors.idle_workers.waiting() > 0
            || runtime.ready.prioritized.any()
            || self.may_take_ready()
    }

    /// Spins, then sleeps, until there may be a thread to run. Returns `false` if the runtime has
    /// ended.
    fn rest(&self) -> bool {
        let (runtime, processors) = (&self.runtime, &self.runtime.processors);
        // `find` has given the slot away.
        if !self.has_slot.get() {
            return self.await_slot();
        }
        // Another worker waits for a slot.
        if processors.idle_workers.waiting() > 0 && self.give_slot() {
            return self.await_slot();
        }
        let slot = self.record().slot();
        // The slot is beyond the processors. Workers do not sleep on those.
        if processors.overcommit.has(slot) {
            let target = self.leave_queue();
            self.has_slot.set(false);
            processors.overcommit.close(slot);
            if let Some(target) = target {
                runtime.wake(target);
            }
            return self.await_slot();
        }
        let started = clock::now();
        // A runtime that closes may have ended since the last thread did, and a spin may be long.
        let is_time = || runtime.ready.timers.is_due();
        let is_needed = || self.has_work_here() || is_time() || runtime.end_if_done();
        let found = || is_needed().then_some(());
        let may_spin = || clock::now().nanos_since(started) < runtime.idle_spin_ns;
        // Something came while it spun.
        if retry_for(found, pauses(LONGEST_PAUSE_TRANSFERS), may_spin).is_some() {
            return true;
        }
        self.with_slot(|slot| slot.map(|slot| runtime.ready.normal.idle(&slot.index)));
        let pause = self.steal_throttle.pause();
        processors.parked.announce(slot, pause.is_some());
        let until = runtime.ready.timers.become_timekeeper(slot);
        self.may_be_timekeeper.set(self.may_be_timekeeper.get() || until != Deadline::NEVER);
        // Something came before the announcement. This only looks: a worker that sleeps, or is
        // about to, takes nothing (`reports/stall.rs`).
        if self.has_work_here() || is_time() {
            processors.parked.retract(slot);
        } else if runtime.end_if_done() {
            // The last thread has ended meanwhile.
            processors.parked.retract(slot);
            return false;
        } else {
            // There is nothing to do.
            let monitor = &runtime.detection.monitor;
            lost_time::stop_all(runtime);
            monitor.worker_pauses(self.record());
            processors.limit.worker_sleeps();
            processors.parked.sleep(slot, pause.map_or(until, |pause| pause.min(until)));
            processors.limit.worker_wakes();
            monitor.worker_begins(self.record());
        }
        self.was_woken.set(true);
        if let Some(target) = self.leave_queue() {
            runtime.wake(target);
        }
        true
    }

    fn take_fiber(&self) -> Result<ThreadFiber, stacks::StackError> {
        let kept = self.free_fibers.borrow_mut().pop();
        kept.map_or_else(|| self.runtime.fibers.take(context::run_threads), Ok)
    }

    fn keep_fiber(&self, fiber: ThreadFiber) {
        let mut kept = self.free_fibers.borrow_mut();
        // A few stay with the worker, the others go to all workers.
        if kept.len() < KEPT_FIBERS {
            kept.push(fiber);
        } else {
            self.runtime.fibers.keep(fiber);
        }
    }
}
