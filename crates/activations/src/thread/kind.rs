//! Kinds of threads, which say which threads may share a kernel thread.
//!
//! A thread that has begun stays on its kernel thread, because compilers keep addresses of
//! thread-locals across calls. If two threads have begun on one kernel thread, and one of them
//! blocks it or computes for long, the other waits for that, whatever else is idle. In the worst
//! case the first waits for the second, and both wait for ever. So the rule is:
//!
//! > **A kernel thread on which a *bound* thread waits or is ready begins no other thread, unless
//! > the bound threads and the new one are all of quick kinds.** The new thread goes to a kernel
//! > thread without bound threads, and the processor with it.
//!
//! A *kind* is a type of closure. It is *quick* if its threads have had [`NEEDED`] turns in a row,
//! each shorter than [`QUICK_NS`]. A turn is the time from when a thread starts or continues until
//! it waits, yields or ends. A longer turn is a block, or work beside which a switch between kernel
//! threads costs little. So:
//!
//! - Threads of a kind that is new to the process, that blocks, or that computes for long have a
//!   kernel thread of their own from their first wait until their end. They run as kernel threads
//!   would, at kernel threads' price.
//! - Threads of a quick kind share kernel threads, and a switch between them costs no system call.
//!
//! Turns count when their thread ends, and every [`REPORT`] turns before that: many threads that
//! have all begun, and have not blocked yet, say nothing of what they do after their first wait. A
//! kind that is quick is timed at one turn in [`SAMPLE`]. A block that another kernel thread sees
//! counts at once ([`ThreadKind::count_block`]).
//!
//! # What is left
//!
//! 1. A kind that has been quick, and blocks for the first time, may hold up the others on its
//!    kernel thread.
//! 2. If the runtime has as many kernel threads as it may have, and all of them have bound threads,
//!    threads share them.
//! 3. A thread that migrates has no kernel thread, and waits for none. But one that blocks the
//!    kernel thread of others holds those up, so it is placed by the same rule.
//!
//! In 1 and 2 a thread can wait for ever for one behind it on its own kernel thread.
//! `Runtime::stalled` names those.
//!
//! Why not a kernel thread for each thread: two threads that wake each other would take two
//! switches of the kernel's for that, some microseconds, instead of 44 ns. Why by type, and not by
//! the place of the spawn: the type of a closure is that place, and costs nothing to know.
//! Closures in a box are all of one kind, by the slowest of them.
//!
//! # Orderings
//!
//! All are Relaxed: a number that is a little old is a little wrong.

use stanchion_machine::atomic::{AtomicU32, Ordering};

use super::handle::Thread;

/// The quick turns in a row that make a kind quick.
const NEEDED: u32 = 256;

/// The longest quick turn. A switch between kernel threads costs less than a tenth of it.
pub(crate) const QUICK_NS: u64 = 100_000;

/// The turns after which a thread that has not ended counts them.
pub(crate) const REPORT: u8 = 64;

/// A quick kind is timed at one in so many turns of a kernel thread.
pub(crate) const SAMPLE: u32 = 64;

/// The quick turns that make up for a slow one.
const FOR_SLOW: u32 = 16;

/// The quick turns that make up for a block that kept others waiting.
const FOR_BLOCK: u32 = 16 * 1_024;

/// The most quick turns that are needed, whatever a kind has done.
const MOST: u32 = 64 * 1_024;

/// The kinds that are told apart. Kinds with the same entry are taken for one.
const KINDS: usize = stanchion_machine::sized(1_024, 2);

stanchion_machine::global! {
    /// For each kind the quick turns that it still needs until it is quick.
    static MISSING: [AtomicU32; KINDS] = [const { AtomicU32::new(NEEDED) }; KINDS];
}

/// A kind: an address that belongs to the type of a thread's closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadKind(usize);

impl ThreadKind {
    #[inline]
    pub(crate) fn of(thread: &Thread) -> Self {
        // Each type of cell has a vtable of its own.
        Self(core::ptr::from_ref(thread.header().vtable()).addr())
    }

    /// Returns a number for [`from_bits`](Self::from_bits).
    #[inline]
    pub(crate) fn to_bits(self) -> usize {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: usize) -> Self {
        Self(bits)
    }

    /// Returns the entry of the table.
    #[inline]
    fn missing(self) -> &'static AtomicU32 {
        // The distance from another static is the same in every run of a program.
        let distance = self.0.wrapping_sub((&raw const MISSING).addr()) as u64 / 16;
        let mixed = distance.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &MISSING[(mixed >> (u64::BITS - KINDS.ilog2())) as usize]
    }

    /// Returns whether its threads may share a kernel thread.
    #[inline]
    pub(crate) fn is_quick(self) -> bool {
        self.missing().load(Ordering::Relaxed) == 0
    }

    /// Counts quick turns that a thread has had in a row.
    pub(crate) fn count_quick(self, turns: u8) {
        self.update(|missing| missing.saturating_sub(turns.into()));
    }

    /// Counts a slow turn.
    pub(crate) fn count_slow(self) {
        self.update(|missing| (missing + FOR_SLOW).min(MOST));
    }

    /// Counts a block of a thread, while others could use its processor.
    pub(crate) fn count_block(self) {
        self.update(|missing| (missing + FOR_BLOCK).min(MOST));
    }

    fn update(self, next: impl Fn(u32) -> u32) {
        let word = self.missing();
        let mut seen = word.load(Ordering::Relaxed);
        while next(seen) != seen {
            let (relaxed, to) = (Ordering::Relaxed, next(seen));
            match word.compare_exchange_weak(seen, to, relaxed, relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}
