//! Holder-aware: spin while the holder is on a processor.
//!
//! Why: the paper assumes that the holder runs (its condition b), and could not know. If the kernel
//! tells ([`stanchion_machine::presence`]), a waiter leaves at once when the holder was preempted
//! or has blocked. If the holder runs, the waiter has reason to stay. [`Adaptive`] decides how long
//! it stays at most, and everything if the kernel does not tell.
//!
//! A thread is seen once it has registered. The first time that a thread waits for a lock with this
//! policy it registers itself, until it ends. That takes some 20 µs and 8 KiB of locked memory. For
//! the first thread of a process it also takes the check described at
//! [`stanchion_machine::presence::status`], which starts two threads for a moment. A holder that
//! never waited is not seen, so its waiters do the same as [`Adaptive`]'s.

use super::{Adaptive, Contention, Policy, Wait};
use stanchion_machine::presence;

/// Spins as [`Adaptive`] does while the holder is on a processor, and blocks at once when it was
/// preempted or has blocked.
///
/// Do not guard an allocator with it, nor use it where files must not be opened. At its first wait
/// for such a lock each thread [registers](presence::register) itself: it allocates, opens a perf
/// event, and may read settings of the kernel. The first thread of a process also starts two
/// threads for a moment, and waits for them. To do that beforehand, let each thread hold a
/// registration of its own, after [`stanchion_machine::warm_up`].
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::HolderAware};
/// let mutex = PolicyMutex::<_, HolderAware>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Debug)]
pub struct HolderAware<const LIMIT: u32 = 16> {
    /// The limit, and the rule if the kernel does not tell.
    limit: Adaptive<LIMIT>,
}

constructors!(HolderAware<LIMIT>);

stanchion_machine::thread_local! {
    /// The thread's registration; kept until it ends.
    static REGISTRATION: core::cell::RefCell<Option<presence::Registration>> = core::cell::RefCell::new(None);
}

/// Makes the calling thread visible to threads that wait for it. Does nothing if that cannot be
/// had, or while the thread ends.
#[cold]
fn register() {
    let _ = REGISTRATION.try_with(|mine| {
        // Not while it is being made: then this is the thread that makes it.
        if let Ok(mut mine) = mine.try_borrow_mut()
            && mine.is_none()
        {
            *mine = presence::register().ok();
        }
    });
}

stanchion_machine::thread_local! {
    /// Set once the thread has tried. Apart from the registration, so that reading it needs no
    /// destructor.
    static TRIED: core::cell::Cell<bool> = core::cell::Cell::new(false);
}

#[inline]
fn be_seen() {
    if !TRIED.with(|tried| tried.replace(true)) {
        register();
    }
}

/// Returns whether that thread is away from the processors, for certain.
#[inline]
fn is_away(holder: Option<usize>) -> bool {
    holder.is_some_and(|holder| presence::of(holder).runs() == Some(false))
}

impl<const LIMIT: u32> Policy for HolderAware<LIMIT> {
    const INIT: Self = Self { limit: Adaptive::INIT };
    const TIMES_ALL_WAITS: bool = false;

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        be_seen();
        if is_away(contention.holder()) { 0 } else { self.limit.threshold(contention) }
    }

    #[inline]
    fn keep_spinning(&self, contention: &Contention) -> bool {
        !is_away(contention.holder())
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        self.limit.adjust(wait);
    }
}
