//! The wrapper of a raw lock, and what its traits have in common.

use std::fmt;

use lock_api::{Mutex, RawMutex, RawRwLock, RwLock};
use stanchion_order::{Identity, Mode};

/// A raw lock that reports the order in which it is taken.
///
/// It has the traits of `lock_api` 0.5 that the lock has: of a mutex, a read-write lock or a
/// condition variable.
///
/// ```
/// use lock_api::Mutex;
/// use stanchion_checked::Checked;
///
/// static NAMES: Mutex<Checked<parking_lot::RawMutex>, Vec<&str>> = Mutex::new(Vec::new());
///
/// NAMES.lock().push("first");
/// assert_eq!(NAMES.lock().len(), 1);
/// ```
// `repr(C)`: the recorder knows the lock by the address behind the identity.
#[repr(C)]
pub struct Checked<L> {
    /// The lock's identity in the record.
    pub(crate) identity: Identity,
    /// The lock.
    pub(crate) raw: L,
}

impl<L> Checked<L> {
    /// Wraps a lock that is created where this is called. Costs nothing, and never panics.
    ///
    /// ```
    /// use lock_api::{Mutex, RawMutex};
    /// use stanchion_checked::Checked;
    ///
    /// let mutex = Mutex::from_raw(Checked::new(parking_lot::RawMutex::INIT), 5);
    /// assert_eq!(*mutex.lock(), 5);
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn new(raw: L) -> Self {
        Self { identity: Identity::new(), raw }
    }

    /// Wraps a constant, from which many locks are created.
    pub(crate) const fn constant(raw: L) -> Self {
        Self { identity: Identity::unplaced(), raw }
    }

    /// Takes the lock by an act that blocks, after an attempt if that is recorded.
    #[inline]
    #[track_caller]
    pub(crate) fn take<G>(
        &self,
        mode: Mode,
        attempt: impl FnOnce(&L) -> Option<G>,
        act: impl FnOnce(&L) -> G,
    ) -> G {
        self.identity.acquire(mode, || attempt(&self.raw), || act(&self.raw))
    }

    /// Notes an attempt that does not block.
    #[inline]
    #[track_caller]
    pub(crate) fn attempt<G>(&self, mode: Mode, guard: Option<G>) -> Option<G> {
        if guard.is_some() {
            self.identity.acquired(mode);
        }
        guard
    }

    /// Takes the lock by an act that blocks, and not forever.
    #[inline]
    #[track_caller]
    pub(crate) fn try_take<G>(&self, mode: Mode, act: impl FnOnce(&L) -> Option<G>) -> Option<G> {
        self.identity.trying(mode);
        let guard = act(&self.raw);
        if guard.is_none() {
            self.identity.gave_up();
        }
        self.attempt(mode, guard)
    }

    /// Returns the lock for a release.
    #[inline]
    pub(crate) fn releasing(&self, mode: Mode) -> &L {
        self.identity.released(mode);
        &self.raw
    }
}

/// The lock alone: its identity says nothing to a reader.
impl<L: fmt::Debug> fmt::Debug for Checked<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checked").field(&self.raw).finish()
    }
}

/// Makes a mutex that knows the place of its creation, which reports name. Costs nothing, and never
/// panics.
///
/// ```
/// use parking_lot::RawMutex;
///
/// let mutex = stanchion_checked::mutex::<RawMutex, _>(7);
/// assert_eq!(*mutex.lock(), 7);
/// ```
#[must_use]
#[track_caller]
pub const fn mutex<R: RawMutex, T>(value: T) -> Mutex<Checked<R>, T> {
    Mutex::from_raw(Checked::new(R::INIT), value)
}

/// Makes a read-write lock that knows the place of its creation, which reports name. Costs nothing,
/// and never panics.
///
/// ```
/// use parking_lot::RawRwLock;
///
/// let lock = stanchion_checked::rw_lock::<RawRwLock, _>(7);
/// assert_eq!(*lock.read(), 7);
/// ```
#[must_use]
#[track_caller]
pub const fn rw_lock<R: RawRwLock, T>(value: T) -> RwLock<Checked<R>, T> {
    RwLock::from_raw(Checked::new(R::INIT), value)
}
