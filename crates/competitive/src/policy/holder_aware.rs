//! Holder-aware: spin while the holder is on a processor.
//!
//! Why: the paper assumes that the holder runs (its condition b), and could not know. Where the kernel tells
//! ([`machine::presence`]), a waiter whose holder was preempted or has blocked leaves at once, and one whose holder runs has reason to
//! stay. Where it does not tell, a [`RandomWalk`] decides.
//!
//! A thread is seen once it has registered. The first time that a thread waits for a lock with this policy it registers itself, until it ends: some 20 µs,
//! 8 KiB of locked memory, and for the first one of a process the check described at [`machine::presence::status`], which starts two threads for a moment.

use super::{Contention, Policy, RandomWalk, Wait};
use machine::presence::{self, Presence};

/// Spins while the holder is on a processor, for at most `LIMIT` times C; blocks at once when it was preempted or has blocked.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::HolderAware};
/// let mutex = PolicyMutex::<_, HolderAware>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Debug)]
pub struct HolderAware<const LIMIT: u32 = 2> {
    unseen: RandomWalk,
}

machine::thread_local! {
    /// The thread's registration; kept until it ends.
    static REGISTRATION: core::cell::RefCell<Option<presence::Registration>> = core::cell::RefCell::new(None);
}

/// Makes the calling thread visible to those who wait for it. Does nothing where that cannot be had.
fn be_seen() {
    REGISTRATION.with(|mine| {
        // Not while it is being made: then this is the thread that makes it.
        if let Ok(mut mine) = mine.try_borrow_mut()
            && mine.is_none()
        {
            *mine = presence::register().ok();
        }
    });
}

impl<const LIMIT: u32> Policy for HolderAware<LIMIT> {
    const INIT: Self = Self { unseen: RandomWalk::INIT };

    fn threshold(&self, contention: &Contention) -> u64 {
        be_seen();
        match contention.holder().map_or(Presence::Unknown, presence::of) {
            Presence::Running => contention.cost().saturating_mul(LIMIT.into()),
            Presence::Preempted | Presence::Blocked => 0,
            Presence::Unknown => self.unseen.threshold(contention),
        }
    }

    #[inline]
    fn keep_spinning(&self, contention: &Contention) -> bool {
        let presence = contention.holder().map_or(Presence::Unknown, presence::of);
        presence.runs() != Some(false)
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        self.unseen.adjust(wait);
    }
}
