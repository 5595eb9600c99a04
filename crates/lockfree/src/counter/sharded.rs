//! A counter in parts: each thread adds to a line of its own, and a thread that asks sums up.
//!
//! Why not one word: its line must come to each thread that adds, 50 to 100 ns each time, and no
//! instruction changes that. Here an addition touches nothing that another thread writes. The price
//! is that the sum is not of one moment.
//!
//! # The value of a sum
//!
//! Let *A* be an addition, and *S* a call that sums up.
//!
//! | *A* | is in the sum of *S* |
//! | --- | --- |
//! | happened before *S* | yes |
//! | was in an earlier sum, of a call that happened before *S* | yes |
//! | runs during *S* | perhaps |
//! | returned before *S* in real time, on another processor, but did not happen before | perhaps |
//! | begins after *S* | no |
//!
//! An addition happens before *S* if it is of the same thread, of a thread that has been joined, or
//! before a lock's release or a Release store that the caller has acquired. One that only returned
//! earlier in real time is a plain store, and may still be in its processor's store buffer.
//!
//! So two threads that each add and then ask may both miss the other's addition. And of two
//! additions the sum may have the later one and not the earlier. No single order of additions and
//! reads explains either, and the counter is *not linearizable*.
//!
//! Why not a stronger promise: it takes a locked instruction in each addition, which then is no
//! cheaper than [`FetchAddCounter`](super::FetchAddCounter) on a line that no other thread uses, or
//! an interrupt of all processors in each sum. Programs that need a stronger promise have both:
//! they take that counter, or put a `fence(SeqCst)` after the addition and one before the sum.
//!
//! # The lines
//!
//! ```text
//! segments    0            1                 2
//!             |            |                 |
//!             v            v                 v
//!             8 lines      16 lines          null: no thread with an index above 23 has added yet
//! index       0 ... 7      8 ... 23          24 ... 55
//! ```
//!
//! A thread's line is found by [`stanchion_machine::thread::index`]. Threads that have no index,
//! because they are ending or there are too many, share one line.
//!
//! # Invariants
//!
//! 1. A line that belongs to an index is written only by the thread that has the index. So a load
//!    and a store make an addition.
//! 2. A segment, once there, stays where it is until the counter is dropped.
//!
//! # Orderings
//!
//! | access | ordering | pairs with |
//! | --- | --- | --- |
//! | publishing a segment | Release | the load of the segment: its lines hold 0 by then |
//! | loading a segment | Acquire | the above |
//! | the lines | Relaxed | nothing: numbers |
//!
//! Source: the statistics counters of operating systems, which are kept for each processor. The
//! value of a sum is from McKenney, "Is Parallel Programming Hard", chapter 5.

use core::fmt;
use core::ptr;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicPtr, AtomicU64, Fresh, Ordering};
use stanchion_machine::thread::{INDICES, index};

use super::Counter;
use crate::Progress;

type Line = CachePadded<AtomicU64>;

/// The number of lines of the first segment. Each further one has twice as many as the one before.
const FIRST: usize = 8;

/// The number of segments: enough to hold a line for every index.
const SEGMENTS: usize = 12;

const _: () = assert!(FIRST * ((1 << SEGMENTS) - 1) >= INDICES);

/// A counter that threads add to without meeting.
///
/// Two threads that each add and then ask may both miss the other's addition: it may still be on
/// its way to memory. A program that must see it puts a [`fence`](std::sync::atomic::fence) of
/// `SeqCst` between the addition and what follows, and another before it asks. Or it takes
/// [`FetchAddCounter`](super::FetchAddCounter).
///
/// - Progress: wait-free, but for a thread's first addition, which allocates and may number the
///   thread.
/// - An addition: a load and a store in a line of the thread's own, and finding that line.
/// - [`get`](Counter::get): a load from each line. There are about as many lines as there have been
///   threads at one time, each line probably in another cache.
/// - A sum has each addition that *happened before* the call, by any synchronization. Of the other
///   additions it has some or all.
/// - Not linearizable: an addition that returned earlier in real time, and did not happen before,
///   may be missing.
/// - Exact once the threads that add have been joined, or have synchronized with the thread that
///   asks.
/// - Size: 256 bytes where lines are kept 128 bytes apart, and a line for each thread, in segments
///   of 8, 16, 32…
/// - In a signal handler: an addition that interrupts another one on the same counter may be lost.
///
/// ```
/// use stanchion_lockfree::{Counter, ShardedCounter};
///
/// static SENT: ShardedCounter = ShardedCounter::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..100).for_each(|_| SENT.add(10)));
///     }
/// });
/// assert_eq!(SENT.get(), 4_000);
/// ```
pub struct ShardedCounter {
    /// The segments of lines, or null. Each is written once, by the thread that makes it.
    segments: [AtomicPtr<Line>; SEGMENTS],
    /// The starting value, and the sum of what threads without an index have added.
    shared: CachePadded<AtomicU64>,
}

impl ShardedCounter {
    /// Returns a counter that starts at `count`. It allocates when a thread first adds.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            shared: CachePadded::new(AtomicU64::new(count)),
        }
    }

    /// Returns the line of the thread with this index. Makes it if it is not there.
    #[inline]
    fn line(&self, index: usize) -> &AtomicU64 {
        let (segment, offset) = locate(index);
        // Acquire: pairs with the Release of the thread that published the segment.
        let mut lines = self.segments[segment].load(Ordering::Acquire);
        if lines.is_null() {
            lines = self.grow(segment);
        }
        // SAFETY: a segment has `length` lines, and `offset` is below that.
        let line = unsafe { lines.add(offset) };
        // SAFETY: by Invariant 2 the segment lives as long as the counter.
        unsafe { &*line }
    }

    /// Makes the segment. Returns it, or the segment of a thread that was faster.
    #[cold]
    fn grow(&self, segment: usize) -> *mut Line {
        let lines: Box<[Line]> =
            (0..length(segment)).map(|_| CachePadded::new(AtomicU64::fresh(0))).collect();
        let lines = Box::into_raw(lines).cast::<Line>();
        // Release: pairs with the Acquire loads of the segment. Acquire if another thread was
        // faster: its lines are used.
        let published = self.segments[segment].compare_exchange(
            ptr::null_mut(),
            lines,
            Ordering::Release,
            Ordering::Acquire,
        );
        match published {
            Ok(_) => lines,
            Err(faster) => {
                // SAFETY: made above, and no other thread has seen it.
                unsafe { free(lines, segment) };
                faster
            }
        }
    }

    fn segment(&self, segment: usize) -> &[Line] {
        // Acquire: pairs with the Release of the thread that published the segment.
        let lines = self.segments[segment].load(Ordering::Acquire);
        if lines.is_null() {
            return &[];
        }
        // SAFETY: by Invariant 2 it lives as long as the counter; it was made with this length.
        unsafe { core::slice::from_raw_parts(lines, length(segment)) }
    }
}

const fn length(segment: usize) -> usize {
    FIRST << segment
}

/// Returns the segment of an index, and the line in it.
#[inline]
const fn locate(index: usize) -> (usize, usize) {
    let segment = (index / FIRST + 1).ilog2() as usize;
    (segment, index - FIRST * ((1 << segment) - 1))
}

/// # Safety
///
/// `lines` were made by `grow` for this `segment`, and no thread uses them from here on.
unsafe fn free(lines: *mut Line, segment: usize) {
    let lines = ptr::slice_from_raw_parts_mut(lines, length(segment));
    // SAFETY: the caller's promise; the length is that of the box.
    drop(unsafe { Box::from_raw(lines) });
}

impl Counter for ShardedCounter {
    const PROGRESS: Progress = Progress::WaitFree;

    #[inline]
    fn add(&self, amount: u64) {
        match index() {
            Some(index) => {
                let line = self.line(index);
                // Relaxed: only this thread writes it (Invariant 1). The thread that had the index
                // before has ended, which happened before.
                let count = line.load(Ordering::Relaxed);
                line.store(count.wrapping_add(amount), Ordering::Relaxed);
            }
            None => {
                // Relaxed: a number, nothing else.
                self.shared.fetch_add(amount, Ordering::Relaxed);
            }
        }
    }

    fn get(&self) -> u64 {
        // Relaxed: numbers, nothing else.
        let shared = self.shared.load(Ordering::Relaxed);
        let lines = (0..SEGMENTS).flat_map(|segment| self.segment(segment));
        lines.fold(shared, |sum, line| sum.wrapping_add(line.load(Ordering::Relaxed)))
    }
}

impl Default for ShardedCounter {
    fn default() -> Self {
        Self::new(0)
    }
}

impl fmt::Debug for ShardedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShardedCounter").field(&self.get()).finish()
    }
}

impl Drop for ShardedCounter {
    fn drop(&mut self) {
        for (segment, lines) in self.segments.iter().enumerate() {
            // Relaxed: no other thread is here.
            let lines = lines.load(Ordering::Relaxed);
            if !lines.is_null() {
                // SAFETY: from `grow`, and the counter is gone.
                unsafe { free(lines, segment) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_line_of_its_own() {
        let mut next = (0, 0);
        for index in 0..INDICES {
            assert_eq!(locate(index), next);
            next.1 += 1;
            if next.1 == length(next.0) {
                next = (next.0 + 1, 0);
            }
        }
        assert!(locate(INDICES - 1).0 < SEGMENTS);
    }

    #[test]
    fn the_last_index_has_a_line_and_is_summed_up() {
        let counter = ShardedCounter::new(5);
        counter.line(INDICES - 1).store(7, Ordering::Relaxed);
        counter.line(FIRST).store(u64::MAX, Ordering::Relaxed);
        counter.add(1);
        assert_eq!(counter.get(), 12, "5 + 7 - 1 + 1");
    }
}
