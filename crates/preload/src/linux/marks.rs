//! The identities of locks: a number that the shim writes into each lock.
//!
//! A mutex of the C library has 16 bytes for a list of robust mutexes, which other mutexes do not
//! use. A read-write lock has 8 bytes of padding. Both are zero in a new lock, whether it was made
//! by a function or by an initializer. So a lock that is made where another one was has no number,
//! and gets a new one: it is never taken for the lock before it. This holds also for locks that end
//! without a call, as those of C++ do.
//!
//! Robust mutexes, those with a priority protocol, and those that processes share get no number.
//! Their acquisitions are counted as such.

use core::ffi::c_int;
use core::mem::{self, MaybeUninit};

use libc::pthread_rwlock_t;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Ordering};
use stanchion_order::Mode;

use super::{Mutex, layout, real};

/// A read-write lock of the program.
pub(super) type RwLock = *mut pthread_rwlock_t;

/// The offset of the number in a mutex.
const IN_MUTEX: usize = 24;
/// The offset of the number in a read-write lock.
const IN_RW_LOCK: usize = 40;
/// The offset of the word that is not 0 in a read-write lock that processes may share.
const SHARED: usize = 28;
/// The offset of a read-write lock's preference.
const PREFERENCE: usize = 48;
/// The preference of a lock in which a waiting writer blocks new readers.
const WRITERS_FIRST: u32 = 2;

/// The upper bits of each number in a lock. Other bits there are not the shim's.
const TAG: u64 = 0x5354 << 48;

/// The last number of a lock. Threads that give a number write it. A child of a fork goes on with
/// its own.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A lock of the program.
#[derive(Clone, Copy)]
pub(super) enum Lock {
    /// A mutex.
    Mutex(Mutex),
    /// A read-write lock.
    RwLock(RwLock),
}

impl Lock {
    pub(super) fn address(self) -> usize {
        match self {
            Self::Mutex(mutex) => mutex.addr(),
            Self::RwLock(lock) => lock.addr(),
        }
    }

    /// Returns the place of the lock's number, unless the C library may use it.
    ///
    /// # Safety
    ///
    /// The lock must be one, and outlive `'a`.
    #[inline]
    unsafe fn mark<'a>(self) -> Option<&'a AtomicU64> {
        let place = match self {
            Self::Mutex(mutex) => {
                // SAFETY: the caller's promise.
                if !unsafe { layout::is_plain(mutex) } {
                    return None;
                }
                mutex.cast::<u8>().wrapping_add(IN_MUTEX)
            }
            Self::RwLock(lock) => {
                let shared = lock.cast::<u8>().wrapping_add(SHARED).cast::<AtomicU32>();
                // SAFETY: inside of the lock, and aligned.
                let shared = unsafe { &*shared };
                // Relaxed: it was written when the lock was made.
                if shared.load(Ordering::Relaxed) != 0 {
                    return None;
                }
                lock.cast::<u8>().wrapping_add(IN_RW_LOCK)
            }
        };
        // SAFETY: inside of the lock, at a multiple of 8. The C library does not use it.
        Some(unsafe { &*place.cast::<AtomicU64>() })
    }

    /// Returns the number of the lock, which gets one if it has none. Returns `None` if it can have
    /// none.
    ///
    /// # Safety
    ///
    /// It must be a lock.
    #[inline]
    pub(super) unsafe fn number(self) -> Option<u64> {
        // SAFETY: the caller's promise.
        let mark = unsafe { self.mark() }?;
        // Relaxed: the number describes the lock, and orders nothing.
        match mark.load(Ordering::Relaxed) {
            0 => Some(new_number(mark)),
            found => is_number(found).then_some(found & !TAG),
        }
    }

    /// Takes the number away, so that the next acquisition is of another lock. Returns the number.
    ///
    /// # Safety
    ///
    /// It must be a lock.
    pub(super) unsafe fn take_number(self) -> Option<u64> {
        // SAFETY: the caller's promise.
        let mark = unsafe { self.mark() }?;
        let found = mark.load(Ordering::Relaxed);
        // What is no number is not the shim's.
        (found != 0 && is_number(found)).then(|| {
            // Relaxed: as above. If another thread has changed it, it has taken the number too.
            let _ = mark.compare_exchange(found, 0, Ordering::Relaxed, Ordering::Relaxed);
            found & !TAG
        })
    }

    /// Returns true if a thread may take the lock again that holds it exclusively.
    ///
    /// # Safety
    ///
    /// It must be a lock.
    pub(super) unsafe fn is_recursive(self) -> bool {
        match self {
            // SAFETY: the caller's promise.
            Self::Mutex(mutex) => unsafe { layout::is_recursive(mutex) },
            Self::RwLock(_) => false,
        }
    }

    /// Returns the mode in which a reader takes the lock.
    ///
    /// # Safety
    ///
    /// It must be a read-write lock.
    pub(super) unsafe fn reading(lock: RwLock) -> Mode {
        let preference = lock.cast::<u8>().wrapping_add(PREFERENCE).cast::<AtomicU32>();
        // SAFETY: inside of the lock, and aligned.
        let preference = unsafe { &*preference };
        // Relaxed: it was written when the lock was made.
        match preference.load(Ordering::Relaxed) {
            WRITERS_FIRST => Mode::Shared,
            _ => Mode::SharedRecursive,
        }
    }
}

fn is_number(found: u64) -> bool {
    found >> 48 == TAG >> 48
}

/// Gives a lock a number.
#[cold]
fn new_number(mark: &AtomicU64) -> u64 {
    let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // Relaxed: as in `number`.
    match mark.compare_exchange(0, TAG | new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        Err(other) => other & !TAG,
    }
}

/// Returns whether the C library leaves the numbers alone, and has the preference where it is
/// looked for.
pub(super) fn are_kept() -> bool {
    const { assert!(mem::size_of::<libc::pthread_mutex_t>() >= IN_MUTEX + 8) };
    const { assert!(mem::size_of::<pthread_rwlock_t>() >= PREFERENCE + 4) };
    layout::layout_is_known() && in_mutex_is_kept() && in_rw_lock_is_kept()
}

/// Tries it with a mutex.
fn in_mutex_is_kept() -> bool {
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let mutex = &raw mut mutex;
    let lock = Lock::Mutex(mutex);
    // SAFETY: a mutex, here and below.
    let first = unsafe { lock.number() };
    // SAFETY: as above.
    let locked = unsafe { real::mutex_lock(mutex) };
    // SAFETY: this thread holds it.
    let unlocked = unsafe { real::mutex_unlock(mutex) };
    // SAFETY: as above.
    first.is_some() && (locked, unlocked) == (0, 0) && unsafe { lock.take_number() } == first
}

/// Tries it with a read-write lock that prefers writers.
fn in_rw_lock_is_kept() -> bool {
    unsafe extern "C" {
        fn pthread_rwlockattr_setkind_np(
            attributes: *mut libc::pthread_rwlockattr_t,
            kind: c_int,
        ) -> c_int;
        fn pthread_rwlock_init(
            lock: RwLock,
            attributes: *const libc::pthread_rwlockattr_t,
        ) -> c_int;
    }
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
    let lock = &raw mut lock;
    // SAFETY: a lock that was initialized.
    let plain = unsafe { Lock::reading(lock) };
    // SAFETY: initializes them.
    let mut made = unsafe { libc::pthread_rwlockattr_init(attributes) };
    // SAFETY: initialized above.
    made |= unsafe { pthread_rwlockattr_setkind_np(attributes, WRITERS_FIRST as c_int) };
    // SAFETY: as above.
    made |= unsafe { pthread_rwlock_init(lock, attributes) };
    let marked = Lock::RwLock(lock);
    // SAFETY: a lock, here and below.
    let first = unsafe { marked.number() };
    // SAFETY: as above.
    made |= unsafe { real::rwlock_tryrdlock(lock) };
    // SAFETY: this thread holds it.
    made |= unsafe { real::rwlock_unlock(lock) };
    // SAFETY: as above.
    made |= unsafe { real::rwlock_trywrlock(lock) };
    // SAFETY: as above.
    made |= unsafe { real::rwlock_unlock(lock) };
    // SAFETY: as above.
    let reading = unsafe { Lock::reading(lock) };
    // SAFETY: as above.
    let kept = first.is_some() && unsafe { marked.take_number() } == first;
    let shared = libc::PTHREAD_PROCESS_SHARED;
    // SAFETY: initialized above.
    made |= unsafe { libc::pthread_rwlockattr_setpshared(attributes, shared) };
    // SAFETY: as above. No thread holds the lock.
    made |= unsafe { pthread_rwlock_init(lock, attributes) };
    // SAFETY: as above.
    let is_alone = unsafe { marked.number() }.is_none();
    made == 0 && kept && is_alone && plain == Mode::SharedRecursive && reading == Mode::Shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_keeps_numbers_and_a_new_lock_has_none() {
        assert!(are_kept());
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let lock = Lock::Mutex(&raw mut mutex);
        // SAFETY: a mutex.
        let first = unsafe { lock.number() }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { lock.number() }, Some(first));
        mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let lock = Lock::Mutex(&raw mut mutex);
        // SAFETY: as above.
        let second = unsafe { lock.number() }.unwrap();
        assert!(second > first);
        // SAFETY: as above.
        assert_eq!(unsafe { lock.take_number() }, Some(second));
        // SAFETY: as above.
        assert_eq!(unsafe { lock.take_number() }, None);
    }
}
