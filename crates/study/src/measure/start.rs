//! Starts threads together, each on a processor of its own if there are enough.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use stanchion_machine::topology::{Pinned, pin};

/// A start barrier for all threads of a measurement.
#[derive(Debug, Default)]
pub struct StartLine {
    /// Threads that wait at the line; each of them adds 1.
    ready: AtomicUsize,
    /// Set once, by the thread that opens the line.
    open: AtomicBool,
}

impl StartLine {
    /// Waits until the line is opened. Each thread of the measurement calls it once.
    ///
    /// It spins for about 20 µs and then yields, so that late threads get a processor.
    pub fn wait(&self) {
        // Release: pairs with the Acquire in `open_when`, so everything that the thread has
        // prepared happens before the start.
        self.ready.fetch_add(1, Ordering::Release);
        let mut looks = 0;
        // Acquire: pairs with the Release store in `open_when`.
        while !self.open.load(Ordering::Acquire) {
            looks += 1;
            if looks < 500 { spin_loop() } else { thread::yield_now() }
        }
    }

    /// Waits until `threads` threads wait at the line, then opens it.
    pub fn open_when(&self, threads: usize) {
        // Acquire: pairs with the Release in `wait`.
        while self.ready.load(Ordering::Acquire) < threads {
            // Sleep instead of yielding: the waiting threads yield, and this thread must not run as
            // often as they do.
            thread::sleep(Duration::from_micros(50));
        }
        // Release: pairs with the Acquire in `wait`.
        self.open.store(true, Ordering::Release);
    }
}

/// The processor that each of `threads` threads stays on; none if they outnumber the processors.
///
/// If each thread has a processor, pinning takes the kernel's balancing out of the figures. If
/// there are fewer processors, the kernel's balancing is part of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// The processors that threads may be pinned to, by number.
    pub processors: &'a [usize],
    /// The number of threads.
    pub threads: usize,
}

impl Placement<'_> {
    /// Pins the calling thread, which is thread `index`, for as long as it holds the result. If the
    /// system refuses, the thread stays where the kernel puts it.
    #[must_use]
    pub fn take_place(self, index: usize) -> Option<Pinned> {
        let enough = self.threads <= self.processors.len();
        enough.then(|| pin(self.processors[index]).ok()).flatten()
    }
}
