//! A gang while it runs: what its members share.
//!
//! # Invariants
//!
//! 1. A member's thread drops its share of the closure and the results before it counts itself out: when `done` is set, only handles and scopes have one.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;

use super::completion::Completion;
use super::exchange::ExchangeBuffers;
use crate::error::{Ended, GangError};
use crate::executor::MemberContext;
use crate::member::Member;

pub(crate) struct GangState {
    pub(crate) id: u64,
    pub(crate) completion: Completion,
    pub(crate) exchange: ExchangeBuffers,
    members: usize,
    /// Members that have not ended. Changed under the executor's lock.
    pub(crate) remaining: AtomicU32,
    panicked: AtomicU32,
    /// Somebody has the outcomes.
    taken: AtomicU32,
}

impl GangState {
    pub(crate) fn new(id: u64, members: usize) -> Self {
        Self {
            id,
            completion: Completion::new(members),
            exchange: ExchangeBuffers::new(members),
            members,
            remaining: AtomicU32::fresh(members as u32),
            panicked: AtomicU32::fresh(0),
            taken: AtomicU32::fresh(0),
        }
    }

    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Whether all members have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.completion.is_done()
    }

    /// Whether a member has panicked, and nobody has its payload. Known when the gang is done.
    pub(crate) fn has_unclaimed_panic(&self) -> bool {
        // Relaxed: `is_done` orders the first; who takes the payload meanwhile leaves none.
        self.panicked.load(Ordering::Relaxed) != 0 && self.taken.load(Ordering::Relaxed) == 0
    }

    /// Whether nobody has asked this before: who it is true for has the outcomes.
    fn claim_outcomes(&self) -> bool {
        // Relaxed: one exchange finds 0, whatever the order; `is_done` orders what it then takes.
        self.taken.swap(1, Ordering::Relaxed) == 0
    }

    /// Sleeps until all members have ended. A member of a gang gives its seat away meanwhile.
    pub(crate) fn wait(&self) {
        if self.is_done() {
            return;
        }
        MemberContext::with_current(|current| match current {
            Some(context) => context.suspended(|| self.completion.wait()),
            None => self.completion.wait(),
        });
    }
}

/// What became of a member.
pub(crate) enum Outcome<R> {
    Returned(R),
    Ended,
    Panicked(Box<dyn Any + Send>),
}

/// A gang without its types.
pub(crate) trait SpawnedGang: Send + Sync {
    fn state(&self) -> &Arc<GangState>;

    /// What member `index` does.
    ///
    /// # Safety
    ///
    /// Once for each.
    unsafe fn run(&self, index: usize, context: &Rc<MemberContext>);

    /// Drops what became of the members, but for the first panic, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done.
    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>>;
}

/// A gang whose results can be had.
pub(crate) trait JoinableGang<R>: SpawnedGang {
    /// What became of the members, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done.
    unsafe fn take_outcomes(&self) -> Vec<Option<Outcome<R>>>;
}

pub(crate) struct Gang<F, R> {
    state: Arc<GangState>,
    body: F,
    outcomes: Box<[OutcomeCell<R>]>,
}

struct OutcomeCell<R>(UnsafeCell<Option<Outcome<R>>>);

// SAFETY: its member writes it, and whoever joins the gang takes it afterwards.
unsafe impl<R: Send> Sync for OutcomeCell<R> {}
// SAFETY: as what is in it; a panic's payload is `Send`.
unsafe impl<R: Send> Send for OutcomeCell<R> {}

impl<F, R> Gang<F, R> {
    pub(crate) fn new(id: u64, members: usize, body: F) -> Self {
        let outcomes = (0..members).map(|_| OutcomeCell(UnsafeCell::new(None))).collect();
        Self { state: Arc::new(GangState::new(id, members)), body, outcomes }
    }
}

impl<F, R> SpawnedGang for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    fn state(&self) -> &Arc<GangState> {
        &self.state
    }

    unsafe fn run(&self, index: usize, context: &Rc<MemberContext>) {
        let state = &self.state;
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            context.wait_for_turn();
            let mut member = Member::new(index, state.clone(), context.clone());
            (self.body)(&mut member)
        }));
        let outcome = match outcome {
            Ok(Ok(result)) => {
                state.completion.leave(index);
                Outcome::Returned(result)
            }
            Ok(Err(why)) => {
                state.completion.end(why);
                Outcome::Ended
            }
            Err(payload) => {
                // Relaxed: read when the gang is done.
                state.panicked.store(1, Ordering::Relaxed);
                state.completion.end(Ended::Panicked { member: index });
                Outcome::Panicked(payload)
            }
        };
        // SAFETY: this member's own, and the gang is not done.
        self.outcomes[index].0.with_mut(|mine| unsafe { *mine = Some(outcome) });
    }

    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        // SAFETY: as the caller promises.
        let outcomes = unsafe { self.take_outcomes() };
        let mut first = None;
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Outcome::Panicked(payload) if first.is_none() => first = Some(payload),
                Outcome::Panicked(payload) => drop_payload(payload),
                // One that panics when it is dropped has somebody to blame for it already.
                Outcome::Returned(result) => ignoring_panics(|| drop(result)),
                Outcome::Ended => {}
            }
        }
        first
    }
}

impl<F, R> JoinableGang<R> for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    unsafe fn take_outcomes(&self) -> Vec<Option<Outcome<R>>> {
        if !self.state.claim_outcomes() {
            return Vec::new();
        }
        // SAFETY: the members have ended, as the caller promises, and nobody else takes.
        let taken = self.outcomes.iter().map(|slot| slot.0.with_mut(|it| unsafe { (*it).take() }));
        taken.collect()
    }
}

/// What a gang comes to: the results of all, or why not.
pub(crate) fn join_result<R>(
    state: &GangState,
    outcomes: Vec<Option<Outcome<R>>>,
) -> Result<Vec<R>, GangError> {
    let mut results = Vec::with_capacity(outcomes.len());
    let mut panicked = None;
    for (member, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Some(Outcome::Returned(result)) => results.push(result),
            Some(Outcome::Panicked(payload)) if panicked.is_none() => {
                panicked = Some((member, payload));
            }
            Some(Outcome::Panicked(payload)) => drop_payload(payload),
            Some(Outcome::Ended) | None => {}
        }
    }
    match panicked {
        Some((member, payload)) => Err(GangError::Panicked { member, payload }),
        None if results.len() == state.members => Ok(results),
        None => Err(match state.completion.reason() {
            Ended::Cancelled => GangError::Cancelled,
            Ended::Left { member } | Ended::Panicked { member } => GangError::Left { member },
        }),
    }
}

/// Runs `body`, and forgets it if that panics: for what a user's destructors do in a thread that has to go on.
pub(crate) fn ignoring_panics(body: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
        drop_payload(payload);
    }
}

/// Drops what a panic carried; leaks what that leaves, if it panics itself.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(next) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(next);
    }
}
