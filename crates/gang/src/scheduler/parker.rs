//! A parker: one thread sleeps on its word until another thread wakes it.
//!
//! ```text
//! sleeper                              waker
//! -------                              -----
//! (1) prepare: word = ASLEEP           (a) makes the condition true
//! (2) checks the condition             (b) unpark: word = AWAKE; was it ASLEEP?
//! (3) park: sleeps while ASLEEP        (c)   wakes the sleeper
//! ```
//!
//! No wake-up is lost. If (b) comes before (1), then (1) reads what (b) wrote, and (2) sees (a).
//! Otherwise (b) finds ASLEEP. Then (3) does not sleep, or sleeps before (c).

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A word on which one thread sleeps until another thread unparks it.
pub struct Parker(AtomicU32);

impl Default for Parker {
    fn default() -> Self {
        Self(AtomicU32::fresh(AWAKE))
    }
}

impl Parker {
    /// Wakes the thread that sleeps here, or keeps it from going to sleep.
    pub fn unpark(&self) {
        // Release: pairs with the Acquire of `prepare`, which then sees what this thread did
        // before.
        if self.0.swap(AWAKE, Ordering::Release) == ASLEEP {
            park::wake_one(&self.0);
        }
    }

    /// Announces that the calling thread is about to sleep. From here on an unpark keeps it awake.
    /// The caller checks its condition after this, and then parks or cancels.
    pub fn prepare(&self) {
        // Acquire: pairs with the Release of an `unpark` that came before.
        self.0.swap(ASLEEP, Ordering::Acquire);
    }

    /// Sleeps until an unpark after [`prepare`](Self::prepare), or until `deadline`. May wake
    /// spuriously.
    pub fn park(&self, deadline: Deadline) {
        park::wait(&self.0, ASLEEP, deadline);
    }

    /// Takes the announcement of [`prepare`](Self::prepare) back.
    pub fn cancel(&self) {
        // An exchange and not a store. A thread that has unparked this one meanwhile does not do it
        // again, so the next `prepare` must still acquire what that unpark released. Relaxed: until
        // then nothing is missed for good.
        self.0.swap(AWAKE, Ordering::Relaxed);
    }
}
