//! Scopes: gangs that borrow, and a thread that waits until all of them have ended.
//!
//! # Invariants
//!
//! 1. A scope is not left before all its gangs are done, neither by return nor by panic. It has a
//!    list of them, so a handle may be forgotten.
//! 2. When a gang is done, no thread of the executor has a reference to its closure and outcomes
//!    (Invariant 1 of `gang.rs`). The scope drops its own references before it ends.
//! 3. A gang is dropped without the lock of the list. Its closure may spawn a gang in the scope
//!    when it is dropped.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_competitive::Mutex;

use super::gang::Gang;
use super::handle::ScopedGangHandle;
use crate::error::{Ended, SpawnError};
use crate::executor::{GangExecutor, MemberContext, SpawnedGang};
use crate::member::Member;
use crate::panics::drop_payload;

/// A scope in which gangs can be spawned that borrow. See [`GangExecutor::scope`].
///
/// A value that a gang borrows must outlive the scope, not only its body:
///
/// ```compile_fail,E0597
/// let executor = stanchion_gang::GangExecutor::new(1).unwrap();
/// executor.scope(|scope| {
///     let text = String::from("gone when the body ends");
///     let gang = scope.spawn(1, |_| Ok(text.len())).unwrap();
/// });
/// ```
pub struct GangScope<'scope, 'env: 'scope> {
    /// The executor that runs the gangs.
    executor: &'env GangExecutor,
    /// The gangs that are not yet dropped. Their lifetime is in truth that of the scope
    /// (Invariant 2). Written by each thread that spawns in the scope.
    gangs: Mutex<Vec<Arc<dyn SpawnedGang>>>,
    /// Makes both lifetimes invariant: neither shorter nor longer.
    scope: PhantomData<&'scope mut &'scope ()>,
    /// As `scope`.
    env: PhantomData<&'env mut &'env ()>,
}

type Panic = Box<dyn Any + Send>;

impl GangExecutor {
    /// Runs gangs that borrow values which outlive the scope. Returns when all its gangs have
    /// ended.
    ///
    /// # Panics
    ///
    /// With the panic of `body`. Else with the panic of a gang that has panicked and was not
    /// joined.
    ///
    /// ```
    /// use stanchion_gang::GangExecutor;
    ///
    /// let executor = GangExecutor::new(2)?;
    /// let words = ["thick", "and", "thin"];
    /// let lengths = executor.scope(|scope| {
    ///     let gang = scope.spawn(2, |member| Ok(words[member.index()].len()))?;
    ///     Ok::<_, Box<dyn std::error::Error>>(gang.join()?)
    /// })?;
    /// assert_eq!(lengths, [5, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, T>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope GangScope<'scope, 'env>) -> T,
    ) -> T {
        let gangs = Mutex::new(Vec::new());
        let scope = GangScope { executor: self, gangs, scope: PhantomData, env: PhantomData };
        let result = panic::catch_unwind(AssertUnwindSafe(|| body(&scope)));
        let panicked = scope.end();
        match (result, panicked) {
            (Ok(result), None) => result,
            (Err(payload), of_a_gang) => {
                of_a_gang.into_iter().for_each(drop_payload);
                panic::resume_unwind(payload)
            }
            (Ok(_), Some(payload)) => panic::resume_unwind(payload),
        }
    }
}

impl<'scope, 'env> GangScope<'scope, 'env> {
    /// Spawns a gang as [`GangExecutor::spawn`]. Here `body` may borrow values that outlive the
    /// scope.
    ///
    /// # Errors
    ///
    /// [`SpawnError`] and what would mend it. Then nothing is left of the gang.
    pub fn spawn<F, R>(
        &'scope self,
        members: usize,
        body: F,
    ) -> Result<ScopedGangHandle<'scope, R>, SpawnError>
    where
        F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync + 'scope,
        R: Send + 'scope,
    {
        let gang = Arc::new(Gang::new(self.executor.new_id(members)?, members, body));
        let spawned: Arc<dyn SpawnedGang + 'scope> = gang.clone();
        // SAFETY: only the lifetime changes. The executor drops the gang before it is done. The
        // scope, which drops it too, waits for that (Invariants 1 and 2).
        let spawned: Arc<dyn SpawnedGang> = unsafe { core::mem::transmute(spawned) };
        drop(self.take_finished());
        self.gangs.lock().push(spawned.clone());
        if let Err(refused) = self.executor.launch(&spawned) {
            // If a gang has spawned it, the scope may be waiting for it already.
            gang.state().completion.set_done();
            self.gangs.lock().retain(|known| !Arc::ptr_eq(known.state(), gang.state()));
            return Err(refused);
        }
        Ok(ScopedGangHandle::new(gang))
    }

    /// Returns the executor.
    #[must_use]
    pub fn executor(&self) -> &'env GangExecutor {
        self.executor
    }

    /// Takes the gangs out of the list that are done and leave no panic behind. The caller drops
    /// them, without the lock (Invariant 3).
    fn take_finished(&self) -> Vec<Arc<dyn SpawnedGang>> {
        let mut gangs = self.gangs.lock();
        let is_finished = |gang: &Arc<dyn SpawnedGang>| {
            gang.state().completion.is_done() && !gang.state().has_unclaimed_panic()
        };
        let (finished, others) = gangs.drain(..).partition(is_finished);
        *gangs = others;
        finished
    }

    /// Waits for all gangs, drops them, and returns the first panic that no thread has taken.
    fn end(&self) -> Option<Panic> {
        let mut first = None;
        let mut note = |result: Result<Option<Panic>, Panic>| {
            let (Ok(Some(payload)) | Err(payload)) = result else { return };
            if first.is_none() {
                first = Some(payload);
            } else {
                drop_payload(payload);
            }
        };
        loop {
            let finished = self.wait();
            if finished.is_empty() {
                return first;
            }
            for gang in finished {
                if gang.state().has_unclaimed_panic() {
                    // SAFETY: the gang is done.
                    note(panic::catch_unwind(AssertUnwindSafe(|| unsafe { gang.take_panic() })));
                }
                // This may drop the closure, which may panic, or spawn another gang.
                note(panic::catch_unwind(AssertUnwindSafe(|| drop(gang))).map(|()| None));
            }
        }
    }

    /// Waits for all gangs, also for those that gangs spawn meanwhile, and returns them.
    fn wait(&self) -> Vec<Arc<dyn SpawnedGang>> {
        let mut finished = Vec::new();
        loop {
            let gangs = core::mem::take(&mut *self.gangs.lock());
            if gangs.is_empty() {
                return finished;
            }
            gangs.iter().for_each(|gang| MemberContext::wait_for(gang.state()));
            finished.extend(gangs);
        }
    }
}

impl fmt::Debug for GangScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangScope").field("executor", self.executor).finish_non_exhaustive()
    }
}
