//! The kernel's side: the allocator, and the way from an event to an upcall.
//!
//! A processor changes hands in two steps, because its thread may be in the middle of an access.
//! First its owner changes, and its thread is interrupted. When that thread has left, the processor
//! arrives at its owner, with all the events that the owner has not received.
//!
//! # Invariants
//!
//! 1. `owners` is empty until the first space is made, and has one entry a processor from then on.
//! 2. `called[p]` stands from the moment in which the thread on `p` has to leave until `p` arrives.
//! 3. Only threads without a space are ever in the queue of ready ones, and only processors of the
//!    ordinary threads ([`ORDINARY`]) take from it.

use super::shares::{Demand, divide};
use crate::Time;
use crate::failure::Failure;
use crate::os::activations::{Handler, Next, Space, Upcall};
use crate::scheduler::event::What;
use crate::scheduler::thread::{Status, ThreadId, Wait};
use crate::services::kernel::State;
use crate::world::with;

/// The threads that belong to no space.
const ORDINARY: usize = 0;

struct Record {
    /// The name of the space.
    name: String,
    /// Its priority.
    priority: i32,
    /// The number of processors that it wants.
    wanted: usize,
    /// None of the ordinary threads.
    handler: Option<Handler>,
    /// The events that the space has not received.
    pending: Vec<Upcall>,
}

/// The address spaces of a run.
#[derive(Default)]
pub(crate) struct Spaces {
    /// The spaces, by number.
    records: Vec<Record>,
    /// The owner of each processor (Invariant 1).
    owners: Vec<Option<usize>>,
    /// The owner of each processor before.
    last_owners: Vec<Option<usize>>,
    /// Set if the owner has not been told that it has the processor.
    given: Vec<bool>,
    /// Set if the thread on the processor has to leave (Invariant 2).
    called: Vec<bool>,
    /// The activations that handlers that are done want to go on with.
    resumes: Vec<Option<ThreadId>>,
    /// The number of the turn, for processors that cannot be divided evenly.
    turn: usize,
    /// Set if the end of the turn is announced.
    armed: bool,
    /// New activations. Their coroutines are still to be made.
    pub(crate) births: Vec<(ThreadId, Box<dyn FnOnce()>)>,
}

impl Spaces {
    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Returns whether threads without a space may have `processor`.
    pub(crate) fn is_ordinary(&self, processor: usize) -> bool {
        self.is_empty() || self.owners[processor] == Some(ORDINARY)
    }

    /// Returns whether the thread on `processor` has to leave.
    pub(crate) fn is_called(&self, processor: usize) -> bool {
        !self.is_empty() && self.called[processor]
    }

    fn of(&self, space: usize) -> impl Iterator<Item = usize> {
        (0..self.owners.len()).filter(move |&processor| self.owners[processor] == Some(space))
    }
}

impl State {
    pub(crate) fn add_space(
        &mut self,
        id: ThreadId,
        name: &str,
        (priority, wanted): (i32, usize),
        handler: Handler,
    ) -> Space {
        let applications = self.machine.scheduling.applications;
        assert!(
            applications == 1,
            "address spaces are alone on a machine, and this has {applications} applications"
        );
        assert!(self.gangs.is_empty(), "a run has gangs or address spaces, not both");
        if self.spaces.is_empty() {
            self.found();
        }
        let (name, pending) = (name.to_owned(), Vec::new());
        let record = Record { name, priority, wanted, handler: Some(handler), pending };
        self.spaces.records.push(record);
        let at = self.thread(id).time;
        self.reallocate(at);
        Space(self.spaces.records.len() - 1)
    }

    /// Makes the space of the ordinary threads, which have the processors that they are on.
    fn found(&mut self) {
        self.interruptible = true;
        let (name, pending) = ("the run's own threads".to_owned(), Vec::new());
        let ordinary = Record { name, priority: 0, wanted: 0, handler: None, pending };
        self.spaces.records.push(ordinary);
        let count = self.processors.len();
        let taken = |processor: usize| self.processors[processor].current.map(|_| ORDINARY);
        self.spaces.owners = (0..count).map(taken).collect();
        self.spaces.last_owners = vec![None; count];
        self.spaces.given = vec![false; count];
        self.spaces.called = vec![false; count];
        self.spaces.resumes = vec![None; count];
    }

    pub(crate) fn request(&mut self, id: ThreadId, space: usize, more: usize) {
        let at = self.thread(id).time;
        let record = &mut self.spaces.records[space];
        record.wanted = record.wanted.saturating_add(more);
        self.reallocate(at);
    }

    pub(crate) fn assigned(&self, space: usize) -> usize {
        self.spaces.of(space).count()
    }

    pub(crate) fn wanted(&self, space: usize) -> usize {
        self.spaces.records[space].wanted
    }

    pub(crate) fn interrupt_activation(&mut self, space: usize, activation: ThreadId, at: Time) {
        let thread = self.thread(activation);
        assert!(thread.space == Some(space), "{activation} is not of {}", Space(space));
        let processor = thread.processor;
        if self.processors[processor].current == Some(activation) {
            self.call(processor, at);
        }
    }

    /// The thread of `processor` has to leave: as soon as it can.
    fn call(&mut self, processor: usize, at: Time) {
        self.spaces.called[processor] = true;
        self.interrupt(processor, at);
    }

    /// Ordinary threads that could use a processor.
    fn ordinary_demand(&self) -> usize {
        let current = |id: ThreadId| self.thread(id).space.is_none();
        let on = self.processors.iter().filter(|processor| processor.current.is_some_and(current));
        on.count() + self.ready.len()
    }

    /// Divides the processors anew.
    pub(crate) fn reallocate(&mut self, at: Time) {
        if self.spaces.is_empty() {
            return;
        }
        self.spaces.records[ORDINARY].wanted = self.ordinary_demand();
        let demands: Vec<_> = self
            .spaces
            .records
            .iter()
            .map(|record| Demand { priority: record.priority, wanted: record.wanted })
            .collect();
        let (shares, uneven) = divide(&demands, self.processors.len(), self.spaces.turn);
        if uneven && !self.spaces.armed {
            self.spaces.armed = true;
            self.events.announce(at + self.machine.scheduling.quantum, What::Turn);
        }
        let changed = self.hand_over(&shares);
        for processor in changed {
            self.adjust(processor, at);
        }
    }

    /// Changes owners until each has its share. Returns the processors that changed.
    fn hand_over(&mut self, shares: &[usize]) -> Vec<usize> {
        let mut changed = Vec::new();
        for (space, &share) in shares.iter().enumerate() {
            for _ in share..self.assigned(space) {
                let idle = |&processor: &usize| self.processors[processor].current.is_none();
                let taken =
                    self.spaces.of(space).find(idle).or_else(|| self.spaces.of(space).last());
                let taken = taken.expect("it has more than its share");
                self.spaces.owners[taken] = None;
                self.spaces.last_owners[taken] = Some(space);
                self.spaces.given[taken] = false;
                changed.push(taken);
            }
        }
        for (space, &share) in shares.iter().enumerate() {
            for _ in self.assigned(space)..share {
                let free: Vec<usize> = (0..self.processors.len())
                    .filter(|&processor| self.spaces.owners[processor].is_none())
                    .collect();
                let before =
                    |&&processor: &&usize| self.spaces.last_owners[processor] == Some(space);
                let useful = |&&processor: &&usize| {
                    let may = |id: &ThreadId| self.thread(*id).may_run_on(processor);
                    space == ORDINARY && self.ready.iter().any(may)
                };
                let next = free.iter().find(useful).or_else(|| free.iter().find(before));
                let Some(&next) = next.or_else(|| free.first()) else { break };
                self.spaces.owners[next] = Some(space);
                self.spaces.given[next] = true;
                changed.push(next);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// `processor` may have changed its owner.
    fn adjust(&mut self, processor: usize, at: Time) {
        let owner = self.spaces.owners[processor];
        match self.processors[processor].current {
            None => self.arrive(processor, at),
            Some(id) if Some(self.thread(id).space.unwrap_or(ORDINARY)) == owner => {
                // It has come back before its thread had to leave.
                self.spaces.given[processor] &= self.spaces.called[processor];
            }
            Some(_) => self.call(processor, at),
        }
    }

    /// `processor` has no thread: its owner uses it, and hears what has happened.
    pub(crate) fn arrive(&mut self, processor: usize, at: Time) {
        self.spaces.called[processor] = false;
        let owner = self.spaces.owners[processor].filter(|&owner| owner != ORDINARY);
        let given = core::mem::take(&mut self.spaces.given[processor]);
        if let Some(id) = self.spaces.resumes[processor].take() {
            let space = self.thread(id).space.expect("only activations are resumed");
            let knows_all = self.spaces.records[space].pending.is_empty();
            if owner == Some(space) && !given && knows_all {
                // A switch inside the program.
                self.processors[processor].ran_last(id);
                return self.put_on(id, processor, at);
            }
            // The thread that left has the same space, which gets the event when this processor is
            // settled.
            self.stopped(id, space, Upcall::Preempted(id));
        }
        match owner {
            None => self.dispatch_ready(processor, at),
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

    /// Records that `id` can be resumed, with the event for its space.
    fn stopped(&mut self, id: ThreadId, space: usize, event: Upcall) {
        self.thread_mut(id).resumable = true;
        self.spaces.records[space].pending.push(event);
    }

    /// A fresh activation, on a processor that has no thread.
    fn activate(&mut self, space: usize, upcalls: Vec<Upcall>, processor: usize, at: Time) {
        if self.threads.len() >= self.limits.threads {
            self.failure = Some(Failure::Threads { limit: self.limits.threads });
            return;
        }
        let record = &self.spaces.records[space];
        let handler = record.handler.clone().expect("only ordinary threads have none");
        let id = self.create(Some(record.name.clone()), None, at);
        let own = self.thread_mut(id);
        own.space = Some(space);
        own.processor = processor;
        let body = move || {
            let next = handler(&upcalls);
            with(|world, id| world.state.finish(id, next));
        };
        self.spaces.births.push((id, Box::new(body)));
        self.put_on(id, processor, at);
    }

    /// The handler of `id` is done.
    fn finish(&mut self, id: ThreadId, next: Next) {
        let Next::Resume(other) = next else { return };
        let (space, processor) = (self.thread(id).space, self.thread(id).processor);
        let thread = self.thread_mut(other);
        assert!(
            thread.resumable && thread.space == space,
            "{other} was to be resumed, and is not a stopped activation of the same address space"
        );
        thread.resumable = false;
        self.spaces.resumes[processor] = Some(other);
    }

    /// Handles the leaving of an activation from `processor`, and gives its space the event.
    pub(crate) fn left(&mut self, id: ThreadId, status: Status) {
        let Some(space) = self.thread(id).space else { return };
        match status {
            Status::Stopped => self.stopped(id, space, Upcall::Preempted(id)),
            Status::Blocked => self.spaces.records[space].pending.push(Upcall::Blocked(id)),
            _ => {}
        }
    }

    /// An activation that was blocked can go on.
    pub(crate) fn unblock(&mut self, id: ThreadId, space: usize, at: Time) {
        self.enter(id, Status::Stopped, at);
        self.thread_mut(id).wait = Wait::Nothing;
        self.stopped(id, space, Upcall::Unblocked(id));
        self.deliver(space, at);
    }

    /// Finds a processor on which a space can receive its events.
    pub(crate) fn deliver(&mut self, space: usize, at: Time) {
        let spaces = &mut self.spaces;
        if spaces.records[space].pending.is_empty() {
            return;
        }
        let Some(first) = spaces.of(space).next() else {
            spaces.records[space].wanted = spaces.records[space].wanted.max(1);
            return self.reallocate(at);
        };
        if spaces.of(space).any(|processor| spaces.called[processor] || spaces.given[processor]) {
            // It receives them there.
            return;
        }
        let is_idle = |&processor: &usize| self.processors[processor].current.is_none();
        let idle = self.spaces.of(space).find(is_idle);
        match idle {
            Some(processor) => self.arrive(processor, at),
            None => self.call(first, at),
        }
    }

    /// The rest of the processors goes to the next.
    pub(crate) fn end_turn(&mut self, at: Time) {
        self.spaces.turn += 1;
        self.spaces.armed = false;
        self.reallocate(at);
    }
}
