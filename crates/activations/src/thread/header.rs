//! A thread as others see it: its name, its number, and that it can be woken.
//!
//! The same type stands for a kernel thread that is none of a runtime's, so that whatever parks and
//! wakes threads, all of `sync` first, serves both.
//!
//! # Invariants
//!
//! 1. `fiber` belongs to the worker that runs the thread, and while it is parked or ready to
//!    whoever takes it out of a queue to run it: only its home, unless it may migrate.

use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::num::NonZeroU64;
use core::ptr::NonNull;

use machine::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;

use crate::api::spawn as birth;
use crate::thread::completion::{Completion, CompletionNotice};
use crate::thread::fiber::Fiber;
use crate::thread::handle::{ThreadBody, Handle, VTable};
use crate::thread::home::ThreadHome;
use crate::api::join::JoinHandle;
use crate::worker::context;
use crate::api::thread_local::Locals;
use crate::thread::panics;
use crate::thread::priority::Priority;
use crate::runtime::state as runtime;
use crate::thread::reference_count::ReferenceCount;
use crate::thread::stacks::StackError;
use crate::thread::park_state::{Pause, WakeReason, State};

/// How a thread is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) name: Option<Box<str>>,
    pub(crate) migrates: bool,
    pub(crate) priority: Priority,
}

/// What all threads have.
pub(crate) struct Header {
    shares: ReferenceCount,
    vtable: &'static VTable,
    state: State,
    /// The worker on which it was started, and stays; [`NOWHERE`] before.
    worker: AtomicU32,
    /// It may migrate, but not now.
    stays: AtomicBool,
    /// What its worker knows of it as a bound (`history.rs`).
    bound: AtomicU8,
    /// Quick turns that it has had and that were not counted yet. Written and read by its worker.
    turns: AtomicU8,
    attributes: Attributes,
    id: ThreadId,
    home: ThreadHome,
    /// Its stack, while it is parked or ready, once it has begun.
    fiber: UnsafeCell<Option<Fiber>>,
    locals: Locals,
    completion: Completion,
}

/// The worker of a thread that has not begun.
pub(crate) const NOWHERE: u32 = u32::MAX;

// SAFETY: see Invariant 1 for `fiber`; `locals` are the thread's own (`locals.rs`).
unsafe impl Send for Header {}
// SAFETY: likewise.
unsafe impl Sync for Header {}

impl Header {
    #[inline]
    pub(crate) fn new(vtable: &'static VTable, attributes: Attributes, home: ThreadHome) -> Self {
        Self {
            shares: ReferenceCount::one(),
            vtable,
            state: State::new(),
            worker: AtomicU32::fresh(NOWHERE),
            stays: AtomicBool::fresh(false),
            bound: AtomicU8::fresh(0),
            turns: AtomicU8::fresh(0),
            attributes,
            id: ThreadId::next(),
            home,
            fiber: UnsafeCell::new(None),
            locals: Locals::new(),
            completion: Completion::new(),
        }
    }

    pub(crate) fn shares(&self) -> &ReferenceCount {
        &self.shares
    }

    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    pub(crate) fn completion(&self) -> &Completion {
        &self.completion
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn home(&self) -> &ThreadHome {
        &self.home
    }

    pub(crate) fn priority(&self) -> Priority {
        self.attributes.priority
    }

    /// Its locals, which only the thread itself touches.
    pub(crate) fn locals(&self) -> &Locals {
        &self.locals
    }

    /// The worker that it is bound to, if it is to one.
    pub(crate) fn bound_to(&self) -> Option<usize> {
        // Relaxed: written by its worker before it first parks, which is before anybody can make
        // it ready again.
        let worker = self.worker.load(Ordering::Relaxed);
        let free = self.attributes.migrates && !self.stays.load(Ordering::Relaxed);
        (!free && worker != NOWHERE).then_some(worker as usize)
    }

    /// It is about to leave its stack on that worker: stays there, if it is one that migrates,
    /// while it `unwinds`.
    pub(crate) fn note_leaving(&self, worker: usize, unwinds: impl FnOnce() -> bool) {
        if self.attributes.migrates {
            let unwinds = unwinds();
            if unwinds {
                self.begin(worker);
            }
            // Relaxed: whoever makes it ready has acquired that it has left.
            self.stays.store(unwinds, Ordering::Relaxed);
        }
    }

    /// It begins on this worker.
    pub(crate) fn begin(&self, worker: usize) {
        self.worker.store(worker as u32, Ordering::Relaxed);
    }

    /// What its worker has noted of it as a bound; 0 if it is none.
    #[inline]
    pub(crate) fn bound(&self) -> u8 {
        // Relaxed: written and read by its worker.
        self.local_queue.load(Ordering::Relaxed)
    }

    /// Its worker notes that.
    #[inline]
    pub(crate) fn set_bound(&self, bound: u8) {
        // Relaxed: as above.
        self.local_queue.store(bound, Ordering::Relaxed);
    }

    /// Quick turns that it has had and that were not counted yet.
    pub(crate) fn turns(&self) -> u8 {
        // Relaxed: written by the worker that ran it last, which has laid it aside since.
        self.turns.load(Ordering::Relaxed)
    }

    /// Keeps that number.
    pub(crate) fn keep_turns(&self, turns: u8) {
        // Relaxed: as above.
        self.turns.store(turns, Ordering::Relaxed);
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.worker.load(Ordering::Relaxed) != NOWHERE
    }

    /// # Safety
    ///
    /// The caller is who may (Invariant 1).
    pub(crate) unsafe fn lay_aside(&self, fiber: Fiber) {
        // SAFETY: the caller's promise.
        let before = self.fiber.with_mut(|place| unsafe { (*place).replace(fiber) });
        debug_assert!(before.is_none(), "a thread has one stack");
    }

    /// # Safety
    ///
    /// The caller is who may (Invariant 1).
    pub(crate) unsafe fn take_up(&self) -> Option<Fiber> {
        // SAFETY: the caller's promise.
        self.fiber.with_mut(|place| unsafe { (*place).take() })
    }
}

/// A handle of a thread: a user-level one, or a kernel thread that is none of a runtime's.
#[derive(Clone)]
pub struct Thread(Handle);

impl Thread {
    pub(crate) fn new(handle: Handle) -> Self {
        Self(handle)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        self.0.header()
    }

    pub(crate) fn pointer(&self) -> NonNull<Header> {
        self.0.pointer()
    }

    /// The share, for [`from_pointer`](Self::from_pointer).
    pub(crate) fn into_pointer(self) -> NonNull<Header> {
        ManuallyDrop::new(self).pointer()
    }

    /// # Safety
    ///
    /// The share is the caller's, or it does not drop it.
    pub(crate) unsafe fn from_pointer(header: NonNull<Header>) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Handle::from_pointer(header) })
    }

    /// Runs it. The own share is used up.
    ///
    /// # Safety
    ///
    /// As [`ThreadBody::run`].
    pub(crate) unsafe fn run(&self) -> CompletionNotice {
        // SAFETY: the caller's promise.
        unsafe { (self.header().vtable.run)(self.pointer()) }
    }

    /// There is no stack for it. The own share is used up.
    ///
    /// # Safety
    ///
    /// As [`ThreadBody::refuse`].
    pub(crate) unsafe fn refuse(&self, error: StackError) -> CompletionNotice {
        // SAFETY: the caller's promise.
        unsafe { (self.header().vtable.refuse)(self.pointer(), error) }
    }

    /// Its stack has been laid aside: from now on an unpark or a call readies it, by the own share,
    /// which is the caller's. The thread itself if there was one already.
    pub(crate) fn settle(self, pause: Pause) -> Option<Self> {
        let thread = ManuallyDrop::new(self);
        (!thread.header().state.settle(pause)).then(|| ManuallyDrop::into_inner(thread))
    }

    /// Its number: no two threads of the process ever have the same.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.header().id
    }

    /// Its name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.header().attributes.name.as_deref()
    }

    /// Makes its next [`park`](crate::park) return, or the present one. Several before that are
    /// one.
    ///
    /// If the runtime has threads of different priorities, more urgent ones may run before it
    /// returns.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// let parked = runtime.spawn(|| stanchion_activations::park());
    /// parked.thread().unpark();
    /// parked.join().unwrap();
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn unpark(&self) {
        self.wake_for(WakeReason::Unpark);
        context::give_way();
    }

    /// What the thread waits for may have come.
    pub(crate) fn notify(&self) {
        self.wake_for(WakeReason::Notify);
    }

    /// Rouses it; if it slept, it is woken or made ready.
    pub(crate) fn wake_for(&self, by: WakeReason) {
        let header = self.header();
        let kernel = matches!(header.home, ThreadHome::Kernel);
        if !header.state.wake_for(by, kernel) {
            return;
        }
        if kernel {
            header.state.wake();
        } else {
            // SAFETY: its own share, which was with its state (Invariant 1 of `state.rs`).
            runtime::ready(unsafe { Self::from_pointer(self.pointer()) });
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
    /// The calling kernel thread, if it has been asked for outside of a runtime's threads. Without
    /// a destructor, so that it is there until the very end.
    static KERNEL: Cell<*const Thread> = Cell::new(core::ptr::null());
    /// Ends what `KERNEL` points to.
    static END: Cell<Option<KernelEnd>> = Cell::new(None);
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
#[repr(C)]
struct Stranger(Header);

// SAFETY: it is an `Header` that is given its vtable.
unsafe impl ThreadBody for Stranger {
    unsafe fn run(_this: NonNull<Self>) -> CompletionNotice {
        unreachable!("a kernel thread is run by the kernel")
    }

    unsafe fn refuse(_this: NonNull<Self>, _error: StackError) -> CompletionNotice {
        unreachable!("a kernel thread has a stack")
    }

    unsafe fn discard(_this: NonNull<Self>) {
        unreachable!("a kernel thread has no handle")
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
    with_current(Thread::clone)
}

/// Calls `body` with the calling thread.
pub(crate) fn with_current<R>(body: impl FnOnce(&Thread) -> R) -> R {
    let here = context::current_pointer();
    let here = if here.is_null() { kernel_thread() } else { here };
    // SAFETY: a thread that calls is alive, and its handle stays where it is while it runs; that of
    // a kernel thread does until its end.
    body(unsafe { &*here })
}

/// The handle of the calling kernel thread.
fn kernel_thread() -> *const Thread {
    let known = KERNEL.try_with(Cell::get).unwrap_or(core::ptr::null());
    if !known.is_null() {
        return known;
    }
    let attributes = Attributes { name: machine::thread::name(), ..Attributes::default() };
    let body = Stranger(Header::new(Stranger::VTABLE, attributes, ThreadHome::Kernel));
    let thread = Thread(Handle::new(Box::new(body)));
    let thread = Box::into_raw(Box::new(thread)).cast_const();
    // Who asks in the last destructors of a kernel thread has a handle that nobody frees.
    let _ = KERNEL.try_with(|kernel| kernel.set(thread));
    let _ = END.try_with(|end| end.set(Some(KernelEnd(thread))));
    thread
}

/// Its drop is the end of the kernel thread whose handle that is.
struct KernelEnd(*const Thread);

impl Drop for KernelEnd {
    fn drop(&mut self) {
        // SAFETY: made by `kernel_thread`, and freed here only.
        let header = unsafe { &*self.0 }.header();
        // Nobody joins it who could be told of a panic.
        header.locals().end().into_iter().for_each(panics::discard);
        // A model's thread-locals may be gone by now.
        let _ = KERNEL.try_with(|kernel| kernel.set(core::ptr::null()));
        // SAFETY: as above; nothing points to it any more.
        drop(unsafe { Box::from_raw(self.0.cast_mut()) });
    }
}

/// The calling kernel thread sleeps until it is unparked or called, or the deadline has passed.
pub(crate) fn sleep_in_kernel(thread: &Thread, deadline: Deadline) {
    thread.header().state.sleep(deadline);
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
    birth::spawn_here(Attributes::default(), body)
}

/// Lets other ready threads run first. Outside a runtime, yields the processor to other kernel
/// threads.
///
/// Returns when all begun threads that were ready on this processor have had a turn, and a new
/// thread after each turn that ends in a yield; at least one new thread, if no begun one is ready.
/// The documentation of [`Runtime`](crate::Runtime#order) states the order of all ready threads.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// runtime.run(stanchion_activations::yield_now);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub fn yield_now() {
    if !context::yield_thread() {
        machine::thread::yield_now();
    }
}
