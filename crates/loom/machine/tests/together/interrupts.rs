//! A kernel that makes barriers, for models: loom has none.
//!
//! The publisher asks between any two of its accesses whether a barrier is wanted. If so, it makes
//! a fence, as an interrupt does, and says so. The announcer waits for that.

use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};
use stanchion_machine::sharing::{Answer, Kernel};
use stanchion_machine::thread;
use stanchion_machine::wait::{Spin, WaitPolicy, wait_until};
use stanchion_machine_loom as stanchion_machine;

/// The publisher does not run: the kernel has switched to another thread, which is a barrier.
pub(crate) const AWAY: u32 = u32::MAX;

/// The processor of the publisher.
pub(crate) struct Processor {
    /// The number of barriers that are wanted.
    pub(crate) wanted: AtomicU32,
    /// The number of those that are made, or [`AWAY`].
    pub(crate) made: AtomicU32,
}

impl Processor {
    /// Takes an interrupt, if there is one that it has not taken.
    pub(crate) fn interrupt(&self) {
        let wanted = self.wanted.load(Relaxed);
        if wanted > self.made.load(Relaxed) {
            fence(SeqCst);
            self.made.store(wanted, Relaxed);
        }
    }

    /// Interrupts the processor, and waits until that is done.
    pub(crate) fn await_interrupt(&self) {
        let wanted = self.wanted.fetch_add(1, Relaxed) + 1;
        wait_until(&self.made, Relaxed, |made| made >= wanted, &mut Spin::start());
    }

    /// Leaves the processor.
    pub(crate) fn switch(&self) {
        fence(SeqCst);
        self.made.store(AWAY, Relaxed);
    }
}

/// The kernel, which answers the same to each call of one thread.
pub(crate) struct Caller<'a> {
    /// The processor of the publisher.
    pub(crate) processor: &'a Processor,
    /// The answer to a barrier.
    pub(crate) answer: Answer,
    /// The answer after barriers were too many.
    pub(crate) is_worth_a_try: bool,
}

impl Kernel for Caller<'_> {
    fn register(&self) -> bool {
        true
    }

    fn barrier(&self) -> Answer {
        if self.answer != Answer::Refused {
            fence(SeqCst);
            self.processor.await_interrupt();
            fence(SeqCst);
        }
        self.answer
    }

    fn leaves(&self) {}

    fn is_worth_a_try(&self) -> bool {
        self.is_worth_a_try
    }

    /// After so long a time the publisher's earlier writes are visible, as after an interrupt.
    fn sleep(&self) {
        self.processor.await_interrupt();
    }
}

pub(crate) type Publisher = thread::JoinHandle<bool>;

/// Fails if the announcer and the publisher have missed each other.
pub(crate) fn one_sees_the_other(by_announcer: bool, publisher: Publisher) {
    let by_publisher = publisher.join().unwrap();
    assert!(by_announcer || by_publisher, "each missed the other's write");
}
