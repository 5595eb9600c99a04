//! The address spaces of a run: what each wants, what each has to be told, and which processors
//! change hands.
//!
//! The facts of a processor that the scheduler has to know are fields of the scheduler's own
//! `Processor`: its `owner`, and whether it is `called`.
//!
//! # Invariants
//!
//! 1. Until the first space is made there is no record, and each processor is [`ORDINARY`]. From
//!    then on there is a record for each space, and `last_owners`, `given` and `resumes` have an
//!    entry for each processor.
//! 2. A processor is called from the moment in which its thread has to leave until it arrives.
//! 3. Only threads without a space are ever in the queue of ready ones, and only processors of the
//!    ordinary threads ([`ORDINARY`]) take from it.

use super::shares::{Demand, divide};
use crate::scheduler::{ORDINARY, Scheduler, Status, Threads};
use crate::{ThreadId, Time};
use core::fmt;
use std::rc::Rc;

/// An event that the kernel tells an address space of; an activation by its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcall {
    /// The space has one more processor: this one.
    AddProcessor,
    /// The kernel has taken the processor of an activation, which could have gone on.
    Preempted(ThreadId),
    /// An activation waits in the kernel, and its processor is free: it sleeps, is parked, or waits
    /// for a thread's end.
    Blocked(ThreadId),
    /// An activation that was reported as blocked could go on.
    Unblocked(ThreadId),
}

/// The next use of the processor of a handler that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This activation, which was preempted or has unblocked, goes on here. It is a switch inside
    /// the program: it costs nothing but the handler's work.
    Resume(ThreadId),
    /// Nothing: the space has no use for this processor, and wants one less than it has.
    Idle,
}

/// The program's scheduler: it is called with the events, and returns the next use of the
/// processor.
pub(crate) type Handler = Rc<dyn Fn(&[Upcall]) -> Next>;

/// An address space of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space(pub(crate) usize);

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address space {}", self.0)
    }
}

/// A new activation. Its coroutine is still to be made: it calls `handler` with `upcalls`.
pub(crate) struct NewActivation {
    /// The thread.
    pub(crate) id: ThreadId,
    /// The scheduler of its space.
    pub(crate) handler: Handler,
    /// The events.
    pub(crate) upcalls: Vec<Upcall>,
}

/// One address space.
pub(super) struct Record {
    /// The name of the space.
    pub(super) name: String,
    /// Its priority.
    priority: i32,
    /// The number of processors that it wants.
    pub(super) wanted: usize,
    /// None of the ordinary threads.
    pub(super) handler: Option<Handler>,
    /// The events that the space has not received.
    pub(super) pending: Vec<Upcall>,
}

impl Record {
    fn new(name: &str, (priority, wanted): (i32, usize), handler: Option<Handler>) -> Self {
        Self { name: name.to_owned(), priority, wanted, handler, pending: Vec::new() }
    }
}

/// The address spaces of a run.
#[derive(Default)]
pub(crate) struct Spaces {
    /// The spaces, by number.
    pub(super) records: Vec<Record>,
    /// The owner of each processor before.
    last_owners: Vec<Option<usize>>,
    /// Set if the owner has not been told that it has the processor.
    pub(super) given: Vec<bool>,
    /// The activations that handlers that are done want to go on with.
    pub(super) resumes: Vec<Option<ThreadId>>,
    /// The number of the turn, for processors that cannot be divided evenly.
    pub(super) turn: usize,
    /// Set if the end of the turn is announced.
    pub(super) armed: bool,
    /// New activations.
    new: Vec<NewActivation>,
}

impl Spaces {
    /// Returns whether no space was made.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a space.
    pub(super) fn add(
        &mut self,
        scheduler: &mut Scheduler,
        name: &str,
        wants: (i32, usize),
        handler: Handler,
    ) -> Space {
        if self.is_empty() {
            self.found(scheduler);
        }
        self.records.push(Record::new(name, wants, Some(handler)));
        Space(self.records.len() - 1)
    }

    /// Makes the space of the ordinary threads, which have the processors that they are on.
    fn found(&mut self, scheduler: &mut Scheduler) {
        scheduler.interruptible = true;
        self.records.push(Record::new("the run's own threads", (0, 0), None));
        for processor in &mut scheduler.processors {
            processor.owner = processor.current.map(|_| ORDINARY);
        }
        let count = scheduler.processors.len();
        self.last_owners = vec![None; count];
        self.given = vec![false; count];
        self.resumes = vec![None; count];
    }

    /// Counts the processors that a space wants: so many more.
    pub(super) fn want(&mut self, space: usize, more: usize) {
        let record = &mut self.records[space];
        record.wanted = record.wanted.saturating_add(more);
    }

    /// Returns the number of processors that a space wants.
    pub(crate) fn wanted(&self, space: usize) -> usize {
        self.records[space].wanted
    }

    /// Divides the processors anew, and changes owners until each space has its share. Returns the
    /// processors that changed, and whether some cannot be divided evenly.
    pub(super) fn divide(&mut self, scheduler: &mut Scheduler) -> (Vec<usize>, bool) {
        self.records[ORDINARY].wanted = scheduler.ordinary_demand();
        let demand = |record: &Record| Demand { priority: record.priority, wanted: record.wanted };
        let demands: Vec<_> = self.records.iter().map(demand).collect();
        let (shares, uneven) = divide(&demands, scheduler.processors.len(), self.turn);
        (self.hand_over(scheduler, &shares), uneven)
    }

    /// Changes owners until each has its share. Returns the processors that changed.
    fn hand_over(&mut self, scheduler: &mut Scheduler, shares: &[usize]) -> Vec<usize> {
        let mut changed = Vec::new();
        for (space, &share) in shares.iter().enumerate() {
            for _ in share..scheduler.processors_of(space).count() {
                let idle = |&processor: &usize| scheduler.processors[processor].current.is_none();
                let taken = scheduler.processors_of(space).find(idle);
                let taken = taken.or_else(|| scheduler.processors_of(space).last());
                let taken = taken.expect("it has more than its share");
                scheduler.processors[taken].owner = None;
                self.last_owners[taken] = Some(space);
                self.given[taken] = false;
                changed.push(taken);
            }
        }
        for (space, &share) in shares.iter().enumerate() {
            for _ in scheduler.processors_of(space).count()..share {
                let free: Vec<usize> = (0..scheduler.processors.len())
                    .filter(|&processor| scheduler.processors[processor].owner.is_none())
                    .collect();
                let before = |&&processor: &&usize| self.last_owners[processor] == Some(space);
                let useful =
                    |&&processor: &&usize| space == ORDINARY && scheduler.has_ready_for(processor);
                let next = free.iter().find(useful).or_else(|| free.iter().find(before));
                let Some(&next) = next.or_else(|| free.first()) else { break };
                scheduler.processors[next].owner = Some(space);
                self.given[next] = true;
                changed.push(next);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Records that `id` can be resumed, with the event for its space.
    pub(super) fn stopped(&mut self, threads: &mut Threads, id: ThreadId, event: Upcall) {
        let thread = &mut threads[id];
        thread.resumable = true;
        let space = thread.space.expect("only activations are stopped");
        self.records[space].pending.push(event);
    }

    /// Handles the leaving of an activation from its processor, into `status`: its space gets the
    /// event.
    pub(super) fn left(&mut self, threads: &mut Threads, id: ThreadId, status: Status) {
        let Some(space) = threads[id].space else { return };
        match status {
            Status::Stopped => self.stopped(threads, id, Upcall::Preempted(id)),
            Status::Blocked => self.records[space].pending.push(Upcall::Blocked(id)),
            _ => {}
        }
    }

    /// Records that the handler of `id` is done, and what its processor is for next.
    pub(crate) fn finish(&mut self, threads: &mut Threads, id: ThreadId, next: Next) {
        let Next::Resume(other) = next else { return };
        let (space, processor) = (threads[id].space, threads[id].processor);
        let thread = &mut threads[other];
        assert!(
            thread.resumable && thread.space == space,
            "{other} was to be resumed, and is not a stopped activation of the same address space"
        );
        thread.resumable = false;
        self.resumes[processor] = Some(other);
    }

    /// Makes a thread for an activation of `space` on `processor`.
    pub(super) fn make_activation(
        &mut self,
        scheduler: &mut Scheduler,
        space: usize,
        upcalls: Vec<Upcall>,
        (processor, at): (usize, Time),
    ) -> ThreadId {
        let record = &self.records[space];
        let handler = record.handler.clone().expect("only ordinary threads have none");
        let id = scheduler.threads.create(Some(record.name.clone()), None, at);
        let own = &mut scheduler.threads[id];
        own.space = Some(space);
        own.processor = processor;
        self.new.push(NewActivation { id, handler, upcalls });
        id
    }

    /// Takes the new activations out. Their coroutines are to be made in this order.
    pub(crate) fn take_new(&mut self) -> Vec<NewActivation> {
        core::mem::take(&mut self.new)
    }
}
