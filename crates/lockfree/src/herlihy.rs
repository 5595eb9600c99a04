//! Herlihy's methodology, in its first form: any sequential object, made non-blocking by copying
//! the whole of it.
//!
//! Why it is here: it needs nothing of the object but that it can be cloned, and it is the
//! yardstick for all structures that copy less. Why not a lock: a thread that stops in the middle
//! of an update stops no other thread. Why not words copied and checked, as Herlihy does: a torn
//! copy is no `T`, and cloning it would be undefined. So a block is *pinned* while it is copied,
//! and is not used again meanwhile.
//!
//! ```text
//! root ──► block 4      readers: 2        two threads copy it
//!          block 1      readers: 1        an old version; a thread that is late still copies it
//!          block 7      readers: 0        an old version, free: the next copy goes here
//! ```
//!
//! An update: look at the root, pin its block, look again. Clone it into a free block, keeping that
//! block's memory. Unpin. Apply the operation to the copy. Exchange the root for the copy, if it is
//! still the same. If it is not, wait a random while, longer each time, and copy again. Without the
//! wait the copies of the threads that lose keep the line from those that would win.
//!
//! # Invariants
//!
//! 1. The block that the root names is not written.
//! 2. A thread counts itself among a block's `readers`, and then looks at the root again. If the
//!    root still names the block, the thread may read it until it counts itself out. If not, it
//!    does not read.
//! 3. A block is written only by the thread that took it from the root by its exchange, or by a
//!    later user of that thread's cache. It is written only after a read-modify-write found
//!    `readers` 0. A reader that counts itself in after that sees the root changed. A reader that
//!    did so before is found.
//!
//! # Orderings
//!
//! - **Look at the root**: Acquire. The partner is the Release exchange that made it.
//! - **Count oneself in**: Acquire. The partner is the exchange of 0 for 0: a thread that comes
//!   after it sees the root changed.
//! - **Count oneself out**: Release. The partner is the same exchange: all reads were done before.
//! - **Exchange 0 for 0 in `readers`**: AcqRel, with both. Why no handshake, although each side
//!   writes one word and looks at the other's: both sides exchange `readers`, so the order of that
//!   one word says which of them came first.
//! - **Exchange the root**: Release. The partner is the next look.
//!
//! # Wrap-around
//!
//! The root is a block's number and a tag of 32 bits. A thread that stops for exactly a multiple of
//! 2^32 updates between its copy and its exchange may undo them all. At a million updates a second
//! that is 71 minutes of standing still, to the update.
//!
//! Source: Herlihy, "A Methodology for Implementing Highly Concurrent Data Objects", TOPLAS 15(5),
//! 1993, section 4. Counting a block's readers is Valois's idea.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_spin::Backoff;

use crate::Progress;
use crate::memory::numbered::Numbered;
use crate::memory::thread_cache::{CacheGuard, ThreadCaches};

/// An object of any type that can be cloned, updated by whole copies and without locks.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as cloning the object and the operation
///   are.
/// - Cost of an update: a clone, and four exchanges. Each update that was faster costs all that
///   again.
/// - Cost of a read: two exchanges on a line that all readers share.
/// - Memory: a version for each thread that has updated, and one more. Beyond that there are at
///   most as many for each as threads are stopped in the middle of a copy.
///
/// Old versions are kept as memory for the next copies ([`Clone::clone_from`]) and are dropped with
/// the whole. A thing that an old version owns, such as an `Arc`, lives until then, or until the
/// version is copied over.
///
/// ```
/// use stanchion_lockfree::Herlihy;
///
/// let names = Herlihy::new(vec!["Ada"]);
/// std::thread::scope(|scope| {
///     scope.spawn(|| names.update(|names| names.push("Grace")));
///     scope.spawn(|| names.update(|names| names.push("Barbara")));
/// });
/// assert_eq!(names.read(Vec::len), 3);
/// ```
///
/// Several threads at once read versions. So an object that is not `Sync` cannot be shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::Herlihy::new(std::cell::Cell::new(0)));
/// ```
pub struct Herlihy<T> {
    /// The number of the block with the object, and a tag. Written by the thread that updates.
    root: CachePadded<AtomicU64>,
    /// The versions, old and new.
    blocks: Numbered<CachePadded<Block<T>>>,
    /// The old blocks of each thread (Invariant 3).
    caches: ThreadCaches<Vec<u32>>,
}

/// The memory of one version.
struct Block<T> {
    /// The number of threads that read it or are about to. Each counts itself in and out.
    readers: AtomicU32,
    /// The version; `None` until the first copy. Written by the thread that owns the block.
    value: UnsafeCell<Option<T>>,
}

// SAFETY: it owns all versions, and a thread may drop a version that another made.
unsafe impl<T: Send> Send for Herlihy<T> {}
// SAFETY: versions are made by one thread and dropped by another (`Send`), and cloned by several at
// once (`Sync`).
unsafe impl<T: Send + Sync> Sync for Herlihy<T> {}

impl<T> Block<T> {
    fn new() -> CachePadded<Self> {
        CachePadded::new(Self { readers: AtomicU32::fresh(0), value: UnsafeCell::new(None) })
    }

    /// Returns whether no thread reads it, and none will.
    ///
    /// The root does not name it, nor will before the caller makes it do so.
    fn is_free(&self) -> bool {
        // AcqRel: the Acquire pairs with the Release of the threads that counted themselves out,
        // the Release with the Acquire of those that count themselves in.
        let taken = self.readers.compare_exchange(0, 0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    }
}

impl<T> Herlihy<T> {
    /// Tells what a thread that stops in the middle of an operation does to the others.
    pub const PROGRESS: Progress = Progress::LockFree;

    /// Returns an object with `value` as its first version.
    #[must_use]
    pub fn new(value: T) -> Self {
        let blocks = Numbered::new();
        let first = blocks.add(Block::new);
        let block: &Block<T> = blocks.at(first);
        block.value.with_mut(|slot| {
            // SAFETY: no other thread has the block yet.
            unsafe { *slot = Some(value) }
        });
        Self {
            root: CachePadded::new(AtomicU64::fresh(first.into())),
            blocks,
            caches: ThreadCaches::new(),
        }
    }

    /// Calls `read` with the object as it is at some moment during the call, and returns its
    /// result. A thread that stops in `read` keeps one block back.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.pin().with(read)
    }

    /// Returns the object itself, for the only owner. Nothing is copied.
    ///
    /// ```
    /// use stanchion_lockfree::Herlihy;
    ///
    /// let mut numbers = Herlihy::new(vec![1]);
    /// numbers.get_mut().push(2);
    /// assert_eq!(numbers.get(), [1, 2]);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        // Relaxed: no other thread has the object.
        let newest = self.root.load(Ordering::Relaxed) as u32;
        let slot = self.blocks.at(newest).value.with_mut(|slot| slot);
        // SAFETY: the root's block is written by no thread, and nothing else reads it while the
        // object is borrowed.
        let slot = unsafe { &mut *slot };
        slot.as_mut().expect("the root's block has an object")
    }

    /// Returns the object itself, for the sole owner.
    pub fn into_inner(self) -> T {
        let value = self.pin().block.value.with_mut(|slot| {
            // SAFETY: the caller is the sole owner.
            let slot = unsafe { &mut *slot };
            slot.take().expect("the root's block has an object")
        });
        // Here, and not at the end: if the drop of an old version panics, a value that is being
        // returned already would not be dropped. A variable is.
        drop(self);
        value
    }

    /// Returns the root's word.
    #[inline]
    fn look(&self) -> u64 {
        // Acquire: pairs with the Release exchange that made it.
        self.root.load(Ordering::Acquire)
    }

    /// Pins the block that the root names. No thread writes it until the pin is dropped.
    fn pin(&self) -> Pin<'_, T> {
        let mut backoff = Backoff::new();
        loop {
            let root = self.look();
            // The upper half is the tag.
            let block = self.blocks.at(root as u32);
            // Acquire: pairs with the Release of the thread that found no reader before. The next
            // look then sees the root that this thread had changed.
            block.readers.fetch_add(1, Ordering::Acquire);
            let pin = Pin { root, block };
            // Relaxed: as above. The content of the block was acquired with the first look.
            if self.root.load(Ordering::Relaxed) == root {
                return pin;
            }
            drop(pin);
            backoff.spin();
        }
    }
}

impl<T: Clone> Herlihy<T> {
    /// Applies `update` to a copy of the object and makes the copy the object. If another update
    /// was faster, applies `update` again to a newer copy.
    ///
    /// The copy to which it was applied last becomes the object, and its last result is returned.
    /// If `update`, or cloning, panics, the object is as it was.
    ///
    /// `update` may update the object itself. Such an inner update is made before the outer one and
    /// makes it begin again, so it must not happen each time. A thread nests at most 64 updates of
    /// an object.
    ///
    /// # Panics
    ///
    /// If `update` or cloning does. If 64 updates of the thread are nested already. If there are
    /// 2^32 - 3 versions.
    pub fn update<R>(&self, mut update: impl FnMut(&mut T) -> R) -> R {
        let mut spare = Spare::of(self);
        let mut backoff = Backoff::new();
        loop {
            let pin = self.pin();
            let root = pin.root;
            pin.with(|value| spare.copy(value));
            drop(pin);
            let result = spare.with(&mut update);
            if spare.swing(root) {
                return result;
            }
            backoff.spin();
        }
    }

    /// Returns a copy of the object as it is at some moment during the call.
    #[must_use]
    pub fn get(&self) -> T {
        self.read(T::clone)
    }
}

/// A block that is being read.
struct Pin<'h, T> {
    /// The root's word when the block was pinned.
    root: u64,
    /// The block that the pin counts on.
    block: &'h Block<T>,
}

impl<T> Pin<'_, T> {
    fn with<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.block.value.with(|value| {
            // SAFETY: no thread writes a block that is pinned (Invariant 2).
            let value = unsafe { &*value };
            read(value.as_ref().expect("the root's block has an object"))
        })
    }
}

impl<T> Drop for Pin<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the thread that finds no reader.
        self.block.readers.fetch_sub(1, Ordering::Release);
    }
}

/// A free block, for the next version.
struct Spare<'h, T> {
    /// The object that the version is for.
    object: &'h Herlihy<T>,
    /// The cache of the updating thread, taken.
    cache: CacheGuard<'h, Vec<u32>>,
    /// The number of the free block.
    number: u32,
}

impl<'h, T> Spare<'h, T> {
    fn of(object: &'h Herlihy<T>) -> Self {
        let mut cache = object.caches.take();
        // The block that was put there last is the likeliest to be in the processor's cache.
        let free = cache.iter().rposition(|number| object.blocks.at(*number).is_free());
        let number = match free {
            Some(index) => cache.remove(index),
            None => object.blocks.add(Block::new),
        };
        Self { object, cache, number }
    }

    fn with<R>(&mut self, write: impl FnOnce(&mut T) -> R) -> R {
        self.object.blocks.at(self.number).value.with_mut(|slot| {
            // SAFETY: the block is free, and this thread's (Invariant 3).
            let slot = unsafe { &mut *slot };
            write(slot.as_mut().expect("it has been copied to"))
        })
    }

    fn copy(&mut self, value: &T)
    where
        T: Clone,
    {
        self.object.blocks.at(self.number).value.with_mut(|slot| {
            // SAFETY: as in `with`.
            let slot = unsafe { &mut *slot };
            match slot {
                Some(slot) => slot.clone_from(value),
                None => *slot = Some(value.clone()),
            }
        });
    }

    /// Makes the copy the object, if the root is still `root`. Then the block that it named is the
    /// spare one.
    fn swing(&mut self, root: u64) -> bool {
        let tag = (root >> 32).wrapping_add(1) << 32;
        let new = tag | u64::from(self.number);
        let order = Ordering::Release;
        // Release: publishes the copy. Relaxed: a failure means another copy.
        let swung = self.object.root.compare_exchange(root, new, order, Ordering::Relaxed);
        if swung.is_ok() {
            self.number = root as u32;
        }
        swung.is_ok()
    }
}

impl<T> Drop for Spare<'_, T> {
    fn drop(&mut self) {
        self.cache.push(self.number);
    }
}

// An update that panics changes nothing. A read shows the object itself, so damage that a reader
// could do counts.
impl<T: UnwindSafe + RefUnwindSafe> UnwindSafe for Herlihy<T> {}
impl<T: UnwindSafe + RefUnwindSafe> RefUnwindSafe for Herlihy<T> {}

impl<T: Default> Default for Herlihy<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Herlihy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|value| f.debug_tuple("Herlihy").field(value).finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    assert_impl_all!(Herlihy<Vec<u32>>: Send, Sync);
    assert_impl_all!(Herlihy<std::cell::Cell<u32>>: Send);
    // Cloned by several threads at once.
    assert_not_impl_any!(Herlihy<std::cell::Cell<u32>>: Sync);
    assert_not_impl_any!(Herlihy<std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn every_update_is_made_once() {
        const EACH: usize = 2_000;
        let counts = Herlihy::new(vec![0; 8]);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let counts = &counts;
                scope.spawn(move || {
                    for _ in 0..EACH {
                        counts.update(|counts| {
                            counts[thread] += 1;
                            counts[7] += 1;
                        });
                        counts.read(|counts| {
                            assert_eq!(counts[..4].iter().sum::<usize>(), counts[7])
                        });
                    }
                });
            }
        });
        assert_eq!(counts.get(), [EACH, EACH, EACH, EACH, 0, 0, 0, 4 * EACH]);
        assert!(counts.blocks.given() <= 4 * 5 + 1, "{} blocks", counts.blocks.given());
        assert_eq!(counts.into_inner()[7], 4 * EACH);
    }

    #[test]
    fn two_versions_do_for_one_thread() {
        let object = Herlihy::new(String::from("a"));
        for _ in 0..100 {
            object.update(|text| text.push('b'));
        }
        assert_eq!(object.blocks.given(), 2);
        assert_eq!(object.read(String::len), 101);
        assert_eq!(format!("{:?}", Herlihy::new(1)), "Herlihy(1)");
    }

    #[test]
    fn a_block_that_is_read_is_not_written() {
        let object = Herlihy::new([0; 4]);
        object.read(|before| {
            for number in 1..10 {
                object.update(|now| *now = [number; 4]);
                assert_eq!(*before, [0; 4]);
            }
        });
        assert_eq!(object.get(), [9; 4]);
        assert_eq!(object.blocks.given(), 3);
    }

    #[test]
    fn an_update_that_panics_changes_nothing() {
        let object = Herlihy::new(vec![1]);
        let update = AssertUnwindSafe(|| {
            object.update(|numbers| {
                numbers.push(2);
                assert!(numbers.len() > 5, "too few");
            });
        });
        assert!(catch_unwind(update).is_err());
        assert_eq!(object.get(), [1]);
        object.update(|numbers| numbers.push(3));
        assert_eq!(object.into_inner(), [1, 3]);
    }

    /// The panic comes before the stack overflows, and leaves the object as it was.
    #[test]
    fn updates_nest_64_deep_and_no_deeper() {
        fn nest(object: &Herlihy<usize>, depth: usize) {
            let mut first = true;
            object.update(|number| {
                if std::mem::take(&mut first) && depth > 1 {
                    nest(object, depth - 1);
                }
                *number += 1;
            });
        }
        let object = Herlihy::new(0);
        for _ in 0..3 {
            let before = object.get();
            nest(&object, 64);
            assert_eq!(object.get(), before + 64);
            let panic = catch_unwind(AssertUnwindSafe(|| nest(&object, 33_000))).unwrap_err();
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.contains("more than 64 operations"), "{message}");
            assert_eq!(object.get(), before + 64);
        }
    }

    #[test]
    fn an_update_may_use_the_object() {
        let object = Herlihy::new(1);
        let mut first = true;
        object.update(|number| {
            if std::mem::take(&mut first) {
                object.update(|number| *number *= 10);
            }
            *number += 1;
        });
        assert_eq!(object.get(), 11);
    }
}
