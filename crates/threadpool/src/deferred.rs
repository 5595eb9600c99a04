//! Deferred tasks: the second halves of forks, kept to oneself until somebody wants work.
//!
//! Almost every fork of a fine-grained program is taken back by the worker that made it. So a fork should cost nothing until another worker is idle:
//! the second half stays on the stack of the fork, with a pointer to it in a ring of four that only the worker sees. At a fork the worker publishes
//! the oldest, which is the largest, if nothing of its lies ready, or if somebody is idle: it creates a *ticket*, a task like any other, for whoever
//! takes it.
//!
//! Why not push every second half where thieves can take it: the pop needs a fence. Why a ring of four and not a list of all: a fork that finds four
//! older ones waiting calls its halves one after the other, for two loads more. Why publish by demand and not by a timer (a heartbeat): a timer is a
//! thread that nobody asked for, and its beat passes unseen until the next fork all the same.
//!
//! ```text
//! the worker's ring:  bottom ─► [outer fork] [inner] [inner of that] ◄─ top        ticket: run | fork | owner, shared: 0 = free
//!                       '--- publish: the oldest --------------------------------------------^
//! ```
//!
//! # Who runs a published fork
//!
//! The worker, when it gets there, and whoever takes the ticket out of the strategy each exchange `taken` into the ticket's shared word, once. The
//! first has the fork. The second releases the block: a worker after it has waited for the first, a thief at once. So a ticket that comes out of the
//! strategy late, even after its fork's stack frame is gone, does no harm: it is only a block.
//!
//! # How often
//!
//! At most four tickets that nobody has taken, and by a bucket of time ([`Bucket`]): eight at once, one in 5 µs on average. So what publishing costs
//! is bounded however small the tasks are.
//!
//! # Invariants
//!
//! 1. `length = top - bottom <= 4`; the forks from `bottom` to `top` are on the stack below, inner above outer, and not published.
//! 2. Publishing takes the outermost: if a fork is published, all outside it are.
//! 3. A fork's frame is not left, by return or panic, before the fork is out of the ring and nobody else runs it.
//! 4. A pointer to a fork was made from its `Half`, so it reaches the second half as well.
//! 5. `bottom` counts publications and may wrap: positions are compared by their distance.
//!
//! # Orderings
//!
//! The exchanges of the shared word are Relaxed: they decide who is first, and publish nothing. What the thief must see, the fork and the block's
//! words, the strategy has handed over with the ticket. Before a block is released, the first of the two must have done with it. If that is the
//! worker, it last touched the block's words when it filled them, which the thief has seen. If that is the thief, it sets the latch after it has read
//! them, and the worker waits for that. The latch hands the result back as well.
//!
//! Source: lazy task creation, Mohr, Kranz and Halstead 1990; the local queue that is published on demand, Acar, Charguéraud and Rainey 2013.

use core::any::Any;
use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::panic::{self, AssertUnwindSafe};

use machine::atomic::{AtomicUsize, Ordering};
use machine::bomb::AbortOnUnwind;
use machine::cell::UnsafeCell;

use crate::control_block::Task;
use crate::job::{self, Fate};
use crate::latch::Latch;
use crate::registry::Order;
use crate::worker::{Awaited, Bucket, UNWOUND, Worker};

/// What a task that may panic leaves behind.
pub(crate) type Outcome<R> = Result<R, Box<dyn Any + Send>>;

const FREE: usize = 0;
/// Taken by the worker itself; by another: `TAKEN` + 1 + its number.
const TAKEN: usize = 1;

const RING: usize = 4;

/// After a fork that was not to be published, so many pass before the clock is asked again.
const REST: u32 = 7;

/// Tickets of a worker that nobody has taken: at most so many.
const OFFERS: usize = 4;

/// The forks of a worker that it has kept to itself.
pub(crate) struct Pending {
    /// How many there are: `top - bottom`.
    length: Cell<usize>,
    bottom: Cell<usize>,
    ring: [Cell<*const Fork>; RING],
    /// The shared words of the last tickets, by their number.
    tickets: [Cell<Option<NonNull<AtomicUsize>>>; OFFERS],
    offered: Cell<usize>,
    /// Forks until publishing is thought of again.
    rest: Cell<u32>,
    bucket: Bucket,
}

/// The second half of a fork, whatever its type.
struct Fork {
    /// Runs it and sets the latch; says whether the owner must be told.
    run: unsafe fn(*const Fork, &Worker) -> bool,
    latch: Latch,
    ticket: Cell<Option<NonNull<()>>>,
}

#[repr(C)]
struct Half<B, R> {
    fork: Fork,
    state: UnsafeCell<State<B, R>>,
}

enum State<B, R> {
    Waits(ManuallyDrop<B>),
    Done(Outcome<R>),
    Gone,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self {
            length: Cell::new(0),
            bottom: Cell::new(0),
            ring: [const { Cell::new(core::ptr::null()) }; RING],
            tickets: [const { Cell::new(None) }; OFFERS],
            offered: Cell::new(0),
            rest: Cell::new(0),
            bucket: Bucket::new(),
        }
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.length.get() < RING
    }

    #[inline]
    fn push(&self, fork: *const Fork) -> usize {
        let length = self.length.get();
        let at = self.bottom.get().wrapping_add(length);
        self.ring[at % RING].set(fork);
        self.length.set(length + 1);
        at
    }

    /// Takes the newest back, which was the one at `at`. Says whether it was still there.
    #[inline]
    fn pop(&self, at: usize) -> bool {
        // Invariant 5.
        let above = at.wrapping_sub(self.bottom.get());
        let mine = above as isize >= 0;
        if mine {
            self.length.set(above);
        }
        mine
    }
}

impl Worker {
    /// Runs `a` and `b`, perhaps at the same time, and returns what they return. `a` runs here; `b` too, unless another worker takes it meanwhile.
    ///
    /// While nobody is idle most forks cost two loads and two calls; the crate's README names the command that measures them.
    ///
    /// # Panics
    ///
    /// If `a` or `b` does, with what it panicked with; `a`'s if both do. If `a` panics, `b` may not run; nothing returns before both have ended.
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Self) -> RA,
        B: FnOnce(&Self) -> RB + Send,
        RB: Send,
    {
        if self.pending.has_room() {
            return self.join_deferred(a, b);
        }
        if self.common().sleeping.wanted() {
            self.offer();
        }
        (a(self), b(self))
    }

    #[inline]
    fn join_deferred<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Self) -> RA,
        B: FnOnce(&Self) -> RB + Send,
        RB: Send,
    {
        let half = Half::<B, RB> {
            fork: Fork { run: Half::<B, RB>::run, latch: Latch::new(), ticket: Cell::new(None) },
            state: UnsafeCell::new(State::Waits(ManuallyDrop::new(b))),
        };
        // Invariant 4.
        let at = self.pending.push((&raw const half).cast());
        if self.common().has_others() {
            self.offer();
        }
        // Invariant 3, if `a` unwinds.
        let guard = TakeBack { worker: self, half: &half, at };
        let ra = a(self);
        core::mem::forget(guard);
        let rb = if self.pending.pop(at) || self.take_back(&half.fork) {
            // SAFETY: nobody else has it any more.
            let b = unsafe { half.body() };
            b(self)
        } else {
            // SAFETY: the latch was set, by who ran it.
            match unsafe { half.outcome() } {
                Ok(rb) => rb,
                Err(payload) => panic::resume_unwind(payload),
            }
        };
        (ra, rb)
    }

    /// Publishes a fork, unless that has been tried just now and there was no reason to.
    #[inline]
    fn offer(&self) {
        let rest = self.pending.rest.get();
        if rest > 0 {
            self.pending.rest.set(rest - 1);
        } else if !self.publish() {
            self.pending.rest.set(REST);
        }
    }

    /// Offers the oldest fork to the others, if that does not happen too often. Says whether it did, or had none.
    #[cold]
    #[inline(never)]
    fn publish(&self) -> bool {
        let pending = &self.pending;
        if pending.length.get() == 0 {
            return true;
        }
        // One lies ready at all times, for whoever becomes idle while a half runs that does not fork; more, if somebody is.
        let offers = if self.common().sleeping.wanted() { OFFERS } else { 1 };
        let first = pending.offered.get().wrapping_sub(offers) % OFFERS;
        let waits = pending.tickets[first].get().is_some_and(|ticket| {
            // SAFETY: blocks live as long as the strategy. Relaxed: a hint; it may be another task's by now.
            unsafe { ticket.as_ref() }.load(Ordering::Relaxed) == FREE
        });
        if waits || !pending.bucket.take() {
            return false;
        }
        self.publish_oldest();
        true
    }

    /// Publishes all forks, however often that happens: the worker is about to block, perhaps until one of them has run.
    #[cold]
    pub(crate) fn publish_all(&self) {
        while self.pending.length.get() > 0 {
            self.publish_oldest();
        }
    }

    /// Publishes the oldest fork; there is one.
    fn publish_oldest(&self) {
        let pending = &self.pending;
        let last = &pending.tickets[pending.offered.get() % OFFERS];
        let at = pending.bottom.get();
        pending.bottom.set(at.wrapping_add(1));
        pending.length.set(pending.length.get() - 1);
        pending.offered.set(pending.offered.get().wrapping_add(1));
        let fork = pending.ring[at % RING].get();
        let owner = self.index();
        // The fork's guard is not armed yet.
        let bomb = AbortOnUnwind::armed(UNWOUND);
        self.core().create(Some(self.place()), Order::Offer, &mut |task| {
            // Relaxed: the strategy publishes the block.
            task.shared().store(FREE, Ordering::Relaxed);
            last.set(Some(NonNull::from(task.shared())));
            // SAFETY: in the ring, so on the stack below (Invariant 1).
            unsafe { (*fork).ticket.set(Some(task.raw())) };
            // SAFETY: the fork outlives its being taken (Invariant 3), and `B` and `R` are `Send`.
            unsafe { job::fill_raw(task, run_ticket, fork.cast(), owner) };
        });
        bomb.defuse();
        self.counters().published.add(1);
    }

    /// Takes a published fork back: true, if nobody had taken it. Else waits until it is done.
    #[cold]
    #[inline(never)]
    fn take_back(&self, fork: &Fork) -> bool {
        let ticket = fork.ticket.get().expect("what is not in the ring was published");
        // SAFETY: the block is the fork's until both have exchanged, and this is the one exchange of the owner. The task is not used as one here.
        let task = ManuallyDrop::new(unsafe { Task::from_raw(ticket) });
        // Relaxed: see the head of the file.
        let before = task.shared().swap(TAKEN, Ordering::Relaxed);
        if before == FREE {
            // Whoever finds the ticket releases it.
            return true;
        }
        let thief = before - TAKEN - 1;
        self.wait_for(&fork.latch, Awaited::Fork(thief));
        // The thief was first, so this is the second to come.
        self.core().release(self.place(), ManuallyDrop::into_inner(task));
        false
    }
}

/// Runs the fork of a ticket, unless its owner has taken it back.
unsafe fn run_ticket(task: Task, worker: &Worker, _: Fate) -> Option<Task> {
    // Relaxed: see the head of the file.
    let before = task.shared().swap(TAKEN + 1 + worker.index(), Ordering::Relaxed);
    if before != FREE {
        return Some(task);
    }
    // SAFETY: filled by `publish_oldest`.
    let (fork, owner) = unsafe { job::argument(&task) };
    let fork = fork.cast::<Fork>();
    // SAFETY: this was first, so the owner waits for the latch (Invariant 3).
    let run = unsafe { (*fork).run };
    // SAFETY: as above; `run` is the function of this fork.
    if unsafe { run(fork, worker) } {
        worker.common().sleeping.tell_only(owner);
    }
    // The owner, who is second, releases the block.
    None
}

impl<B, R> Half<B, R>
where
    B: FnOnce(&Worker) -> R,
{
    /// # Safety
    ///
    /// `fork` is that of a `Half<B, R>` that the caller has, and whose owner waits for the latch.
    unsafe fn run(fork: *const Fork, worker: &Worker) -> bool {
        let half = fork.cast::<Self>();
        // SAFETY: the caller's promise, and Invariant 4; so below.
        let half = unsafe { &*half };
        // SAFETY: as above.
        let body = unsafe { half.body() };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(worker)));
        // SAFETY: the owner looks after the latch is set.
        half.state.with_mut(|state| unsafe { *state = State::Done(outcome) });
        // SAFETY: alive until it is set.
        let latch = unsafe { &raw const (*fork).latch };
        // SAFETY: as above; this is the last access.
        unsafe { Latch::set(latch) }
    }

    /// # Safety
    ///
    /// The caller has the fork, and it has not run.
    #[inline]
    unsafe fn body(&self) -> B {
        // SAFETY: the caller's promise.
        let state = self.state.with_mut(|state| unsafe { core::ptr::replace(state, State::Gone) });
        match state {
            State::Waits(body) => ManuallyDrop::into_inner(body),
            State::Done(_) | State::Gone => unreachable!("a fork is run once"),
        }
    }

    /// # Safety
    ///
    /// The latch is set.
    unsafe fn outcome(&self) -> Outcome<R> {
        // SAFETY: who set it has done its last access.
        let state = self.state.with_mut(|state| unsafe { core::ptr::replace(state, State::Gone) });
        match state {
            State::Done(outcome) => outcome,
            State::Waits(_) | State::Gone => {
                unreachable!("the latch of a fork is set by who ran it")
            }
        }
    }
}

/// Sees to Invariant 3 when the first half unwinds.
struct TakeBack<'f, B: FnOnce(&Worker) -> R, R> {
    worker: &'f Worker,
    half: &'f Half<B, R>,
    at: usize,
}

impl<B: FnOnce(&Worker) -> R, R> Drop for TakeBack<'_, B, R> {
    fn drop(&mut self) {
        if self.worker.pending.pop(self.at) || self.worker.take_back(&self.half.fork) {
            // SAFETY: nobody else has it.
            drop(unsafe { self.half.body() });
        } else {
            // What it returned, or panicked with: the first half's panic goes before.
            // SAFETY: the latch was set.
            drop(unsafe { self.half.outcome() });
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("forks", &self.length.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Pending, RING};

    /// On a machine with words of 32 bits, after four thousand million publications.
    #[test]
    fn the_count_of_publications_may_wrap() {
        let pending = Pending::new();
        pending.bottom.set(usize::MAX - 1);
        let at = [(); RING].map(|()| pending.push(core::ptr::null()));
        // The two outermost are published.
        for _ in 0..2 {
            pending.bottom.set(pending.bottom.get().wrapping_add(1));
            pending.length.set(pending.length.get() - 1);
        }
        assert!(pending.pop(at[3]) && pending.pop(at[2]));
        assert_eq!(pending.length.get(), 0);
        assert!(!pending.pop(at[1]) && !pending.pop(at[0]));
    }
}
