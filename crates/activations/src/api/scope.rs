//! Scopes: threads that borrow, and somebody who waits until all have ended.
//!
//! # Invariants
//!
//! 1. A scope is not left before `running` is zero: neither by return nor by panic. It counts for itself, so a handle may be forgotten.
//! 2. A thread is counted before it can end, by who is counted or is the scope's body; so the count does not come back from zero.
//! 3. A thread says that it has ended when nothing of its closure is left, and of its result only what its handle has (Invariant 2 of `cell.rs`).
//!
//! Orderings: the last of `ended` is a Release, and pairs with the Acquire of the look that finds zero.

use core::fmt;
use core::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use machine::atomic::{AtomicUsize, Fresh, Ordering};
use machine::clock::Deadline;

use crate::api::spawn as birth;
use crate::api::join::RawJoinHandle;
use crate::thread::task_cell::ThreadResult;
use crate::thread::panics;
use crate::api::park;
use crate::runtime::state::RuntimeState;
use crate::thread::header::{self as thread, Attributes, Thread};

/// What the threads of a scope share with it.
pub(crate) struct ScopeData {
    running: AtomicUsize,
    /// Threads that have panicked, less those whose handle has told so.
    panics: AtomicUsize,
    waits: Thread,
}

impl ScopeData {
    fn begun(&self) {
        // Relaxed: the thread is handed on with more than that.
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread of it has panicked, and has not ended yet.
    pub(crate) fn panicked(&self) {
        // Relaxed: `ended` follows.
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// The handle of one that has panicked has been joined.
    pub(crate) fn told(&self) {
        // Relaxed: handles are used before the scope ends, by its body or by threads which `ended` follows.
        self.panics.fetch_sub(1, Ordering::Relaxed);
    }

    /// A thread of it has ended. The scope may be over at once.
    pub(crate) fn ended(&self) {
        // Release: see the header. Those of the others are in the release sequence that the last one ends.
        if self.running.fetch_sub(1, Ordering::Release) == 1 {
            self.waits.notify();
        }
    }
}

/// Where threads can be spawned that borrow what lives longer than the [`scope`].
///
/// What they borrow must outlive the scope, not just its body:
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
    runtime: Arc<RuntimeState>,
    data: Arc<ScopeData>,
    /// Invariant in both: neither shorter nor longer.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Makes a new thread, which ends before the scope does.
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
        self.spawn_as(Attributes::default(), body)
    }

    pub(crate) fn spawn_as<F, T>(
        &'scope self,
        attributes: Attributes,
        body: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.data.begun();
        // SAFETY: the scope waits for the thread (Invariants 1 and 3).
        let handle = unsafe {
            birth::spawn_borrowing(&self.runtime, attributes, Some(self.data.clone()), body)
        };
        ScopedJoinHandle { handle, data: &self.data }
    }
}

/// Runs `body` on the calling thread, with a scope of the runtime `runtime`.
#[track_caller]
pub(crate) fn run<'env, F, T>(runtime: Arc<RuntimeState>, body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let data = Arc::new(ScopeData {
        running: AtomicUsize::fresh(0),
        panics: AtomicUsize::fresh(0),
        waits: thread::current(),
    });
    let scope = Scope { runtime, data, scope: PhantomData, env: PhantomData };
    let result = panic::catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let data = &scope.data;
    // Acquire: see the header.
    park::wait_until(Deadline::NEVER, || data.running.load(Ordering::Acquire) == 0);
    // Relaxed: after the Acquire.
    let panicked = data.panics.load(Ordering::Relaxed) != 0;
    match result {
        Err(payload) => panic::resume_unwind(payload),
        Ok(value) if panicked => {
            panics::dropping(value).into_iter().for_each(panics::discard);
            panic!("a thread of the scope panicked")
        }
        Ok(value) => value,
    }
}

/// Runs `body` with a scope, in which it can spawn threads that borrow from the calling one; then waits until all have ended. To be called from a runtime's
/// threads: they are that runtime's. Elsewhere use [`Runtime::scope`](crate::Runtime::scope).
///
/// # Panics
///
/// With what `body` panicked with; or if a thread did that nobody has joined; in both cases when all threads have ended. And outside of a runtime's threads.
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
    run(birth::runtime_here("scope"), body)
}

/// The right to wait for a thread of a scope, and to have what it returns. Forgetting it does no harm: the scope waits for the thread all the same, and
/// what it returned is never dropped.
pub struct ScopedJoinHandle<'scope, T> {
    handle: RawJoinHandle<'scope, T>,
    data: &'scope ScopeData,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Whether it has ended, so that [`join`](Self::join) will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the thread's end.
    ///
    /// # Errors
    ///
    /// What the thread panicked with; the scope does not panic for that then.
    #[track_caller]
    pub fn join(self) -> ThreadResult<T> {
        let outcome = self.handle.join();
        if outcome.is_err() {
            self.data.told();
        }
        outcome
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe("ScopedJoinHandle", f)
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a number to look at.
        let running = self.data.running.load(Ordering::Relaxed);
        f.debug_struct("Scope").field("running", &running).finish_non_exhaustive()
    }
}
