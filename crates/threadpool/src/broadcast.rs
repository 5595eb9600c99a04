//! One call on each thread of a pool.
//!
//! Why not a task for each: whoever is idle would run two. Each thread has a box for what is meant for it alone; it looks there between two
//! tasks, and while it waits.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use machine::bomb::AbortOnUnwind;
use machine::cell::UnsafeCell;

use crate::countdown::Countdown;
use crate::deferred::Outcome;
use crate::pool::{Owner, Sent};
use crate::registry::Registry;
use crate::strategy::Strategy;
use crate::worker::{UNWOUND, Worker};

/// A broadcast, on the stack of who waits for it.
struct Calls<'b, B, R> {
    body: &'b B,
    outcomes: Box<[UnsafeCell<Option<Outcome<R>>>]>,
    count: Countdown,
}

pub(crate) fn broadcast<S, B, R>(registry: Arc<Registry<S>>, body: &B) -> Vec<R>
where
    S: Strategy,
    B: Fn(&Worker) -> R + Sync,
    R: Send,
{
    Worker::with_current(|current| {
        let mine = current.filter(|worker| worker.belongs_to(registry.common()));
        // The members do not change while the mail is sent.
        let roster = registry.common().roster.lock();
        let members = roster.target;
        let calls = Calls {
            body,
            outcomes: (0..members).map(|_| UnsafeCell::new(None)).collect(),
            count: Countdown::new(members),
        };
        // From here on workers may use the calls.
        let bomb = AbortOnUnwind::armed(UNWOUND);
        for seat in 0..members {
            let owner = match mine {
                Some(worker) => Owner::Worker(worker.index()),
                None => Owner::visitor(current),
            };
            let sent = Sent(&raw const calls);
            let call: Box<dyn FnOnce(&Worker) + Send + '_> = Box::new(move |worker| {
                // SAFETY: whose calls they are waits for the latch, and the outcome of this seat is this call's.
                unsafe { Calls::<B, R>::call(sent.get(), seat, owner, worker) };
            });
            // SAFETY: only the lifetime changes: what it borrows waits below.
            let call: Box<dyn FnOnce(&Worker) + Send> = unsafe { core::mem::transmute(call) };
            registry.common().send(seat, call);
        }
        drop(roster);
        Owner::wait(&*registry, current, calls.count.latch(), None);
        bomb.defuse();
        let outcomes = calls.outcomes.into_iter().map(UnsafeCell::into_inner);
        let mut results = Vec::with_capacity(members);
        for outcome in outcomes {
            match outcome {
                Some(Ok(result)) => results.push(result),
                Some(Err(payload)) => panic::resume_unwind(payload),
                None => unreachable!("all have been called"),
            }
        }
        results
    })
}

impl<B, R> Calls<'_, B, R>
where
    B: Fn(&Worker) -> R + Sync,
{
    /// # Safety
    ///
    /// `calls` is alive until its latch is set, and this is the call of `seat`.
    unsafe fn call(calls: *const Self, seat: usize, owner: Owner, worker: &Worker) {
        // SAFETY: the caller's promise.
        let these = unsafe { &*calls };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (these.body)(worker)));
        // SAFETY: this call's own.
        these.outcomes[seat].with_mut(|place| unsafe { *place = Some(outcome) });
        // SAFETY: this call's one, and last.
        if let Some(latch) = unsafe { Countdown::end(&raw const these.count) } {
            owner.tell(latch, worker);
        }
    }
}
