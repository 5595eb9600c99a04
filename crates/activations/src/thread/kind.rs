//! Which threads may share a kernel thread.
//!
//! A thread that has begun stays on its kernel thread (`home.rs` says why). If two threads have
//! begun on one kernel thread, and one of them blocks it or computes for long, the other waits for
//! that, whatever else is idle. In the worst case the first waits for the second, and both wait for
//! ever. So the rule is:
//!
//! > **A kernel thread on which a thread waits or is ready, its *bound*, begins no other thread,
//! > unless the bound_threads and the new thread are all of quick kinds.** The new thread goes to a kernel
//! > thread without bound_threads, and the processor with it.
//!
//! A *kind* is a type of closure. It is *quick* if its threads have had [`NEEDED`] turns in a row,
//! each shorter than [`QUICK_NS`]. A turn is the time from when a thread goes on until it waits,
//! yields or ends. What lasts longer is a block, or work beside which a switch between kernel
//! threads costs little. So:
//!
//! - Threads of a kind that is new to the process, that blocks, or that computes for long have a
//!   kernel thread of their own from their first wait until their end: they go on as kernel threads
//!   would, at kernel threads' price.
//! - Threads of a quick kind share kernel threads, and a switch between them costs no system call.
//!
//! Turns count when their thread ends, and every [`REPORT`] turns before that: many threads that
//! have all begun, and have not blocked yet, say nothing of what they do after their first wait. A
//! kind that is quick is timed at one turn in [`SAMPLE`]. A block that another kernel thread sees
//! counts at once ([`ThreadKind::has_blocked`]).
//!
//! # What is left
//!
//! 1. A kind that has been quick, and blocks for the first time, may hold up the others on its
//!    kernel thread.
//! 2. If the runtime has as many kernel threads as it may have, and all of them have bound_threads,
//!    threads share them.
//! 3. A thread that migrates has no kernel thread, and waits for none; but one that blocks the
//!    kernel thread of others holds those up, and so is placed by the same rule.
//!
//! In 1 and 2 a thread can wait for ever for one behind it on its own kernel thread.
//! `Runtime::stalled` names those.
//!
//! Why not a kernel thread for each: two threads that wake each other would take two switches of
//! the kernel's for that, some microseconds, instead of 44 ns. Why by type, and not by the place of
//! the spawn: the type of a closure is that place, and costs nothing to know. Closures in a box are
//! all of one kind, by the slowest of them.
//!
//! # Orderings
//!
//! All Relaxed: a number that is a little old is a little wrong.

use machine::atomic::{AtomicU32, Ordering};

use crate::thread::header::Thread;

/// How many quick turns in a row make a kind quick.
const NEEDED: u32 = 256;

/// A turn that is no longer than this is quick. A switch between kernel threads costs less than a
/// tenth of it.
pub(crate) const QUICK_NS: u64 = 100_000;

/// After so many turns a thread that has not ended counts them.
pub(crate) const REPORT: u8 = 64;

/// A quick kind is timed every so many turns of a kernel thread.
pub(crate) const SAMPLE: u32 = 64;

/// How many quick turns make up for a slow one, and for a block that kept others waiting.
const FOR_SLOW: u32 = 16;
const FOR_BLOCK: u32 = 16 * 1_024;

/// No more than so many quick turns are needed, whatever a kind has done.
const MOST: u32 = 64 * 1_024;

/// How many kinds are told apart. Those that fall together are taken for one.
const KINDS: usize = machine::sized(1_024, 2);

machine::global! {
    /// How many quick turns each kind needs until it is quick.
    static MISSING: [AtomicU32; KINDS] = [const { AtomicU32::new(NEEDED) }; KINDS];
}

/// What a thread runs: an address that belongs to the type of its closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadKind(usize);

impl ThreadKind {
    #[inline]
    pub(crate) fn of(thread: &Thread) -> Self {
        // A type has functions of its own.
        Self(core::ptr::from_ref(thread.header().vtable()).addr())
    }

    /// As a number, for [`from_bits`](Self::from_bits).
    #[inline]
    pub(crate) fn to_bits(self) -> usize {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: usize) -> Self {
        Self(bits)
    }

    /// Its place in the table.
    #[inline]
    fn place(self) -> usize {
        // The distance from another static is the same in every run of a program.
        let distance = self.0.wrapping_sub((&raw const MISSING).addr()) as u64 / 16;
        let mixed = distance.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - KINDS.ilog2())) as usize
    }

    #[inline]
    fn missing(self) -> &'static AtomicU32 {
        &MISSING[self.place()]
    }

    /// Whether its threads may share a kernel thread.
    #[inline]
    pub(crate) fn is_quick(self) -> bool {
        self.missing().load(Ordering::Relaxed) == 0
    }

    /// A thread of it has had so many quick turns in a row.
    pub(crate) fn has_been_quick(self, turns: u8) {
        self.update(|missing| missing.saturating_sub(turns.into()));
    }

    /// A turn of it was slow.
    pub(crate) fn has_been_slow(self) {
        self.update(|missing| (missing + FOR_SLOW).min(MOST));
    }

    /// A thread of it is blocked in the kernel, while others could use its processor.
    pub(crate) fn has_blocked(self) {
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
