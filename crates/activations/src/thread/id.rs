//! The numbers of threads.

use core::cell::Cell;
use core::fmt;
use core::num::NonZeroU64;

use stanchion_machine::atomic::{AtomicU64, Ordering};

/// The number of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(NonZeroU64);

/// The numbers that a kernel thread takes at a time, since all threads share the counter.
const BATCH: u64 = 1 << 12;

stanchion_machine::global! {
    static NEXT: AtomicU64 = AtomicU64::new(1);
}

stanchion_machine::thread_local! {
    /// The numbers that this kernel thread has taken: the next one, and the end.
    static TAKEN: Cell<(u64, u64)> = Cell::new((0, 0));
}

impl ThreadId {
    /// Returns a number that no thread has had. Not inlined, for the reason that
    /// `worker/context.rs` gives.
    #[inline(never)]
    pub(super) fn next() -> Self {
        let number = TAKEN.with(|taken| {
            let (mut next, mut end) = taken.get();
            if next == end {
                // Relaxed: all that matters is that no number is taken twice.
                next = NEXT.fetch_add(BATCH, Ordering::Relaxed);
                end = next + BATCH;
            }
            taken.set((next + 1, end));
            next
        });
        Self(NonZeroU64::new(number).expect("numbers begin at 1, and 2^64 are never used up"))
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
