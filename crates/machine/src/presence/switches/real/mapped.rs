//! Owning a mapped ring.

use super::{View, event, last_error};
use crate::fork;
use crate::presence::Refused;
use crate::presence::real::ring_given_back;
use core::ptr::NonNull;
use std::os::fd::OwnedFd;

/// Two pages of the kernel's, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The address of the first page.
    base: NonNull<u8>,
    /// The size of a page.
    page: usize,
    /// Of the process that has it mapped.
    generation: u32,
    /// True if its end is told to threads that were refused a ring, which takes a lock.
    is_told: bool,
}

// SAFETY: reading a ring is loading atomics, from whatever thread; unmapping is not bound to a
// thread either.
unsafe impl Send for Mapped {}
// SAFETY: as above; no operation through a shared reference writes.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub(crate) fn of_this_thread() -> Result<Self, Refused> {
        // The mapping keeps the event alive; the descriptor is closed at the end of this function.
        Self::of(&event::open()?)
    }

    /// Maps the ring of an event, which begins to record.
    pub(in crate::presence) fn of(event: &OwnedFd) -> Result<Self, Refused> {
        let generation = fork::generation();
        let page = page_size();
        let base = NonNull::new(event::map(event, page)?.cast())
            .ok_or(Refused::Other { call: "mmap of a perf ring", errno: 0 })?;
        Ok(Self { base, page, generation, is_told: true })
    }

    /// The same for a caller that must not allocate or wait.
    pub(crate) fn bare(descriptors: u32) -> Result<Self, i32> {
        let generation = fork::generation();
        let page = page_size();
        let base = event::open_and_map(page, descriptors)?;
        let base = NonNull::new(base.cast()).ok_or(libc::ENOMEM)?;
        Ok(Self { base, page, generation, is_told: false })
    }

    /// The ring, unless this is a child of the process that made it.
    #[inline]
    pub(crate) fn view(&self) -> Option<View> {
        // SAFETY: the ring is mapped until `self` is dropped in the process that mapped it. This is
        // that process (Invariant 3 of `switches.rs`).
        (self.generation == fork::generation()).then(|| unsafe { View::new(self.base, self.page) })
    }

    /// Moves the ring over two pages at `home`, in one step: what is mapped there is replaced.
    ///
    /// # Safety
    ///
    /// At `home` there must be two pages that are this crate's to replace. Their readers must cope
    /// with the change.
    pub(in crate::presence) unsafe fn move_to(self, home: NonNull<u8>) -> Result<(), Refused> {
        // SAFETY: ours to move, and the target is ours to replace by the caller's promise.
        let moved = unsafe {
            libc::mremap(
                self.base.as_ptr().cast(),
                2 * self.page,
                2 * self.page,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                home.as_ptr(),
            )
        };
        if moved == libc::MAP_FAILED {
            return Err(Refused::Other { call: "mremap of a perf ring", errno: last_error() });
        }
        core::mem::forget(self);
        Ok(())
    }

    /// Leaves the ring mapped and returns its address.
    pub(in crate::presence) fn stay(self) -> NonNull<u8> {
        let base = self.base;
        core::mem::forget(self);
        base
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.generation == fork::generation() {
            // SAFETY: the ring is ours. This process mapped it, so it is mapped here (Invariant 3
            // of `switches.rs`).
            unsafe { libc::munmap(self.base.as_ptr().cast(), 2 * self.page) };
            if self.is_told {
                ring_given_back();
            }
        }
    }
}

/// The size of a page; never changes.
pub(in crate::presence) fn page_size() -> usize {
    // SAFETY: a question without pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
