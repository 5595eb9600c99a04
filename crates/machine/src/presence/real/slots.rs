//! The table of registered threads.
//!
//! | slot | ring | home | generation | tid |
//! | --- | --- | --- | --- | --- |
//! | never used; a child's, after a fork | null | null | 0 | 0 |
//! | registered, with records | = home | a mapped ring | its number | its thread |
//! | registered, records refused | null | null or spare pages | its number | its thread |
//! | no longer registered | null | spare pages | 0 | 0 |
//!
//! # Invariants
//!
//! 1. Only the thread that has index `i` writes slot `i`; others read `ring` and `tid`.
//! 2. What `home` points to is readable for the rest of the process, be it a ring or spare pages: a
//!    reader that has loaded `ring` may sleep as long as it likes before it looks there. It then
//!    sees an old or another thread's ring, or zeros, and is wrong once, which it may be anyway.
//!    Hence rings are replaced in one step (`mremap`, `mmap` with `MAP_FIXED`), never unmapped.
//! 3. A ring that is not in use is replaced by spare pages at once, which gives its locked memory
//!    back to the user's account.
//! 4. A replacement that fails may have unmapped what it was to replace, and any later mapping may
//!    fill the hole. `home` is null from then on, and never used again. Here Invariant 2 ends, for
//!    want of memory: a reader that loaded `ring` before the thread's last registration ended, and
//!    looks only now, may find the hole.

use super::cpu_clock;
use super::refusals::{ring_given_back, unless_refused};
use crate::backend::thread::before_reuse;
use crate::presence::switches::real::{Mapped, View, page_size, wiped};
use crate::presence::{Presence, Refused};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wiped::Slot;

/// A registration.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// The thread's index, and that of its slot.
    index: usize,
    /// The number of the registration.
    generation: u64,
    /// The reason why there are no records, if there are none.
    refused: Option<Refused>,
}

impl Ticket {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }
}

/// The size of a page, once the first ring has been made.
static PAGE: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn register() -> Result<Ticket, Refused> {
    static GENERATIONS: AtomicU64 = AtomicU64::new(0);

    let index = crate::thread::index().ok_or(Refused::NoIndex)?;
    let slot = &wiped::get()?.slots[index];
    // Relaxed, here and below where not said otherwise: by Invariant 1 these are the calling
    // thread's own words, and a former holder of the index has happened before (`thread::index`).
    if slot.generation.load(Ordering::Relaxed) == 0 {
        before_reuse(thread_ends);
        // Relaxed: only uniqueness is wanted.
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        slot.generation.store(generation, Ordering::Relaxed);
        slot.holders.store(0, Ordering::Relaxed);
        // SAFETY: a question without pointers.
        let tid = unsafe { libc::gettid() };
        slot.tid.store(tid as u32, Ordering::Relaxed);
    }
    let refused = if slot.ring.load(Ordering::Relaxed).is_null() {
        super::status().and_then(|()| unless_refused(|| record(slot))).err()
    } else {
        None
    };
    let holders = slot.holders.load(Ordering::Relaxed);
    slot.holders.store(holders + 1, Ordering::Relaxed);
    Ok(Ticket { index, generation: slot.generation.load(Ordering::Relaxed), refused })
}

/// Starts the calling thread's records and shows them to all.
fn record(slot: &Slot) -> Result<(), Refused> {
    let fresh = Mapped::of_this_thread()?;
    PAGE.store(page_size(), Ordering::Relaxed);
    let home = match NonNull::new(slot.home.load(Ordering::Relaxed)) {
        Some(home) => {
            // Invariant 4.
            let give_up = |_: &Refused| slot.home.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: the slot's own spare pages; by Invariant 2 their readers do not mind.
            unsafe { fresh.move_to(home) }.inspect_err(give_up)?;
            home
        }
        None => {
            let home = fresh.stay();
            slot.home.store(home.as_ptr(), Ordering::Relaxed);
            home
        }
    };
    // Release pairs with the Acquire in `of`: a thread that sees the pointer sees
    // `PAGE` and the mapping.
    slot.ring.store(home.as_ptr(), Ordering::Release);
    Ok(())
}

pub(crate) fn unregister(ticket: &Ticket) {
    let Some(slot) = wiped::existing().map(|wiped| &wiped.slots[ticket.index]) else { return };
    // Not so if this thread's end came first, or if this process is a child of the one that
    // registered.
    if slot.generation.load(Ordering::Relaxed) != ticket.generation {
        return;
    }
    let holders = slot.holders.load(Ordering::Relaxed) - 1;
    slot.holders.store(holders, Ordering::Relaxed);
    if holders == 0 {
        forget(slot);
    }
}

/// The thread with that index ends: whatever it has forgotten to give back goes.
fn thread_ends(index: usize) {
    let Some(slot) = wiped::existing().map(|wiped| &wiped.slots[index]) else { return };
    if slot.generation.load(Ordering::Relaxed) != 0 {
        forget(slot);
    }
}

fn forget(slot: &Slot) {
    slot.generation.store(0, Ordering::Relaxed);
    slot.tid.store(0, Ordering::Relaxed);
    // Relaxed: a reader that still sees the ring reads what stays readable (Invariant 2).
    let ring = slot.ring.swap(ptr::null_mut(), Ordering::Relaxed);
    if ring.is_null() {
        return;
    }
    // SAFETY: the slot's home, replaced in one step by pages that are as readable. This ends the
    // event and gives its locked memory back.
    let spare = ignored_by_sanitizer(|| unsafe {
        libc::mmap(
            ring.cast(),
            2 * page_size(),
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        )
    });
    ring_given_back();
    if spare == libc::MAP_FAILED {
        // No memory for the kernel's own bookkeeping: the ring is still there, or a hole is
        // (Invariant 4).
        slot.home.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Replaces pages that other threads may read, and hides that from ThreadSanitizer. It takes a
/// mapping for a plain write of all bytes. In truth the pages are replaced atomically, and zeros
/// say that the thread has ended.
fn ignored_by_sanitizer<R>(replace: impl FnOnce() -> R) -> R {
    #[cfg(stanchion_tsan)]
    unsafe extern "C" {
        fn AnnotateIgnoreWritesBegin(file: *const libc::c_char, line: libc::c_int);
        fn AnnotateIgnoreWritesEnd(file: *const libc::c_char, line: libc::c_int);
    }
    // SAFETY: marks of ThreadSanitizer's runtime, which such a build links. One ends the other.
    #[cfg(stanchion_tsan)]
    unsafe {
        AnnotateIgnoreWritesBegin(c"".as_ptr(), 0);
    }
    let replaced = replace();
    // SAFETY: as above.
    #[cfg(stanchion_tsan)]
    unsafe {
        AnnotateIgnoreWritesEnd(c"".as_ptr(), 0);
    }
    replaced
}

#[inline]
pub(crate) fn of(index: usize) -> Presence {
    view(index).map_or(Presence::Unknown, View::presence)
}

/// When it was last switched.
pub(crate) fn since(index: usize) -> Option<u64> {
    view(index)?.since()
}

/// Returns the number of switches of that thread since it registered, if it has records.
pub(in crate::presence) fn count(index: usize) -> Option<u64> {
    view(index).map(View::count)
}

#[inline]
fn view(index: usize) -> Option<View> {
    let slot = wiped::existing()?.slots.get(index)?;
    // Acquire pairs with the Release in `record`.
    let ring = NonNull::new(slot.ring.load(Ordering::Acquire))?;
    // SAFETY: Invariant 2. Relaxed: written before the ring was published.
    Some(unsafe { View::new(ring, PAGE.load(Ordering::Relaxed)) })
}

pub(crate) fn runs(index: usize) -> Option<bool> {
    if let Some(runs) = of(index).runs() {
        return Some(runs);
    }
    let slot = wiped::existing()?.slots.get(index)?;
    // Relaxed: a number for the kernel, which knows whether there is such a thread.
    match slot.tid.load(Ordering::Relaxed) {
        0 => None,
        tid => cpu_clock::moves(tid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_could_not_be_moved_to_is_not_used_again() {
        // SAFETY: a slot is atomics, for which zeros are valid.
        let slot: Slot = unsafe { core::mem::zeroed() };
        // Inside a page, where the kernel moves nothing.
        slot.home.store(ptr::without_provenance_mut(1), Ordering::Relaxed);
        let refused = record(&slot).unwrap_err();
        if !matches!(refused, Refused::Other { call: "mremap of a perf ring", .. }) {
            std::eprintln!("without switch records: {refused}");
            return;
        }
        assert!(slot.home.load(Ordering::Relaxed).is_null());
        assert!(slot.ring.load(Ordering::Relaxed).is_null());
    }
}
