//! Scopes: gangs that borrow, and somebody who waits until all have ended.
//!
//! # Invariants
//!
//! 1. A scope is not left before all its gangs are done: neither by return nor by panic. It knows them itself, so a handle may be forgotten.
//! 2. When a gang is done, no thread of the executor has a share of its closure and its results (Invariant 1 of `team.rs`). What the scope drops last
//!    is dropped before it ends.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_competitive::Mutex;

use super::handle::ScopedGangHandle;
use crate::error::{Ended, SpawnError};
use crate::executor::GangExecutor;
use crate::member::Member;
use crate::state::{SpawnedGang, drop_payload};

/// Where gangs can be spawned that borrow: see [`GangExecutor::scope`].
///
/// What a gang borrows must outlive the scope, not just its body:
///
/// ```compile_fail,E0597
/// let executor = stanchion_gang::GangExecutor::new(1).unwrap();
/// executor.scope(|scope| {
///     let text = String::from("gone when the body ends");
///     let gang = scope.spawn(1, |_| Ok(text.len())).unwrap();
/// });
/// ```
pub struct GangScope<'scope, 'env: 'scope> {
    executor: &'env GangExecutor,
    /// Their lifetime is not theirs: it is that of the scope (Invariant 2).
    gangs: Mutex<Vec<Arc<dyn SpawnedGang>>>,
    /// Invariant in both: neither shorter nor longer.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> GangScope<'scope, 'env> {
    /// As [`GangExecutor::spawn`], but what `body` borrows need only live longer than the scope.
    ///
    /// # Errors
    ///
    /// [`SpawnError`], with what would mend it; then nothing is left of the gang.
    pub fn spawn<F, R>(
        &'scope self,
        members: usize,
        body: F,
    ) -> Result<ScopedGangHandle<'scope, R>, SpawnError>
    where
        F: Fn(&mut Member) -> Result<R, Ended> + Send + Sync + 'scope,
        R: Send + 'scope,
    {
        let gang = Arc::new(self.executor.new_gang(members, body)?);
        let run: Arc<dyn SpawnedGang + 'scope> = gang.clone();
        // SAFETY: only the lifetime changes. The executor drops it before the gang is done, and the scope, which drops it too, waits for that
        // (Invariants 1 and 2).
        let run: Arc<dyn SpawnedGang> = unsafe { core::mem::transmute(run) };
        drop(self.take_finished());
        self.gangs.lock().push(run.clone());
        if let Err(refused) = self.executor.launch(run) {
            // The scope may be waiting for it already, if a gang spawns it.
            gang.state().completion.set_done();
            self.gangs.lock().retain(|known| !core::ptr::eq(&**known.state(), &**gang.state()));
            return Err(refused);
        }
        Ok(ScopedGangHandle::new(gang))
    }

    /// The executor.
    #[must_use]
    pub fn executor(&self) -> &'env GangExecutor {
        self.executor
    }

    /// The gangs that are over and leave nothing to say, to be dropped without the lock (Invariant 3).
    fn take_finished(&self) -> Vec<Arc<dyn SpawnedGang>> {
        let mut gangs = self.gangs.lock();
        let is_finished = |gang: &Arc<dyn SpawnedGang>| {
            gang.state().is_done() && !gang.state().has_unclaimed_panic()
        };
        let (finished, others) = gangs.drain(..).partition(is_finished);
        *gangs = others;
        finished
    }

    /// Waits for all, drops what they leave, and hands out the first panic that nobody has seen.
    fn end(&self) -> Option<Box<dyn Any + Send>> {
        let mut first = None;
        let mut note = |result: Result<Option<Box<dyn Any + Send>>, Box<dyn Any + Send>>| {
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
                    // SAFETY: it is done.
                    note(panic::catch_unwind(AssertUnwindSafe(|| unsafe { gang.take_panic() })));
                }
                note(panic::catch_unwind(AssertUnwindSafe(|| drop(gang))).map(|()| None));
            }
        }
    }

    /// Waits for all, also for those that gangs spawn meanwhile.
    fn wait(&self) -> Vec<Arc<dyn SpawnedGang>> {
        let mut finished = Vec::new();
        loop {
            let gangs = core::mem::take(&mut *self.gangs.lock());
            if gangs.is_empty() {
                return finished;
            }
            gangs.iter().for_each(|gang| gang.state().wait());
            finished.extend(gangs);
        }
    }
}

pub(crate) fn run<'env, T>(
    executor: &'env GangExecutor,
    body: impl for<'scope> FnOnce(&'scope GangScope<'scope, 'env>) -> T,
) -> T {
    let scope =
        GangScope { executor, gangs: Mutex::new(Vec::new()), scope: PhantomData, env: PhantomData };
    let result = panic::catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let panicked = scope.end();
    match (result, panicked) {
        (Ok(result), None) => result,
        (Err(payload), seen) => {
            seen.into_iter().for_each(drop_payload);
            panic::resume_unwind(payload)
        }
        (Ok(_), Some(payload)) => panic::resume_unwind(payload),
    }
}

impl fmt::Debug for GangScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GangScope").field("executor", self.executor).finish_non_exhaustive()
    }
}
