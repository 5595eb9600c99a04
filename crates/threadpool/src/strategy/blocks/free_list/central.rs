//! Free control blocks in one list, for a strategy that has a lock around it.
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 3.1 and 3.2.

use crate::strategy::blocks::{Chain, Slab, Slabs, Task, slab};

/// One list of free blocks, and the slabs from which they come.
pub(crate) struct CentralList {
    /// Blocks that were used and are free.
    free: Chain<Task>,
    /// The memory of all blocks.
    slabs: Slabs,
}

impl CentralList {
    pub(crate) const fn new() -> Self {
        Self { free: Chain::new(), slabs: Slabs::new() }
    }

    /// Takes a free block, or a new one from the last slab or from `slab`. Returns `None` if a slab
    /// is needed, which the caller makes without the lock.
    #[inline]
    pub(crate) fn take(&mut self, slab: &mut Option<Slab>) -> Option<Task> {
        let free = self.free.pop_front();
        if free.is_some() {
            return free;
        }
        let cut = self.slabs.cut(1).or_else(|| {
            self.slabs.add(slab);
            self.slabs.cut(1)
        });
        cut?.into_chain().pop_front()
    }

    #[inline]
    pub(crate) fn put(&mut self, block: Task) {
        self.free.push_front(block);
    }

    /// Returns how many blocks there are, free or not.
    pub(crate) fn made(&self) -> usize {
        self.slabs.made()
    }
}

/// Returns the result of `section`, which asks a list for a block under its lock. Calls it again
/// with a new slab each time that one was needed.
#[inline]
pub(crate) fn with_slabs<R>(mut section: impl FnMut(&mut Option<Slab>) -> Option<R>) -> R {
    let mut slab = None;
    loop {
        match section(&mut slab) {
            Some(result) => return result,
            None => slab = Some(Slab::allocate(slab::FEWEST)),
        }
    }
}
