//! The program's locks, replaced: a mutex of ours in the memory of the C library's.
//!
//! | bytes of a `pthread_mutex_t` | the C library's | ours |
//! | --- | --- | --- |
//! | 0 to 15 | lock, count, owner, users | a [`RawPolicyMutex`] |
//! | 16 to 19 | kind | the same: says whose it is |
//! | 20 to 23 | spins, elision | |
//! | 24 to 27 | a list | whether the policy has begun |
//!
//! A mutex that has just been made, by `pthread_mutex_init` or by an initializer, is all zeros but for its kind, in both. Replaced are the kinds
//! *normal* (which is *default*) and *adaptive*, private to the process. Recursive, error-checking, robust, priority-inheriting and shared ones stay
//! the C library's: what they promise is not ours to give.
//!
//! Condition variables must be replaced with them, since `pthread_cond_wait` would release the mutex within the C library: [`cond`]. Those shared
//! between processes stay, known by a bit that the C library sets.
//!
//! Both places in the C library's structures are verified before any lock is replaced ([`layout_is_known`]).

use core::ffi::c_int;
use core::mem::{self, MaybeUninit};

use machine::atomic::{AtomicU32, Ordering};
use stanchion_competitive::policy::{
    Adaptive, AlwaysBlock, AlwaysSpin, FixedSpin, LastThreeSamples, OptimalOnlineApproximation,
    RandomWalk, Randomized,
};

use super::{Cond, Mutex, real};

mod cond;
mod deadline;
mod mutex;

pub(super) use cond::{
    broadcast as cond_broadcast, destroy as cond_destroy, init as cond_init, signal as cond_signal,
    wait,
};
pub(super) use mutex::{Operations, destroy, lock, try_lock, unlock};

/// Where the C library keeps a mutex's kind.
const KIND: usize = 16;
/// Bits of a kind that say how its lock word may be elided.
const ELISION: u32 = 0x300;
const NORMAL: u32 = 0;
const ADAPTIVE: u32 = 3;
/// Where the C library keeps the bit that a condition variable is shared between processes.
const SHARED: usize = 36;

/// The policies, by name.
pub(super) fn operations(policy: &[u8]) -> Result<&'static Operations, &'static [u8]> {
    let operations = match policy {
        b"adaptive" => const { &Operations::of::<Adaptive>() },
        b"always-block" => const { &Operations::of::<AlwaysBlock>() },
        b"always-spin" => const { &Operations::of::<AlwaysSpin>() },
        b"fixed-spin" => const { &Operations::of::<FixedSpin>() },
        b"fixed-spin-half" => const { &Operations::of::<FixedSpin<50>>() },
        b"last-three-samples" => const { &Operations::of::<LastThreeSamples>() },
        b"optimal-online-approximation" => {
            const { &Operations::of::<OptimalOnlineApproximation>() }
        }
        b"random-walk" => const { &Operations::of::<RandomWalk>() },
        b"randomized" => const { &Operations::of::<Randomized>() },
        _ => return Err(b"there is no policy of that name"),
    };
    if layout_is_known() {
        Ok(operations)
    } else {
        Err(b"this C library lays out its mutexes in a way that is not known here")
    }
}

/// The word at `offset` of a mutex or condition variable.
///
/// # Safety
///
/// It must be readable there for `'a`.
unsafe fn word<'a, T>(object: *mut T, offset: usize) -> &'a AtomicU32 {
    let word = object.cast::<u8>().wrapping_add(offset).cast::<AtomicU32>();
    // SAFETY: the caller's promise; the offsets are multiples of 4, the objects aligned to 8.
    unsafe { &*word }
}

/// Whether it is one of ours.
///
/// # Safety
///
/// It must be a mutex.
#[inline]
pub(super) unsafe fn is_ours(mutex: Mutex) -> bool {
    // SAFETY: the caller's promise.
    let kind = unsafe { word(mutex, KIND) };
    // Relaxed: written when the mutex was made, and who locks it knows of that.
    matches!(kind.load(Ordering::Relaxed) & !ELISION, NORMAL | ADAPTIVE)
}

/// Whether waiting for the condition with the mutex is our affair.
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

/// Whether a condition variable is the C library's, being shared between processes.
///
/// # Safety
///
/// It must be a condition variable.
unsafe fn is_shared(cond: Cond) -> bool {
    // SAFETY: the caller's promise.
    let flags = unsafe { word(cond, SHARED) };
    // Relaxed: as in `is_ours`.
    flags.load(Ordering::Relaxed) & 1 == 1
}

/// Makes a mutex of a kind and a shared condition variable, and looks where that shows.
fn layout_is_known() -> bool {
    const { assert!(mem::size_of::<libc::pthread_mutex_t>() >= 40) };
    const { assert!(mem::size_of::<libc::pthread_cond_t>() >= SHARED + 4) };
    [libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ERRORCHECK]
        .into_iter()
        .all(|kind| kind_of_new(kind).map(|found| found & !ELISION) == u32::try_from(kind).ok())
        && [libc::PTHREAD_PROCESS_PRIVATE, libc::PTHREAD_PROCESS_SHARED]
            .into_iter()
            .all(|shared| shared_of_new(shared) == Some(shared == libc::PTHREAD_PROCESS_SHARED))
}

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

/// Does before the program starts what would otherwise be done by the first wait: reads the clock's
/// rate and the quota of processor time, asks the kernel for its barrier and for a page that a fork
/// wipes, numbers the first thread.
pub(super) fn warm_up() {
    machine::warm_up();
    let _ = stanchion_competitive::cost::current();
}
