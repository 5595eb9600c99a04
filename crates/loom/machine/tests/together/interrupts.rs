//! A kernel that makes barriers, for models.

use stanchion_machine::atomic::{Ordering::SeqCst, fence};
use stanchion_machine::sharing::{Answer, Kernel};
use stanchion_machine::thread;
use stanchion_machine_loom as stanchion_machine;
pub(crate) use stanchion_models::interrupts::{AWAY, Processor};

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
