//! Starting threads together, each on a processor of its own where there are enough.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use machine::topology::{Pinned, pin};

/// A line that all threads of a measurement start from.
#[derive(Debug, Default)]
pub struct StartLine {
    ready: AtomicUsize,
    open: AtomicBool,
}

impl StartLine {
    /// Called by each thread: returns when the line is opened.
    ///
    /// Spins for about 20 µs and then yields, so that late threads get a processor to arrive on.
    pub fn wait(&self) {
        // Release: pairs with the Acquire in `open_when`; whatever the thread prepared is done
        // before the start.
        self.ready.fetch_add(1, Ordering::Release);
        let mut looks = 0;
        // Acquire: pairs with the Release in `open_when`.
        while !self.open.load(Ordering::Acquire) {
            looks += 1;
            if looks < 500 { spin_loop() } else { thread::yield_now() }
        }
    }

    /// Opens the line when `threads` stand at it.
    pub fn open_when(&self, threads: usize) {
        while self.ready.load(Ordering::Acquire) < threads {
            // Not yield_now: the waiting threads yield, and this one must not come round as often
            // as they do.
            thread::sleep(Duration::from_micros(50));
        }
        self.open.store(true, Ordering::Release);
    }
}

/// Which processor each of `threads` threads stays on; none where they outnumber the processors.
///
/// With a processor each, pinning takes the kernel's balancing out of the figures; with fewer, the
/// kernel's balancing is part of what is measured.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// The processors that threads may be pinned to, by number.
    pub processors: &'a [usize],
    /// How many threads there are.
    pub threads: usize,
}

impl Placement<'_> {
    /// Called by thread `index`, which stays there while it holds what is returned. A refusal
    /// leaves the thread where the kernel puts it.
    #[must_use]
    pub fn take_place(self, index: usize) -> Option<Pinned> {
        let enough = self.threads <= self.processors.len();
        enough.then(|| pin(self.processors[index]).ok()).flatten()
    }
}
