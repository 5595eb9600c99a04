//! What a gang can be waited for by.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Ended, GangError};
use crate::state::{GangState, JoinableGang, join_result};

/// A gang that was spawned. Dropped, it lets the gang go on by itself.
#[must_use = "a gang whose handle is dropped cannot be joined"]
pub struct GangHandle<R> {
    gang: Arc<dyn JoinableGang<R>>,
}

impl<R> GangHandle<R> {
    pub(crate) fn new(gang: Arc<dyn JoinableGang<R>>) -> Self {
        Self { gang }
    }

    fn state(&self) -> &GangState {
        self.gang.state()
    }

    /// Waits until all members have ended: their results, by index.
    ///
    /// A member of a gang that calls this gives its seat away meanwhile, so the gang that it waits for can have it. Its own gang's cancellation does
    /// not end the wait. One that joins its own gang, or a gang that waits for its own to end, waits for ever.
    ///
    /// # Errors
    ///
    /// [`GangError`], if a member has panicked or returned an error.
    pub fn join(self) -> Result<Vec<R>, GangError> {
        self.state().wait();
        // SAFETY: it is done.
        let outcomes = unsafe { self.gang.take_outcomes() };
        join_result(self.state(), outcomes)
    }

    /// Ends the gang: every call of its members returns [`Ended::Cancelled`] from now on. Does not wait for them.
    ///
    /// A member that calls nothing is not interrupted. If all return their results nevertheless, [`join`](Self::join) hands them out.
    pub fn cancel(&self) {
        self.state().completion.end(Ended::Cancelled);
    }

    /// Whether all members have ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state().is_done()
    }

    /// How many members it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.state().members()
    }

    /// The number by which [`Metrics`](crate::Metrics) name it: the n-th gang of its executor has n, from 0.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.state().id
    }
}

impl<R> fmt::Debug for GangHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangHandle")
            .field("id", &self.id())
            .field("size", &self.size())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

/// A [`GangHandle`] of a [scope](crate::GangExecutor::scope).
#[must_use = "a gang whose handle is dropped cannot be joined"]
pub struct ScopedGangHandle<'scope, R> {
    gang: Arc<dyn JoinableGang<R> + 'scope>,
    scope: PhantomData<&'scope ()>,
}

impl<'scope, R> ScopedGangHandle<'scope, R> {
    pub(crate) fn new(gang: Arc<dyn JoinableGang<R> + 'scope>) -> Self {
        Self { gang, scope: PhantomData }
    }

    /// See [`GangHandle::join`].
    ///
    /// # Errors
    ///
    /// [`GangError`], if a member has panicked or returned an error.
    pub fn join(self) -> Result<Vec<R>, GangError> {
        self.gang.state().wait();
        // SAFETY: it is done.
        let outcomes = unsafe { self.gang.take_outcomes() };
        join_result(self.gang.state(), outcomes)
    }

    /// See [`GangHandle::cancel`].
    pub fn cancel(&self) {
        self.gang.state().completion.end(Ended::Cancelled);
    }

    /// Whether all members have ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.gang.state().is_done()
    }

    /// How many members it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.gang.state().members()
    }

    /// See [`GangHandle::id`].
    #[must_use]
    pub fn id(&self) -> u64 {
        self.gang.state().id
    }
}

impl<R> fmt::Debug for ScopedGangHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedGangHandle")
            .field("id", &self.id())
            .field("size", &self.size())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
