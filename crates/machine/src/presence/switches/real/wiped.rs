//! Memory that a fork wipes: how a child process learns that its parent's rings are gone.
//!
//! The kernel does not copy a mapped ring into a child, so a pointer to one that the child inherits
//! leads nowhere, or to whatever the child has mapped there since. All such pointers live in a
//! mapping with `MADV_WIPEONFORK`, which the child finds full of zeros: null. Why not
//! `pthread_atfork`: it misses children made by a bare `clone`.
//!
//! A pointer that is kept elsewhere has the [`generation`](crate::fork::generation) of its process
//! beside it.

use super::last_error;
use crate::presence::Refused;
use crate::thread::INDICES;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// All zeros is its valid first state, and its state in a child.
#[derive(Debug)]
pub(in crate::presence) struct Wiped {
    /// One for each thread index.
    pub(in crate::presence) slots: [Slot; INDICES],
}

/// The facts about the registered thread with some index. That thread alone writes them. Others
/// read `ring`.
#[derive(Debug)]
#[repr(align(64))]
pub(in crate::presence) struct Slot {
    /// The thread's ring while it is registered and has one, else null.
    pub(in crate::presence) ring: AtomicPtr<u8>,
    /// Two pages where the rings of this index are mapped, one after the other; null before the
    /// first.
    pub(in crate::presence) home: AtomicPtr<u8>,
    /// Which registration this is; 0 when there is none.
    pub(in crate::presence) generation: AtomicU64,
    /// The number of registrations of this thread that are held.
    pub(in crate::presence) holders: AtomicU32,
    /// The kernel's number for the thread; 0 when it is not registered.
    pub(in crate::presence) tid: AtomicU32,
}

/// Published once, never unmapped.
static WIPED: AtomicPtr<Wiped> = AtomicPtr::new(ptr::null_mut());

/// Returns the mapping, if a thread has needed it yet.
#[inline]
pub(in crate::presence) fn existing() -> Option<&'static Wiped> {
    // Acquire pairs with the Release in `get`.
    let wiped = WIPED.load(Ordering::Acquire);
    // SAFETY: once published it stays mapped, and zeros are valid for every field.
    unsafe { wiped.as_ref() }
}

/// The mapping, made now if it is the first time.
pub(in crate::presence) fn get() -> Result<&'static Wiped, Refused> {
    if let Some(wiped) = existing() {
        return Ok(wiped);
    }
    let made = map()?;
    // Release publishes the advice given to the kernel; Acquire, should another have been first,
    // pairs with its Release.
    let first = WIPED
        .compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Acquire)
        .unwrap_or_else(|other| {
            // SAFETY: ours, and no other thread has seen it.
            unsafe { libc::munmap(made.cast(), size_of::<Wiped>()) };
            other
        });
    // `compare_exchange` returns the old value on success, which was null.
    let wiped = if first.is_null() { made } else { first };
    // SAFETY: as in `existing`.
    Ok(unsafe { &*wiped })
}

fn map() -> Result<*mut Wiped, Refused> {
    let length = size_of::<Wiped>();
    // SAFETY: a new mapping at an address of the kernel's choosing disturbs nothing. Pages are
    // aligned enough for a `Slot`.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(Refused::Other { call: "mmap", errno: last_error() });
    }
    // SAFETY: the range just mapped.
    if unsafe { libc::madvise(address, length, libc::MADV_WIPEONFORK) } != 0 {
        let errno = last_error();
        // SAFETY: ours, and no other thread has seen it.
        unsafe { libc::munmap(address, length) };
        return Err(Refused::Other { call: "madvise(MADV_WIPEONFORK)", errno });
    }
    Ok(address.cast())
}
