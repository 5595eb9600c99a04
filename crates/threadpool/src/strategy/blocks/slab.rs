//! Slabs: the memory of control blocks. They come from the heap, are cut up from the front, and are
//! freed all at once.
//!
//! Why not an allocation for each block: the blocks of a strategy live and die together, and beside
//! each other they need no headers. Why slabs are cut and not made into lists at once: unused
//! memory has no page behind it yet, and a cut under a lock is two words, however many blocks it
//! is.
//!
//! ```text
//! newest ──► [ header | block | block | .. | .. ]
//!               │                     └─ next cut
//!               └──► [ header | block | block | block | block ]   cut to the end
//!
//! header: the slab made before it, and how many of its blocks are cut
//! ```
//!
//! # Invariants
//!
//! 1. The first `cut` blocks of a slab have been given away by [`Slabs::cut`]. The thread that got
//!    them makes them before anything else. The others hold nothing.
//! 2. Only the newest slab has blocks that are not cut, when [`Slabs::add`] is called only after
//!    [`Slabs::cut`] has found none.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 2: free lists because heaps are slow.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::strategy::blocks::{Chain, ControlBlock, Task};

/// The fewest blocks that are asked of the heap at a time: 8 kB, two pages.
pub(crate) const FEWEST: usize = stanchion_machine::sized(64, 2);

/// A slab that no other value has.
pub(crate) struct Slab(NonNull<[Cell]>);

// SAFETY: it owns its memory.
unsafe impl Send for Slab {}

/// The memory of a block, which may not be made yet. The first of a slab is its header.
type Cell = MaybeUninit<ControlBlock>;

struct Header {
    /// The slab made before this one.
    before: Option<Slab>,
    /// Blocks that are cut (Invariant 1).
    cut: usize,
}

const _: () = assert!(size_of::<Header>() <= size_of::<Cell>());
const _: () = assert!(align_of::<Header>() <= align_of::<Cell>());

impl Slab {
    /// Allocates a slab with room for `blocks`.
    pub(crate) fn allocate(blocks: usize) -> Self {
        let memory = NonNull::from(Box::leak(Box::<[ControlBlock]>::new_uninit_slice(blocks + 1)));
        let slab = Self(memory);
        // SAFETY: the first cell is large and aligned enough for a header, as is asserted above,
        // and holds nothing.
        unsafe { slab.header().write(Header { before: None, cut: 0 }) };
        slab
    }

    fn header(&self) -> NonNull<Header> {
        self.0.cast()
    }

    /// Returns how many blocks it has room for.
    fn blocks(&self) -> usize {
        self.0.len() - 1
    }

    /// Returns its first block.
    fn first(&self) -> NonNull<Cell> {
        // SAFETY: a slab has a cell for the header, so this is in it or one past its end.
        unsafe { self.0.cast::<Cell>().add(1) }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: written when the slab was made, and read for the last time.
        let Header { before, cut } = unsafe { self.header().read() };
        // Its owner takes it out first, so that slabs are not dropped one inside the other.
        debug_assert!(before.is_none());
        let blocks =
            ptr::slice_from_raw_parts_mut(self.first().as_ptr().cast::<ControlBlock>(), cut);
        // SAFETY: these have been made (Invariant 1), and their users have given them up with the
        // slabs.
        unsafe { ptr::drop_in_place(blocks) };
        // SAFETY: from `Box::leak`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// All slabs of a strategy, which are freed with it.
#[derive(Default)]
pub(crate) struct Slabs {
    /// The newest slab, which leads to the others.
    newest: Option<Slab>,
    /// Blocks cut from all of them.
    made: usize,
}

impl Slabs {
    pub(crate) const fn new() -> Self {
        Self { newest: None, made: 0 }
    }

    /// Returns how many blocks have been cut.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Cuts up to `count` blocks from the newest slab; at least one, if it has any left.
    pub(crate) fn cut(&mut self, count: usize) -> Option<Cut> {
        let slab = self.newest.as_ref()?;
        // SAFETY: written when the slab was made, and the slab is ours.
        let header = unsafe { slab.header().as_mut() };
        let count = count.min(slab.blocks() - header.cut);
        if count == 0 {
            return None;
        }
        // SAFETY: `cut` is at most the number of blocks.
        let first = unsafe { slab.first().add(header.cut) };
        header.cut += count;
        self.made += count;
        Some(Cut { first, count })
    }

    /// Takes `slab` as the newest, if there is one and nothing is left of the others.
    pub(crate) fn add(&mut self, slab: &mut Option<Slab>) {
        if let Some(new) = slab.take() {
            // SAFETY: written when the slab was made, and the slab is ours.
            let header = unsafe { new.header().as_mut() };
            header.before = self.newest.replace(new);
        }
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        while let Some(slab) = self.newest.take() {
            // SAFETY: written when the slab was made, and the slab is ours.
            self.newest = unsafe { slab.header().as_mut() }.before.take();
        }
    }
}

/// Blocks that have been cut and are not made yet. They must not be lost: see Invariant 1.
#[must_use = "they are counted as blocks, and dropped as such"]
pub(crate) struct Cut {
    first: NonNull<Cell>,
    /// The number of blocks.
    count: usize,
}

impl Cut {
    /// Makes the blocks.
    pub(crate) fn into_chain(self) -> Chain<Task> {
        let mut chain = Chain::new();
        for index in 0..self.count {
            // SAFETY: within the cut, which is within a slab.
            let block = unsafe { self.first.add(index) }.cast::<ControlBlock>();
            // SAFETY: it is aligned, nothing is there yet, and the cut is the only way to it
            // (Invariant 1).
            unsafe { block.write(ControlBlock::new()) };
            // SAFETY: it has just been made, and is handed out here only.
            chain.push_back(unsafe { Task::of(block) });
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_once_each_to_the_end_of_each_slab() {
        let mut slabs = Slabs::new();
        assert!(slabs.cut(1).is_none());
        let mut seen = std::collections::HashSet::new();
        for slab in 1..=3 {
            slabs.add(&mut Some(Slab::allocate(5)));
            for count in [2, 2, 1] {
                let mut chain = slabs.cut(2).unwrap().into_chain();
                assert_eq!(chain.len(), count);
                while let Some(task) = chain.pop_front() {
                    assert!(seen.insert(task.words()));
                }
            }
            assert!(slabs.cut(2).is_none());
            assert_eq!(slabs.made(), 5 * slab);
        }
        assert_eq!(seen.len(), 15);
    }

    #[test]
    fn a_hundred_thousand_slabs_are_freed_without_recursion() {
        let mut slabs = Slabs::new();
        for _ in 0..100_000 {
            slabs.add(&mut Some(Slab::allocate(1)));
            assert_eq!(slabs.cut(1).unwrap().into_chain().len(), 1);
        }
        assert_eq!(slabs.made(), 100_000);
    }
}
