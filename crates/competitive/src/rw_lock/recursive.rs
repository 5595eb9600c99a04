//! Reading again while the thread reads.

use lock_api::{GuardSend, RawMutex, RwLock, RwLockReadGuard};

use super::{READERS, RawRwLock, WRITER};
use crate::readers::Look;

impl<G: RawMutex> RawRwLock<G> {
    /// Becomes a reader beside another one even if a writer waits; else waits as all readers do.
    #[inline]
    pub(crate) fn lock_shared_recursive(&self) -> GuardSend {
        match self.try_read_recursive() {
            Look::Entered => GuardSend::new(),
            Look::Writer => lock_api::RawRwLock::lock_shared(self),
            Look::Full => self.too_many(),
        }
    }

    #[inline]
    pub(crate) fn try_lock_shared_recursive(&self) -> Option<GuardSend> {
        (self.try_read_recursive() == Look::Entered).then(GuardSend::new)
    }

    fn try_read_recursive(&self) -> Look {
        // A writer that waits for readers has not begun. It goes on waiting for one reader more.
        self.enter(|word| word & WRITER == 0 || word & READERS != 0)
    }
}

/// Reads a [`RwLock`] that the thread may be reading already.
///
/// A plain `read` waits behind a writer that waits. If the same thread holds a read guard for which
/// that writer waits, both wait for ever. `read_recursive` gets in beside any other reader, so it
/// never waits while its thread reads. In exchange, threads that always read recursively can keep a
/// writer waiting for ever.
///
/// The name and the meaning are those of parking_lot's method.
///
/// ```
/// use stanchion_competitive::{ReadRecursive, RwLock};
///
/// let lock = RwLock::new(5);
/// let outer = lock.read();
/// // A writer may have come in between.
/// let inner = lock.read_recursive();
/// assert_eq!(*outer + *inner, 10);
/// ```
pub trait ReadRecursive {
    /// The guard's type.
    type Guard<'a>
    where
        Self: 'a;

    /// Acquires the lock to read; waits only for a writer that writes.
    ///
    /// # Panics
    ///
    /// As `read`.
    fn read_recursive(&self) -> Self::Guard<'_>;

    /// Acquires the lock to read, unless a writer writes, or is about to with no reader before it.
    fn try_read_recursive(&self) -> Option<Self::Guard<'_>>;
}

impl<G: RawMutex, T: ?Sized> ReadRecursive for RwLock<RawRwLock<G>, T> {
    type Guard<'a>
        = RwLockReadGuard<'a, RawRwLock<G>, T>
    where
        Self: 'a;

    fn read_recursive(&self) -> Self::Guard<'_> {
        // SAFETY: the lock is not released here, only acquired.
        let guard = unsafe { self.raw() }.lock_shared_recursive();
        // SAFETY: acquired above, and this is its only guard.
        unsafe { self.make_read_guard_unchecked(guard) }
    }

    fn try_read_recursive(&self) -> Option<Self::Guard<'_>> {
        // SAFETY: the lock is not released here, only acquired.
        let guard = unsafe { self.raw() }.try_lock_shared_recursive()?;
        // SAFETY: acquired above, and this is its only guard.
        Some(unsafe { self.make_read_guard_unchecked(guard) })
    }
}
