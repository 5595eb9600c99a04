//! An append-only journal: writers take turns under a spin lock, readers take none.
//!
//! It is here to show how a crate of your own uses `stanchion`: locks from [`stanchion::spin`], in
//! its tests also [`stanchion::Mutex`], and everything else that its algorithm asks of the machine
//! from [`stanchion::machine`]. Then the same source runs for real,
//!
//! ```text
//! cargo test --manifest-path examples/downstream/Cargo.toml
//! ```
//!
//! and under loom, every interleaving, our locks included:
//!
//! ```text
//! RUSTFLAGS="--cfg stanchion_loom" cargo test --manifest-path examples/downstream/Cargo.toml
//! ```

use stanchion::machine::atomic::{AtomicUsize, Ordering};
use stanchion::machine::cell::UnsafeCell;
use stanchion::spin::TicketMutex;

/// Room for `N` entries of which none changes once it is written.
///
/// ```
/// use stanchion::machine;
///
/// machine::model(|| {
///     let journal = journal::Journal::<u32, 4>::new();
///     assert_eq!(journal.append(7), Ok(0));
///     assert_eq!(journal.get(0), Some(7));
///     assert_eq!(journal.get(1), None);
/// });
/// ```
pub struct Journal<T, const N: usize> {
    /// The slot that is to be written next. Only the holder of the lock may write it.
    next: TicketMutex<usize>,
    /// Entries that readers may read. Slots below it are never written again.
    written: AtomicUsize,
    /// The entries. Each is written once, by the holder of the lock.
    slots: [UnsafeCell<Option<T>>; N],
}

// SAFETY: a slot is written by the one thread that holds `next`, before `written` covers it, and
// only read afterwards. `T: Sync` because readers on several threads look at one entry; `T: Send`
// because it was made by another thread.
unsafe impl<T: Send + Sync, const N: usize> Sync for Journal<T, N> {}

impl<T: Copy, const N: usize> Journal<T, N> {
    /// An empty journal.
    pub fn new() -> Self {
        Self {
            next: TicketMutex::new(0),
            written: AtomicUsize::new(0),
            slots: std::array::from_fn(|_| UnsafeCell::new(None)),
        }
    }

    /// Appends an entry and returns its number. If the journal is full, gives the entry back.
    pub fn append(&self, entry: T) -> Result<usize, T> {
        let mut next = self.next.lock();
        let Some(slot) = self.slots.get(*next) else { return Err(entry) };
        // SAFETY: no thread reads this slot before the store below, and no other thread writes
        // while this one holds the lock.
        slot.with_mut(|slot| unsafe { *slot = Some(entry) });
        // Release: pairs with the Acquire load in `get`, which thereby sees the slot.
        self.written.store(*next + 1, Ordering::Release);
        *next += 1;
        Ok(*next - 1)
    }

    /// The entry of that number, if it has been written. Takes no lock and never waits.
    pub fn get(&self, number: usize) -> Option<T> {
        // Acquire: pairs with the Release store in `append`.
        if number >= self.written.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: `written` covers the slot, so it is never written again.
        self.slots[number].with(|slot| unsafe { *slot })
    }
}

impl<T: Copy, const N: usize> Default for Journal<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
