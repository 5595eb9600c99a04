//! Interrupts by the kernel, for models of a publisher with a light fence and an announcer with a
//! heavy one: loom has no interrupts.
//!
//! The publisher asks between any two of its accesses whether a barrier is wanted. If so, it makes
//! a fence, as an interrupt does, and says so. The announcer waits for that.

use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};
use stanchion_machine::wait::{Spin, WaitPolicy, wait_until};

/// The publisher does not run: the kernel has switched to another thread, which is a barrier.
pub const AWAY: u32 = u32::MAX;

/// The processor of the publisher.
pub struct Processor {
    /// The number of barriers that are wanted.
    pub wanted: AtomicU32,
    /// The number of those that are made, or [`AWAY`].
    pub made: AtomicU32,
}

impl Processor {
    /// Takes an interrupt, if there is one that it has not taken.
    pub fn interrupt(&self) {
        let wanted = self.wanted.load(Relaxed);
        if wanted > self.made.load(Relaxed) {
            // SeqCst: the barrier.
            fence(SeqCst);
            self.made.store(wanted, Relaxed);
        }
    }

    /// Interrupts the processor, and waits until that is done.
    pub fn await_interrupt(&self) {
        let wanted = self.wanted.fetch_add(1, Relaxed) + 1;
        wait_until(&self.made, Relaxed, |made| made >= wanted, &mut Spin::start());
    }

    /// Leaves the processor.
    pub fn switch(&self) {
        // SeqCst: a switch is a barrier.
        fence(SeqCst);
        self.made.store(AWAY, Relaxed);
    }

    /// Comes back to the processor.
    pub fn come_back(&self) {
        self.made.store(self.wanted.load(Relaxed), Relaxed);
        // SeqCst: a switch is a barrier.
        fence(SeqCst);
    }
}
