//! A gang with its types: the closure, and the outcomes of its members.
//!
//! # Invariants
//!
//! 1. A member's thread drops its reference to the closure and the outcomes before it counts itself
//!    out. So when the gang is done, only handles and scopes have references.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use stanchion_machine::cell::UnsafeCell;

use crate::error::{Ended, GangError};
use crate::executor::{MemberContext, SpawnedGang};
use crate::member::Member;
use crate::panics::{drop_payload, ignoring_panics};
use crate::state::GangState;

/// The outcome of a member.
enum Outcome<R> {
    Returned(R),
    Ended,
    Panicked(Box<dyn Any + Send>),
}

/// A gang that can be joined.
pub(super) trait JoinableGang<R>: SpawnedGang {
    /// Returns the results of all members, or why there are none. Called once.
    ///
    /// # Safety
    ///
    /// The gang is done.
    unsafe fn take_results(&self) -> Result<Vec<R>, GangError>;
}

/// A gang that was spawned.
pub(super) struct Gang<F, R> {
    /// The state that the members share, without types.
    state: Arc<GangState>,
    /// The closure that each member runs.
    body: F,
    /// The outcomes, by index. Each member writes its own.
    outcomes: Box<[OutcomeCell<R>]>,
}

struct OutcomeCell<R>(UnsafeCell<Option<Outcome<R>>>);

// SAFETY: its member writes it, and the thread that joins the gang takes it afterwards.
unsafe impl<R: Send> Sync for OutcomeCell<R> {}
// SAFETY: as its contents; the payload of a panic is `Send`.
unsafe impl<R: Send> Send for OutcomeCell<R> {}

impl<F, R> Gang<F, R> {
    pub(super) fn new(id: u64, members: usize, body: F) -> Self {
        let outcomes = (0..members).map(|_| OutcomeCell(UnsafeCell::new(None))).collect();
        Self { state: Arc::new(GangState::new(id, members)), body, outcomes }
    }

    /// Takes the members' outcomes, by index; none if a thread has taken them before.
    ///
    /// # Safety
    ///
    /// The gang is done.
    unsafe fn take_outcomes(&self) -> Vec<Option<Outcome<R>>> {
        if !self.state.claim_outcomes() {
            return Vec::new();
        }
        // SAFETY: the members have ended, as the caller promises, and no other thread takes.
        let taken = self.outcomes.iter().map(|cell| cell.0.with_mut(|it| unsafe { (*it).take() }));
        taken.collect()
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

    unsafe fn run(&self, context: &Rc<MemberContext>) {
        let (state, index) = (&self.state, context.index());
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            context.wait_for_turn();
            let mut member = Member::new(state.clone(), context.clone());
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
                state.set_panicked();
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
                // A result that panics when it is dropped has no caller to report to.
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
    unsafe fn take_results(&self) -> Result<Vec<R>, GangError> {
        let mut results = Vec::with_capacity(self.outcomes.len());
        let mut panicked = None;
        // SAFETY: as the caller promises.
        let outcomes = unsafe { self.take_outcomes() };
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
            None if results.len() == self.outcomes.len() => Ok(results),
            None => Err(match self.state.completion.reason() {
                Ended::Cancelled => GangError::Cancelled,
                Ended::Left { member } | Ended::Panicked { member } => GangError::Left { member },
            }),
        }
    }
}
