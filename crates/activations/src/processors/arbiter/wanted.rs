//! The numbers of the table, as its owners write and read them.

use stanchion_machine::atomic::{AtomicU64, Ordering};

/// Returns a number that goes up by 2 with each change. It is even.
pub(super) fn epoch(epoch: &AtomicU64) -> u64 {
    // Acquire: pairs with the Release of `request`.
    epoch.load(Ordering::Acquire)
}

/// Writes what an entry wants.
pub(super) fn request(epoch: &AtomicU64, wanted: &AtomicU64, processors: usize) {
    // Acquire and Release: of two workers of the owner, the one that writes last sees what the
    // other has counted before (`ProcessorLimit::request_awake`).
    let before = wanted.swap(processors as u64, Ordering::AcqRel);
    if before != processors as u64 {
        // Release: pairs with the Acquire of `epoch`.
        epoch.fetch_add(2, Ordering::Release);
    }
}

/// Returns what an entry wants.
pub(super) fn read(wanted: &AtomicU64) -> usize {
    // Relaxed: after the Acquire of `epoch`.
    wanted.load(Ordering::Relaxed) as usize
}
