//! The state that the members of a gang share, without the types of its closure and results.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};

use super::completion::Completion;
use super::exchange::ExchangeBuffers;

/// The state of a gang without its types.
pub(crate) struct GangState {
    /// The number of the gang, from 0.
    pub(crate) id: u64,
    /// The gang's barrier, and how the gang ends.
    pub(crate) completion: Completion,
    /// The buffers of the collectives.
    pub(crate) exchange: ExchangeBuffers,
    /// The number of members.
    members: usize,
    /// Members that have not ended. Changed under the executor's lock.
    pub(crate) remaining: AtomicU32,
    /// 1 if a member has panicked. Written by that member.
    panicked: AtomicU32,
    /// 1 if a thread has taken the outcomes. Written by the first that asks for them.
    claimed: AtomicU32,
}

impl GangState {
    pub(crate) fn new(id: u64, members: usize) -> Self {
        Self {
            id,
            completion: Completion::new(members),
            exchange: ExchangeBuffers::new(members),
            members,
            remaining: AtomicU32::fresh(members as u32),
            panicked: AtomicU32::fresh(0),
            claimed: AtomicU32::fresh(0),
        }
    }

    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Records that a member has panicked.
    pub(crate) fn set_panicked(&self) {
        // Relaxed: read when the gang is done.
        self.panicked.store(1, Ordering::Relaxed);
    }

    /// Returns whether a member has panicked and no thread has taken its payload. Asked when the
    /// gang is done.
    pub(crate) fn has_unclaimed_panic(&self) -> bool {
        // Relaxed: `is_done` orders the first. A thread that takes the payload meanwhile leaves
        // none.
        self.panicked.load(Ordering::Relaxed) != 0 && self.claimed.load(Ordering::Relaxed) == 0
    }

    /// Returns true for the first caller, which may take the outcomes.
    pub(crate) fn claim_outcomes(&self) -> bool {
        // Relaxed: one exchange finds 0, whatever the order. `is_done` orders what it then takes.
        self.claimed.swap(1, Ordering::Relaxed) == 0
    }
}
