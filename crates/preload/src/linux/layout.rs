//! The program's locks, replaced: a mutex of the shim in the memory of the C library's mutex.
//!
//! | bytes of a `pthread_mutex_t` | the C library's | the shim's |
//! | --- | --- | --- |
//! | 0 to 15 | lock, count, owner, users | a `RawPolicyMutex` |
//! | 16 to 19 | kind | the same: says whether it is replaced |
//! | 20 to 23 | spins, elision | |
//! | 24 to 27 | a list | whether the policy has begun |
//!
//! A new mutex, from `pthread_mutex_init` or an initializer, is all zeros but for its kind. This
//! holds for both. The kinds *normal* (which is *default*) and *adaptive* are replaced, if they are
//! private to the process. Recursive, error-checking, robust, priority-inheriting and shared
//! mutexes stay the C library's, because the shim's mutex cannot keep their promises.
//!
//! Condition variables must be replaced with the mutexes, since `pthread_cond_wait` would release
//! the mutex within the C library: [`cond`](super::cond). Condition variables that are shared
//! between processes stay the C library's. They are known by a bit that the C library sets.
//!
//! The offsets of the kind and of that bit are verified before any lock is replaced
//! ([`layout_is_known`]).

use core::ffi::c_int;
use core::mem::{self, MaybeUninit};

use stanchion_machine::atomic::{AtomicU32, Ordering};

use super::{Cond, Mutex, real};

/// The offset at which the C library keeps a mutex's kind.
const KIND: usize = 16;
/// The bits of a kind that say how its lock word may be elided.
const ELISION: u32 = 0x300;
/// The kind of a normal mutex.
const NORMAL: u32 = 0;
/// The kind of a recursive mutex.
const RECURSIVE: u32 = 1;
/// The kind of an adaptive mutex.
const ADAPTIVE: u32 = 3;
/// The offset at which the C library keeps the bit of a shared condition variable.
pub(super) const SHARED: usize = 36;

/// Returns the word at `offset` of a mutex or condition variable.
///
/// # Safety
///
/// It must be readable there for `'a`.
pub(super) unsafe fn word<'a, T>(object: *mut T, offset: usize) -> &'a AtomicU32 {
    let word = object.cast::<u8>().wrapping_add(offset).cast::<AtomicU32>();
    // SAFETY: the caller's promise; the offsets are multiples of 4, the objects aligned to 8.
    unsafe { &*word }
}

/// Returns whether the mutex is replaced.
///
/// # Safety
///
/// It must be a mutex.
#[inline]
pub(super) unsafe fn is_ours(mutex: Mutex) -> bool {
    // SAFETY: the caller's promise.
    let kind = unsafe { word(mutex, KIND) };
    // Relaxed: the kind was written when the mutex was made, and a thread that locks the mutex
    // knows of that.
    matches!(kind.load(Ordering::Relaxed) & !ELISION, NORMAL | ADAPTIVE)
}

/// Returns whether the mutex is of a kind for which the C library uses nothing but the kind and the
/// words before it: normal, recursive, error-checking or adaptive, and private to the process.
///
/// # Safety
///
/// It must be a mutex.
#[inline]
pub(super) unsafe fn is_plain(mutex: Mutex) -> bool {
    // SAFETY: the caller's promise.
    let kind = unsafe { word(mutex, KIND) };
    // Relaxed: as in `is_ours`.
    kind.load(Ordering::Relaxed) & !ELISION <= ADAPTIVE
}

/// Returns whether the mutex is recursive, whatever else it is.
///
/// # Safety
///
/// It must be a mutex.
pub(super) unsafe fn is_recursive(mutex: Mutex) -> bool {
    // SAFETY: the caller's promise.
    let kind = unsafe { word(mutex, KIND) };
    // Relaxed: as in `is_ours`.
    kind.load(Ordering::Relaxed) & 3 == RECURSIVE
}

/// Returns whether the shim does this wait.
///
/// # Safety
///
/// They must be a condition variable and a mutex.
pub(super) unsafe fn is_ours_too(cond: Cond, mutex: Mutex) -> bool {
    // SAFETY: the caller's promise.
    let shared = unsafe { is_shared(cond) };
    // SAFETY: the caller's promise.
    !shared || unsafe { is_ours(mutex) }
}

/// Returns whether a condition variable is shared between processes, and so the C library's.
///
/// # Safety
///
/// It must be a condition variable.
pub(super) unsafe fn is_shared(cond: Cond) -> bool {
    // SAFETY: the caller's promise.
    let flags = unsafe { word(cond, SHARED) };
    // Relaxed: as in `is_ours`.
    flags.load(Ordering::Relaxed) & 1 == 1
}

/// Makes mutexes of known kinds and condition variables, and checks that the known offsets show
/// what they are.
pub(super) fn layout_is_known() -> bool {
    const { assert!(mem::size_of::<libc::pthread_mutex_t>() >= 40) };
    const { assert!(mem::size_of::<libc::pthread_cond_t>() >= SHARED + 4) };
    [libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ERRORCHECK]
        .into_iter()
        .all(|kind| kind_of_new(kind).map(|found| found & !ELISION) == u32::try_from(kind).ok())
        && [libc::PTHREAD_PROCESS_PRIVATE, libc::PTHREAD_PROCESS_SHARED]
            .into_iter()
            .all(|shared| shared_of_new(shared) == Some(shared == libc::PTHREAD_PROCESS_SHARED))
}

/// Makes a mutex of this kind and returns the kind that its memory shows.
fn kind_of_new(kind: c_int) -> Option<u32> {
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let mutex = &raw mut mutex;
    // SAFETY: initializes them.
    let made = unsafe { libc::pthread_mutexattr_init(attributes) };
    // SAFETY: initialized above.
    let chosen = unsafe { libc::pthread_mutexattr_settype(attributes, kind) };
    // SAFETY: as above.
    let begun = unsafe { real::mutex_init(mutex, attributes) };
    // SAFETY: a mutex.
    let found = unsafe { word(mutex, KIND) }.load(Ordering::Relaxed);
    (made | chosen | begun == 0).then_some(found)
}

/// Makes a condition variable and returns whether its memory shows that it is shared.
fn shared_of_new(shared: c_int) -> Option<bool> {
    let mut attributes = MaybeUninit::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut cond = libc::PTHREAD_COND_INITIALIZER;
    let cond = &raw mut cond;
    // SAFETY: initializes them.
    let made = unsafe { libc::pthread_condattr_init(attributes) };
    // SAFETY: initialized above.
    let chosen = unsafe { libc::pthread_condattr_setpshared(attributes, shared) };
    // SAFETY: as above.
    let begun = unsafe { real::cond_init(cond, attributes) };
    // SAFETY: a condition variable.
    let found = unsafe { is_shared(cond) };
    (made | chosen | begun == 0).then_some(found)
}
