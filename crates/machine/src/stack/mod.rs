//! Stacks for user-level threads: their memory, their guards, and the report of an overflow.
//!
//! Why not a mapping for each stack: making and dropping one takes some 10 µs. Each also takes two
//! of the 65,530 mappings that Linux grants a process, so a process could have 32,000 threads at
//! most. A [`Slab`] is one mapping for many stacks. Below each stack is a guard, on which an
//! overflowing thread faults:
//!
//! ```text
//! low                                  one mapping                                          high
//! +-------+---------------------+-------+---------------------+-------+---------------------+
//! | guard |       stack 0, head | guard |       stack 1, head | guard |       stack 2, head |
//! +-------+---------------------+-------+---------------------+-------+---------------------+
//! ^ limit     <- grows <- base ^         each head is a line lower than the one before: see below
//! ```
//!
//! The machines differ in memory, guards and what happens on an overflow:
//!
//! - Real, Linux 6.13 and later: the memory is a mapping. The guards are [`Guards::Installed`]:
//!   marks in the page table, with which the slab stays one mapping. An overflow is reported with
//!   the thread's name, then the process aborts.
//! - Real, any other Unix: the memory is a mapping. The guards are [`Guards::Protected`], with two
//!   mappings for each stack. An overflow is reported and aborts in the same way.
//! - Loom and simulated, on Unix: the memory is the heap's, which for the simulated machine is the
//!   run's own memory. The guards are `Protected`. An overflow raises the guard's signal.
//! - All others: [`StackError::Unsupported`].
//!
//! A stack takes only as much memory as has been touched, a page at a time. A stack that is no
//! longer used gives its memory back by [`Stack::discard`].
//!
//! # How wide a guard is
//!
//! Four pages by default. One would be enough for Rust, because its compiler probes each page of a
//! large frame. Other compilers do so only on request (`-fstack-clash-protection`), and a C
//! function with a buffer of 8 KiB would step over one page into the stack below. Guards cost only
//! address space.
//!
//! # Where a stack begins
//!
//! Stacks that lie a power of two apart have their first frames in the same few sets of a cache,
//! and every switch touches those frames. So each [`base`](Stack::base) is one of 16 multiples of a
//! line below the end, in turn. Above the base is the head: the name of the thread, for the
//! handler. The example `costs` prints what a switch costs on such stacks, and on stacks that all
//! begin at the end of a page.
//!
//! # Overflow
//!
//! [`watch`] installs a handler of `SIGSEGV` and `SIGBUS`, once in a process. The handler checks
//! whether the address is in a guard and the stack pointer is near it. If so, it reports which
//! thread's stack overflowed and aborts, as the standard library does for its own threads. It
//! passes any other fault to the handler that was installed before. An address in a guard far from
//! the stack pointer is a wild pointer: the handler reports it as such and then passes it on too. A
//! handler that the program installs later runs first, and should pass on what it does not know.
//!
//! # Invariants
//!
//! 1. A slab gives out each stack once. The stack's number is less than `next`. Only
//!    `Slab::next_stack`, which has exclusive access to the slab, changes `next`.
//! 2. The memory of a slab exists while the slab or any of its stacks does: they share it.
//! 3. The head of a stack is in pages that are readable for that long. Only the owner of the stack
//!    or the thread that runs on it writes the head.
//! 4. A stack is given out only after its guard has been set up.
//!
//! Source: the free list of stacks is that of Anderson, Lazowska and Levy 1989;
//! `MADV_GUARD_INSTALL` is described in madvise(2).

#[cfg(any(stanchion_loom, stanchion_simulated))]
mod allocated;
#[cfg(not(any(all(unix, not(miri)), stanchion_loom, stanchion_simulated)))]
mod elsewhere;
mod error;
mod head;
#[cfg(all(unix, not(any(miri, stanchion_loom, stanchion_simulated))))]
mod real;
mod size;

#[cfg(any(stanchion_loom, stanchion_simulated))]
use allocated as backend;
#[cfg(not(any(all(unix, not(miri)), stanchion_loom, stanchion_simulated)))]
use elsewhere as backend;
#[cfg(all(unix, not(any(miri, stanchion_loom, stanchion_simulated))))]
use real as backend;

use core::num::NonZeroUsize;
use core::ptr::NonNull;
use std::sync::Arc;

pub use error::StackError;
pub(crate) use head::Head;
pub use size::Size;

/// The kind of guard below the stacks of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guards {
    /// Marks in the page table (`MADV_GUARD_INSTALL`). The slab stays one mapping, so only memory
    /// limits the number of stacks.
    Installed,
    /// Pages without access (`mprotect`). Each stack takes two mappings, of which Linux grants a
    /// process 65,530 (`vm.max_map_count`).
    Protected,
}

/// Returns the best guards that this system has. The first call tries them, in some 10 µs; later
/// calls cost a load.
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

/// Returns whether the process's address space is limited (`RLIMIT_AS`) and more than half of it is
/// used. A library asks this if it would rather use fewer kernel threads than leave its program
/// without memory. Costs one system call, and some 10 µs where there is a limit. Returns `false`
/// where the system does not tell.
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
    /// The memory and its layout, shared with the stacks of the slab.
    shared: Arc<Shared>,
    /// The number of the next stack to give out. `next_stack` writes it.
    next: usize,
}

/// The part of a slab that its stacks share. Nothing here changes after the slab is made.
#[derive(Debug)]
struct Shared {
    /// The mapping, or the block of the heap.
    memory: backend::Memory,
    /// The size of each stack and of its guard.
    size: Size,
    /// The number of stacks that the memory has room for.
    stacks: usize,
}

impl Slab {
    /// Returns a slab with address space for `stacks` stacks, at least one. Costs some system
    /// calls, and no memory yet. `guards` is the best kind that is tried. If the system refuses it
    /// later, [`Guards::Protected`] replaces it.
    ///
    /// `advice` is the last part of the report of an overflow, after the name of the thread and the
    /// size of the stack.
    ///
    /// # Errors
    ///
    /// [`StackError`], with what would mend it.
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

    /// Returns the kind of guard below its stacks.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.shared.memory.guards()
    }

    /// Returns how many stacks are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.shared.stacks - self.next
    }

    /// Returns the names that [`Stack::set_name`] or a [`Label`] has set for the stacks given out
    /// so far. Costs a load for each stack, and a page fault for each that has not been touched. A
    /// name that is being set at the same time may be a mixture of two.
    pub fn names(&self) -> impl Iterator<Item = std::string::String> + '_ {
        (0..self.next).filter_map(|number| {
            // SAFETY: as in `next_stack`; Invariant 3, because the slab keeps the memory.
            let head = unsafe { self.shared.memory.low().add(self.shared.size.head_of(number)) };
            // SAFETY: likewise; zeros are a valid head.
            unsafe { head.cast::<Head>().as_ref() }.name()
        })
    }

    /// Returns the name that is set for the stack with this [`base`](Stack::base), if the slab has
    /// given out that stack.
    #[must_use]
    pub fn name_at(&self, base: usize) -> Option<std::string::String> {
        let offset = base.checked_sub(self.shared.memory.low().addr().get())?;
        let number = offset / self.shared.size.stride();
        if number >= self.next || self.shared.size.head_of(number) != offset {
            return None;
        }
        // SAFETY: as in `next_stack`; Invariant 3, because the slab keeps the memory.
        let head = unsafe { self.shared.memory.low().add(offset) };
        // SAFETY: likewise; zeros are a valid head.
        unsafe { head.cast::<Head>().as_ref() }.name()
    }

    /// Returns a stack that was never given out before, or none if all have been given out. Costs a
    /// system call, about 1 µs.
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

/// A stack, for its only owner.
///
/// When it is dropped, its memory stays until the slab and all its other stacks are dropped, and
/// the stack is not given out again. An owner that may need the stack later keeps it in a list.
#[derive(Debug)]
pub struct Stack {
    /// The head at the base of the stack, in the memory of the slab.
    head: NonNull<Head>,
    /// The stack's position in the slab, from 0.
    number: usize,
    /// Keeps the memory of the slab alive.
    shared: Arc<Shared>,
}

// SAFETY: it holds memory and a number, and neither is bound to a thread.
unsafe impl Send for Stack {}
// SAFETY: a shared reference allows only reads of fields that do not change, and stores to the
// atomics of the head.
unsafe impl Sync for Stack {}

impl Stack {
    /// Returns where the stack begins: the address after the highest byte. A multiple of 64.
    #[inline]
    #[must_use]
    pub fn base(&self) -> NonZeroUsize {
        self.head.addr()
    }

    /// Returns the lowest address of the stack's guard. A multiple of the page size.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> NonZeroUsize {
        let below = self.number * self.shared.size.stride();
        self.shared.memory.low().addr().saturating_add(below)
    }

    /// Returns its size.
    #[inline]
    #[must_use]
    pub fn size(&self) -> Size {
        self.shared.size
    }

    /// Returns the kind of guard below it.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.shared.memory.guards()
    }

    /// Sets the name of the thread that runs on it from now on, for the report of an overflow.
    /// Costs one store for a thread without a name. Names are copied, in 10 to 20 ns, and cut after
    /// [`NAME`] bytes.
    #[inline]
    pub fn set_name(&self, name: Option<&str>) {
        self.head().set(name.unwrap_or_default());
    }

    /// Returns a handle by which the code that runs on the stack sets its name while another thread
    /// owns the stack itself.
    #[must_use]
    pub fn label(&self) -> Label {
        Label { head: self.head, _shared: Arc::clone(&self.shared) }
    }

    /// Returns the name that was set, as much as was kept of it.
    #[must_use]
    pub fn name(&self) -> Option<std::string::String> {
        self.head().name()
    }

    /// Gives its memory back to the system. The memory reads as zeros when it is touched again,
    /// which costs a page fault for each page. Costs a system call, some µs.
    ///
    /// # Safety
    ///
    /// Nothing on the stack is in use any more.
    pub unsafe fn discard(&mut self) {
        // Clear the name first, because that touches a page. Clearing is necessary because not
        // every system empties the pages at once.
        self.set_name(None);
        let from = self.number * self.shared.size.stride() + self.shared.size.guard();
        // SAFETY: Invariants 1 and 2: the range is this stack's own and lies in the memory. The
        // caller promises that nothing in it is in use.
        unsafe { self.shared.memory.discard(from, self.shared.size.bytes()) };
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: Invariant 3; zeros are a valid head.
        unsafe { self.head.as_ref() }
    }
}

/// A handle that sets the name of the thread that runs on a stack. It keeps the memory of the stack
/// alive.
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
    /// The head at the base of the stack.
    head: NonNull<Head>,
    /// Keeps the memory of the slab alive.
    _shared: Arc<Shared>,
}

// SAFETY: the head consists of atomics, and the memory is shared.
unsafe impl Send for Label {}
// SAFETY: as above.
unsafe impl Sync for Label {}

impl Label {
    /// Sets the name as [`Stack::set_name`] does.
    #[inline]
    pub fn set(&self, name: Option<&str>) {
        // SAFETY: Invariant 3; zeros are a valid head.
        unsafe { self.head.as_ref() }.set(name.unwrap_or_default());
    }
}

/// The number of bytes of a thread's name that are kept for the report of an overflow.
pub const NAME: usize = Head::MOST;

/// Enables the report of overflows for stacks of slabs. Installs the process's handler, once. Gives
/// the calling thread an alternate signal stack if it has none.
///
/// Every thread that runs on such stacks holds one [`Watched`]. The standard library's threads have
/// a signal stack already, if the program's `main` is Rust's. The first call takes some µs, later
/// ones one system call.
///
/// # Errors
///
/// [`StackError`], if the system refuses. An overflow then ends the process by the signal, without
/// a report.
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

/// A guard that keeps the calling thread's overflows reported. Not `Send`: it belongs to this
/// thread.
#[derive(Debug)]
#[must_use = "the thread may lose its signal stack when this is dropped"]
pub struct Watched {
    /// The backend's registration, undone when it is dropped.
    _watched: backend::Watched,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: core::marker::PhantomData<*const ()>,
}

#[cfg(test)]
mod tests {
    static_assertions::assert_impl_all!(super::Slab: Send, Sync);
    static_assertions::assert_impl_all!(super::Stack: Send, Sync);
    static_assertions::assert_impl_all!(super::Label: Send, Sync);
    static_assertions::assert_not_impl_any!(super::Watched: Send, Sync);
}
