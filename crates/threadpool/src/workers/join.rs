//! `join`, from the fork to the result. The second half of a fork lies on the stack of the call
//! until its own worker or a thief runs it.
//!
//! 1. [`join`](Worker::join) pushes the fork onto the worker's [fork
//!    stack](crate::queues::fork_stack).
//! 2. If a worker is idle, [`notify_of_forks`](Worker::notify_of_forks) wakes it.
//! 3. `join` runs the first half and pops the fork. If no thief has it, `join` runs the second
//!    half.
//! 4. An idle worker takes the oldest fork by [`steal_fork`](Worker::steal_fork) and runs it by
//!    [`run_stolen`](Worker::run_stolen), which sets the fork's latch.
//! 5. The owner of a stolen fork waits for the latch in [`await_thief`](Worker::await_thief), as
//!    the pool's [`Wait`](crate::Wait) says.
//!
//! # If a half panics
//!
//! The second half always runs, here or on its thief. `join` returns after both have ended. Why not
//! drop a second half that has not begun when the first one panics: its captures may panic when
//! they are dropped, and then the process would abort in the middle of the first panic. rayon runs
//! it as well.
//!
//! # Invariants
//!
//! 1. A call of `join` does not end before its fork is popped or its latch is set.
//! 2. A pointer to a fork was made from its `SecondHalf`, so it reaches the second half as well.
//! 3. The second half is taken out once: by the worker that has popped the fork, or by its thief.
//!
//! # Orderings
//!
//! A thief sees the fork because the fork stack hands it over. The latch hands the result back.

use core::any::Any;
use core::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};

use stanchion_machine::cell::UnsafeCell;

use crate::sync::Latch;
use crate::workers::{Awaited, Fork, StolenFork, Worker};

/// The result of a task that may panic.
pub(crate) type JobResult<R> = Result<R, Box<dyn Any + Send>>;

#[repr(C)]
/// The second half of a fork, on the stack of its `join`.
struct SecondHalf<B, R> {
    /// First, so that a pointer to the fork is a pointer to this.
    fork: Fork,
    /// The closure, and after the latch is set its result. Written by the owner, then by the thief.
    content: UnsafeCell<Content<B, R>>,
}

union Content<B, R> {
    body: ManuallyDrop<B>,
    outcome: ManuallyDrop<JobResult<R>>,
}

impl Worker {
    /// Runs `a` and `b`, perhaps at the same time, and returns what they return. `a` runs here; `b`
    /// too, unless another worker takes it meanwhile.
    ///
    /// If a worker is idle when this is called, or becomes idle while `a` runs, it can take `b`
    /// within 10 µs, whether or not `a` forks again. Three times are not counted: its own wake-up,
    /// the time for which the machine runs something else in its place, and older forks of this
    /// worker, which it takes first.
    ///
    /// A fork that no other worker takes costs a few loads and stores beside the two calls. The
    /// crate's README names the command that measures them.
    ///
    /// # Panics
    ///
    /// If `a` or `b` does, with its payload; with that of `a` if both do. Both run in any case, and
    /// this returns after both have ended.
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Self) -> RA,
        B: FnOnce(&Self) -> RB + Send,
        RB: Send,
    {
        let half = SecondHalf::<B, RB> {
            fork: Fork { run: SecondHalf::<B, RB>::run, latch: Latch::new() },
            content: UnsafeCell::new(Content { body: ManuallyDrop::new(b) }),
        };
        // SAFETY: this is the owner's thread. The fork is alive until it is popped or was run
        // (Invariant 1), and `B` and `RB` are `Send`.
        let at = unsafe { self.forks.push((&raw const half).cast()) };
        if self.pool().sleep.is_watched() {
            self.notify_of_forks();
        }
        let ra = match panic::catch_unwind(AssertUnwindSafe(|| a(self))) {
            Ok(ra) => ra,
            Err(payload) => self.first_half_panicked(at, &half, payload),
        };
        // SAFETY: `a` has popped what it pushed (Invariant 1).
        if unsafe { self.forks.pop(at) } {
            // SAFETY: popped.
            let b = unsafe { half.take_body() };
            return (ra, b(self));
        }
        match self.await_thief(&half) {
            Ok(rb) => (ra, rb),
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    /// Runs or awaits the second half, then resumes the first half's panic.
    #[cold]
    #[inline(never)]
    fn first_half_panicked<B, RB>(
        &self,
        at: usize,
        half: &SecondHalf<B, RB>,
        payload: Box<dyn Any + Send>,
    ) -> !
    where
        B: FnOnce(&Self) -> RB,
    {
        // SAFETY: as in `join`.
        let outcome = if unsafe { self.forks.pop(at) } {
            // SAFETY: popped.
            let b = unsafe { half.take_body() };
            panic::catch_unwind(AssertUnwindSafe(|| b(self)))
        } else {
            self.await_thief(half)
        };
        // The first half's panic goes on. What the second half left may panic in its drop.
        if let Err(second) = panic::catch_unwind(AssertUnwindSafe(|| drop(outcome))) {
            // Its drop may panic as well.
            core::mem::forget(second);
        }
        panic::resume_unwind(payload)
    }

    /// Waits until the thief has run the second half.
    #[cold]
    #[inline(never)]
    fn await_thief<B, RB>(&self, half: &SecondHalf<B, RB>) -> JobResult<RB> {
        self.wait_for(&half.fork.latch, Awaited::Fork);
        // SAFETY: the latch is set.
        unsafe { half.take_outcome() }
    }

    /// Wakes as many idle workers as there are forks for them.
    #[cold]
    #[inline(never)]
    fn notify_of_forks(&self) {
        let pool = self.pool();
        let woken = pool.sleep.notify(self.forks.ready());
        if woken > 0 {
            self.counters().wakeups.add(woken);
        }
        if let Some(monitor) = &pool.monitor {
            monitor.notify_work();
        }
    }

    /// Takes a fork for this worker: that of another worker, or else its own oldest. The first half
    /// of its own waits below on its stack.
    pub(crate) fn steal_fork(&self) -> Option<StolenFork> {
        let used = self.pool().used_slots().len();
        let start = self.random.next() as usize % used.max(1);
        let own = self.index();
        let others = (start..used).chain(0..start).filter(|&victim| victim != own);
        others.chain([own]).find_map(|victim| self.steal_fork_of(victim))
    }

    /// Takes the oldest fork of the worker `victim`, if no other thief takes it.
    pub(crate) fn steal_fork_of(&self, victim: usize) -> Option<StolenFork> {
        let pool = self.pool();
        let forks = pool.info(victim).forks();
        let fork = forks.steal(self.index())?;
        // SAFETY: alive until its latch is set (Invariant 1).
        let latch = unsafe { &raw const (*fork).latch };
        // SAFETY: as above.
        unsafe { &*latch }.name_thief(self.index());
        let left = forks.ready();
        if left > 0 {
            // A worker that went to sleep while this thief was at that stack did not count them.
            pool.sleep.notify(left);
        }
        Some(StolenFork { fork, owner: victim })
    }

    /// Runs a fork of another worker.
    pub(crate) fn run_stolen(&self, stolen: StolenFork) {
        self.counters().tasks.add(1);
        self.counters().stolen_forks.add(1);
        let StolenFork { fork, owner } = stolen;
        // SAFETY: the owner waits for the latch (Invariant 1).
        let run = unsafe { (*fork).run };
        // SAFETY: as above; `run` is the function of this fork, which runs once.
        if unsafe { run(fork, self) } {
            self.pool().sleep.notify_worker(owner);
        }
    }
}

impl<B, R> SecondHalf<B, R> {
    /// Runs the second half on its thief.
    ///
    /// # Safety
    ///
    /// `fork` is that of a `SecondHalf<B, R>` that the caller has stolen.
    unsafe fn run(fork: *const Fork, worker: &Worker) -> bool
    where
        B: FnOnce(&Worker) -> R,
    {
        // SAFETY: the owner waits for the latch, and Invariant 2.
        let half = unsafe { &*fork.cast::<Self>() };
        // SAFETY: the caller's promise.
        let body = unsafe { half.take_body() };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(worker)));
        let outcome = Content { outcome: ManuallyDrop::new(outcome) };
        // SAFETY: the owner looks after the latch is set. The closure has been taken out.
        half.content.with_mut(|content| unsafe { content.write(outcome) });
        // SAFETY: alive until it is set.
        let latch = unsafe { &raw const (*fork).latch };
        // SAFETY: as above; this is the last access.
        unsafe { Latch::set(latch) }
    }

    /// Takes the closure out.
    ///
    /// # Safety
    ///
    /// The caller has popped or stolen the fork, and this is called once (Invariant 3).
    #[inline]
    unsafe fn take_body(&self) -> B {
        self.content.with(|content| {
            // SAFETY: alive, as `self` is.
            let body = unsafe { &raw const (*content).body };
            // SAFETY: the caller's promise: it holds the body, which no other thread touches.
            let body = unsafe { body.read() };
            ManuallyDrop::into_inner(body)
        })
    }

    /// Takes the result out.
    ///
    /// # Safety
    ///
    /// The latch is set, and this is called once.
    unsafe fn take_outcome(&self) -> JobResult<R> {
        self.content.with(|content| {
            // SAFETY: alive, as `self` is.
            let outcome = unsafe { &raw const (*content).outcome };
            // SAFETY: the thief has written it, and its last access was to set the latch.
            let outcome = unsafe { outcome.read() };
            ManuallyDrop::into_inner(outcome)
        })
    }
}
