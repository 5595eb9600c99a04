//! The memory of a slab: one mapping, and the guards in it.
//!
//! | range | [`Guards::Installed`] | [`Guards::Protected`] |
//! | --- | --- | --- |
//! | mapped, not given out | readable and writable, nothing in it | the same |
//! | the guard of a stack that was given out | marked in the page table | without access |
//! | a stack | readable and writable; pages come when touched, and go by `discard` | the same |
//!
//! # Invariants
//!
//! 1. The mapping is this structure's from `new` to `drop`, and no other's.
//! 2. The table knows the mapping while it is there, and no longer: it leaves the table first.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU8, Ordering};

use super::refusal::{addresses, failed, limit_of_addresses, refused};
use super::table::{Ticket, enter};
use crate::stack::{Guards, Size, StackError};

/// Linux 6.13; not yet in the C library's headers everywhere.
#[cfg(any(target_os = "linux", target_os = "android"))]
const GUARD_INSTALL: i32 = 102;

/// The size of a page; never changes.
pub(crate) fn page() -> usize {
    // SAFETY: a question without pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Returns the kind of guards that this kernel has. It is tried on a page of its own.
pub(crate) fn guards() -> Guards {
    const UNKNOWN: u8 = 0;
    const INSTALLED: u8 = 1;
    const PROTECTED: u8 = 2;
    static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

    // Relaxed, here and below: everyone finds out alike.
    match KIND.load(Ordering::Relaxed) {
        INSTALLED => Guards::Installed,
        PROTECTED => Guards::Protected,
        _ => {
            let Ok(scratch) = map(page()) else { return Guards::Protected };
            // SAFETY: a page of ours, with nothing in it.
            let has = unsafe { installs_guards(scratch) };
            // SAFETY: as above; no code uses it any more.
            unsafe { unmap(scratch, page()) };
            KIND.store(if has { INSTALLED } else { PROTECTED }, Ordering::Relaxed);
            if has { Guards::Installed } else { Guards::Protected }
        }
    }
}

/// A mapping and its entry in the table of those that are watched.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The lowest address of the mapping.
    low: NonNull<u8>,
    /// The length of the mapping.
    bytes: usize,
    /// The sizes of a stack and of its guard.
    size: Size,
    /// The kind of its guards.
    guards: Guards,
    /// Its entry in the table. It is dropped before the mapping (Invariant 2).
    ticket: ManuallyDrop<Ticket>,
}

// SAFETY: Invariant 1: memory that this has alone, and which no thread is bound to.
unsafe impl Send for Memory {}
// SAFETY: nothing of it changes; system calls may be made from any thread.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(
        size: Size,
        stacks: usize,
        best: Guards,
        advice: &'static str,
    ) -> Result<Self, StackError> {
        let bytes = size.stride().checked_mul(stacks);
        let bytes = bytes.ok_or(StackError::Memory { bytes: usize::MAX })?;
        let low = map_with_reserve(bytes)?;
        let guards = match (best, guards()) {
            // Tried here too: memory that the process has had locked (`mlockall`) takes no marks.
            // SAFETY: the first guard, which lies in the mapping; nothing is in it.
            (Guards::Installed, Guards::Installed) if unsafe { install(low, size.guard()) } => {
                Guards::Installed
            }
            _ => Guards::Protected,
        };
        let ticket = ManuallyDrop::new(enter(low, bytes, size, advice));
        Ok(Self { low, bytes, size, guards, ticket })
    }

    #[inline]
    pub(crate) fn low(&self) -> NonNull<u8> {
        self.low
    }

    pub(crate) fn guards(&self) -> Guards {
        self.guards
    }

    /// Sets the guard of stack `number`, which has not been given out.
    pub(crate) fn open(&self, number: usize) -> Result<(), StackError> {
        // SAFETY: Invariant 1: the number is less than that of the stacks, so the guard lies in the
        // mapping.
        let at = unsafe { self.low.add(number * self.size.stride()) };
        let bytes = self.size.guard();
        match self.guards {
            Guards::Installed => {
                // SAFETY: the guard's pages, which are still empty.
                if unsafe { install(at, bytes) } { Ok(()) } else { Err(failed("madvise")) }
            }
            Guards::Protected => {
                // SAFETY: as above.
                let done = unsafe { libc::mprotect(at.as_ptr().cast(), bytes, libc::PROT_NONE) };
                if done == 0 { Ok(()) } else { Err(refused("mprotect", bytes)) }
            }
        }
    }

    /// Gives pages back. If the system refuses, they stay, and do no harm.
    ///
    /// # Safety
    ///
    /// `from` and `bytes` are whole pages of a stack, and nothing in them is used any more.
    pub(crate) unsafe fn discard(&self, from: usize, bytes: usize) {
        // At once where that is sure to empty them: pages that are only free to be taken count as
        // the process's until the system needs them.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const GIVE_BACK: i32 = libc::MADV_DONTNEED;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const GIVE_BACK: i32 = libc::MADV_FREE;
        // SAFETY: the caller's promise, and Invariant 1.
        let at = unsafe { self.low.add(from) };
        // SAFETY: as above.
        unsafe { libc::madvise(at.as_ptr().cast(), bytes, GIVE_BACK) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the ticket is dropped here only. Invariant 2: afterwards no handler looks at the
        // mapping.
        unsafe { ManuallyDrop::drop(&mut self.ticket) };
        // SAFETY: Invariant 1; the thread that drops a slab's memory is the last to know it.
        unsafe { unmap(self.low, self.bytes) };
    }
}

/// Where address space is limited, one in so many bytes is left to the rest of the program.
const RESERVE: usize = 8;

/// Does as [`map`], if that leaves address space to the rest of the program.
///
/// Why: an allocator that finds none aborts, where a thread without a stack is an error. Why the
/// kernel's account is read, and not a larger mapping tried: for that moment an allocator on
/// another thread would find none.
fn map_with_reserve(bytes: usize) -> Result<NonNull<u8>, StackError> {
    if let Some(limit) = limit_of_addresses() {
        // Without a descriptor to read it by, the kernel alone decides.
        let used = addresses(page()).unwrap_or(0);
        if used.saturating_add(bytes) > limit - limit / RESERVE {
            return Err(StackError::AddressSpace { bytes, limit });
        }
    }
    map(bytes)
}

/// Returns whether address space is limited, and half of it is used.
pub(crate) fn half_is_used() -> bool {
    // Without a descriptor to read it by, it is taken for used.
    limit_of_addresses().is_some_and(|limit| addresses(page()).is_none_or(|used| used > limit / 2))
}

/// Address space that is readable and writable, and costs memory when it is touched.
fn map(bytes: usize) -> Result<NonNull<u8>, StackError> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const KIND: i32 = libc::MAP_NORESERVE | libc::MAP_STACK;
    #[cfg(target_os = "openbsd")]
    const KIND: i32 = libc::MAP_STACK;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
    const KIND: i32 = 0;
    const FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_ANON | KIND;
    const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping wherever the kernel likes touches no other.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, ACCESS, FLAGS, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(refused("mmap", bytes));
    }
    // Not in huge pages: a stack of which one page is used would be 2 MiB of memory. Since 6.7 the
    // kernel takes `MAP_STACK` to say so.
    #[cfg(target_os = "linux")]
    // SAFETY: the mapping is ours; a kernel without huge pages refuses, which is as well.
    unsafe {
        libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE)
    };
    NonNull::new(at.cast()).ok_or(StackError::Other { call: "mmap", errno: 0 })
}

/// # Safety
///
/// The range was mapped by [`map`], and is not used any more.
unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// Returns whether this kernel marks guards, tried on a page.
///
/// # Safety
///
/// As for [`install`].
unsafe fn installs_guards(scratch: NonNull<u8>) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the caller's promise.
    return unsafe {
        crate::backend::advice::is_followed(scratch.as_ptr().cast(), page(), GUARD_INSTALL)
    };
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = scratch;
        false
    }
}

/// Marks pages, so that a thread that touches them gets a signal. Returns whether the system did
/// so.
///
/// # Safety
///
/// Whole pages of the caller's, with nothing in them.
unsafe fn install(at: NonNull<u8>, bytes: usize) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the caller's promise; a kernel that does not know the advice refuses.
    return unsafe { libc::madvise(at.as_ptr().cast(), bytes, GUARD_INSTALL) } == 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (at, bytes);
        false
    }
}
