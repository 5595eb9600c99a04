//! The memory of a simulated run, so that an address means the same on every run and on every
//! computer.
//!
//! The memory systems tell cache lines apart by address. Real addresses depend on the loader, on
//! earlier allocations of the process and on the kernel's dice. So the words that share a line, and
//! the order of a map of addresses, would differ from run to run. Numbering lines in the order of
//! their first touch is not enough: it hides where lines are, not which words are on them. So the
//! run brings its own memory.
//!
//! ```text
//! one reservation: 4,096 slots (fewer where less is granted)
//! +--------+--------+--------+- - - -+
//! | slot 0 | slot 1 | slot 2 |
//! +--------+--------+--------+- - - -+
//!
//! one slot: 4 GiB, taken by one run
//! +------------------+- - - - - +-------+-------+-------+
//! | heap, growing -> |  closed  | guard | stack | guard | ...
//! +------------------+- - - - - +-------+-------+-------+
//! ```
//!
//! A word's [identity](Identities) is its offset in the slot. The address of a block or a stack
//! depends on nothing but the requests made of that slot before, in their order
//! (`reserved/space.rs`).
//!
//! # Lines
//!
//! A block of half a line or more (64 bytes) begins a line of its own, 128 bytes. No other block is
//! ever put on its lines. Smaller blocks are packed with others of their size, and so may share a
//! line with a block that another thread allocated. An allocator without a cache for each thread
//! does the same, and false sharing that such an allocator brings is shown, not hidden. Pad data
//! that must not share.
//!
//! # Words on stacks
//!
//! A word on a stack lies where the compiler puts it in its function's frame, and a later call puts
//! other words there. A debug build and an optimized one differ in that. An optimized build also
//! leaves out some blocks of the heap that are allocated and freed at once. So two builds may
//! differ in the words that are on a line, and in whether a processor still has the line of an
//! earlier call. Of the papers' figures this changes three: speed-ups of two copies of the n-body
//! program, the forks of which share words on stacks that are used again and again
//! (`stanchion study table5 --machine simulated` of a debug build and of an optimized one). They
//! depend on which threads are preempted, so small causes change them. Two runs of one build do not
//! differ.
//!
//! # Memory outside of the slot
//!
//! Foreign memory: statics, blocks that were allocated before the run, data that the run's body
//! borrows from its caller's stack, and everything if the program has not made [`Arena`] its global
//! allocator. Its lines are told apart in the order of their first touch. The words that share one
//! are those that share it in the process. Statics keep their position on their lines from run to
//! run of one build. A caller's stack does not: the kernel moves it by multiples of 16 bytes from
//! one process to the next. So it is best to make shared data in the body. The body's own stack,
//! and those of all virtual threads, are in the slot in any case.
//!
//! A thing that a library makes once and keeps, a buffer or a cache, is a part of the first run
//! that asks for it, and keeps that run's slot. A second run in the same process does not make it
//! again, and may lay out its own memory otherwise. The standard library's output buffer is made
//! beforehand.
//!
//! If there is no `mmap`, or addresses have 32 bits, there are no slots and all memory is foreign
//! (`elsewhere.rs`).
//!
//! # Life of a slot
//!
//! | state | left when |
//! | --- | --- |
//! | free: no page of it is open | a run takes it |
//! | taken: `live` counts the run, its blocks and its stacks | the last of them is gone |
//!
//! A slot that is left gives its pages back. A block may be freed after the run, outside of it, and
//! by another thread: the result of a run is a plain value. A run that fails leaves its stacks
//! behind, and its slot is not used again.
//!
//! # Files
//!
//! | file | holds |
//! | --- | --- |
//! | `allocator.rs` | [`Arena`]: the global allocator |
//! | `identity.rs` | addresses as numbers that are the same on every run |
//! | `reserved.rs`, `elsewhere.rs` | the slots; what stands in for them where there are none |
//! | `scope.rs` | the slot that a thread allocates from |
//! | `error.rs` | the reasons why a run has no memory |
//!
//! Imports go downward in this table.

mod allocator;
mod error;
mod identity;
#[cfg_attr(not(all(unix, target_pointer_width = "64", not(miri))), path = "elsewhere.rs")]
mod reserved;
mod scope;
#[cfg(all(test, unix, target_pointer_width = "64", not(miri)))]
mod tests;

pub use allocator::Arena;
pub(crate) use error::ArenaError;
pub(crate) use identity::{Identities, location, name};
pub(crate) use reserved::{ArenaStack, Slot};
pub(crate) use scope::{Scope, outside};

/// Bytes that never hold two separate blocks of 64 bytes or more: the longest line of the machines
/// that are described.
pub(crate) const LINE: usize = 128;
