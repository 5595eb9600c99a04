//! Stacks for user-level threads: where they lie, what stands below them, and what is said when one
//! overflows.
//!
//! Why not a mapping for each stack: making and dropping one takes some 10 µs, and each is two of
//! the 65,530 that Linux grants a process, so that 32,000 threads are the end. A [`Slab`] is one
//! mapping for many stacks. Below each is a guard, on which who overflows stumbles:
//!
//! ```text
//! low                                  one mapping                                          high
//! +-------+---------------------+-------+---------------------+-------+---------------------+
//! | guard |       stack 0, head | guard |       stack 1, head | guard |       stack 2, head |
//! +-------+---------------------+-------+---------------------+-------+---------------------+
//! ^ limit     <- grows <- base ^         each head is a line lower than the one before: see below
//! ```
//!
//! | machine | memory | guards | overflow |
//! | --- | --- | --- | --- |
//! | real, Linux 6.13 and later | a mapping | [`Guards::Installed`]: marks in the page table, the mapping stays one | told by name, then an abort |
//! | real, any other Unix | a mapping | [`Guards::Protected`]: two mappings a stack | told by name, then an abort |
//! | loom, simulated (Unix) | the heap, which for the simulated machine is the run's own memory | `Protected` | the signal that the guard raises |
//! | else | [`StackError::Unsupported`] | | |
//!
//! Memory is what has been touched, a page at a time; a stack that is not used any more gives it
//! back by [`Stack::discard`].
//!
//! # How wide a guard is
//!
//! Four pages, if nobody says otherwise. For Rust one would do, as its compiler probes each page of
//! a large frame. Other compilers do so only when asked (`-fstack-clash-protection`), and a C
//! function with a buffer of 8 KiB would step over one page into the stack below. Guards cost
//! address space only.
//!
//! # Where a stack begins
//!
//! Stacks that lie a power of two apart have their first frames, which every switch touches, in the
//! same few sets of a cache. So each [`base`](Stack::base) is one of 16 multiples of a line below
//! the end, in turn. Above it is the head: the name of the thread, for the handler. The example
//! `costs` prints what a switch costs on such stacks, beside stacks that all begin at the end of a
//! page.
//!
//! # Overflow
//!
//! [`watch`] installs a handler of `SIGSEGV` and `SIGBUS`, once in a process. It looks whether the
//! address is in a guard and the stack pointer near; then it says whose stack it was and aborts, as
//! the standard library does for its own. Any other fault goes to whoever handled it before. An
//! address in a guard far from the stack pointer is a wild pointer: it is reported as such, and
//! goes the same way. A handler that the program installs later comes first, and should pass on
//! what it does not know.
//!
//! # Invariants
//!
//! 1. A stack of a slab is given out once: its number is less than `next`, and only
//!    `Slab::next_stack`, which has the slab alone, moves that.
//! 2. The memory of a slab is there while the slab or any of its stacks is: they share it.
//! 3. The head of a stack is in pages that are readable for that long. What it says is written by
//!    who has the stack, or runs on it.
//! 4. A stack is given out when its guard stands.
//!
//! Source: the free list of stacks is that of Anderson, Lazowska and Levy 1989;
//! `MADV_GUARD_INSTALL` is described in madvise(2).

use core::num::NonZeroUsize;
use core::ptr::NonNull;
use std::sync::Arc;

use crate::backend::stack as backend;

mod error;
mod head;
mod size;

pub use error::StackError;
pub(crate) use head::Head;
pub use size::Size;

/// What stands below the stacks of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guards {
    /// Marks in the page table (`MADV_GUARD_INSTALL`). The slab stays one mapping, so there may be
    /// as many stacks as memory holds.
    Installed,
    /// Pages without access (`mprotect`). Each stack is two mappings, of which Linux grants a
    /// process 65,530 (`vm.max_map_count`).
    Protected,
}

/// The best guards that are to be had here. The first call tries, in some 10 µs; later ones cost a
/// load.
///
/// ```
/// # if cfg!(all(unix, not(miri))) {
/// use stanchion_machine::stack::{Guards, guards};
///
/// match guards() {
///     Guards::Installed => println!("as many stacks as memory holds"),
///     Guards::Protected => println!("some 32,000 stacks"),
/// }
/// # }
/// ```
#[must_use]
pub fn guards() -> Guards {
    backend::guards()
}

/// Returns whether the process's address space is limited (`RLIMIT_AS`), and more than half of it
/// is used: for a library that would rather do with fewer kernel threads than leave its program
/// without memory. One system call; where there is a limit some 10 µs. `false` where the system
/// does not tell.
///
/// ```
/// use stanchion_machine::stack::half_of_address_space_is_used;
///
/// if half_of_address_space_is_used() {
///     println!("no more kernel threads");
/// }
/// ```
#[must_use]
pub fn half_of_address_space_is_used() -> bool {
    backend::half_is_used()
}

/// Many stacks in one mapping, to be taken one after the other.
///
/// ```
/// # if cfg!(all(unix, not(miri))) {
/// use stanchion_machine::stack::{Size, Slab, guards};
///
/// let size = Size::of(50_000)?;
/// assert_eq!(size.bytes() % 4096, 0);
/// let mut slab = Slab::new(size, 64, guards(), "make them larger in main.rs")?;
/// let stack = slab.next_stack()?.expect("64 are left");
/// assert!(stack.base().get() - stack.limit().get() >= 50_000);
/// stack.set_name(Some("sorter"));
/// drop(slab); // The stack keeps its memory.
/// # }
/// # Ok::<(), stanchion_machine::stack::StackError>(())
/// ```
#[derive(Debug)]
pub struct Slab {
    shared: Arc<Shared>,
    next: usize,
}

#[derive(Debug)]
struct Shared {
    memory: backend::Memory,
    size: Size,
    stacks: usize,
}

impl Slab {
    /// Address space for so many stacks, at least one: some system calls, and no memory yet.
    /// `guards` is the best that is tried; what the system then refuses is replaced by
    /// [`Guards::Protected`].
    ///
    /// `advice` is said to who overflows one, after the name of the thread and the size of the
    /// stack.
    ///
    /// # Errors
    ///
    /// [`StackError`], and what would mend it.
    pub fn new(
        size: Size,
        stacks: usize,
        guards: Guards,
        advice: &'static str,
    ) -> Result<Self, StackError> {
        let stacks = stacks.max(1);
        let memory = backend::Memory::new(size, stacks, guards, advice)?;
        Ok(Self { shared: Arc::new(Shared { memory, size, stacks }), next: 0 })
    }

    /// What stands below its stacks.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.shared.memory.guards()
    }

    /// How many stacks are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.shared.stacks - self.next
    }

    /// The names that are said of its stacks now, of those that have been given out, by
    /// [`Stack::set_name`] or a [`Label`]. A load for each stack, and a page fault for each that
    /// has not been touched. Beside a name that is being set, that one may be a mixture.
    pub fn names(&self) -> impl Iterator<Item = std::string::String> + '_ {
        (0..self.next).filter_map(|number| {
            // SAFETY: as in `next_stack`; Invariant 3, as the slab has the memory.
            let head = unsafe { self.shared.memory.low().add(self.shared.size.head_of(number)) };
            // SAFETY: likewise; zeros are a head.
            unsafe { head.cast::<Head>().as_ref() }.name()
        })
    }

    /// Returns the name that is said of the stack whose [`base`](Stack::base) that is, if it is one
    /// of those that have been given out.
    #[must_use]
    pub fn name_at(&self, base: usize) -> Option<std::string::String> {
        let offset = base.checked_sub(self.shared.memory.low().addr().get())?;
        let number = offset / self.shared.size.stride();
        if number >= self.next || self.shared.size.head_of(number) != offset {
            return None;
        }
        // SAFETY: as in `next_stack`; Invariant 3, as the slab has the memory.
        let head = unsafe { self.shared.memory.low().add(offset) };
        // SAFETY: likewise; zeros are a head.
        unsafe { head.cast::<Head>().as_ref() }.name()
    }

    /// A stack that nobody had before; none, if all have been given out. A system call, about 1 µs.
    ///
    /// # Errors
    ///
    /// [`StackError`], if the system refuses the guard. The stack stays in the slab, and the next
    /// call tries again.
    pub fn next_stack(&mut self) -> Result<Option<Stack>, StackError> {
        if self.left() == 0 {
            return Ok(None);
        }
        let shared = &self.shared;
        // Invariant 4.
        shared.memory.open(self.next)?;
        let offset = shared.size.head_of(self.next);
        // SAFETY: Invariant 2; the head of a stack with a number less than `stacks` lies in the
        // memory.
        let head = unsafe { shared.memory.low().add(offset) };
        let stack = Stack { head: head.cast(), number: self.next, shared: Arc::clone(shared) };
        self.next += 1;
        Ok(Some(stack))
    }
}

/// A stack, for who has it alone.
///
/// Dropping it keeps its memory until the slab and all other stacks of it are dropped, and nobody
/// gets it again: who may need it keeps it in a list.
#[derive(Debug)]
pub struct Stack {
    head: NonNull<Head>,
    number: usize,
    shared: Arc<Shared>,
}

// SAFETY: memory and a number; neither is bound to a thread.
unsafe impl Send for Stack {}
// SAFETY: through a shared reference there are reads of what does not change, and stores to the
// atomics of the head.
unsafe impl Sync for Stack {}

impl Stack {
    /// Where it begins: the address after the highest byte. A multiple of 64.
    #[inline]
    #[must_use]
    pub fn base(&self) -> NonZeroUsize {
        self.head.addr()
    }

    /// Where its guard begins, the lowest address that is its own. A multiple of the page size.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> NonZeroUsize {
        let below = self.number * self.shared.size.stride();
        self.shared.memory.low().addr().saturating_add(below)
    }

    /// Its size.
    #[inline]
    #[must_use]
    pub fn size(&self) -> Size {
        self.shared.size
    }

    /// What stands below it.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.shared.memory.guards()
    }

    /// Which thread runs on it from now on, for who reports an overflow. One store for a thread
    /// without a name; names are copied, 10 to 20 ns, and cut after [`NAME`] bytes.
    #[inline]
    pub fn set_name(&self, name: Option<&str>) {
        self.head().set(name.unwrap_or_default());
    }

    /// The same for the code on the stack, while somebody else has the stack itself.
    #[must_use]
    pub fn label(&self) -> Label {
        Label { head: self.head, _shared: Arc::clone(&self.shared) }
    }

    /// The name that was set, as much as was kept of it.
    #[must_use]
    pub fn name(&self) -> Option<std::string::String> {
        self.head().name()
    }

    /// Gives its memory back to the system; it reads as zeros when it is touched again, which costs
    /// a page fault for each page. A system call, some µs.
    ///
    /// # Safety
    ///
    /// Nothing is on the stack that anybody still uses.
    pub unsafe fn discard(&mut self) {
        // First, as it touches a page; and not every system empties pages at once.
        self.set_name(None);
        let from = self.number * self.shared.size.stride() + self.shared.size.guard();
        // SAFETY: Invariants 1 and 2: this stack's own, in the memory; and the caller's promise.
        unsafe { self.shared.memory.discard(from, self.shared.size.bytes()) };
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: Invariant 3; zeros are a head.
        unsafe { self.head.as_ref() }
    }
}

/// Where the name is said of who runs on a stack; keeps the memory of the stack.
///
/// ```
/// # if cfg!(all(unix, not(miri))) {
/// use stanchion_machine::stack::{Size, Slab, guards};
///
/// let stack = Slab::new(Size::of(0)?, 1, guards(), "")?.next_stack()?.expect("there is one");
/// let label = stack.label();
/// label.set(Some("sorter"));
/// assert_eq!(stack.name().as_deref(), Some("sorter"));
/// # }
/// # Ok::<(), stanchion_machine::stack::StackError>(())
/// ```
#[derive(Debug)]
pub struct Label {
    head: NonNull<Head>,
    _shared: Arc<Shared>,
}

// SAFETY: the head is atomics, and the memory is shared.
unsafe impl Send for Label {}
// SAFETY: as above.
unsafe impl Sync for Label {}

impl Label {
    /// As [`Stack::set_name`].
    #[inline]
    pub fn set(&self, name: Option<&str>) {
        // SAFETY: Invariant 3; zeros are a head.
        unsafe { self.head.as_ref() }.set(name.unwrap_or_default());
    }
}

/// So much of a thread's name is kept for the report of an overflow, in bytes.
pub const NAME: usize = Head::MOST;

/// Has overflows of stacks of slabs reported: the process's handler is installed, once, and the
/// calling thread gets an alternate signal stack if it has none.
///
/// Every thread that runs on such stacks holds one. Rust's own threads have a signal stack, if
/// `main` is a Rust program's. The first call takes some µs, later ones one system call.
///
/// # Errors
///
/// [`StackError`], if the system refuses. An overflow then ends the process by the signal, without
/// a word.
///
/// ```
/// let watched = stanchion_machine::stack::watch()?;
/// // Run user-level threads.
/// drop(watched);
/// # Ok::<(), stanchion_machine::stack::StackError>(())
/// ```
pub fn watch() -> Result<Watched, StackError> {
    backend::watch()
        .map(|watched| Watched { _watched: watched, not_send: core::marker::PhantomData })
}

/// The calling thread's overflows are reported. Not `Send`: it is about this thread.
#[derive(Debug)]
#[must_use = "the thread may lose its signal stack when this is dropped"]
pub struct Watched {
    _watched: backend::Watched,
    not_send: core::marker::PhantomData<*const ()>,
}

#[cfg(test)]
mod tests {
    static_assertions::assert_impl_all!(super::Slab: Send, Sync);
    static_assertions::assert_impl_all!(super::Stack: Send, Sync);
    static_assertions::assert_impl_all!(super::Label: Send, Sync);
    static_assertions::assert_not_impl_any!(super::Watched: Send, Sync);
}
