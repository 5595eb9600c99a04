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

use super::completion::Ending;
use super::exchange::Board;
use crate::error::{Ended, GangError};
use crate::executor::Post;
use crate::member::Member;

pub(crate) struct Team {
    pub(crate) id: u64,
    pub(crate) ending: Ending,
    pub(crate) board: Board,
    members: usize,
    /// Members that have not ended. Changed under the executor's lock.
    pub(crate) remaining: AtomicU32,
    panicked: AtomicU32,
    /// Somebody has the outcomes.
    taken: AtomicU32,
}

impl Team {
    pub(crate) fn new(id: u64, members: usize) -> Self {
        Self {
            id,
            ending: Ending::new(members),
            board: Board::new(members),
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
        self.ending.is_done()
    }

    /// Whether a member has panicked, and nobody has its payload. Known when the gang is done.
    pub(crate) fn hides_panic(&self) -> bool {
        // Relaxed: `is_done` orders the first; who takes the payload meanwhile leaves none.
        self.panicked.load(Ordering::Relaxed) != 0 && self.taken.load(Ordering::Relaxed) == 0
    }

    /// Whether nobody has asked this before: who it is true for has the outcomes.
    fn is_first(&self) -> bool {
        // Relaxed: one exchange finds 0, whatever the order; `is_done` orders what it then takes.
        self.taken.swap(1, Ordering::Relaxed) == 0
    }

    /// Sleeps until all members have ended. A member of a gang gives its seat away meanwhile.
    pub(crate) fn wait(&self) {
        if self.is_done() {
            return;
        }
        Post::with_current(|current| match current {
            Some(post) => post.suspended(|| self.ending.sleep()),
            None => self.ending.sleep(),
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
pub(crate) trait Run: Send + Sync {
    fn team(&self) -> &Arc<Team>;

    /// What member `index` does.
    ///
    /// # Safety
    ///
    /// Once for each.
    unsafe fn run(&self, index: usize, post: &Rc<Post>);

    /// Drops what became of the members, but for the first panic, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done.
    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>>;
}

/// A gang whose results can be had.
pub(crate) trait Results<R>: Run {
    /// What became of the members, if nobody has asked before.
    ///
    /// # Safety
    ///
    /// After the gang is done.
    unsafe fn take(&self) -> Vec<Option<Outcome<R>>>;
}

pub(crate) struct Gang<F, R> {
    team: Arc<Team>,
    body: F,
    outcomes: Box<[Slot<R>]>,
}

struct Slot<R>(UnsafeCell<Option<Outcome<R>>>);

// SAFETY: its member writes it, and whoever joins the gang takes it afterwards.
unsafe impl<R: Send> Sync for Slot<R> {}
// SAFETY: as what is in it; a panic's payload is `Send`.
unsafe impl<R: Send> Send for Slot<R> {}

impl<F, R> Gang<F, R> {
    pub(crate) fn new(id: u64, members: usize, body: F) -> Self {
        let outcomes = (0..members).map(|_| Slot(UnsafeCell::new(None))).collect();
        Self { team: Arc::new(Team::new(id, members)), body, outcomes }
    }
}

impl<F, R> Run for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    fn team(&self) -> &Arc<Team> {
        &self.team
    }

    unsafe fn run(&self, index: usize, post: &Rc<Post>) {
        let team = &self.team;
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            post.enter();
            let mut member = Member::new(index, team.clone(), post.clone());
            (self.body)(&mut member)
        }));
        let outcome = match outcome {
            Ok(Ok(result)) => {
                team.ending.leave(index);
                Outcome::Returned(result)
            }
            Ok(Err(why)) => {
                team.ending.end(why);
                Outcome::Ended
            }
            Err(payload) => {
                // Relaxed: read when the gang is done.
                team.panicked.store(1, Ordering::Relaxed);
                team.ending.end(Ended::Panicked { member: index });
                Outcome::Panicked(payload)
            }
        };
        // SAFETY: this member's own, and the gang is not done.
        self.outcomes[index].0.with_mut(|mine| unsafe { *mine = Some(outcome) });
    }

    unsafe fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        // SAFETY: as the caller promises.
        let outcomes = unsafe { self.take() };
        let mut first = None;
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Outcome::Panicked(payload) if first.is_none() => first = Some(payload),
                Outcome::Panicked(payload) => discard(payload),
                // One that panics when it is dropped has somebody to blame for it already.
                Outcome::Returned(result) => quietly(|| drop(result)),
                Outcome::Ended => {}
            }
        }
        first
    }
}

impl<F, R> Results<R> for Gang<F, R>
where
    F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync,
    R: Send,
{
    unsafe fn take(&self) -> Vec<Option<Outcome<R>>> {
        if !self.team.is_first() {
            return Vec::new();
        }
        // SAFETY: the members have ended, as the caller promises, and nobody else takes.
        let taken = self.outcomes.iter().map(|slot| slot.0.with_mut(|it| unsafe { (*it).take() }));
        taken.collect()
    }
}

/// What a gang comes to: the results of all, or why not.
pub(crate) fn verdict<R>(
    team: &Team,
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
            Some(Outcome::Panicked(payload)) => discard(payload),
            Some(Outcome::Ended) | None => {}
        }
    }
    match panicked {
        Some((member, payload)) => Err(GangError::Panicked { member, payload }),
        None if results.len() == team.members => Ok(results),
        None => Err(match team.ending.why_broken() {
            Ended::Cancelled => GangError::Cancelled,
            Ended::Left { member } | Ended::Panicked { member } => GangError::Left { member },
        }),
    }
}

/// Runs `body`, and forgets it if that panics: for what a user's destructors do in a thread that has to go on.
pub(crate) fn quietly(body: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
        discard(payload);
    }
}

/// Drops what a panic carried; leaks what that leaves, if it panics itself.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(next) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(next);
    }
}
