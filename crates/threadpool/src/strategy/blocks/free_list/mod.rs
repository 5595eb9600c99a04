//! Free control blocks: each worker has a list without a lock. A global pool under a lock balances
//! the lists.
//!
//! Why not one list under a lock: that is two acquisitions in the life of each task. Why not only
//! local lists: where some workers create and others finish, the latter would collect the blocks
//! and the former would ask the heap for ever. Each list is bounded by a threshold T. The surplus
//! goes to the pool in one piece of T/2 blocks, and comes back in one piece.
//!
//! Why two chains for a worker, where the paper has one list: to cut off half of a list, its T/2
//! lines must be walked over, which other processors may have written last. Of two chains of T/2,
//! one is handed over as it is.
//!
//! ```text
//! slot 0:  current ─► b ─► b     (fewer than T/2)     spare ─► b ─► … (T/2, or none)
//! slot 1:  current               (empty)              spare            (none)
//! outside: the same, under the pool's lock
//!
//! pool:  chains ─► b ─► b ─► … T/2      a list of lists: the words of a chain's first block
//!                  └─► b ─► b ─► … T/2  hold the next chain
//!                      └─► …
//!        slabs: blocks that were never used
//! ```
//!
//! A worker that takes from two empty chains fetches T/2 blocks from the pool: a chain, or else a
//! cut from a slab. Either is O(1) under the lock. Slabs are asked of the heap without the lock. A
//! worker with two full chains hands one over. Afterwards it has T/2 blocks, so the next T/2
//! operations of either kind need no lock.
//!
//! # Memory
//!
//! A cut is made only when the pool has no chains. At that moment every block is in use or in the
//! chains of a worker, at most T each, and those of the worker that asks are empty. So there are
//! never more than (most in use at a time) + P·T blocks, and T more for threads outside: the
//! paper's O(P·T). The part of a slab that was never cut is not counted: less than 64 blocks, or
//! T/2 if that is more, but at most 4,096. A T beyond twice that bounds what a worker keeps, and
//! not how much it asks for.
//!
//! # Invariants
//!
//! 1. The chains of a slot are touched only through its [`WorkerSlot`], of which there is one.
//! 2. Between two operations a slot has fewer than T/2 blocks in `current`, and T/2 or none in
//!    `spare`.
//! 3. Every chain of the pool has T/2 blocks.
//!
//! There are no atomics: local lists need none, and the pool has its lock.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.3. Two chains instead of one are Bonwick and
//! Adams's magazine layer (USENIX 2001).

mod central;
mod stacks;

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use stanchion_machine::cell::UnsafeCell;

use crate::strategy::WorkerSlot;
use crate::strategy::blocks::{Chain, Cut, Slab, Slabs, Task, slab};
use crate::sync::Locked;

pub(crate) use central::{CentralList, with_slabs};
pub(crate) use stacks::{FreeStacks, LocalStacks};

/// The free blocks of a strategy, of which each worker keeps some for itself.
pub(crate) struct FreeBlocks<L> {
    /// The chains of each slot (Invariant 1).
    slots: Box<[CachePadded<SlotChains>]>,
    /// Chains that no slot has, and blocks for threads outside.
    pool: CachePadded<Locked<L, GlobalPool>>,
    /// T/2.
    half: usize,
    /// The number of unused blocks that are fetched at a time: T/2, or [`LARGEST`].
    cut: usize,
}

/// The most blocks that are asked of the heap at a time, however high the threshold is: 512 kB.
const LARGEST: usize = stanchion_machine::sized(4_096, 4);

/// The chains of one slot, for its worker only (Invariant 1).
struct SlotChains(UnsafeCell<Chains>);

// SAFETY: a thread that touches it has the slot, and a slot is with one thread at a time (Invariant
// 1, and the promise of `WorkerSlot::new`).
unsafe impl Sync for SlotChains {}

/// Two chains, in which up to T blocks are kept (Invariant 2).
struct Chains {
    /// The chain of the next operations.
    current: Chain<Task>,
    /// A full chain, or an empty one.
    spare: Chain<Task>,
}

struct GlobalPool {
    /// The first chain of the list of lists, or nothing. The words of its first block hold the next
    /// chain, or an empty one.
    chains: Chain<Task>,
    /// Blocks for threads that have no slot.
    outside: Chains,
    /// The memory of all blocks.
    slabs: Slabs,
    uses: u64,
}

/// Half a list full of free blocks, or less.
enum HalfList {
    Used(Chain<Task>),
    New(Cut),
}

impl HalfList {
    fn into_chain(self) -> Chain<Task> {
        match self {
            Self::Used(chain) => chain,
            Self::New(cut) => cut.into_chain(),
        }
    }
}

impl<L: RawMutex> FreeBlocks<L> {
    /// Creates empty lists for so many slots that keep at most `threshold` blocks each; 2, if that
    /// is less.
    pub(crate) fn new(slots: usize, threshold: usize) -> Self {
        let half = (threshold / 2).max(1);
        let local = || CachePadded::new(SlotChains(UnsafeCell::new(Chains::new())));
        let pool = GlobalPool {
            chains: Chain::new(),
            outside: Chains::new(),
            slabs: Slabs::new(),
            uses: 0,
        };
        Self {
            slots: core::iter::repeat_with(local).take(slots).collect(),
            pool: CachePadded::new(Locked::new(pool)),
            half,
            cut: half.min(LARGEST),
        }
    }

    /// Takes a free block; a new one, if there is none. Without a slot it is taken under the pool's
    /// lock.
    #[inline]
    pub(crate) fn take(&self, slot: Option<&WorkerSlot>) -> Task {
        match slot {
            Some(slot) => {
                self.with_place(slot, Chains::take).unwrap_or_else(|| self.take_fetching(slot))
            }
            None => self.take_outside(),
        }
    }

    /// Keeps a block that is not used any more.
    #[inline]
    pub(crate) fn put(&self, slot: Option<&WorkerSlot>, block: Task) {
        match slot {
            Some(slot) => {
                if let Some(surplus) = self.with_place(slot, |local| local.put(block, self.half)) {
                    self.hand_over(surplus);
                }
            }
            None => self.put_outside(block),
        }
    }

    #[inline]
    fn with_place<R>(&self, slot: &WorkerSlot, section: impl FnOnce(&mut Chains) -> R) -> R {
        self.slots[slot.index()].0.with_mut(|local| {
            // SAFETY: this is the slot's thread (Invariant 1), and no section comes here again.
            let local = unsafe { &mut *local };
            section(local)
        })
    }

    #[cold]
    fn take_fetching(&self, slot: &WorkerSlot) -> Task {
        let mut fetched = self.take_half();
        let first = fetched.pop_front().expect("half a list has at least one block");
        self.with_place(slot, |local| local.current = fetched);
        first
    }

    /// Takes half a list of free blocks, for a strategy that keeps some for threads without a slot.
    #[cold]
    pub(crate) fn take_half(&self) -> Chain<Task> {
        self.fetch(|pool| pool.half(self.cut)).into_chain()
    }

    #[cold]
    fn take_outside(&self) -> Task {
        let found = self.fetch(GlobalPool::outside_one).into_chain().pop_front();
        found.expect("one was asked for")
    }

    #[cold]
    fn put_outside(&self, block: Task) {
        self.pool.with(|pool| {
            pool.uses += 1;
            if let Some(surplus) = pool.outside.put(block, self.half) {
                pool.push(surplus);
            }
        });
    }

    #[cold]
    fn hand_over(&self, surplus: Chain<Task>) {
        self.pool.with(|pool| {
            pool.uses += 1;
            pool.push(surplus);
        });
    }

    /// Returns what `find` finds in the pool, which grows by a slab when it finds nothing.
    fn fetch<R>(&self, mut find: impl FnMut(&mut GlobalPool) -> Option<R>) -> R {
        let mut slab = None;
        loop {
            let found = self.pool.with(|pool| {
                pool.uses += 1;
                let found = find(pool);
                if found.is_some() || slab.is_none() {
                    return found;
                }
                pool.slabs.add(&mut slab);
                find(pool)
            });
            // A slab that another thread has made superfluous goes back to the heap here, without
            // the lock.
            match found {
                Some(found) => return found,
                None => slab = Some(Slab::allocate(slab::FEWEST.next_multiple_of(self.cut))),
            }
        }
    }

    /// Returns how many blocks there are, free or not. Takes the pool's lock.
    pub(crate) fn made(&self) -> usize {
        self.pool.with(|pool| pool.slabs.made())
    }

    /// Returns how often the pool's lock was taken for a block. Takes the lock.
    pub(crate) fn pool_uses(&self) -> u64 {
        self.pool.with(|pool| pool.uses)
    }

    pub(crate) fn label(&self) {
        stanchion_machine::label(&*self.slots, "free lists");
        stanchion_machine::label(&*self.pool, "pool of free blocks");
    }
}

impl Chains {
    const fn new() -> Self {
        Self { current: Chain::new(), spare: Chain::new() }
    }

    #[inline]
    fn take(&mut self) -> Option<Task> {
        let task = self.current.pop_front();
        if task.is_some() {
            return task;
        }
        core::mem::swap(&mut self.current, &mut self.spare);
        self.current.pop_front()
    }

    /// Returns half of the blocks, if there are T now.
    #[inline]
    fn put(&mut self, block: Task, half: usize) -> Option<Chain<Task>> {
        self.current.push_front(block);
        if self.current.len() < half {
            return None;
        }
        let full = core::mem::replace(&mut self.current, Chain::new());
        let surplus = core::mem::replace(&mut self.spare, full);
        (!surplus.is_empty()).then_some(surplus)
    }
}

impl GlobalPool {
    /// Takes a chain of T/2 free blocks, or `cut` that were never used; `None` if a slab is needed.
    fn half(&mut self, cut: usize) -> Option<HalfList> {
        match self.pop() {
            Some(chain) => Some(HalfList::Used(chain)),
            None => self.slabs.cut(cut).map(HalfList::New),
        }
    }

    /// Takes one block for a thread without a slot, as a chain; `None` if a slab is needed.
    fn outside_one(&mut self) -> Option<HalfList> {
        let task = self.outside.take().or_else(|| {
            self.outside.current = self.pop()?;
            self.outside.take()
        });
        match task {
            Some(task) => {
                let mut one = Chain::new();
                one.push_front(task);
                Some(HalfList::Used(one))
            }
            None => self.slabs.cut(1).map(HalfList::New),
        }
    }

    fn push(&mut self, chain: Chain<Task>) {
        let rest = core::mem::replace(&mut self.chains, chain);
        if let Some(words) = self.chains.front_words() {
            // SAFETY: the words of a free block are its chain's; they are aligned for a chain, and
            // enough, as is asserted below.
            unsafe { words.cast::<Chain<Task>>().write(rest) };
        }
    }

    fn pop(&mut self) -> Option<Chain<Task>> {
        let words = self.chains.front_words()?;
        // SAFETY: written by `push` when this chain became the first of the list, and read once.
        let rest = unsafe { words.cast::<Chain<Task>>().read() };
        Some(core::mem::replace(&mut self.chains, rest))
    }
}

const _: () = assert!(size_of::<Chain<Task>>() <= crate::TASK_WORDS * size_of::<usize>());
const _: () = assert!(align_of::<Chain<Task>>() <= align_of::<usize>());

#[cfg(test)]
mod tests;
