//! A user-level thread as others see it: its name, its number, and whether it is parked.
//!
//! The same type stands for a kernel thread that is none of a runtime's, so that whatever parks and wakes threads, all of `sync` first, serves both.
//!
//! | state | meaning | left by |
//! | --- | --- | --- |
//! | `RUNNING` | it runs, or is ready | an unpark, for `TOKEN`; its carrier when it has parked, for `PARKED` |
//! | `TOKEN` | likewise, and its next park returns at once | itself, for `RUNNING` |
//! | `PARKED` | its stack is laid aside | an unpark, for `RUNNING` |
//!
//! # Invariants
//!
//! 1. Who moves the state from `PARKED` to `RUNNING` makes the thread ready, once.
//! 2. `fiber` belongs to the carrier that runs the thread, and while it is parked or ready to whoever takes it out of a queue to run it: only its home,
//!    unless it may migrate.
//! 3. A thread that has not ended keeps its runtime alive.
//!
//! # Orderings
//!
//! An unpark is a Release and a park an Acquire: what was written before the one is seen after the other. The move to `PARKED` is a Release and the
//! unpark that takes it from there an Acquire: the stack that was laid aside.

use core::cell::Cell;
use core::fmt;
use core::num::NonZeroU64;
use std::sync::Arc;

use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::park;

use crate::fiber::Fiber;
use crate::join::JoinHandle;
use crate::local;
use crate::shared::Shared;
use crate::stack::StackError;

const RUNNING: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = 2;

/// Where a thread runs.
pub(crate) enum Home {
    /// It is a kernel thread, and sleeps in the kernel.
    Kernel,
    /// It is a thread of this runtime.
    Runtime(Arc<Shared>),
}

/// What all threads have.
pub(crate) struct Inner {
    state: AtomicU32,
    /// The carrier on which it was started, and stays; [`NOWHERE`] before.
    carrier: AtomicU32,
    migrates: bool,
    id: ThreadId,
    name: Option<Box<str>>,
    home: Home,
    /// Its stack, while it is parked or ready, once it has begun.
    fiber: UnsafeCell<Option<Fiber>>,
}

/// The carrier of a thread that has not begun.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What a thread is to its runtime.
pub(crate) trait Body: Send + Sync {
    fn inner(&self) -> &Inner;

    /// Runs what the thread is to run, and keeps what comes of it. Never unwinds.
    ///
    /// # Safety
    ///
    /// Once.
    unsafe fn run(&self);

    /// There is no stack for it: it ends with that error instead of running.
    fn refuse(&self, error: StackError);
}

// SAFETY: see Invariant 2 for `fiber`, which is all that is not.
unsafe impl Send for Inner {}
// SAFETY: likewise.
unsafe impl Sync for Inner {}

impl Inner {
    pub(crate) fn new(name: Option<Box<str>>, migrates: bool, home: Home) -> Self {
        Self {
            state: AtomicU32::fresh(RUNNING),
            carrier: AtomicU32::fresh(NOWHERE),
            migrates,
            id: ThreadId::next(),
            name,
            home,
            fiber: UnsafeCell::new(None),
        }
    }

    pub(crate) fn migrates(&self) -> bool {
        self.migrates
    }

    /// The carrier that it is bound to, if it is to one.
    pub(crate) fn bound_to(&self) -> Option<usize> {
        // Relaxed: written by its carrier before it first parks, which is before anybody can make it ready again.
        let carrier = self.carrier.load(Ordering::Relaxed);
        (!self.migrates && carrier != NOWHERE).then_some(carrier as usize)
    }

    /// It begins on this carrier.
    pub(crate) fn begin(&self, carrier: usize) {
        self.carrier.store(carrier as u32, Ordering::Relaxed);
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.carrier.load(Ordering::Relaxed) != NOWHERE
    }

    /// # Safety
    ///
    /// The caller is who may (Invariant 2).
    pub(crate) unsafe fn lay_aside(&self, fiber: Fiber) {
        // SAFETY: the caller's promise.
        let before = self.fiber.with_mut(|place| unsafe { (*place).replace(fiber) });
        debug_assert!(before.is_none(), "a thread has one stack");
    }

    /// # Safety
    ///
    /// The caller is who may (Invariant 2).
    pub(crate) unsafe fn take_up(&self) -> Option<Fiber> {
        // SAFETY: the caller's promise.
        self.fiber.with_mut(|place| unsafe { (*place).take() })
    }

    /// Takes the token, if there is one.
    pub(crate) fn has_token(&self) -> bool {
        // Acquire: pairs with the Release of `unpark`.
        self.state.load(Ordering::Relaxed) == TOKEN
            && self.state.swap(RUNNING, Ordering::Acquire) == TOKEN
    }

    /// Its stack has been laid aside: from now on an unpark readies it. `false` if there was one already, which is used up.
    pub(crate) fn settle(&self) -> bool {
        // Release: the stack. Acquire on failure: pairs with the Release of `unpark`.
        match self.state.compare_exchange(RUNNING, PARKED, Ordering::Release, Ordering::Acquire) {
            Ok(_) => true,
            Err(_) => {
                // Only the thread itself, which is this, takes a token away. Acquire: it may be that of a later `unpark` by now, which nobody repeats.
                self.state.swap(RUNNING, Ordering::Acquire);
                false
            }
        }
    }

    /// Sleeps in the kernel until there is a token; whether there is.
    pub(crate) fn sleep(&self, deadline: Deadline) -> bool {
        // Acquire on failure, and of the swap: pairs with the Release of `unpark`.
        if self
            .state
            .compare_exchange(RUNNING, PARKED, Ordering::Relaxed, Ordering::Acquire)
            .is_ok()
        {
            while self.state.load(Ordering::Relaxed) == PARKED
                && park::wait(&self.state, PARKED, deadline) != park::Woken::TimedOut
            {}
        }
        self.state.swap(RUNNING, Ordering::Acquire) == TOKEN
    }
}

/// A handle of a thread: a user-level one, or a kernel thread that is none of a runtime's.
#[derive(Clone)]
pub struct Thread(Arc<dyn Body>);

impl Thread {
    pub(crate) fn new(body: Arc<dyn Body>) -> Self {
        Self(body)
    }

    pub(crate) fn inner(&self) -> &Inner {
        self.0.inner()
    }

    pub(crate) fn body(&self) -> &dyn Body {
        &*self.0
    }

    /// Its number: no two threads of the process ever have the same.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.inner().id
    }

    /// Its name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.inner().name.as_deref()
    }

    /// Makes its next [`park`](crate::park) return, or the present one. Several before that are one.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// let parked = runtime.spawn(|| stanchion_activations::park());
    /// parked.thread().unpark();
    /// parked.join().unwrap();
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn unpark(&self) {
        let inner = self.inner();
        let mut seen = inner.state.load(Ordering::Relaxed);
        loop {
            let (next, success) = match (seen, &inner.home) {
                // An exchange all the same: what was written before this unpark is to be seen as well.
                (RUNNING | TOKEN, _) | (_, Home::Kernel) => (TOKEN, Ordering::Release),
                (_, Home::Runtime(_)) => (RUNNING, Ordering::AcqRel),
            };
            match inner.state.compare_exchange_weak(seen, next, success, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        match &inner.home {
            Home::Kernel if seen == PARKED => {
                park::wake_one(&inner.state);
            }
            Home::Runtime(shared) if seen == PARKED => {
                // It may end, and its runtime with it, as soon as it is ready.
                let (shared, thread) = (shared.clone(), self.clone());
                shared.ready(thread);
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id()).field("name", &self.name()).finish()
    }
}

/// The number of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(NonZeroU64);

/// How many numbers a kernel thread takes at a time: the counter is everybody's.
const NUMBERS: u64 = 1 << 12;

machine::global! {
    static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
}

machine::thread_local! {
    /// The numbers that this kernel thread has taken: the next, and the end.
    static NUMBERS_HERE: Cell<(u64, u64)> = Cell::new((0, 0));
    /// The calling kernel thread, if it is none of a runtime's and has been asked for.
    static KERNEL: Cell<Option<Thread>> = Cell::new(None);
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ThreadId {
    /// Not inlined: as in `local.rs`.
    #[inline(never)]
    fn next() -> Self {
        let number = NUMBERS_HERE.with(|numbers| {
            let (mut next, mut end) = numbers.get();
            if next == end {
                // Relaxed: only that no number is taken twice.
                next = NEXT_NUMBER.fetch_add(NUMBERS, Ordering::Relaxed);
                end = next + NUMBERS;
            }
            numbers.set((next + 1, end));
            next
        });
        Self(NonZeroU64::new(number).expect("they begin at 1, and 2^64 are not used up"))
    }
}

/// A kernel thread that is none of a runtime's.
struct Stranger(Inner);

impl Body for Stranger {
    fn inner(&self) -> &Inner {
        &self.0
    }

    unsafe fn run(&self) {
        unreachable!("a kernel thread is run by the kernel")
    }

    fn refuse(&self, _error: StackError) {
        unreachable!("a kernel thread has a stack")
    }
}

/// The calling thread: the user-level one, or else the kernel thread.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let inside = runtime.spawn(|| stanchion_activations::current().id()).join().unwrap();
/// assert_ne!(inside, stanchion_activations::current().id());
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[must_use]
pub fn current() -> Thread {
    local::current_thread().unwrap_or_else(|| {
        KERNEL.with(|kernel| {
            let thread = kernel.take().unwrap_or_else(|| {
                let name = std::thread::current().name().map(Box::from);
                Thread(Arc::new(Stranger(Inner::new(name, false, Home::Kernel))))
            });
            kernel.set(Some(thread.clone()));
            thread
        })
    })
}

/// Parks a kernel thread; whether there was a token.
pub(crate) fn sleep_in_kernel(deadline: Deadline) -> bool {
    current().inner().sleep(deadline)
}

/// Makes a new thread of the calling thread's runtime, which will run `body`.
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
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some(shared) = local::shared() else {
        panic!(
            "`spawn` outside of a runtime's threads: call `Runtime::spawn`, or make a `Runtime` and `run` this in it"
        );
    };
    Shared::spawn(&shared, None, body)
}

/// Lets other ready threads run first. Outside a runtime, yields the processor to other kernel threads.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// runtime.run(stanchion_activations::yield_now);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn yield_now() {
    if !local::yield_thread() {
        machine::thread::yield_now();
    }
}
