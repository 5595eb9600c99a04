//! Spawning a gang, and the handle by which it is joined.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::gang::{Gang, JoinableGang};
use crate::error::{Ended, GangError, SpawnError};
use crate::executor::{GangExecutor, MemberContext, SpawnedGang};
use crate::member::Member;
use crate::state::GangState;

/// The handle of a gang of [`GangExecutor::spawn`]: see [`ScopedGangHandle`] for its methods.
pub type GangHandle<R> = ScopedGangHandle<'static, R>;

/// The handle of a gang, which may borrow if it is of a [scope](GangExecutor::scope). If it is
/// dropped, the gang goes on by itself.
#[must_use = "a gang cannot be joined when its handle is dropped"]
pub struct ScopedGangHandle<'scope, R> {
    /// The gang.
    gang: Arc<dyn JoinableGang<R> + 'scope>,
    /// Binds the handle to the scope.
    scope: PhantomData<&'scope ()>,
}

impl GangExecutor {
    /// Runs `body` on `members` threads at the same time, and returns the handle of the gang.
    ///
    /// Starts threads if the executor has fewer idle ones, some 50 µs each. They stay for later
    /// gangs, with the values that members have put into their thread-locals, until the executor
    /// ends. A thread-local that holds a handle of the executor keeps it from ending, except by
    /// `shutdown`.
    ///
    /// # Errors
    ///
    /// [`SpawnError`] and what would mend it. Then nothing is left of the gang.
    pub fn spawn<F, R>(&self, members: usize, body: F) -> Result<GangHandle<R>, SpawnError>
    where
        F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync + 'static,
        R: Send + 'static,
    {
        let gang = Arc::new(Gang::new(self.new_id(members)?, members, body));
        let spawned: Arc<dyn SpawnedGang> = gang.clone();
        self.launch(&spawned)?;
        Ok(GangHandle::new(gang))
    }
}

impl<'scope, R> ScopedGangHandle<'scope, R> {
    pub(super) fn new(gang: Arc<dyn JoinableGang<R> + 'scope>) -> Self {
        Self { gang, scope: PhantomData }
    }

    fn state(&self) -> &GangState {
        self.gang.state()
    }

    /// Waits until all members have ended, and returns their results, by index.
    ///
    /// A member of a gang that calls this gives its processor up meanwhile, so the other gang can
    /// have it. Cancelling the caller's own gang does not end the wait. A member that joins its own
    /// gang, or a gang that waits for its own to end, waits for ever.
    ///
    /// # Errors
    ///
    /// [`GangError`], if a member has panicked or returned an error.
    pub fn join(self) -> Result<Vec<R>, GangError> {
        MemberContext::wait_for(self.state());
        // SAFETY: the gang is done.
        unsafe { self.gang.take_results() }
    }

    /// Ends the gang: each call of its members returns [`Ended::Cancelled`] from now on. Does not
    /// wait for them.
    ///
    /// A member that calls nothing is not interrupted. If all members return results nevertheless,
    /// [`join`](Self::join) returns them.
    pub fn cancel(&self) {
        self.state().completion.end(Ended::Cancelled);
    }

    /// Returns whether all members have ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state().completion.is_done()
    }

    /// Returns the number of members.
    #[must_use]
    pub fn size(&self) -> usize {
        self.state().members()
    }

    /// Returns the number by which [`Metrics`](crate::Metrics) name the gang: n for the n-th gang
    /// of its executor, from 0.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.state().id
    }
}

impl<R> fmt::Debug for ScopedGangHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangHandle")
            .field("id", &self.id())
            .field("size", &self.size())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
