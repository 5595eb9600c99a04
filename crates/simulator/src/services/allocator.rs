//! The allocator of processors, and the way from an event to an upcall.
//!
//! A processor changes hands in two steps, because its thread may be in the middle of an access.
//! First its owner changes, and its thread is interrupted. When that thread has left, the processor
//! arrives at its owner, with all the events that the owner has not received.
//!
//! These functions are the kernel's, because each may take a processor from a thread, and that asks
//! the allocator again. Their state is in `spaces.rs`, with its invariants.

use super::kernel::Kernel;
use super::spaces::{Handler, Space, Upcall};
use crate::failure::Failure;
use crate::scheduler::{ORDINARY, Status, Wait, What};
use crate::{ThreadId, Time};

impl Kernel {
    /// Makes an address space with that priority, which wants so many processors.
    pub(crate) fn add_space(
        &mut self,
        id: ThreadId,
        name: &str,
        wants: (i32, usize),
        handler: Handler,
    ) -> Space {
        let applications = self.machine.scheduling.applications;
        assert!(
            applications == 1,
            "address spaces are alone on a machine, and this has {applications} applications"
        );
        assert!(self.gangs.is_empty(), "a run has gangs or address spaces, not both");
        let space = self.spaces.add(&mut self.scheduler, name, wants, handler);
        let at = self.thread(id).time;
        self.reallocate(at);
        space
    }

    /// Has `space` want so many processors more.
    pub(crate) fn request(&mut self, id: ThreadId, space: usize, more: usize) {
        let at = self.thread(id).time;
        self.spaces.want(space, more);
        self.reallocate(at);
    }

    /// Returns the number of processors of `space`.
    pub(crate) fn assigned(&self, space: usize) -> usize {
        self.scheduler.processors_of(space).count()
    }

    /// Has an activation of `space` leave its processor, if it has one.
    pub(crate) fn interrupt_activation(&mut self, space: Space, activation: ThreadId, at: Time) {
        let thread = self.thread(activation);
        assert!(thread.space == Some(space.0), "{activation} is not of {space}");
        let processor = thread.processor;
        if self.scheduler.processors[processor].current == Some(activation) {
            self.call(processor, at);
        }
    }

    /// The thread of `processor` has to leave: as soon as it can.
    fn call(&mut self, processor: usize, at: Time) {
        self.scheduler.processors[processor].called = true;
        self.interrupt(processor, at);
    }

    /// Divides the processors anew.
    pub(super) fn reallocate(&mut self, at: Time) {
        if self.spaces.is_empty() {
            return;
        }
        let (changed, uneven) = self.spaces.divide(&mut self.scheduler);
        if uneven && !self.spaces.armed {
            self.spaces.armed = true;
            self.scheduler.events.announce(at + self.machine.scheduling.quantum, What::Turn);
        }
        for processor in changed {
            self.adjust(processor, at);
        }
    }

    /// `processor` may have changed its owner.
    fn adjust(&mut self, processor: usize, at: Time) {
        let here = &self.scheduler.processors[processor];
        match here.current {
            None => self.arrive(processor, at),
            Some(id) if Some(self.thread(id).space.unwrap_or(ORDINARY)) == here.owner => {
                // It has come back before its thread had to leave.
                self.spaces.given[processor] &= here.called;
            }
            Some(_) => self.call(processor, at),
        }
    }

    /// `processor` has no thread: its owner uses it, and hears what has happened.
    pub(super) fn arrive(&mut self, processor: usize, at: Time) {
        let here = &mut self.scheduler.processors[processor];
        here.called = false;
        let owner = here.owner.filter(|&owner| owner != ORDINARY);
        let given = core::mem::take(&mut self.spaces.given[processor]);
        if let Some(id) = self.spaces.resumes[processor].take() {
            let space = self.thread(id).space.expect("only activations are resumed");
            let knows_all = self.spaces.records[space].pending.is_empty();
            if owner == Some(space) && !given && knows_all {
                // A switch inside the program.
                self.scheduler.processors[processor].ran_last(id);
                return self.scheduler.put_on(id, processor, at);
            }
            // The thread that left has the same space, which gets the event when this processor is
            // settled.
            self.spaces.stopped(&mut self.scheduler.threads, id, Upcall::Preempted(id));
        }
        match owner {
            None => self.scheduler.dispatch_ready(processor, at),
            Some(space) => {
                let added = given.then_some(Upcall::AddProcessor);
                let pending = core::mem::take(&mut self.spaces.records[space].pending);
                let upcalls: Vec<Upcall> = added.into_iter().chain(pending).collect();
                if upcalls.is_empty() {
                    self.spaces.records[space].wanted = self.assigned(space) - 1;
                    self.reallocate(at);
                } else {
                    self.activate(space, upcalls, processor, at);
                }
            }
        }
    }

    /// Puts a new activation on a processor that has no thread.
    fn activate(&mut self, space: usize, upcalls: Vec<Upcall>, processor: usize, at: Time) {
        if self.threads().len() >= self.limits.threads {
            self.failure = Some(Failure::Threads { limit: self.limits.threads });
            return;
        }
        let scheduler = &mut self.scheduler;
        let id = self.spaces.make_activation(scheduler, space, upcalls, (processor, at));
        scheduler.put_on(id, processor, at);
    }

    /// An activation of `space` that was blocked can go on.
    pub(super) fn unblock(&mut self, id: ThreadId, space: usize, at: Time) {
        let threads = &mut self.scheduler.threads;
        threads.enter(id, Status::Stopped, at);
        threads[id].wait = Wait::Nothing;
        self.spaces.stopped(threads, id, Upcall::Unblocked(id));
        self.deliver(space, at);
    }

    /// Finds a processor on which a space can receive its events.
    pub(super) fn deliver(&mut self, space: usize, at: Time) {
        let record = &mut self.spaces.records[space];
        if record.pending.is_empty() {
            return;
        }
        let scheduler = &self.scheduler;
        let Some(first) = scheduler.processors_of(space).next() else {
            record.wanted = record.wanted.max(1);
            return self.reallocate(at);
        };
        let comes = |processor: usize| {
            scheduler.processors[processor].called || self.spaces.given[processor]
        };
        if scheduler.processors_of(space).any(comes) {
            // It receives them there.
            return;
        }
        let is_idle = |&processor: &usize| scheduler.processors[processor].current.is_none();
        let idle = scheduler.processors_of(space).find(is_idle);
        match idle {
            Some(processor) => self.arrive(processor, at),
            None => self.call(first, at),
        }
    }

    /// The rest of the processors goes to the next.
    pub(super) fn end_turn(&mut self, at: Time) {
        self.spaces.turn += 1;
        self.spaces.armed = false;
        self.reallocate(at);
    }
}
