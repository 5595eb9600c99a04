//! Spawning threads.

use std::panic;
use std::sync::Arc;

use super::join::{JoinHandle, RawJoinHandle};
use super::runtime::Runtime;
use crate::runtime::state::RuntimeState;
use crate::thread::attributes::Attributes;
use crate::thread::notice::ScopeData;
use crate::thread::priority::Priority;
use crate::thread::task_cell::TaskCell;
use crate::worker::{context, make_ready};

/// Spawns a thread of this runtime.
#[inline]
fn spawn_on<F, T>(runtime: &Arc<RuntimeState>, attributes: Attributes, body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: it borrows nothing.
    JoinHandle::new(unsafe { spawn_borrowing(runtime, attributes, None, body) })
}

/// Spawns a thread that borrows. Always inlined: the attributes are most often known, and to hand
/// them on through memory costs 6 ns.
///
/// # Safety
///
/// Everything that `body` and its result borrow is alive until the thread has left `scope`, and
/// until the join handle is dropped, if it is.
#[inline(always)]
pub(super) unsafe fn spawn_borrowing<'a, F, T>(
    runtime: &Arc<RuntimeState>,
    attributes: Attributes,
    scope: Option<Arc<ScopeData>>,
    body: F,
) -> RawJoinHandle<'a, T>
where
    F: FnOnce() -> T + Send + 'a,
    T: Send + 'a,
{
    runtime.ready.prioritized.announce(attributes.priority);
    let thread = TaskCell::thread(attributes, runtime, scope, body);
    // SAFETY: it has just been made, with this type of cell.
    let handle = unsafe { RawJoinHandle::new(&thread, TaskCell::<F, T, RuntimeState>::take) };
    make_ready::admit(runtime, thread);
    context::give_way();
    handle
}

/// Returns the runtime of the calling thread. Panics, with the name of the function that was
/// called, if the caller is not a thread of a runtime.
#[track_caller]
pub(super) fn current_runtime(function: &str) -> Arc<RuntimeState> {
    let Some(runtime) = context::runtime() else {
        panic!(
            "`{function}` outside of a runtime's threads: call `Runtime::{function}`, or make a `Runtime` and `run` this in it"
        );
    };
    runtime
}

/// Spawns a thread of the calling thread's runtime, which will run `body`.
///
/// # Panics
///
/// Outside a runtime: use [`Runtime::spawn`](crate::Runtime::spawn) there.
///
/// ```
/// use stanchion_activations::{Runtime, spawn};
///
/// let runtime = Runtime::new(2)?;
/// let sum = runtime.run(|| {
///     let halves: Vec<_> = [0..50, 50..101].map(|half| spawn(move || half.sum::<u32>())).into();
///     halves.into_iter().map(|half| half.join().unwrap()).sum::<u32>()
/// });
/// assert_eq!(sum, 5_050);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[inline]
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: null, or the reference of the calling worker, which is used only until the calling
    // thread leaves it.
    match unsafe { context::runtime_pointer().as_ref() } {
        Some(runtime) => spawn_on(runtime, Attributes::default(), body),
        // The caller is not a thread. It is a worker that drops the closure of one.
        None => spawn_on(&current_runtime("spawn"), Attributes::default(), body),
    }
}

impl Runtime {
    /// Spawns a thread, which will run `body`. [`Builder::on`](crate::Builder::on) gives it a name
    /// or a priority.
    ///
    /// # Panics
    ///
    /// In a forked child.
    #[track_caller]
    pub fn spawn<F, T>(&self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_on(&self.state(), Attributes::default(), body)
    }

    /// Runs `body` in a thread of the runtime, and waits for it; for ever, if the thread does
    /// ([`stalled`](Self::stalled)).
    ///
    /// # Panics
    ///
    /// If `body` does. In a forked child.
    #[track_caller]
    pub fn run<F, T>(&self, body: F) -> T
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn(body).join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    }
}

/// A builder of threads: sets the attributes of a thread, then spawns it.
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
    /// The runtime; that of the calling thread if there is none.
    runtime: Option<&'runtime Runtime>,
    pub(super) attributes: Attributes,
}

impl<'runtime> Builder<'runtime> {
    /// Returns a builder of a thread without a name, of the calling thread's runtime.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes it a thread of this runtime.
    pub fn on<'other>(self, runtime: &'other Runtime) -> Builder<'other> {
        Builder { runtime: Some(runtime), attributes: self.attributes }
    }

    /// Sets the name, for [`Thread::name`](crate::Thread::name) and for reports.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.attributes.name = Some(name.into().into_boxed_str());
        self
    }

    /// Sets the urgency; [`Priority::Normal`] by default.
    ///
    /// No ready thread waits while a thread of a lower priority of the same runtime runs, on a
    /// processor that may run both, past that thread's next scheduling point: a spawn, an unpark,
    /// the release of a lock or anything else in [`sync`](crate::sync) that wakes a thread, a
    /// park, a yield, its end. A thread that has begun, and does not
    /// [migrate](Self::spawn_migratable), can be run only by the kernel thread on which it began.
    /// So threads of high priority that never wait starve all others: that is what priorities are
    /// for.
    ///
    /// Once a runtime has had a thread of another priority than normal, a spawn or an unpark may
    /// let threads of a higher priority run before it returns: hold no lock of the kernel's over
    /// it that those need. A runtime that never has pays a load for it at each scheduling point.
    /// Threads that are not of normal priority, and have not begun, are in a queue with a lock
    /// instead of the runtime's strategy.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.attributes.priority = priority;
        self
    }

    #[track_caller]
    fn runtime(&self) -> Arc<RuntimeState> {
        self.runtime.map_or_else(|| current_runtime("spawn"), Runtime::state)
    }

    /// Spawns the thread, which will run `body`.
    ///
    /// # Panics
    ///
    /// Outside of a runtime's threads, if no runtime was given [here](Self::on). In a forked child.
    #[track_caller]
    pub fn spawn<F, T>(self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_on(&self.runtime(), self.attributes, body)
    }

    /// Spawns a thread that may continue on another kernel thread whenever it has parked, waited or
    /// yielded. So it never waits for its kernel thread while a processor is idle.
    ///
    /// A thread that waits while it panics stays on its kernel thread until it has continued: the
    /// standard library counts panics by kernel thread.
    ///
    /// # Safety
    ///
    /// Everything that `body` does across a park, wait, yield, spawn, unpark or lock of this crate
    /// must be right also if the kernel thread is another one afterwards:
    ///
    /// - No reference to a thread-local of the kernel thread's (`std::thread_local!`, `errno`) is
    ///   used across it, not by the compiler either: it may compute the address of a thread-local
    ///   once and keep it, even where the program asks anew, if it sees both uses in one function
    ///   ([a known issue][602]).
    ///   Code of which this cannot be known must not run on both sides of it.
    /// - Nothing is held across it that belongs to a kernel thread, though its type need not be
    ///   [`Send`] as locals of a closure are not checked: a `std::sync::MutexGuard`, an
    ///   [`Rc`](std::rc::Rc) that a thread-local shares, a registration of the thread with a
    ///   library.
    /// - The values of [`local!`](crate::local) follow the thread, and are held to the same.
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
    ///
    /// [602]: https://github.com/rust-lang/unsafe-code-guidelines/issues/602
    #[track_caller]
    pub unsafe fn spawn_migratable<F, T>(self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_on(&self.runtime(), Attributes { migrates: true, ..self.attributes }, body)
    }
}
