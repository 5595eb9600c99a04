//! Correia and Ramalhete's queue: segments of cells that are handed out by fetch-and-add.
//!
//! Why not a node for each value, as in Michael and Scott's queue: there both ends are moved by a
//! compare-exchange, which fails when another was quicker. Here an addition gives each push and
//! each pop a cell of its own, and never fails; a segment is linked once for [`CELLS`] values. Why
//! not as [`SegQueue`] does it: there a pop that comes to a cell before its push has filled it
//! waits for it. Here it spoils the cell, and the push takes another.
//!
//! Why the first try for a number is a compare-exchange all the same: where threads take numbers in
//! turn, each has to fetch the line with the numbers and the cells' lines from the other's cache
//! each time. An exchange costs as much as an addition, and one that fails shows that there is
//! another at it: who sees that stays away for a while, and the other does many operations with the
//! lines in its cache. The second try is the addition, so a thread stays away once for each number
//! at most.
//!
//! ```text
//! head ──► segment ─────────────────► segment ◄── tail
//!          taken: 64 (nobody finds       taken: 2     put: 4
//!          anything here any more)       │ gone │ gone │ full │ empty │ empty │ …
//! ```
//!
//! | cell | left by |
//! | --- | --- |
//! | empty | the push that has its number, which fills it; or the pop that has its number and comes first, which spoils it |
//! | full | nobody: the pop that has its number takes the value |
//! | gone | nobody |
//!
//! # Why it ends
//!
//! A pop that spoils a cell uses it up, and so does each push that finds it spoilt. When the
//! segment is used up, a push links a new one *with its value in it*, which no pop can spoil. A pop
//! that comes in vain has seen that there were as many pops as pushes.
//!
//! # Invariants
//!
//! 1. Each number below [`CELLS`] is given to one push and to one pop by each segment.
//! 2. A value in a cell belongs to the push until the cell is full, then to the pop of its number.
//! 3. `next` leaves null once. `head` moves from a segment only when all its cells have been given
//!    to pops, and when `tail` has left it.
//! 4. A segment is retired by the pop that moved `head` from it; so no link of the queue names a
//!    retired one.
//!
//! A segment has nothing to drop: its values are in cells that do not know whether they are filled.
//! So it is retired as it stands.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | fill a cell | Release | the Acquire load or exchange of the pop: the value |
//! | link a segment, move `head` or `tail` to it | Release | the Acquire load of who comes to it: its cells, the value in the first |
//! | pop: take a number | Release and Acquire, of which the look at `taken` before an exchange is the Acquire | the same by another, and the look of who finds the queue empty: what those who took numbers knew had been put in |
//! | push: take a number | Relaxed | nobody: the number is all that is wanted |
//! | pop: look at `tail` | Relaxed | nobody: who moved `head` here had seen `tail` here or further |
//!
//! Source: Correia and Ramalhete, "FAAArrayQueue", 2016 (Concurrency Freaks), after the
//! fetch-and-add queues of Morrison and Afek, PPoPP 2013. Theirs takes a value out by an exchange;
//! here a full cell needs none.
//!
//! [`SegQueue`]: https://docs.rs/crossbeam-queue/latest/crossbeam_queue/struct.SegQueue.html

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU8, AtomicUsize, Fresh, Ordering};
use machine::cell::UnsafeCell;

use super::{ConcurrentQueue, Full, away};
use crate::Progress;
use crate::dropping::{Finally, drop_each};
use crate::memory::hazard::HazardOperation;
use crate::memory::{Hazard, Link, Memory, Operation, Store};

/// Cells of a segment; two in a model, so that it comes to its end.
const CELLS: usize = machine::sized(64, 2);

/// The hazard of an operation…
const END: usize = 0;
/// …and that of the other end, for a count.
const OTHER_END: usize = 1;

/// What a cell is.
const EMPTY: u8 = 0;
const FULL: u8 = 1;
const GONE: u8 = 2;

type Segments<T> = <Hazard as Memory>::Store<Segment<T>>;
type Pointer<T> = <Segments<T> as Store<Segment<T>>>::Pointer;

/// An unbounded queue of `T` that no stopped thread can hold up, in segments of 64.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked |
/// | cost of a push and a pop | three locked instructions, and two announcements; where threads meet, up to 3 µs without any before some of them |
/// | memory | 64 values at a time, reclaimed by [hazard pointers](crate::memory). Each thread that uses the queue keeps segments until it is dropped: up to 256 KiB that wait to be reclaimed, at least 4, beyond those that threads look at; and up to 64 KiB that are ready, at least one |
/// | order | by the numbers that pushes take |
///
/// Where no thread stops at a bad time, [`LockedQueue`](super::LockedQueue) under the
/// [`Barging`](crate::barging::Barging) lock is faster: with one thread 7 ns a pair against 15
/// (`cargo bench -p benches --bench lockfree -- "unbounded queues"`).
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
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::FaaArrayQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct FaaArrayQueue<T> {
    head: CachePadded<<Segments<T> as Store<Segment<T>>>::Link>,
    tail: CachePadded<<Segments<T> as Store<Segment<T>>>::Link>,
    store: Segments<T>,
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it, and the segments
// belong to the queue.
unsafe impl<T: Send> Send for FaaArrayQueue<T> {}
// SAFETY: all that threads share is atomic, and a value is touched only by the thread that it
// belongs to (Invariant 2).
unsafe impl<T: Send> Sync for FaaArrayQueue<T> {}

struct Segment<T> {
    /// The number of the next pop.
    taken: CachePadded<AtomicUsize>,
    /// The number of the next push.
    put: CachePadded<AtomicUsize>,
    cells: [Cell<T>; CELLS],
    /// How many segments were linked before this one. Written before it is linked.
    before: usize,
}

struct Cell<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Segment<T> {
    /// Makes a segment in `room`, with so many `before` it, and with `first` in its first cell if
    /// there is one.
    ///
    /// # Safety
    ///
    /// There is room for one, of which nobody else knows.
    unsafe fn make(room: *mut Self, before: usize, mut first: Option<T>) {
        // SAFETY: by the caller's promise, as all below: each field is in that room, which no other
        // thread uses.
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

    /// A number that no other push has, or one of those for which there are no cells.
    #[inline]
    fn number_to_push(&self) -> usize {
        // Relaxed, all: a number is all that is wanted.
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

    /// A number that no other pop has, or one of those for which there are no cells. The caller has
    /// seen `next` in `taken`, with Acquire.
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

/// For a while, as another is at the numbers.
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
        self.value.with_mut(|place| {
            // SAFETY: the cell is this push's until it is full (Invariant 2).
            unsafe { place.write(MaybeUninit::new(value)) };
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
    /// There is one, which belongs to the caller, and nobody reads it again.
    #[inline]
    unsafe fn read(&self) -> T {
        self.value.with(|place| {
            // SAFETY: by the caller's promise nobody writes it now.
            let value = unsafe { place.read() };
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
        // Relaxed: nobody else has the queue yet.
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

    /// The segment of `last` is used up: moves `tail` to the next one, which it links if there is
    /// none, with `value` in it.
    #[cold]
    fn link(
        &self,
        operation: &HazardOperation<'_, Segment<T>>,
        last: Pointer<T>,
        value: T,
    ) -> Result<(), T> {
        // SAFETY: the caller has protected it.
        let link = unsafe { operation.next(last) };
        // Acquire: pairs with the Release of the push that linked it, for `tail` may be moved to
        // it.
        let next = link.load(Ordering::Acquire);
        if !next.is_null() {
            self.move_tail(last, next);
            return Err(value);
        }
        // SAFETY: the caller has protected it.
        let before = unsafe { look(operation, last) }.before;
        let new = segment_with(operation, before.wrapping_add(1), Some(value));
        // Release: pairs with the Acquire of whoever finds it. Relaxed: who was quicker moves
        // `tail`, or the next try does.
        if link.compare_exchange(next, new, Ordering::Release, Ordering::Relaxed) {
            self.move_tail(last, new);
            return Ok(());
        }
        // SAFETY: nobody else has seen it.
        let segment = unsafe { look(operation, new) };
        // SAFETY: it was put in above; the segment is not looked at again.
        let value = unsafe { segment.cells[0].read() };
        // SAFETY: nobody else has seen it.
        unsafe { operation.discard(new) };
        Err(value)
    }

    fn move_tail(&self, last: Pointer<T>, next: Pointer<T>) {
        // Release: pairs with the Acquire of whoever finds the segment here. Relaxed: then it has
        // been moved.
        let _ = self.tail.compare_exchange(last, next, Ordering::Release, Ordering::Relaxed);
    }

    /// Takes the oldest; `None` if there was nothing at some moment during the call.
    pub fn pop(&self) -> Option<T> {
        let operation = self.store.enter();
        loop {
            let first = operation.protect(END, &self.head);
            // SAFETY: protected, and not null: there always is a segment.
            let segment = unsafe { look(&operation, first) };
            // SAFETY: as above.
            let link = unsafe { operation.next(first) };
            // Acquire: what those knew who took numbers. So what `put` and `next` show is not
            // older.
            let taken = segment.taken.load(Ordering::Acquire);
            // Relaxed, both: in which order does not matter, for while `put` is at most CELLS
            // nothing is linked behind.
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

    /// All cells of `first` have been given to pops: moves `head` to the `next` segment.
    #[cold]
    fn leave(
        &self,
        operation: &HazardOperation<'_, Segment<T>>,
        first: Pointer<T>,
        next: Pointer<T>,
    ) {
        // Relaxed: not older than what `head` came with (Invariant 3).
        if self.tail.load(Ordering::Relaxed) == first {
            self.move_tail(first, next);
        }
        // Release: pairs with the Acquire of who finds this head. Relaxed: then it has been moved.
        if self.head.compare_exchange(first, next, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: still protected.
            let slot = unsafe { operation.slot(first) };
            // SAFETY: this thread moved `head` from it, and `tail` has left it (Invariant 4); it
            // has nothing to drop.
            unsafe { operation.retire(first, slot) };
        }
    }

    /// Returns how many there are. Exact if no other thread pushes or pops meanwhile, else an
    /// estimate. Looks at both ends, again if a pop was faster.
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
            // Relaxed, all: an estimate while others are at it.
            let taken = first.taken.load(Ordering::Relaxed);
            let put = last.put.load(Ordering::Relaxed).min(CELLS);
            // Otherwise the pops may have gone far since, and what was pushed before them would
            // count.
            if self.head.load(Ordering::Relaxed) == head
                && first.taken.load(Ordering::Relaxed) == taken
            {
                // The tail, which was read later, is not before the head (Invariant 3).
                let between = last.before.wrapping_sub(first.before);
                return (between * CELLS + put).saturating_sub(taken.min(CELLS));
            }
        }
    }

    /// Whether there was nothing in it at some moment during the call.
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
            // Relaxed, as the cells are: not older than what those knew who took numbers. Cells
            // never become empty again, so those that are not full now were not when `put` was
            // read.
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
            // Nobody goes on to the next segment, and to the value with which it came, before all
            // cells have been given to pops.
            if taken < CELLS {
                return false;
            }
            self.leave(&operation, first, next);
        }
    }
}

/// A segment that nobody else has seen, with `first` in its first cell if there is one.
fn segment_with<T>(
    operation: &HazardOperation<'_, Segment<T>>,
    before: usize,
    first: Option<T>,
) -> Pointer<T> {
    operation.allocate_with(|place| {
        // SAFETY: it is the place in the node for a segment, and the node is this thread's.
        unsafe { Segment::make(place, before, first) };
    })
}

/// The segment of a node.
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
    // SAFETY: segments change only by what is atomic in them, and by cells that know whose they
    // are.
    unsafe { &*segment }
}

impl<T> Drop for FaaArrayQueue<T> {
    fn drop(&mut self) {
        let queue = &*self;
        // Last, and also if dropping a value panics.
        let _last = Finally(|| {
            let operation = queue.store.enter();
            // Relaxed: nobody else has the queue.
            let last = queue.head.load(Ordering::Relaxed);
            // SAFETY: it is the only segment left, and nobody else has the queue; all values have
            // been taken out.
            unsafe { operation.discard(last) };
        });
        drop_each(|| queue.pop());
    }
}

impl<T> ConcurrentQueue for FaaArrayQueue<T> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.push(value);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        self.pop()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[T] FaaArrayQueue<T>;
    item: T;
    take: |queue| queue.pop();
    take_mut: |queue| queue.pop_mut();
    put: |queue, value| queue.push(value);
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
            // No operation is going on: what has been given to a push and not to a pop is full.
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
