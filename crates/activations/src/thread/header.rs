//! The header of a thread: the part that all threads have, whatever they run.
//!
//! ```text
//!           a cell: `TaskCell<F, T, S>`, or that of a kernel thread
//! Thread ──► Header   reference count, vtable ──► run, refuse, discard, make_ready, free
//!            F, or the result of running it
//! ```
//!
//! Why not an `Arc` of a trait object: each use of the common part would be behind a call, the
//! object would be moved to its place after it is made, and the thread and its join handle would
//! need a reference each (`completion.rs`).
//!
//! # Invariants
//!
//! 1. `fiber` belongs to the worker that runs the thread. While the thread is parked or ready, it
//!    belongs to the worker that takes the thread out of a queue to run it. Only the worker on
//!    which the thread began does so, unless the thread may migrate.
//!
//! # Sending and sharing
//!
//! A header is `Send` and `Sync` although three of its fields are not by themselves:
//!
//! - `fiber` has one user at a time (Invariant 1).
//! - `locals` are touched by the thread itself only, while it runs (Invariant 1 of `locals.rs`).
//! - `home` holds a raw pointer to the runtime's state. The state is `Sync` (`Scheduler` requires
//!   it), and it is used only while the thread has not ended, so it is alive (Invariant 1 of
//!   `home.rs`). The pointer is never written after `new`.

use core::ptr::NonNull;

use stanchion_machine::atomic::{AtomicBool, AtomicU8, AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use super::attributes::Attributes;
use super::completion::Completion;
use super::fiber::Fiber;
use super::handle::Thread;
use super::home::ThreadHome;
use super::id::ThreadId;
use super::locals::Locals;
use super::notice::CompletionNotice;
use super::park_state::ParkState;
use super::priority::Priority;
use super::reference_count::ReferenceCount;
use super::stacks::StackError;

/// The fiber of a thread.
pub type ThreadFiber = Fiber<Thread>;

/// The allocation of a thread.
///
/// # Safety
///
/// The type is `repr(C)`, and begins with a [`Header`] that has the [`VTABLE`](Self::VTABLE) of
/// this type.
pub unsafe trait ThreadCell: Send + Sync + Sized {
    /// Runs the thread's closure, and keeps its result. Never unwinds.
    ///
    /// # Safety
    ///
    /// Called once, by the owner of the thread's own reference (`completion.rs`), which is used up.
    unsafe fn run(this: NonNull<Self>) -> CompletionNotice;

    /// Ends the thread with an error instead of running it, because there is no stack for it.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), and instead of it.
    unsafe fn refuse(this: NonNull<Self>, error: StackError) -> CompletionNotice;

    /// Drops the result, if it is still there.
    ///
    /// # Safety
    ///
    /// Called by the join handle, after the thread has ended.
    unsafe fn discard(this: NonNull<Self>);

    /// Hands the thread, which was parked, to its runtime.
    ///
    /// # Safety
    ///
    /// The thread has not ended, and is of this type.
    unsafe fn make_ready(thread: Thread);

    /// The functions above for a cell of any type.
    const VTABLE: &'static VTable = &VTable {
        // SAFETY: the caller's promises; the cell is of this type, as its header says so.
        run: |header| unsafe { Self::run(header.cast()) },
        // SAFETY: as above.
        refuse: |header, error| unsafe { Self::refuse(header.cast(), error) },
        // SAFETY: as above.
        discard: |header| unsafe { Self::discard(header.cast()) },
        // SAFETY: as above.
        make_ready: |thread| unsafe { Self::make_ready(thread) },
        // SAFETY: `Thread::new` got the cell as such a box, and the last handle is gone.
        free: |header| drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) }),
    };
}

/// The functions of a [`ThreadCell`], by a pointer to its [`Header`].
pub struct VTable {
    pub(crate) run: unsafe fn(NonNull<Header>) -> CompletionNotice,
    pub(crate) refuse: unsafe fn(NonNull<Header>, StackError) -> CompletionNotice,
    /// See [`ThreadCell::discard`].
    pub discard: unsafe fn(NonNull<Header>),
    pub(crate) make_ready: unsafe fn(Thread),
    /// Frees the cell. Called when the last handle is dropped.
    pub(super) free: unsafe fn(NonNull<Header>),
}

/// The part that all threads have.
pub struct Header {
    /// Handles of the thread. Changed by each clone and drop.
    references: ReferenceCount,
    /// The functions of the closure and result behind the header.
    vtable: &'static VTable,
    /// Parked or not. Changed by the thread, its worker and the threads that wake it.
    park_state: ParkState,
    /// The worker on which the thread began, or [`NOWHERE`]. Written by the worker that runs it.
    worker: AtomicU32,
    /// Set while a thread that may migrate stays on its worker. Written by that worker.
    stays: AtomicBool,
    /// The class in which its worker counts it as bound (`worker/bound_threads.rs`). Written and
    /// read by that worker.
    bound_class: AtomicU8,
    /// Quick turns that are not counted yet for its kind. Written and read by its worker.
    quick_turns: AtomicU8,
    /// The attributes with which the thread was spawned.
    attributes: Attributes,
    /// The number of the thread in the process.
    id: ThreadId,
    /// The runtime, and the worker to which the thread is bound.
    home: ThreadHome,
    /// The stack, while the thread is parked or ready and has begun (Invariant 1).
    fiber: UnsafeCell<Option<ThreadFiber>>,
    /// The thread's local values. Used by the thread alone.
    locals: Locals,
    /// Ended or not. Changed by the thread and its join handle.
    completion: Completion<Self>,
}

/// The worker of a thread that has not begun.
const NOWHERE: u32 = u32::MAX;

// SAFETY: see "Sending and sharing" above for `fiber`, `locals` and `home`.
unsafe impl Send for Header {}
// SAFETY: as above.
unsafe impl Sync for Header {}

impl Header {
    /// Returns the header of a thread that has not begun, with one reference.
    #[inline]
    pub fn new(vtable: &'static VTable, attributes: Attributes, home: ThreadHome) -> Self {
        Self {
            references: ReferenceCount::one(),
            vtable,
            park_state: ParkState::new(),
            worker: AtomicU32::fresh(NOWHERE),
            stays: AtomicBool::fresh(false),
            bound_class: AtomicU8::fresh(0),
            quick_turns: AtomicU8::fresh(0),
            attributes,
            id: ThreadId::next(),
            home,
            fiber: UnsafeCell::new(None),
            locals: Locals::new(),
            completion: Completion::new(),
        }
    }

    pub(super) fn references(&self) -> &ReferenceCount {
        &self.references
    }

    /// Returns the functions of the thread's cell.
    pub fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// Returns the word that says whether the thread has ended.
    pub fn completion(&self) -> &Completion<Self> {
        &self.completion
    }

    /// Returns the word that says whether the thread is parked.
    pub fn park_state(&self) -> &ParkState {
        &self.park_state
    }

    pub(crate) fn home(&self) -> &ThreadHome {
        &self.home
    }

    /// Returns the address of the state of the thread's runtime, which is an `S`; `None` for a
    /// kernel thread.
    pub fn runtime<S>(&self) -> Option<NonNull<S>> {
        match &self.home {
            ThreadHome::Kernel => None,
            ThreadHome::Runtime(pointer) => Some(pointer.address()),
        }
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.attributes.name.as_deref()
    }

    pub(crate) fn priority(&self) -> Priority {
        self.attributes.priority
    }

    /// Returns the thread's locals, which only the thread itself may touch.
    pub(crate) fn locals(&self) -> &Locals {
        &self.locals
    }

    /// Returns the worker that the thread is bound to, if it is bound to one.
    pub(crate) fn bound_to(&self) -> Option<usize> {
        // Relaxed: its worker writes it before the thread first parks, and so before another thread
        // can make it ready again.
        let worker = self.worker.load(Ordering::Relaxed);
        // Relaxed: as above.
        let is_free = self.attributes.migrates && !self.stays.load(Ordering::Relaxed);
        (!is_free && worker != NOWHERE).then_some(worker as usize)
    }

    /// Records that the thread is about to leave its stack on this worker. A thread that may
    /// migrate stays there while it `unwinds`.
    pub(crate) fn note_leaving(&self, worker: usize, unwinds: impl FnOnce() -> bool) {
        if self.attributes.migrates {
            let unwinds = unwinds();
            if unwinds {
                self.begin(worker);
            }
            // Relaxed: the thread that makes it ready has acquired that it has left.
            self.stays.store(unwinds, Ordering::Relaxed);
        }
    }

    /// Records that the thread begins on this worker.
    pub(crate) fn begin(&self, worker: usize) {
        // Relaxed: see `bound_to`.
        self.worker.store(worker as u32, Ordering::Relaxed);
    }

    /// Returns whether the thread has begun.
    pub(crate) fn has_begun(&self) -> bool {
        // Relaxed: see `bound_to`.
        self.worker.load(Ordering::Relaxed) != NOWHERE
    }

    /// Returns the class in which its worker counts it as bound; 0 if it does not.
    #[inline]
    pub(crate) fn bound_class(&self) -> u8 {
        // Relaxed: its worker alone writes and reads it.
        self.bound_class.load(Ordering::Relaxed)
    }

    /// Sets the class in which its worker counts it as bound.
    #[inline]
    pub(crate) fn set_bound_class(&self, class: u8) {
        // Relaxed: as above.
        self.bound_class.store(class, Ordering::Relaxed);
    }

    /// Returns the quick turns that are not counted yet for its kind.
    pub(crate) fn quick_turns(&self) -> u8 {
        // Relaxed: the worker that ran it last has written it, and has laid it aside since.
        self.quick_turns.load(Ordering::Relaxed)
    }

    /// Sets the quick turns that are not counted yet for its kind.
    pub(crate) fn set_quick_turns(&self, turns: u8) {
        // Relaxed: as above.
        self.quick_turns.store(turns, Ordering::Relaxed);
    }

    /// Stores the stack that the thread has left.
    ///
    /// # Safety
    ///
    /// The fiber belongs to the caller (Invariant 1).
    pub unsafe fn lay_aside(&self, fiber: ThreadFiber) {
        // SAFETY: the caller's promise.
        let before = self.fiber.with_mut(|place| unsafe { (*place).replace(fiber) });
        debug_assert!(before.is_none(), "a thread has one stack");
    }

    /// Takes the stack that the thread has left; `None` if the thread has not begun.
    ///
    /// # Safety
    ///
    /// The fiber belongs to the caller (Invariant 1).
    pub unsafe fn take_up(&self) -> Option<ThreadFiber> {
        // SAFETY: the caller's promise.
        self.fiber.with_mut(|place| unsafe { (*place).take() })
    }
}
