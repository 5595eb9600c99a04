//! How threads come into being.

use std::sync::Arc;

use crate::thread::home::ThreadHome;
use crate::api::join::{RawJoinHandle, JoinHandle};
use crate::worker::context;
use crate::thread::task_cell::TaskCell;
use crate::thread::priority::Priority;
use crate::api::runtime::Runtime;
use crate::api::scope::{ScopeData, Scope, ScopedJoinHandle};
use crate::runtime::state::RuntimeState;
use crate::thread::header::Attributes;

/// Makes a new thread of that runtime.
#[inline]
pub(crate) fn spawn<F, T>(runtime: &Arc<RuntimeState>, attributes: Attributes, body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: it borrows nothing.
    JoinHandle::new(unsafe { spawn_borrowing(runtime, attributes, None, body) })
}

/// Makes a new thread that borrows. Always inlined: how the thread is to be is most often known,
/// and to hand that on through memory costs 6 ns.
///
/// # Safety
///
/// What `body` and its result borrow is alive until `scope` is told of the thread's end, and until
/// the handle is dropped, if it is.
#[inline(always)]
pub(crate) unsafe fn spawn_borrowing<'a, F, T>(
    runtime: &Arc<RuntimeState>,
    attributes: Attributes,
    scope: Option<Arc<ScopeData>>,
    body: F,
) -> RawJoinHandle<'a, T>
where
    F: FnOnce() -> T + Send + 'a,
    T: Send + 'a,
{
    runtime.prioritized().note(attributes.priority);
    let thread = TaskCell::thread(attributes, ThreadHome::with(runtime), scope, body);
    // SAFETY: it has just been made, of such a closure.
    let handle = unsafe { RawJoinHandle::new(&thread, TaskCell::<F, T>::take) };
    runtime.admit(thread);
    context::give_way();
    handle
}

/// Makes a new thread of the calling thread's runtime.
///
/// # Panics
///
/// As [`runtime_here`].
#[inline]
#[track_caller]
pub(crate) fn spawn_here<F, T>(attributes: Attributes, body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: null, or the share of the worker that calls, which is looked at only until the
    // calling thread leaves it.
    match unsafe { context::home_pointer().as_ref() } {
        Some(runtime) => spawn(runtime, attributes, body),
        // Not from a thread: from a worker that drops what a thread was to run.
        None => spawn(&runtime_here("spawn"), attributes, body),
    }
}

/// The runtime whose thread calls.
///
/// # Panics
///
/// If it is none of a runtime's; `what` was called.
#[track_caller]
pub(crate) fn runtime_here(what: &str) -> Arc<RuntimeState> {
    let Some(runtime) = context::runtime() else {
        panic!(
            "`{what}` outside of a runtime's threads: call `Runtime::{what}`, or make a `Runtime` and `run` this in it"
        );
    };
    runtime
}

/// Says how a thread is to be, then spawns it.
///
/// ```
/// use stanchion_activations::{Builder, Priority, Runtime, current};
///
/// let runtime = Runtime::new(2)?;
/// let thread = Builder::new().name("sorter").priority(Priority::High).on(&runtime).spawn(|| {
///     assert_eq!(current().name(), Some("sorter"));
/// });
/// thread.join().unwrap();
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder builds nothing before `spawn`"]
pub struct Builder<'runtime> {
    runtime: Option<&'runtime Runtime>,
    attributes: Attributes,
}

impl<'runtime> Builder<'runtime> {
    /// Of a thread of the calling thread's runtime, without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// It is to be a thread of that runtime.
    pub fn on<'other>(self, runtime: &'other Runtime) -> Builder<'other> {
        Builder { runtime: Some(runtime), attributes: self.attributes }
    }

    /// Its name, for [`Thread::name`](crate::Thread::name) and for reports.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.attributes.name = Some(name.into().into_boxed_str());
        self
    }

    /// How urgent it is; [`Priority::Normal`] unless said.
    ///
    /// No ready thread waits while a less urgent one of the same runtime runs, on a processor that
    /// may run both, past its next scheduling point: a spawn, an unpark, the release of a lock or
    /// whatever else in [`sync`](crate::sync) wakes somebody, a park, a yield, its end. A thread
    /// that has begun, and does not [migrate](Self::spawn_migratable), can be run only by the
    /// kernel thread on which it did. So urgent threads that never wait starve all others: that is
    /// what priorities are for.
    ///
    /// Once a runtime has had a thread of another priority than normal, a spawn or an unpark may
    /// let more urgent threads run before it returns: hold no lock of the kernel's over it that
    /// those need. A runtime that never has pays a load for it at each scheduling point. Threads
    /// that are not of normal priority, and have not begun, are managed by a queue with a lock
    /// instead of the runtime's strategy.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.attributes.priority = priority;
        self
    }

    #[track_caller]
    fn runtime(&self) -> Arc<RuntimeState> {
        self.runtime.map_or_else(|| runtime_here("spawn"), Runtime::state_here)
    }

    /// Makes the thread, which will run `body`.
    ///
    /// # Panics
    ///
    /// Outside of a runtime's threads, if no runtime has been said [here](Self::on). In a forked
    /// child.
    #[track_caller]
    pub fn spawn<F, T>(self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let runtime = self.runtime();
        spawn(&runtime, self.attributes, body)
    }

    /// Makes the thread in a scope: of the scope's runtime, whichever was said otherwise.
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
        scope.spawn_as(self.attributes, body)
    }

    /// [`spawn_migratable`](Self::spawn_migratable) in a scope: of the scope's runtime, whichever
    /// was said otherwise.
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
        scope.spawn_as(Attributes { migrates: true, ..self.attributes }, body)
    }

    /// [`spawn`](Self::spawn) for a thread that may go on on another kernel thread whenever it has
    /// parked, waited or yielded. So it never waits for its kernel thread while a processor is
    /// idle.
    ///
    /// A thread that waits while it panics stays on its kernel thread until it has gone on: the
    /// standard library counts panics by kernel thread.
    ///
    /// # Safety
    ///
    /// All that `body` does across a park, wait, yield, spawn, unpark or lock of this crate must be
    /// right also if the kernel thread is another one afterwards:
    ///
    /// - No reference to a thread-local of the kernel thread's (`std::thread_local!`, `errno`) is
    ///   used across it, not by the compiler either: it may compute the address of a thread-local
    ///   once and keep it, even where the program asks anew, if it sees both uses in one function
    ///   ([unsafe-code-guidelines#602](https://github.com/rust-lang/unsafe-code-guidelines/issues/602)). Code of which this cannot be known must not run on both sides of it.
    /// - Nothing is held across it that belongs to a kernel thread, though its type need not be
    ///   [`Send`] as locals of a closure are not checked: a `std::sync::MutexGuard`, an
    ///   [`Rc`](std::rc::Rc) that a thread-local shares, a registration of the thread with a
    ///   library.
    /// - What is in [`local!`](crate::local) follows the thread, and is held to the same.
    ///
    /// ```
    /// use stanchion_activations::{Builder, Runtime, yield_now};
    ///
    /// let runtime = Runtime::new(2)?;
    /// let count = || {
    ///     for _ in 0..10 {
    ///         yield_now();
    ///     }
    /// };
    /// // SAFETY: `count` holds nothing, and uses no thread-local.
    /// let thread = unsafe { Builder::new().on(&runtime).spawn_migratable(count) };
    /// thread.join().unwrap();
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    #[track_caller]
    pub unsafe fn spawn_migratable<F, T>(self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let runtime = self.runtime();
        spawn(&runtime, Attributes { migrates: true, ..self.attributes }, body)
    }
}
