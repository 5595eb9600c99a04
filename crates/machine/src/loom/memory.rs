//! The time at which a thread of a model got a piece of memory: a lower bound for when an object in
//! it was made.
//!
//! An object made by a `const fn new` cannot record when it was made: the same function makes
//! statics. Its memory can. No thread may use a block of the heap before the allocation that
//! returned it, and no thread may use a frame of another thread's stack before that frame was
//! entered. So each use of such an object is checked against the *moment* of its memory. A use that
//! does not happen after that moment is a race in any program. There is no false alarm, and no
//! dependence on an order of execution: loom itself answers whether the moment happens before the
//! use.
//!
//! | memory | its moment |
//! | --- | --- |
//! | static, or allocated before the execution | none: every thread may use it |
//! | a block of the heap | the last publishing operation of the allocating thread before that |
//! | a thread's stack | its last publishing operation while its stack was shallower than there |
//!
//! A publishing operation is one from which another thread can learn what this thread did: a
//! store, an exchange, a fence, a spawn, a wake-up.
//!
//! # Limits
//!
//! Memory that a thread had before it made the object in it counts from then: spare capacity of a
//! `Vec`, a slot that is used again. If the using thread has synchronized with the maker in
//! between, then the use passes. Memory from another allocator than the global one, and stacks that
//! are not the model's threads', have no moment. `Fresh::fresh` has none of these limits.
//!
//! # Invariants
//!
//! 1. An execution runs on one operating-system thread, so plain cells suffice.
//! 2. The allocator never calls loom: loom allocates while its own state is borrowed. It only looks
//!    up a moment that was made before.
//! 3. A moment that a block, a frame or an object refers to is never moved forward.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, RefCell};
use core::ptr;
use std::alloc::System;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

/// The size of the stacks of loom's threads; see `DEFAULT_STACK_SIZE` of the crate `generator`.
const STACK_SIZE: usize = 0x8000;

/// Room above the first frame of a model's thread. A guard page of that size separates two stacks.
const ABOVE_FIRST_FRAME: usize = 0x1000;

/// A moment in the life of one thread of the model.
pub(super) struct Moment {
    /// The thread, by its position in the order in which the threads began.
    thread: usize,
    /// Written at that moment by that thread, read by the threads that must come after it.
    cell: loom::cell::UnsafeCell<()>,
    /// True once a thread has read the cell: another write would have to be ordered after that.
    read: Cell<bool>,
}

impl Moment {
    fn now(thread: usize) -> Self {
        let moment = Self { thread, cell: loom::cell::UnsafeCell::new(()), read: Cell::new(false) };
        moment.advance();
        moment
    }

    /// Moves to the present of the running thread, which must be the moment's own.
    fn advance(&self) {
        // A write counts one step of the thread. So the moment is after what the thread did before,
        // also for another thread that has synchronized with just that.
        self.cell.with_mut(|_| ());
    }

    /// Returns the moment's thread, if what the running thread does now is not ordered after it.
    pub(super) fn missed(&self) -> Option<usize> {
        self.read.set(true);
        // Loom offers no query for this, only a panic.
        let known = catch_unwind(AssertUnwindSafe(|| self.cell.with(|_| ())));
        known.is_err().then_some(self.thread)
    }
}

/// A thread of the model: its stack, and its moments.
struct Thread {
    /// An address in the thread's first frame.
    first_frame: usize,
    /// Moments, each with the depth of the stack at it. Both the depths and the moments grow: an
    /// earlier moment is left out if the stack was no deeper at a later one.
    moments: Vec<(usize, Rc<Moment>)>,
    /// Moments without references, to be used again.
    spare: Vec<Rc<Moment>>,
}

impl Thread {
    fn owns_stack_at(&self, address: usize) -> bool {
        let top = self.first_frame + ABOVE_FIRST_FRAME;
        (top - STACK_SIZE..top).contains(&address)
    }

    fn last_moment(&self) -> &Rc<Moment> {
        let (_, moment) = self.moments.last().expect("the first moment stays");
        moment
    }
}

/// A block of the heap that a thread of the model has allocated.
struct Block {
    /// The address after the block.
    end: usize,
    /// The last publishing operation of its thread before the allocation.
    moment: Rc<Moment>,
}

/// The memory of one execution.
#[derive(Default)]
pub(super) struct Memory {
    /// The model's threads in the order in which they began.
    threads: RefCell<Vec<Thread>>,
    /// The blocks that the model's threads have allocated, by their addresses.
    blocks: RefCell<BTreeMap<usize, Block>>,
}

std::thread_local! {
    /// The memory of the execution on this operating-system thread, or null.
    static CURRENT: Cell<*const Memory> = const { Cell::new(ptr::null()) };
}

impl Memory {
    /// Makes the allocator report to `self`.
    ///
    /// # Safety
    ///
    /// `self` stays where it is until [`ignore`](Self::ignore).
    pub(super) unsafe fn observe(&self) {
        CURRENT.set(self);
    }

    /// Ends [`observe`](Self::observe).
    pub(super) fn ignore(&self) {
        if ptr::eq(CURRENT.get(), self) {
            CURRENT.set(ptr::null());
        }
    }

    /// Adds the running thread. `first_frame` is an address in its first frame.
    pub(super) fn add_thread(&self, first_frame: *const ()) {
        let mut threads = self.threads.borrow_mut();
        // No frame is shallower than this.
        let began = (usize::MAX, Rc::new(Moment::now(threads.len())));
        threads.push(Thread {
            first_frame: first_frame.addr(),
            moments: vec![began],
            spare: Vec::new(),
        });
    }

    /// Returns whether a thread of the model runs, rather than the test around it.
    pub(super) fn is_of_this_stack(&self) -> bool {
        let here = stack_pointer();
        self.threads.borrow().iter().any(|thread| thread.owns_stack_at(here))
    }

    /// Records that the running thread may have published what it did until now.
    pub(super) fn published(&self) {
        let depth = stack_pointer();
        let mut threads = self.threads.borrow_mut();
        let Some(index) = threads.iter().position(|thread| thread.owns_stack_at(depth)) else {
            return;
        };
        let thread = &mut threads[index];
        while let Some((_, moment)) = thread.moments.pop_if(|(before, _)| *before <= depth) {
            // Invariant 3: only a moment that nothing refers to is used again, and that no other
            // thread has read.
            if Rc::strong_count(&moment) == 1 && !moment.read.get() {
                thread.spare.push(moment);
            }
        }
        let moment = thread.spare.pop().inspect(|moment| moment.advance());
        let moment = moment.unwrap_or_else(|| Rc::new(Moment::now(index)));
        thread.moments.push((depth, moment));
    }

    /// Returns the moment before which no other thread can use an object at `address`.
    pub(super) fn moment_of(&self, address: usize) -> Option<Rc<Moment>> {
        let blocks = self.blocks.borrow();
        let below = blocks.range(..=address).next_back();
        if let Some((_, block)) = below.filter(|(_, block)| address < block.end) {
            return Some(Rc::clone(&block.moment));
        }
        let threads = self.threads.borrow();
        let thread = threads.iter().find(|thread| thread.owns_stack_at(address))?;
        // The stack grows downwards: it was shallower than `address` at a greater one.
        let (_, moment) = thread.moments.iter().rfind(|(depth, _)| *depth > address)?;
        Some(Rc::clone(moment))
    }

    fn allocated(&self, start: usize, bytes: usize) {
        // If they are borrowed, the allocation is one of this file's own, or of loom's.
        let (Ok(threads), Ok(mut blocks)) =
            (self.threads.try_borrow(), self.blocks.try_borrow_mut())
        else {
            return;
        };
        let here = stack_pointer();
        // Otherwise loom's scheduler allocates, or a stack that the program switches to.
        if let Some(thread) = threads.iter().find(|thread| thread.owns_stack_at(here)) {
            let moment = Rc::clone(thread.last_moment());
            blocks.insert(start, Block { end: start + bytes, moment });
        }
    }

    fn freed(&self, start: usize) {
        // If it is borrowed, the block is one of the map's own.
        if let Ok(mut blocks) = self.blocks.try_borrow_mut() {
            blocks.remove(&start);
        }
    }
}

/// Returns an address in the present frame of the stack.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    core::hint::black_box(&raw const here).addr()
}

/// The system's allocator, which tells the execution of its thread about each block.
struct Observed;

#[global_allocator]
static ALLOCATOR: Observed = Observed;

fn observed(tell: impl FnOnce(&Memory)) {
    let memory = CURRENT.get();
    if !memory.is_null() {
        // SAFETY: the caller of `observe` keeps it alive until `ignore`.
        tell(unsafe { &*memory });
    }
}

// SAFETY: every request is the system's, unchanged.
unsafe impl GlobalAlloc for Observed {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System` asks for the same promise that the caller gives.
        let block = unsafe { System.alloc(layout) };
        observed(|memory| memory.allocated(block.addr(), layout.size()));
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { System.alloc_zeroed(layout) };
        observed(|memory| memory.allocated(block.addr(), layout.size()));
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        observed(|memory| memory.freed(block.addr()));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            observed(|memory| {
                memory.freed(block.addr());
                memory.allocated(moved.addr(), size);
            });
        }
        moved
    }
}
