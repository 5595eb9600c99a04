//! A cache of bodies: the program keeps some of its blocks in memory itself. A thread that touches
//! another block waits until that has been read.
//!
//! The program of the paper "manages part of its memory explicitly, as a buffer cache for its
//! data"; a miss "blocks in the kernel for 50 ms". The paper does not say which data is cached.
//! Here it is the positions and masses of the bodies, [`BLOCK`] neighbours in the order of Morton
//! to a block. A task computes the forces on some neighbours, and touches a block when it first
//! comes to a leaf with bodies of it. So near tasks share blocks, and the sweep over all bodies
//! wanders from block to block. The tree's nodes, which every walk visits, always stay in memory.
//!
//! Why not copies that are read from their frames: the cost of a miss depends on which threads wait
//! and which run meanwhile, and that is the same if the numbers stay where they always were. So the
//! outcome cannot depend on what fits, and tests compare it with a run in which everything fits.
//!
//! | frame | `block` | `coming` | its lock of `arrivals` |
//! | --- | --- | --- | --- |
//! | empty | none | no | free |
//! | read under way | the block | yes | held by the reader |
//! | full | the block | no | free |
//!
//! The reader holds that lock from before it lets `books` go until after they say that the block is
//! here.
//!
//! Frames are reused by second chance: the hand takes the next frame that was not touched since it
//! last came by.
//!
//! # Invariants
//!
//! 1. `at[b]` is f exactly if `frames[f].block` is b. So a block is in one frame at most and is
//!    read once, however many threads wait for it.
//! 2. A frame with a read under way is not taken: only its reader ends the read, also if it panics.
//!    (The frame is then empty.)
//! 3. Locks are taken in the order `books`, then one of `arrivals`. A thread that waits for an
//!    arrival holds nothing. A holder of `arrivals` that wants `books` is the frame's reader, and
//!    then by 2 no holder of `books` waits for that lock.
//!
//! Source: T. Anderson, B. Bershad, E. Lazowska, H. Levy, *Scheduler activations*, 1992, section
//! 5.3.

use super::fork::Fork;
use crate::pace::{Pace, SECTION};
use core::ops::RangeInclusive;
use lock_api::{Mutex, RawMutex};

/// Bodies of a block.
pub const BLOCK: usize = 64;

/// The part of the bodies that may fit into memory, in percent.
pub const MEMORY: RangeInclusive<u32> = 1..=100;

const NONE: u32 = u32::MAX;

/// The source of blocks that are not in memory.
pub trait Disk: Sync {
    /// Reads a block; the thread waits as long as that takes.
    fn read(&self, block: usize);
}

/// Anything that waits as long as a block takes.
impl<W: Fn(usize) + Sync> Disk for W {
    fn read(&self, block: usize) {
        self(block);
    }
}

/// The touches that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Blocks that were in memory.
    pub hits: u64,
    /// Blocks that were read.
    pub misses: u64,
    /// Blocks that another thread was reading just then.
    pub shared: u64,
}

/// Blocks in memory, behind one lock `L`.
///
/// ```
/// use stanchion_applications::nbody::{Cache, Cached, Options, Sequential, Simulation, plummer};
///
/// // A tenth fits, and a miss costs nothing.
/// let cache = Cache::<parking_lot::RawMutex, _>::new(1_000, 10, |_block| ());
/// let fork = Cached { fork: &Sequential, cache: &cache };
/// let mut cluster = Simulation::new(plummer(1_000, 1), Options::default(), &fork)?;
/// cluster.step(&fork);
/// assert!(cache.touches().misses > 0);
/// # Ok::<(), stanchion_applications::nbody::Refused>(())
/// ```
#[derive(Debug)]
pub struct Cache<L: RawMutex, D> {
    /// The state of frames and blocks. Written by every thread that touches a block.
    books: Mutex<L, Books>,
    /// One a frame.
    arrivals: Box<[Mutex<L, ()>]>,
    /// The source of missing blocks.
    disk: D,
    /// Blocks, and how many fit.
    shape: (usize, usize),
    /// The pace of a simulated machine.
    pace: Pace,
}

#[derive(Debug)]
struct Books {
    /// The frame of each block.
    at: Vec<u32>,
    /// The frames.
    frames: Vec<Frame>,
    /// The frame that the search for a victim comes to next.
    hand: usize,
    /// The touches so far.
    touches: Touches,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The block in the frame, or none.
    block: u32,
    /// Set since the hand last came by, if the block was touched.
    touched: bool,
    /// Set while the block is being read.
    coming: bool,
}

/// The state of a block, as the books have it.
enum Found {
    Here,
    /// Being read into this frame; or every frame is being read into, and this is one.
    Coming(usize),
    /// Not here: to be read into this frame. The books say so now.
    Missing(usize),
}

impl<L: RawMutex, D: Disk> Cache<L, D> {
    /// A cache for so many bodies, of which `percent` fit, rounded up to blocks. The first ones are
    /// in memory.
    ///
    /// # Panics
    ///
    /// If `percent` is not within [`MEMORY`], or there is no body.
    pub fn new(bodies: usize, percent: u32, disk: D) -> Self {
        assert!(MEMORY.contains(&percent), "{percent} % of memory");
        assert!(bodies > 0, "a cache of no bodies");
        let blocks = bodies.div_ceil(BLOCK);
        let frames = (blocks * percent as usize).div_ceil(100);
        let frame = |block| Frame { block, touched: false, coming: false };
        let books = Books {
            at: (0..blocks as u32)
                .map(|block| if (block as usize) < frames { block } else { NONE })
                .collect(),
            frames: (0..frames as u32).map(frame).collect(),
            hand: 0,
            touches: Touches::default(),
        };
        let arrivals = (0..frames).map(|_| Mutex::new(())).collect();
        Self {
            books: Mutex::new(books),
            arrivals,
            disk,
            shape: (blocks, frames),
            pace: Pace::new(0),
        }
    }

    /// Returns the cache with the pace of a simulated machine, in nanoseconds for an instruction of
    /// the cache. It has no effect on the real one.
    #[must_use]
    pub fn instruction_ns(self, nanos: u64) -> Self {
        Self { pace: Pace::new(nanos), ..self }
    }

    /// Returns the number of blocks, and how many of them fit.
    #[must_use]
    pub fn blocks(&self) -> (usize, usize) {
        self.shape
    }

    /// Returns the touches so far.
    #[must_use]
    pub fn touches(&self) -> Touches {
        self.books.lock().touches
    }

    /// Returns when `block` is, or was just now, in memory.
    ///
    /// # Panics
    ///
    /// If there is no such block; and if the disk does, after which the block is not in memory.
    pub fn touch(&self, block: usize) {
        let mut first = true;
        loop {
            let mut books = self.books.lock();
            self.pace.compute(SECTION);
            let frame = match books.find(block, first) {
                Found::Here => return,
                Found::Coming(frame) => frame,
                Found::Missing(frame) => {
                    // Invariant 3: it is held at most by threads that waited for the block before,
                    // and they want nothing else.
                    let coming = self.arrivals[frame].lock();
                    drop(books);
                    let mut arrival = Arrival { cache: self, frame, came: false };
                    self.disk.read(block);
                    arrival.came = true;
                    drop(arrival);
                    drop(coming);
                    return;
                }
            };
            drop(books);
            first = false;
            drop(self.arrivals[frame].lock());
        }
    }
}

impl Books {
    /// Looks for a block and counts it, if this is the `first` look.
    fn find(&mut self, block: usize, first: bool) -> Found {
        let frame = self.at[block] as usize;
        if let Some(found) = self.frames.get_mut(frame) {
            found.touched = true;
            let coming = found.coming;
            let count = if coming { &mut self.touches.shared } else { &mut self.touches.hits };
            *count += u64::from(first);
            return if coming { Found::Coming(frame) } else { Found::Here };
        }
        let Some(frame) = self.victim() else { return Found::Coming(self.hand) };
        self.touches.misses += 1;
        if let Some(old) = self.at.get_mut(self.frames[frame].block as usize) {
            *old = NONE;
        }
        self.frames[frame] = Frame { block: block as u32, touched: true, coming: true };
        self.at[block] = frame as u32;
        Found::Missing(frame)
    }

    /// The frame to be taken next; none if all have a read under way. Two turns of the hand are
    /// enough: after the first nothing counts as touched.
    fn victim(&mut self) -> Option<usize> {
        for _ in 0..2 * self.frames.len() {
            let frame = self.hand;
            self.hand = (frame + 1) % self.frames.len();
            let Frame { touched, coming, .. } = &mut self.frames[frame];
            if !*coming && !core::mem::take(touched) {
                return Some(frame);
            }
        }
        None
    }
}

/// A read under way. Its end, also by a panic, is entered in the books.
struct Arrival<'a, L: RawMutex, D> {
    /// The cache that is read into.
    cache: &'a Cache<L, D>,
    /// The frame that is read into.
    frame: usize,
    /// Set when the block has come.
    came: bool,
}

impl<L: RawMutex, D> Drop for Arrival<'_, L, D> {
    fn drop(&mut self) {
        let mut books = self.cache.books.lock();
        books.frames[self.frame].coming = false;
        if !self.came {
            let block = core::mem::replace(&mut books.frames[self.frame].block, NONE);
            books.at[block as usize] = NONE;
            books.frames[self.frame].touched = false;
        }
    }
}

/// An implementation of fork and join, with bodies in a cache.
#[derive(Debug)]
pub struct Cached<'a, F, L: RawMutex, D> {
    /// The implementation that runs the program.
    pub fork: &'a F,
    /// For as many bodies as the program has, or more.
    pub cache: &'a Cache<L, D>,
}

impl<F: Fork, L: RawMutex + Send + Sync, D: Disk> Fork for Cached<'_, F, L, D> {
    #[inline]
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.fork.join(one, other)
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.fork.enter(work)
    }

    fn toucher(&self) -> impl FnMut(usize) {
        let (blocks, _) = self.cache.shape;
        let mut known = vec![0_u64; blocks.div_ceil(64)];
        move |block| {
            let (word, bit) = (&mut known[block / 64], 1 << (block % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.cache.touch(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Sequential, Simulation, plummer};
    use super::*;
    use proptest::prelude::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    type Lock = parking_lot::RawMutex;

    fn cache<D: Disk>(blocks: usize, percent: u32, disk: D) -> Cache<Lock, D> {
        Cache::new(blocks * BLOCK, percent, disk)
    }

    proptest! {
        /// Against second chance written down as a ring of pairs.
        #[test]
        fn what_stays_is_what_a_second_chance_leaves(percent in 1_u32..=100, touched in prop::collection::vec(0_usize..20, 0..200)) {
            let cache = cache(20, percent, |_| ());
            let (_, frames) = cache.blocks();
            let mut ring: std::collections::VecDeque<(usize, bool)> = (0..frames).map(|block| (block, false)).collect();
            let mut expected = Touches::default();
            for block in touched {
                cache.touch(block);
                if let Some(found) = ring.iter_mut().find(|frame| frame.0 == block) {
                    found.1 = true;
                    expected.hits += 1;
                } else {
                    while ring[0].1 {
                        ring[0].1 = false;
                        ring.rotate_left(1);
                    }
                    ring[0] = (block, true);
                    ring.rotate_left(1);
                    expected.misses += 1;
                }
                prop_assert_eq!(cache.touches(), expected);
            }
        }
    }

    #[test]
    fn memory_is_rounded_up_to_blocks() {
        for (bodies, percent, expected) in [
            (1, 1, (1, 1)),
            (64, 50, (1, 1)),
            (65, 50, (2, 1)),
            (6_400, 33, (100, 33)),
            (6_401, 33, (101, 34)),
        ] {
            assert_eq!(Cache::<Lock, _>::new(bodies, percent, |_| ()).blocks(), expected);
        }
    }

    #[test]
    fn the_outcome_does_not_depend_on_what_fits() {
        let run = |percent| {
            let cache = Cache::<Lock, _>::new(2_000, percent, |_| ());
            let fork = Cached { fork: &Sequential, cache: &cache };
            let simulation = Simulation::new(plummer(2_000, 1), Options::default(), &fork);
            let mut simulation = simulation.expect("good options");
            (0..2).for_each(|_| simulation.step(&fork));
            (simulation.checksum(), cache.touches())
        };
        let runs = [100, 60, 30, 1].map(run);
        println!("{runs:?}");
        assert!(runs.iter().all(|run| run.0 == runs[0].0));
        assert_eq!((runs[0].1.misses, runs[0].1.shared), (0, 0), "all fits, from the start");
        assert!(runs.is_sorted_by_key(|run| run.1.misses), "{runs:?}");
        let touched = |touches: Touches| touches.hits + touches.misses;
        assert!(runs.iter().all(|run| touched(run.1) == touched(runs[0].1)));
    }

    /// The first reads when the second has come to wait, and the third when every frame is being
    /// read into.
    #[test]
    fn a_thread_that_finds_a_read_under_way_waits_for_it() {
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let (begun, ends) = (parking_lot::Mutex::new(begun), parking_lot::Mutex::new(ends));
        let cache = cache(3, 1, |block: usize| {
            // Without a test that listens a read just ends.
            let _ = begun.lock().send(block);
            let _ = ends.lock().recv();
        });
        std::thread::scope(|scope| {
            scope.spawn(|| cache.touch(1));
            assert_eq!(begins.recv(), Ok(1));
            scope.spawn(|| cache.touch(1));
            while cache.touches().shared == 0 {
                std::thread::yield_now();
            }
            // There is one frame.
            scope.spawn(|| cache.touch(2));
            end.send(()).expect("somebody reads");
            assert_eq!(begins.recv(), Ok(2), "one is read once");
            end.send(()).expect("somebody reads");
            // The second thread that wants block 1 may come too late, and read it again.
            drop(end);
        });
    }

    #[test]
    fn a_read_that_panics_leaves_nothing() {
        let fails = std::sync::atomic::AtomicBool::new(true);
        let cache = cache(2, 50, |_| {
            assert!(!fails.swap(false, std::sync::atomic::Ordering::Relaxed), "no such block");
        });
        assert!(catch_unwind(AssertUnwindSafe(|| cache.touch(1))).is_err());
        cache.touch(1);
        cache.touch(1);
        assert_eq!(cache.touches(), Touches { hits: 1, misses: 2, shared: 0 });
    }
}
