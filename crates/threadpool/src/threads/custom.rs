//! Threads that the program starts for a pool: `spawn_handler` and `build_scoped`.
//!
//! The pool has no handle of such a thread. It waits for a latch that the thread sets when it has
//! left the pool.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_machine::thread::JoinHandle;

use crate::sync::Latch;

/// A thread that a pool waits for when it ends.
pub(crate) enum ThreadHandle {
    /// A thread that the pool has started.
    Own(JoinHandle<()>),
    /// A thread that the program has started.
    Custom(Arc<ThreadDone>),
}

impl ThreadHandle {
    /// Waits until it has ended, or has left the pool if the program has started it.
    pub(crate) fn join(self) {
        match self {
            Self::Own(thread) => drop(thread.join()),
            Self::Custom(done) => done.0.wait(),
        }
    }
}

/// A latch that a thread of the program sets when it has left its pool.
pub(crate) struct ThreadDone(Latch);

impl ThreadDone {
    /// Creates a latch that is not set.
    pub(crate) fn new() -> Self {
        Self(Latch::new())
    }

    /// Sets the latch. Called once, by the thread.
    pub(crate) fn set(&self) {
        let latch = &raw const self.0;
        // SAFETY: alive while `self` is borrowed, and set once.
        if unsafe { Latch::set(latch) } {
            Latch::wake(latch);
        }
    }
}

/// A thread of a pool, for a [spawn handler](crate::ThreadPoolBuilder::spawn_handler) to start.
///
/// If it is dropped without [`run`](Self::run), the pool has a thread less. A
/// [`broadcast`](crate::ThreadPool::broadcast) leaves that thread out.
#[must_use = "the pool waits for each of its threads to run"]
pub struct ThreadBuilder {
    /// The slot of the thread.
    pub(crate) index: usize,
    /// Its name, if the builder was told one.
    pub(crate) name: Option<String>,
    /// The size of its stack, if the builder was told one.
    pub(crate) stack_size: Option<usize>,
    /// Works in the pool; with `false`, tells the pool that the thread never will.
    pub(crate) body: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl ThreadBuilder {
    /// Returns the thread's index in the pool, as
    /// [`current_thread_index`](crate::current_thread_index) does on it.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the name that [`thread_name`](crate::ThreadPoolBuilder::thread_name) gave, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the size of its stack, if the builder of the pool was told one.
    #[must_use]
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Works in the pool on the calling thread. Returns when the pool does not need it any more:
    /// when the pool has been shut down or dropped and is done, or has become smaller.
    pub fn run(mut self) {
        if let Some(body) = self.body.take() {
            body(true);
        }
    }
}

impl Drop for ThreadBuilder {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            body(false);
        }
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("index", &self.index)
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// A way in which a builder's pool gets its threads: [`DefaultSpawn`] or [`CustomSpawn`].
///
/// Sealed.
pub trait ThreadSpawn: sealed::Sealed {
    /// Returns the handler, if the program has one.
    #[doc(hidden)]
    fn handler(&mut self) -> Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>>;
}

/// Lets the pool start its threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultSpawn;

/// Lets a function of the program start the pool's threads.
pub struct CustomSpawn<F>(pub(crate) F);

impl<F> fmt::Debug for CustomSpawn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomSpawn").finish_non_exhaustive()
    }
}

impl ThreadSpawn for DefaultSpawn {
    fn handler(&mut self) -> Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>> {
        None
    }
}

impl<F: FnMut(ThreadBuilder) -> io::Result<()>> ThreadSpawn for CustomSpawn<F> {
    fn handler(&mut self) -> Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>> {
        Some(&mut self.0)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::DefaultSpawn {}
    impl<F> Sealed for super::CustomSpawn<F> {}
}

/// Threads that borrow, and are joined before what they borrow is gone.
///
/// # Invariants
///
/// 1. A thread of `handles` has ended before this is gone. It is dropped before what the threads
///    borrow, because it lies in a frame above.
pub(crate) struct ScopedThreads {
    /// The threads that were started and not joined.
    handles: Vec<JoinHandle<()>>,
}

impl ScopedThreads {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        Self { handles: Vec::new() }
    }

    /// Starts a thread that runs `body` with `thread`.
    ///
    /// # Safety
    ///
    /// This is dropped before what `body` borrows is gone.
    pub(crate) unsafe fn start(
        &mut self,
        thread: ThreadBuilder,
        body: &(impl Fn(ThreadBuilder) + Sync),
    ) -> io::Result<()> {
        let mut builder = stanchion_machine::thread::Builder::new();
        if let Some(name) = &thread.name {
            builder = builder.name(name.clone());
        }
        if let Some(bytes) = thread.stack_size {
            builder = builder.stack_size(bytes);
        }
        let run: Box<dyn FnOnce() + Send + '_> = Box::new(move || body(thread));
        // SAFETY: only the lifetime changes: the thread has ended when this is dropped
        // (Invariant 1), which comes before what it borrows is gone, as the caller promises.
        let run = unsafe {
            core::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(run)
        };
        self.handles.push(builder.spawn(run)?);
        Ok(())
    }

    /// Waits for all threads. Returns the payload of the first panic: one of the code that the
    /// program runs around [`ThreadBuilder::run`].
    pub(crate) fn join(&mut self) -> Result<(), Box<dyn Any + Send>> {
        let mut result = Ok(());
        for handle in self.handles.drain(..) {
            match handle.join() {
                Err(payload) if result.is_ok() => result = Err(payload),
                Err(payload) => drop_payload(payload),
                Ok(()) => {}
            }
        }
        result
    }
}

/// Drops the payload of a thread's panic. If that panics, the threads after it are joined all the
/// same.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Its drop may panic as well.
        core::mem::forget(second);
    }
}

impl Drop for ScopedThreads {
    fn drop(&mut self) {
        // An unwinding caller has a panic already.
        drop(self.join());
    }
}
