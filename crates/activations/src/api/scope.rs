//! Scopes: threads that borrow, and a thread that waits until all of them have ended. The count and
//! its invariants are in `thread/notice.rs`.

use core::fmt;
use core::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_machine::clock::Deadline;

use super::join::RawJoinHandle;
use super::runtime::Runtime;
use super::spawn::{Builder, current_runtime, spawn_borrowing};
use crate::runtime::state::RuntimeState;
use crate::thread::attributes::Attributes;
use crate::thread::handle::Thread;
use crate::thread::notice::ScopeData;
use crate::thread::panics;
use crate::thread::task_cell::ThreadResult;
use crate::worker::context;
use crate::worker::wait::wait_until;

/// A scope to spawn threads in that borrow values which live longer than the [`scope`].
///
/// The values must outlive the scope, not just its body:
///
/// ```compile_fail,E0373
/// let runtime = stanchion_activations::Runtime::new(1).unwrap();
/// runtime.scope(|s| {
///     let text = String::from("gone when the body ends");
///     s.spawn(|| assert!(!text.is_empty()));
/// });
/// ```
///
/// And must be [`Send`]:
///
/// ```compile_fail,E0277
/// let runtime = stanchion_activations::Runtime::new(1).unwrap();
/// let counted = std::rc::Rc::new(1);
/// runtime.scope(|s| {
///     s.spawn(|| println!("{counted}"));
/// });
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    /// The runtime of its threads.
    runtime: Arc<RuntimeState>,
    /// The counts of the scope's threads.
    data: Arc<ScopeData>,
    /// Invariant in both lifetimes: neither shorter nor longer.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a thread, which ends before the scope does.
    ///
    /// If it panics and is not joined, the scope panics when all have ended.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(2)?;
    /// let words = ["borrowed", "words"];
    /// let lengths = runtime.scope(|s| {
    ///     let handles = words.each_ref().map(|word| s.spawn(|| word.len()));
    ///     handles.map(|handle| handle.join().unwrap())
    /// });
    /// assert_eq!(lengths, [8, 5]);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_with(Attributes::default(), body)
    }

    fn spawn_with<F, T>(
        &'scope self,
        attributes: Attributes,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.data.enter();
        let data = Some(self.data.clone());
        // SAFETY: the scope waits for the thread (Invariants 1 and 3 of `notice.rs`).
        let handle = unsafe { spawn_borrowing(&self.runtime, attributes, data, body) };
        ScopedJoinHandle { handle, data: &self.data }
    }
}

impl Builder<'_> {
    /// Spawns the thread in a scope. It is a thread of the scope's runtime, whichever was given
    /// otherwise.
    ///
    /// ```
    /// use stanchion_activations::{Builder, Runtime};
    ///
    /// let runtime = Runtime::new(2)?;
    /// let mut count = 0;
    /// runtime.scope(|s| {
    ///     Builder::new().name("counter").spawn_scoped(s, || count += 1);
    /// });
    /// assert_eq!(count, 1);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.spawn_with(self.attributes, body)
    }

    /// Does the same as [`spawn_migratable`](Self::spawn_migratable) in a scope. It is a thread of
    /// the scope's runtime, whichever was given otherwise.
    ///
    /// # Safety
    ///
    /// As there.
    ///
    /// ```
    /// use stanchion_activations::{Builder, Runtime, yield_now};
    ///
    /// let runtime = Runtime::new(2)?;
    /// let mut count = 0;
    /// runtime.scope(|s| {
    ///     let body = || {
    ///         yield_now();
    ///         count += 1;
    ///     };
    ///     // SAFETY: `body` uses no thread-local, and holds nothing but what it borrows.
    ///     unsafe { Builder::new().spawn_scoped_migratable(s, body) };
    /// });
    /// assert_eq!(count, 1);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub unsafe fn spawn_scoped_migratable<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.spawn_with(Attributes { migrates: true, ..self.attributes }, body)
    }
}

/// Runs `body` on the calling thread, with a scope of this runtime.
#[track_caller]
fn run<'env, F, T>(runtime: Arc<RuntimeState>, body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let data = Arc::new(ScopeData::new(context::current()));
    let scope = Scope { runtime, data, scope: PhantomData, env: PhantomData };
    let result = panic::catch_unwind(AssertUnwindSafe(|| body(&scope)));
    wait_until(Deadline::NEVER, || scope.data.has_ended());
    match result {
        Err(payload) => panic::resume_unwind(payload),
        Ok(value) if scope.data.has_panicked() => {
            panics::catch_drop(value).into_iter().for_each(panics::discard);
            panic!("a thread of the scope panicked")
        }
        Ok(value) => value,
    }
}

impl Runtime {
    /// Runs `body` on the calling thread with a scope, in which it can spawn threads that borrow
    /// from the calling one. Then waits until all have ended. [`scope`](crate::scope()) does so in
    /// a thread of the runtime.
    ///
    /// # Panics
    ///
    /// With the panic of `body`; or if a thread panicked that was not joined. In both cases after
    /// all threads have ended. In a forked child.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(2)?;
    /// let mut words = ["one", "two"].map(String::from);
    /// runtime.scope(|s| {
    ///     for word in &mut words {
    ///         s.spawn(|| word.make_ascii_uppercase());
    ///     }
    /// });
    /// assert_eq!(words, ["ONE", "TWO"]);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[track_caller]
    pub fn scope<'env, F, T>(&self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        run(self.state(), body)
    }
}

/// Runs `body` with a scope, in which it can spawn threads that borrow from the calling one. Then
/// waits until all have ended. It is to be called from a runtime's threads, and the new threads are
/// that runtime's. Elsewhere use [`Runtime::scope`](crate::Runtime::scope).
///
/// # Panics
///
/// With the panic of `body`; or if a thread panicked that was not joined. In both cases after all
/// threads have ended. Outside of a runtime's threads.
///
/// ```
/// use stanchion_activations::{Runtime, scope};
///
/// let runtime = Runtime::new(2)?;
/// let sum = runtime.run(|| {
///     let numbers = [1, 2, 3, 4];
///     let (left, right) = numbers.split_at(2);
///     scope(|s| {
///         let left = s.spawn(|| left.iter().sum::<u32>());
///         right.iter().sum::<u32>() + left.join().unwrap()
///     })
/// });
/// assert_eq!(sum, 10);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[track_caller]
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    run(current_runtime("scope"), body)
}

/// The join handle of a thread in a scope. Forgetting it does no harm: the scope waits for the
/// thread all the same, and the thread's result is never dropped.
pub struct ScopedJoinHandle<'scope, T> {
    handle: RawJoinHandle<'scope, T>,
    data: &'scope ScopeData,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Returns the thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Returns whether the thread has ended, so that [`join`](Self::join) will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the thread's end, and returns its result.
    ///
    /// # Errors
    ///
    /// The payload of the thread's panic. The scope does not panic for that then.
    #[track_caller]
    pub fn join(self) -> ThreadResult<T> {
        let result = self.handle.join();
        if result.is_err() {
            self.data.panic_reported();
        }
        result
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt("ScopedJoinHandle", f)
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("running", &self.data.running()).finish_non_exhaustive()
    }
}
