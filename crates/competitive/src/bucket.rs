//! A bucket of a table of queues, see [`parking`](crate::parking) and [`readers`](crate::readers).

use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::park;

use crate::fork_lock::ForkLock;
use crate::queues::{Queued, Queues};

/// Queues of waiting threads under a lock. In the child of a fork it is unlocked and empty.
pub(crate) struct Bucket<N> {
    /// The lock of the bucket.
    lock: ForkLock,
    /// Touched under the lock only.
    queues: UnsafeCell<Queues<N>>,
}

// SAFETY: the queues are touched under the lock only. Their pointers are to nodes that live as long
// as they are in a queue.
unsafe impl<N> Sync for Bucket<N> {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl<N> Send for Bucket<N> {}

impl<N: Queued> Bucket<N> {
    /// Creates an empty bucket.
    pub(crate) const fn new() -> Self {
        Self { lock: ForkLock::new(), queues: UnsafeCell::new(Queues::new()) }
    }

    /// Runs `body` under the lock. Runs `forget` first, if the queues were those of a parent.
    ///
    /// Neither may unwind.
    pub(crate) fn with<R>(
        &self,
        forget: impl FnOnce(),
        body: impl FnOnce(&mut Queues<N>) -> R,
    ) -> R {
        let locked = || {
            // SAFETY: under the lock.
            self.queues.with_mut(|queues| body(unsafe { &mut *queues }))
        };
        self.lock.with(|| self.forget(forget), locked)
    }

    /// Empties the queues if they are those of a parent, and runs `forget` then.
    #[inline]
    pub(crate) fn adopt(&self, forget: impl FnOnce()) {
        self.lock.adopt(|| self.forget(forget));
    }

    /// Forgets the threads of a parent. They do not exist in this process.
    fn forget(&self, forget: impl FnOnce()) {
        // SAFETY: under the lock.
        self.queues.with_mut(|queues| unsafe { *queues = Queues::new() });
        forget();
    }
}

/// Returns the index of the bucket for what lies at `address`, in a table of `buckets`, a power of
/// two.
#[inline]
pub(crate) fn index<T>(address: *const T, buckets: usize) -> usize {
    /// 2^64 divided by the golden ratio: neighbours come to lie far apart (Knuth, section 6.4).
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let spread = (park::place_of(address) as u64).wrapping_mul(SPREAD);
    // Only the upper bits depend on all of the address.
    (spread >> 32) as usize & (buckets - 1)
}
