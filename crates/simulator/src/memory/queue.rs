//! Queues for things that serve one request at a time, first come first served: a bus, a link
//! between sockets, a memory module.
//!
//! Requests come in the order of their times, so a queue has to remember only one moment: the time
//! when the last one taken in will be over.

use crate::Time;

/// A resource that one request occupies at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    /// The time when the last request is over.
    free: Time,
}

impl Queue {
    /// Takes in a request made `at` that needs the resource for `occupied`, and says when its turn
    /// begins.
    pub(crate) fn enter(&mut self, at: Time, occupied: Time) -> Time {
        let begins = at.max(self.free);
        self.free = begins + occupied;
        begins
    }
}
