//! The stacks of a runtime: taken when a fiber is made, given back when it ends.
//!
//! This is the slow path. Workers keep free fibers, each with its stack, in lists of their own.
//! This pool stands behind those lists, so a lock will do. Why not a mapping for each stack: see
//! `stanchion_machine::stack`, which has the slabs, the guards and the report of an overflow.
//!
//! ```text
//! take:  warm ─► cold ─► the slab that is being cut ─► another slab, as large as all together
//! drop:  warm, while that has fewer than WARM
//!        else the memory goes back to the system, and the address space to cold
//! ```
//!
//! Each slab doubles the number of stacks, from [`FIRST`] stacks on up to [`LARGEST`] at a time.
//! So a hundred thousand stacks are a hundred mappings. A slab that the system refuses is tried in
//! halves before there is an error. Both lists are last in, first out: the stack that was used
//! last is still in the caches.
//!
//! # Memory
//!
//! The memory in use is what threads have touched of the stacks in use, and of at most `WARM` free
//! ones. Address space is never given back while the runtime lives.
//!
//! # Invariants
//!
//! 1. A stack is in one of the lists, or a [`FiberStack`] has it.
//! 2. Nothing is on a stack in a list: the thread that drops a `FiberStack` is not on it, and
//!    neither is a coroutine (`corosensei` takes a coroutine down before its stack).
//!
//! There are no atomics: the lock orders all.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.3. Their free lists of stacks took most of
//! the time.

#[cfg(all(test, unix))]
mod tests;

use std::mem::{self, ManuallyDrop};
use std::sync::Arc;

use corosensei::stack::StackPointer;
use stanchion_competitive::Mutex;
use stanchion_machine::stack::{Label, Slab, Stack};

pub(crate) use stanchion_machine::stack::{Guards, Size, StackError, watch};

/// The stacks of the first slab. Under loom each costs two system calls in every execution.
const FIRST: usize = stanchion_machine::sized(64, 2);

/// The most stacks of a slab.
const LARGEST: usize = 1024;

/// The most bytes of a slab, if a single stack is not larger. Systems that count promised memory
/// count all of it.
const LARGEST_BYTES: usize = 1 << 30;

/// The free stacks that keep their memory.
const WARM: usize = 64;

/// The end of the report of an overflow, after the thread's name and the size of its stack.
const ADVICE: &str =
    "a thread of a stanchion-activations Runtime; make stacks larger by RuntimeBuilder::stack_size";

/// The stacks of one size. Stacks that have been taken keep the pool alive.
pub(crate) struct Stacks(Arc<StackPool>);

struct StackPool {
    size: Size,
    /// The best kind of guards that is tried.
    best: Guards,
    /// Changed by threads that take or return a stack.
    free: Mutex<FreeStacks>,
}

struct FreeStacks {
    /// Free stacks that have kept their memory.
    warm: Vec<Stack>,
    /// Free stacks that have given their memory back.
    cold: Vec<Stack>,
    /// The slab that is being cut into stacks.
    slab: Slab,
    /// The slabs that have been cut.
    cut: Vec<Slab>,
    /// The stacks of all slabs together.
    stacks: usize,
    /// Set when the system has refused the last slab, down to a single stack.
    was_refused: bool,
}

impl Stacks {
    /// Reserves address space for the first slab.
    pub(crate) fn new(size: Size) -> Result<Self, StackError> {
        Self::with_guards(size, stanchion_machine::stack::guards())
    }

    /// Does the same with guards of no better kind.
    pub(crate) fn with_guards(size: Size, best: Guards) -> Result<Self, StackError> {
        let (slab, stacks) = slab(size, best, FIRST)?;
        let free = FreeStacks {
            warm: Vec::new(),
            cold: Vec::new(),
            slab,
            cut: Vec::new(),
            stacks,
            was_refused: false,
        };
        Ok(Self(Arc::new(StackPool { size, best, free: Mutex::new(free) })))
    }

    /// Returns the kind of guards below the stacks.
    pub(crate) fn guards(&self) -> Guards {
        self.0.free.lock().slab.guards()
    }

    /// Returns the names of the threads on the stacks, of those that have one. Looks at the head of
    /// each stack.
    pub(crate) fn names(&self) -> Vec<String> {
        let free = self.0.free.lock();
        free.cut.iter().chain([&free.slab]).flat_map(Slab::names).collect()
    }

    /// Returns the name of the thread on the stack that begins there, if it has one.
    pub(crate) fn name_at(&self, base: usize) -> Option<String> {
        let free = self.0.free.lock();
        free.cut.iter().chain([&free.slab]).find_map(|slab| slab.name_at(base))
    }

    /// Returns the size of each stack.
    #[cfg(test)]
    pub(crate) fn size(&self) -> Size {
        self.0.size
    }

    /// Takes a stack. One that was used before costs a lock. A new one costs a system call, about
    /// 1 µs, and its first page as much again when it is touched.
    ///
    /// If there is none, all others stay as they are, and one that is given back can be taken.
    pub(crate) fn take(&self) -> Result<FiberStack, StackError> {
        let stack = self.0.take()?;
        Ok(FiberStack { stack: ManuallyDrop::new(stack), pool: Arc::clone(&self.0) })
    }
}

impl StackPool {
    fn take(&self) -> Result<Stack, StackError> {
        let mut free = self.free.lock();
        if let Some(stack) = free.warm.pop() {
            return Ok(stack);
        }
        if let Some(stack) = free.cold.pop() {
            return Ok(stack);
        }
        loop {
            if let Some(stack) = free.slab.next_stack()? {
                return Ok(stack);
            }
            // After a refusal the system is asked for a single stack for each thread, and not for
            // each half.
            let wanted = if free.was_refused { 1 } else { free.stacks };
            free.was_refused = true;
            let (slab, stacks) = slab(self.size, self.best, wanted)?;
            free.was_refused = false;
            let cut = mem::replace(&mut free.slab, slab);
            free.cut.push(cut);
            free.stacks += stacks;
        }
    }

    fn give(&self, mut stack: Stack) {
        {
            let mut free = self.free.lock();
            if free.warm.len() < WARM {
                free.warm.push(stack);
                return;
            }
        }
        // Without the lock: this takes a µs or more.
        // SAFETY: Invariant 2.
        unsafe { stack.discard() };
        self.free.lock().cold.push(stack);
    }
}

/// Maps a slab of so many stacks, or of fewer if they would be too many. Returns the slab, and the
/// number of its stacks.
fn slab(size: Size, best: Guards, wanted: usize) -> Result<(Slab, usize), StackError> {
    let mut stacks = wanted.min(LARGEST).min(LARGEST_BYTES / size.stride()).max(1);
    loop {
        match Slab::new(size, stacks, best, ADVICE) {
            Ok(slab) => return Ok((slab, stacks)),
            Err(StackError::AddressSpace { .. } | StackError::Memory { .. }) if stacks > 1 => {
                stacks /= 2;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A stack that was taken. It goes back to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct FiberStack {
    stack: ManuallyDrop<Stack>,
    pool: Arc<StackPool>,
}

impl FiberStack {
    /// Returns the place on the stack where the code that runs there stores its thread's name, for
    /// the report of an overflow.
    pub(crate) fn label(&self) -> Label {
        self.stack.label()
    }

    /// Returns the address at which the stack begins.
    pub(crate) fn address(&self) -> usize {
        self.stack.base().get()
    }
}

impl Drop for FiberStack {
    fn drop(&mut self) {
        // SAFETY: taken once, as this is dropped.
        let stack = unsafe { ManuallyDrop::take(&mut self.stack) };
        // It belongs to no thread now.
        stack.set_name(None);
        self.pool.give(stack);
    }
}

// SAFETY: below the stack is a guard of at least a page. The stack has at least 15 KiB.
unsafe impl corosensei::stack::Stack for FiberStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.stack.base()
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }

    /// Returns the fields of the thread's block while it runs on this stack. All of the stack is
    /// committed, so its limit is its end, and the kernel has nothing to grow.
    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        corosensei::stack::StackTebFields {
            StackBase: self.base().get(),
            StackLimit: self.limit().get(),
            DeallocationStack: self.limit().get(),
            GuaranteedStackBytes: 0,
        }
    }

    /// Does nothing: the limit stays, see [`teb_fields`](Self::teb_fields).
    #[cfg(windows)]
    fn update_teb_fields(&mut self, _stack_limit: usize, _guaranteed_stack_bytes: usize) {}
}

impl core::fmt::Debug for StackPool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StackPool").field("size", &self.size).finish_non_exhaustive()
    }
}
