//! Threads of a pool that the program starts itself: `spawn_handler` and `build_scoped`.
//!
//! The pool has no handle of such a thread. It waits for a latch that is set when the thread has
//! left the pool.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use machine::thread::JoinHandle;

use crate::sync::latch::Latch;

/// A thread that a pool waits for when it ends.
pub(crate) enum ThreadHandle {
    /// The pool has started it.
    Own(JoinHandle<()>),
    /// The program has.
    Custom(Arc<ThreadDone>),
}

impl ThreadHandle {
    /// Waits until it has ended, or has left the pool if it is foreign.
    pub(crate) fn join(self) {
        match self {
            Self::Own(thread) => drop(thread.join()),
            Self::Custom(done) => done.0.wait(),
        }
    }
}

/// Tells the one thread that joins a foreign thread when that has left its pool.
pub(crate) struct ThreadDone(Latch);

impl ThreadDone {
    pub(crate) fn new() -> Self {
        Self(Latch::new())
    }

    /// The thread has left the pool. Called once.
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
/// If it is dropped without [`run`](Self::run), the pool has a thread less, and a
/// [`broadcast`](crate::ThreadPool::broadcast) waits for ever.
#[must_use = "the pool waits for each of its threads to run"]
pub struct ThreadBuilder {
    pub(crate) index: usize,
    pub(crate) name: Option<String>,
    pub(crate) stack_size: Option<usize>,
    /// What the thread does: works in the pool; with `false`, tells the pool that it never will.
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

    /// Works in the pool on the calling thread, and returns when the pool needs it no more: when
    /// the pool has been shut down or dropped and all is done, or has become smaller.
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

/// The way in which a builder's pool gets its threads: [`DefaultSpawn`] or [`CustomSpawn`].
///
/// Sealed.
pub trait ThreadSpawn: sealed::Sealed {
    /// Returns the handler, if the program has one.
    #[doc(hidden)]
    fn handler(&mut self) -> Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>>;
}

/// The pool starts its threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultSpawn;

/// The program starts the pool's threads by a function of its own.
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
    handles: Vec<JoinHandle<()>>,
}

impl ScopedThreads {
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
        let mut builder = machine::thread::Builder::new();
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

    /// Waits for all threads. Returns the first panic, which comes from what the program does
    /// around [`ThreadBuilder::run`].
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

/// Drops what a thread panicked with. If that panics, the threads after it are joined all the same.
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
