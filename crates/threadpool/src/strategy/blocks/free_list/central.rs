//! Free control blocks in one list, for a strategy that has a lock around it.
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 3.1 and 3.2.

use crate::strategy::blocks::control_block::{Chain, Task};
use crate::strategy::blocks::slab;
use crate::strategy::blocks::slab::{Slab, Slabs};

/// One list of free blocks, and the slabs from which they come.
pub(crate) struct CentralList {
    free: Chain<Task>,
    slabs: Slabs,
}

impl CentralList {
    pub(crate) const fn new() -> Self {
        Self { free: Chain::new(), slabs: Slabs::new() }
    }

    /// A free block, or a new one from the last slab or `slab`; `None` if a slab is needed, which the caller makes without the lock.
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

    /// How many blocks there are, free or not.
    pub(crate) fn made(&self) -> usize {
        self.slabs.made()
    }
}

/// What `section` gives, which asks a list for a block under its lock: called again with a new slab after each time that one was needed.
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
