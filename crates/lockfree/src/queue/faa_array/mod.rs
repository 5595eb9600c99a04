//! Correia and Ramalhete's queue: segments of cells that are handed out by fetch-and-add.
//!
//! Why not a node for each value, as in Michael and Scott's queue: there both ends are moved by a
//! compare-exchange, which fails when another thread was quicker. Here an addition gives each push
//! and each pop a cell of its own, and never fails. A segment is linked once for [`CELLS`] values.
//! Why not as [`SegQueue`] does it: there a pop that comes to a cell before its push has filled it
//! waits for it. Here it spoils the cell, and the push takes another.
//!
//! Why the first try for a number is a compare-exchange all the same: if threads take numbers in
//! turn, each has to fetch the line with the numbers and the cells' lines from the other's cache
//! each time. An exchange costs as much as an addition. An exchange that fails shows that another
//! thread takes numbers too. Then the thread stays away for a while, and the other one does many
//! operations with the lines in its cache. The second try is the addition, so a thread stays away
//! at most once for each number.
//!
//! ```text
//! head ──► segment ────────────► segment ◄── tail
//!          taken: 64             taken: 2     put: 4
//!          (used up)             │ gone │ gone │ full │ empty │ empty │ …
//! ```
//!
//! | cell | left by |
//! | --- | --- |
//! | empty | the push of its number, which fills it, or the pop of its number, which spoils it |
//! | full | no thread: the pop of its number takes the value |
//! | gone | no thread |
//!
//! # Why it ends
//!
//! A pop that spoils a cell uses it up, and so does each push that finds a spoilt one. When the
//! segment is used up, a push links a new one *with its value in it*, which no pop can spoil. A pop
//! that finds nothing has seen that there were as many pops as pushes.
//!
//! # Invariants
//!
//! 1. Each number below [`CELLS`] is given to one push and to one pop by each segment.
//! 2. A value in a cell belongs to the push until the cell is full, then to the pop of its number.
//! 3. `next` leaves null once. `head` moves from a segment only when all its cells have been given
//!    to pops, and when `tail` has left it.
//! 4. A segment is retired by the pop that moved `head` from it. So no link of the queue names a
//!    retired segment.
//!
//! A segment has nothing to drop: its values are in cells that do not know whether they are filled.
//! So it is retired as it stands.
//!
//! # Orderings
//!
//! - **Fill a cell**: Release. The partner is the Acquire load or exchange of the pop: the value.
//! - **Link a segment, move `head` or `tail` to it**: Release. The partner is the Acquire load of a
//!   thread that comes to it: its cells, and the value in the first.
//! - **Pop: take a number**: AcqRel in total. The load of `taken` before the exchange is the
//!   Acquire half. The partners are the same by another pop, and the look of a thread that finds
//!   the queue empty. It sees everything that had been put in, as far as the threads that took
//!   numbers knew it.
//! - **Push: take a number**: Relaxed, without a partner. Only the number is needed.
//! - **Pop: look at `tail`**: Relaxed, without a partner. The thread that moved `head` here had
//!   seen `tail` here or further.
//!
//! Source: Correia and Ramalhete, "FAAArrayQueue", 2016 (Concurrency Freaks), after the
//! fetch-and-add queues of Morrison and Afek, PPoPP 2013. Their queue takes a value out by an
//! exchange; here a full cell needs none.
//!
//! [`SegQueue`]: https://docs.rs/crossbeam-queue/latest/crossbeam_queue/struct.SegQueue.html

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU8, AtomicUsize, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use super::away;
use crate::Progress;
use crate::dropping::{Finally, drop_each};
use crate::memory::hazard::HazardOperation;
use crate::memory::{Hazard, Link, Memory, Operation, Store};

/// The number of cells of a segment. A model has two, so that a segment comes to its end.
const CELLS: usize = stanchion_machine::sized(64, 2);

/// The hazard for the segment at an operation's own end.
const END: usize = 0;
/// The hazard for the segment at the other end, for a count.
const OTHER_END: usize = 1;

/// The states of a cell.
const EMPTY: u8 = 0;
const FULL: u8 = 1;
const GONE: u8 = 2;

type Segments<T> = <Hazard as Memory>::Store<Segment<T>>;
type Pointer<T> = <Segments<T> as Store<Segment<T>>>::Pointer;

/// An unbounded queue of `T` that no stopped thread can hold up, in segments of 64.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked.
/// - Cost of a push and a pop: three locked instructions, and two announcements. If threads meet, a
///   thread pauses for up to 100 transfers of a line before some of these.
/// - Memory: 64 values at a time, reclaimed by [hazard pointers](crate::memory). Each thread that
///   uses the queue keeps segments until the queue is dropped: up to 256 KiB that wait to be
///   reclaimed, at least 4, beyond those that threads look at. It also keeps up to 64 KiB that are
///   ready, at least one.
/// - Order: by the numbers that pushes take.
///
/// Where no thread stops at a bad time, [`SegmentedQueue`](super::SegmentedQueue) is faster: a pair
/// takes 9 to 12 ns instead of 17 to 21
/// (`cargo contest structures --only "unbounded queues" --rounds 5`).
///
/// ```
/// use stanchion_lockfree::queue::FaaArrayQueue;
///
/// let queue = FaaArrayQueue::new();
/// queue.push("first");
/// queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::FaaArrayQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct FaaArrayQueue<T> {
    /// The first segment with values. Written by the pop that leaves a segment.
    head: CachePadded<<Segments<T> as Store<Segment<T>>>::Link>,
    /// The last segment, or the one before. Written by pushes, and by pops that find it late.
    tail: CachePadded<<Segments<T> as Store<Segment<T>>>::Link>,
    /// The memory of the segments.
    store: Segments<T>,
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it, and the segments
// belong to the queue.
unsafe impl<T: Send> Send for FaaArrayQueue<T> {}
// SAFETY: everything that threads share is atomic, and a value is touched only by the thread that
// it belongs to (Invariant 2).
unsafe impl<T: Send> Sync for FaaArrayQueue<T> {}

/// An array of cells, and the numbers that are given for them.
struct Segment<T> {
    /// The number of the next pop. Counted up by pops.
    taken: CachePadded<AtomicUsize>,
    /// The number of the next push. Counted up by pushes.
    put: CachePadded<AtomicUsize>,
    /// The cells, by the numbers of their push and pop.
    cells: [Cell<T>; CELLS],
    /// The number of segments that were linked before this one. Written before it is linked.
    before: usize,
}

/// A cell for one value.
struct Cell<T> {
    /// EMPTY, then FULL or GONE. Written by the push and the pop of its number.
    state: AtomicU8,
    /// The value. Touched by its owner only (Invariant 2).
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Segment<T> {
    /// Makes a segment in `room`, with so many `before` it, and with `first` in its first cell if
    /// there is one.
    ///
    /// # Safety
    ///
    /// There is room for one, and no other thread knows of it.
    unsafe fn make(room: *mut Self, before: usize, mut first: Option<T>) {
        // SAFETY: by the caller's promise, here and in all blocks below. Each field is in that
        // room, which no other thread uses.
        let count = unsafe { &raw mut (*room).before };
        // SAFETY: as above.
        unsafe { count.write(before) };
        // SAFETY: as above.
        let taken = unsafe { &raw mut (*room).taken };
        // SAFETY: as above.
        unsafe { taken.write(CachePadded::new(AtomicUsize::fresh(0))) };
        // SAFETY: as above.
        let put = unsafe { &raw mut (*room).put };
        // SAFETY: as above.
        unsafe { put.write(CachePadded::new(AtomicUsize::fresh(usize::from(first.is_some())))) };
        // SAFETY: as above.
        let cells = unsafe { &raw mut (*room).cells }.cast::<Cell<T>>();
        for number in 0..CELLS {
            // SAFETY: as above; the array has so many.
            let cell = unsafe { cells.add(number) };
            // SAFETY: as above.
            unsafe { cell.write(first.take().map_or_else(Cell::vacant, Cell::full)) };
        }
    }

    /// Returns a number that no other push has. If the cells are used up, it is beyond them.
    #[inline]
    fn number_to_push(&self) -> usize {
        // Relaxed, all: only the number is needed.
        let next = self.put.load(Ordering::Relaxed);
        if next >= CELLS {
            return next;
        }
        let put = self.put.compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed);
        put.unwrap_or_else(|_| {
            stay_away();
            self.put.fetch_add(1, Ordering::Relaxed)
        })
    }

    /// Returns a number that no other pop has. If the cells are used up, it is beyond them. The
    /// caller has seen `next` in `taken`, with Acquire.
    #[inline]
    fn number_to_pop(&self, next: usize) -> usize {
        if next >= CELLS {
            return next;
        }
        // Release: see the header. Relaxed: the addition acquires.
        let taken =
            self.taken.compare_exchange(next, next + 1, Ordering::Release, Ordering::Relaxed);
        taken.unwrap_or_else(|_| {
            stay_away();
            // AcqRel: see the header.
            self.taken.fetch_add(1, Ordering::AcqRel)
        })
    }
}

/// Stays away for a while, because another thread takes numbers too.
#[cold]
fn stay_away() {
    away().spin();
}

impl<T> Cell<T> {
    fn vacant() -> Self {
        let value = UnsafeCell::new(MaybeUninit::uninit());
        Self { state: AtomicU8::fresh(EMPTY), value }
    }

    fn full(value: T) -> Self {
        let value = UnsafeCell::new(MaybeUninit::new(value));
        Self { state: AtomicU8::fresh(FULL), value }
    }

    /// Puts `value` in, unless the cell has been spoilt. The caller has its number.
    #[inline]
    fn fill(&self, value: T) -> Result<(), T> {
        self.value.with_mut(|slot| {
            // SAFETY: the cell is this push's until it is full (Invariant 2).
            unsafe { slot.write(MaybeUninit::new(value)) };
        });
        // Release: pairs with the Acquire of the pop. Relaxed: the value is still this thread's
        // own.
        match self.state.compare_exchange(EMPTY, FULL, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            // SAFETY: it was put in above, and the pop has left it alone.
            Err(_) => Err(unsafe { self.read() }),
        }
    }

    /// Takes the value out, or spoils the cell. The caller has its number.
    #[inline]
    fn empty(&self) -> Option<T> {
        // Acquire, twice: pairs with the Release of the push.
        let full = self.state.load(Ordering::Acquire) == FULL
            || self.state.swap(GONE, Ordering::Acquire) == FULL;
        // SAFETY: it is full, and this is the pop of its number (Invariant 2).
        full.then(|| unsafe { self.read() })
    }

    /// Reads the value.
    ///
    /// # Safety
    ///
    /// There is a value, which belongs to the caller, and no thread reads it again.
    #[inline]
    unsafe fn read(&self) -> T {
        self.value.with(|slot| {
            // SAFETY: by the caller's promise no thread writes it now.
            let value = unsafe { slot.read() };
            // SAFETY: by the caller's promise there is one.
            unsafe { value.assume_init() }
        })
    }
}

impl<T> FaaArrayQueue<T> {
    /// Returns an empty queue, with one segment.
    #[must_use]
    pub fn new() -> Self {
        let queue = Self {
            head: CachePadded::new(Link::NULL),
            tail: CachePadded::new(Link::NULL),
            store: Segments::<T>::NEW,
        };
        let segment = segment_with(&queue.store.enter(), 0, None);
        // Relaxed: no other thread has the queue yet.
        queue.head.store(segment, Ordering::Relaxed);
        queue.tail.store(segment, Ordering::Relaxed);
        queue
    }

    /// Puts `value` at the end.
    pub fn push(&self, mut value: T) {
        let operation = self.store.enter();
        loop {
            let last = operation.protect(END, &self.tail);
            // SAFETY: protected, and not null: there always is a segment.
            let segment = unsafe { look(&operation, last) };
            let number = segment.number_to_push();
            if let Some(cell) = segment.cells.get(number) {
                match cell.fill(value) {
                    Ok(()) => return,
                    Err(back) => value = back,
                }
                continue;
            }
            match self.link(&operation, last, value) {
                Ok(()) => return,
                Err(back) => value = back,
            }
        }
    }

    /// Moves `tail` to the next segment, because the segment of `last` is used up. If there is no
    /// next segment, links a new one with `value` in it.
    #[cold]
    fn link(
        &self,
        operation: &HazardOperation<'_, Segment<T>>,
        last: Pointer<T>,
        value: T,
    ) -> Result<(), T> {
        // SAFETY: the caller has protected it.
        let link = unsafe { operation.next(last) };
        // Acquire: pairs with the Release of the push that linked it, because `tail` may be moved
        // to it.
        let next = link.load(Ordering::Acquire);
        if !next.is_null() {
            self.move_tail(last, next);
            return Err(value);
        }
        // SAFETY: the caller has protected it.
        let before = unsafe { look(operation, last) }.before;
        let new = segment_with(operation, before.wrapping_add(1), Some(value));
        // Release: pairs with the Acquire of a thread that finds it. Relaxed: the thread that was
        // quicker moves `tail`, or the next try does.
        if link.compare_exchange(next, new, Ordering::Release, Ordering::Relaxed) {
            self.move_tail(last, new);
            return Ok(());
        }
        // SAFETY: no other thread has seen it.
        let segment = unsafe { look(operation, new) };
        // SAFETY: it was put in above; the segment is not looked at again.
        let value = unsafe { segment.cells[0].read() };
        // SAFETY: no other thread has seen it.
        unsafe { operation.discard(new) };
        Err(value)
    }

    fn move_tail(&self, last: Pointer<T>, next: Pointer<T>) {
        // Release: pairs with the Acquire of a thread that finds the segment here. Relaxed: then it
        // has been moved.
        let _ = self.tail.compare_exchange(last, next, Ordering::Release, Ordering::Relaxed);
    }

    /// Takes the oldest value. Returns `None` if there was nothing at some moment during the call.
    pub fn pop(&self) -> Option<T> {
        let operation = self.store.enter();
        loop {
            let first = operation.protect(END, &self.head);
            // SAFETY: protected, and not null: there always is a segment.
            let segment = unsafe { look(&operation, first) };
            // SAFETY: as above.
            let link = unsafe { operation.next(first) };
            // Acquire: everything that the threads that took numbers knew. So `put` and `next` are
            // not older.
            let taken = segment.taken.load(Ordering::Acquire);
            // Relaxed, both: their order does not matter. While `put` is at most CELLS, nothing is
            // linked behind.
            if taken >= segment.put.load(Ordering::Relaxed)
                && link.load(Ordering::Relaxed).is_null()
            {
                return None;
            }
            let number = segment.number_to_pop(taken);
            if let Some(cell) = segment.cells.get(number) {
                match cell.empty() {
                    Some(value) => return Some(value),
                    None => continue,
                }
            }
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            if next.is_null() {
                return None;
            }
            self.leave(&operation, first, next);
        }
    }

    /// Moves `head` to the `next` segment, because all cells of `first` have been given to pops.
    #[cold]
    fn leave(
        &self,
        operation: &HazardOperation<'_, Segment<T>>,
        first: Pointer<T>,
        next: Pointer<T>,
    ) {
        // Relaxed: not older than the `tail` that `head` came with (Invariant 3).
        if self.tail.load(Ordering::Relaxed) == first {
            self.move_tail(first, next);
        }
        // Release: pairs with the Acquire of a thread that finds this head. Relaxed: then it has
        // been moved.
        if self.head.compare_exchange(first, next, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: still protected.
            let slot = unsafe { operation.slot(first) };
            // SAFETY: this thread moved `head` from it, and `tail` has left it (Invariant 4). It
            // has nothing to drop.
            unsafe { operation.retire(first, slot) };
        }
    }

    /// Returns the number of values. Exact if no other thread pushes or pops meanwhile, else an
    /// estimate. Looks at both ends, and again if a pop was faster.
    #[must_use]
    pub fn len(&self) -> usize {
        let operation = self.store.enter();
        loop {
            let head = operation.protect(END, &self.head);
            let tail = operation.protect(OTHER_END, &self.tail);
            // SAFETY: protected, and not null: there always is a segment.
            let first = unsafe { look(&operation, head) };
            // SAFETY: as above.
            let last = unsafe { look(&operation, tail) };
            // Relaxed, all: an estimate while other threads push or pop.
            let taken = first.taken.load(Ordering::Relaxed);
            let put = last.put.load(Ordering::Relaxed).min(CELLS);
            // If they have changed, the pops may have gone far since, and values pushed before them
            // would count.
            if self.head.load(Ordering::Relaxed) == head
                && first.taken.load(Ordering::Relaxed) == taken
            {
                // The tail, which was read later, is not before the head (Invariant 3).
                let between = last.before.wrapping_sub(first.before);
                return (between * CELLS + put).saturating_sub(taken.min(CELLS));
            }
        }
    }

    /// Returns whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.store.enter();
        loop {
            let first = operation.protect(END, &self.head);
            // SAFETY: protected, and not null: there always is a segment.
            let segment = unsafe { look(&operation, first) };
            // SAFETY: as above.
            let link = unsafe { operation.next(first) };
            // Acquire: as in `pop`.
            let taken = segment.taken.load(Ordering::Acquire);
            // Relaxed, as the cells are: not older than what the threads that took numbers knew.
            // Cells never become empty again. So cells that are not full now were not full when
            // `put` was read.
            let put = segment.put.load(Ordering::Relaxed);
            let full = |cell: &Cell<T>| cell.state.load(Ordering::Relaxed) == FULL;
            if taken < CELLS && segment.cells[taken..put.clamp(taken, CELLS)].iter().any(full) {
                return false;
            }
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            if next.is_null() {
                return true;
            }
            // Before all cells have been given to pops, no thread goes on to the next segment, and
            // to the value with which it came.
            if taken < CELLS {
                return false;
            }
            self.leave(&operation, first, next);
        }
    }
}

/// Returns a segment that no other thread has seen, with `first` in its first cell if there is one.
fn segment_with<T>(
    operation: &HazardOperation<'_, Segment<T>>,
    before: usize,
    first: Option<T>,
) -> Pointer<T> {
    operation.allocate_with(|slot| {
        // SAFETY: it is the room in the node for a segment, and the node is this thread's.
        unsafe { Segment::make(slot, before, first) };
    })
}

/// Returns the segment of a node.
///
/// # Safety
///
/// The node is protected or owned, not null, and stays so for as long as the segment is used.
#[inline]
unsafe fn look<'o, T>(
    operation: &'o HazardOperation<'_, Segment<T>>,
    node: Pointer<T>,
) -> &'o Segment<T> {
    // SAFETY: by the caller's promise; all nodes of this queue are allocated with a segment.
    let segment = unsafe { operation.look(node) };
    // SAFETY: segments change only in their atomic parts, and in cells that know their owner.
    unsafe { &*segment }
}

impl<T> Drop for FaaArrayQueue<T> {
    fn drop(&mut self) {
        let queue = &*self;
        // Last, and also if dropping a value panics.
        let _last = Finally(|| {
            let operation = queue.store.enter();
            // Relaxed: no other thread has the queue.
            let last = queue.head.load(Ordering::Relaxed);
            // SAFETY: it is the only segment left, and no other thread has the queue. All values
            // have been taken out.
            unsafe { operation.discard(last) };
        });
        drop_each(|| queue.pop());
    }
}

forward! {
    impl[T] ConcurrentQueue for FaaArrayQueue<T>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T] FaaArrayQueue<T>;
    value: T;
    new: FaaArrayQueue::new();
    debug: |queue| is_empty = queue.is_empty();
}

exclusive! {
    impl[T] FaaArrayQueue<T>;
    value: T;
    push_mut: |queue, value| queue.push(value);
    pop_mut: |queue| queue.pop();
    peek_mut: |queue| queue.peek_alone();
    cost: "Costs as much as the shared operation when no other thread is there.";
}

impl<T> FaaArrayQueue<T> {
    fn peek_alone(&mut self) -> Option<&mut T> {
        let operation = self.store.enter();
        // Relaxed, all: no other thread has the queue.
        let mut node = self.head.load(Ordering::Relaxed);
        while !node.is_null() {
            // SAFETY: linked, and so no other thread could retire it; not null by the look.
            let segment = unsafe { look(&operation, node) };
            let taken = segment.taken.load(Ordering::Relaxed);
            // No operation is going on: a cell that has been given to a push and not to a pop is
            // full.
            if taken < segment.put.load(Ordering::Relaxed).min(CELLS) {
                let value = segment.cells[taken].value.with_mut(|value| value.cast::<T>());
                // SAFETY: the cell is full, and nothing else touches it while the queue is borrowed
                // (Invariant 2).
                return Some(unsafe { &mut *value });
            }
            // SAFETY: as for the segment.
            node = unsafe { operation.next(node) }.load(Ordering::Relaxed);
        }
        None
    }
}

#[cfg(test)]
mod tests;
