//! The locks that the calling thread holds.
//!
//! The list has no destructor and allocates nothing. So it can be used in the destructors of a
//! thread, and inside an allocator.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::current::{self, LockWords, Slot};
use crate::entry::LockEntry;
use crate::mode::{Mode, Wanted};
use crate::switch;

/// The most locks that a thread holds with a record.
pub(crate) const DEEPEST: usize = 64;

/// The acquisitions that a thread remembers to have seen.
const REMEMBERED: usize = 256;

/// A lock that a thread holds.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// The lock's entry.
    pub(crate) entry: &'static LockEntry,
    /// The lock's number, by which an entry of another lock is noticed.
    pub(crate) number: u64,
    /// The address of the lock itself.
    pub(crate) address: usize,
    /// The mode in which it is held.
    pub(crate) mode: Mode,
    /// The place of the acquisition.
    pub(crate) place: &'static Location<'static>,
}

impl Held {
    /// Returns true if the lock has not ended and is still recorded.
    pub(crate) fn is_alive(&self) -> bool {
        self.entry.is_of(self.number)
    }

    /// Returns the share of this lock in the sum of a thread's list.
    fn share(&self) -> u64 {
        scramble(self.number << 3 | self.mode.number())
    }
}

/// A lock that a thread is about to block for, or that its wait for a condition takes again.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    /// The lock, as it will be held.
    pub(crate) lock: Held,
    /// True if the thread waits for a condition first.
    pub(crate) is_condition: bool,
}

/// The state of one thread.
pub(crate) struct Local {
    /// True while the recorder runs in this thread, or the thread forks: what is locked then is not
    /// recorded.
    busy: Cell<bool>,
    /// The thread's number, or 0 before its first acquisition.
    thread: Cell<u64>,
    /// The number of held locks.
    length: Cell<usize>,
    /// The number of held locks for which the list had no room.
    too_deep: Cell<usize>,
    /// The sum of the shares of the held locks. Equal lists have equal sums.
    sum: Cell<u64>,
    /// The held locks, the latest last.
    held: [Cell<Option<Held>>; DEEPEST],
    /// Keys of acquisitions that are in the graph, each in the position of its low bits.
    seen: [Cell<u64>; REMEMBERED],
    /// The lock that the thread is about to block for.
    awaited: Cell<Option<Awaited>>,
    /// The mutex that the wait of a condition variable has released past its wrapper.
    pub(crate) released: Cell<Option<Held>>,
    /// The slot in which other processes read all this.
    slot: Cell<Published>,
    /// The place of the latest acquisition, and its index in the table of places.
    latest_place: Cell<Option<(&'static Location<'static>, Option<usize>)>>,
}

/// The slot of a thread.
#[derive(Clone, Copy)]
enum Published {
    /// Not claimed yet.
    No,
    /// There is none for this thread.
    Never,
    /// This one.
    In(&'static Slot),
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            busy: Cell::new(false),
            thread: Cell::new(0),
            length: Cell::new(0),
            too_deep: Cell::new(0),
            sum: Cell::new(0),
            held: [const { Cell::new(None) }; DEEPEST],
            seen: [const { Cell::new(0) }; REMEMBERED],
            awaited: Cell::new(None),
            released: Cell::new(None),
            slot: Cell::new(Published::No),
            latest_place: Cell::new(None),
        }
    };
}

static THREADS: AtomicU64 = AtomicU64::new(0);

/// Runs `act` with the state of the calling thread. Returns `None`, and runs nothing, if the
/// recorder runs in this thread already: what it locks itself is not recorded.
#[inline]
pub(crate) fn enter<R>(act: impl FnOnce(&Local) -> R) -> Option<R> {
    /// Ends the stay, also if `act` panics.
    struct Stay<'a>(&'a Cell<bool>);

    impl Drop for Stay<'_> {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }

    let within = |local: &Local| {
        if local.busy.replace(true) {
            return None;
        }
        let _stay = Stay(&local.busy);
        Some(act(local))
    };
    LOCAL.try_with(within).ok().flatten()
}

/// Records nothing in the calling thread, which forks. Handlers of the program that were registered
/// earlier run after this one, and in the child before the switch is off: their locks are not seen.
pub(crate) extern "C" fn pause() {
    let _ = LOCAL.try_with(|local| local.busy.set(true));
}

/// Goes on in the parent of a fork. The child stays off.
pub(crate) extern "C" fn resume() {
    let _ = LOCAL.try_with(|local| local.busy.set(false));
}

impl Local {
    /// Returns the number of the thread, which is never given again.
    pub(crate) fn thread(&self) -> u64 {
        if self.thread.get() == 0 {
            self.thread.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
        }
        self.thread.get()
    }

    /// Returns the slot, and claims one at first.
    #[inline]
    fn slot(&self) -> Option<&'static Slot> {
        match self.slot.get() {
            Published::In(slot) => Some(slot),
            Published::Never => None,
            Published::No => {
                let slot = current::claim(at_thread_end);
                self.slot.set(slot.map_or(Published::Never, Published::In));
                slot
            }
        }
    }

    /// Returns the words of a lock that other processes read.
    #[inline]
    fn words(&self, lock: &Held, is_condition: bool) -> LockWords {
        let index = match self.latest_place.get() {
            Some((place, index)) if std::ptr::eq(place, lock.place) => index,
            _ => {
                let index = current::index_of(lock.place);
                self.latest_place.set(Some((lock.place, index)));
                index
            }
        };
        let label = current::label(lock.mode, index, is_condition) | lock.entry.creation();
        LockWords { number: lock.number, address: lock.address as u64, label }
    }

    /// Returns the lock that the thread is about to block for.
    pub(crate) fn awaited(&self) -> Option<Awaited> {
        self.awaited.get()
    }

    /// Notes that the thread is about to block for a lock. Other processes do not see that before
    /// [`publish_awaited`](Self::publish_awaited): most locks are free.
    #[inline]
    pub(crate) fn await_lock(&self, awaited: Awaited) {
        self.awaited.set(Some(awaited));
    }

    /// Notes that the thread is about to block for no lock any more, for other processes too.
    pub(crate) fn await_none(&self) {
        self.awaited.set(None);
        self.publish_awaited();
    }

    /// Writes for other processes what the thread blocks for, and since when.
    #[cold]
    pub(crate) fn publish_awaited(&self) {
        if let Some(slot) = self.slot() {
            let words =
                self.awaited().map(|awaited| self.words(&awaited.lock, awaited.is_condition));
            slot.await_lock(words, words.map_or(0, |_| current::now_ns()));
        }
    }

    /// Notes that the thread waits for an address, or for 0 no more. The lock that it is about to
    /// block for is written too.
    pub(crate) fn wait_for(&self, address: usize) {
        if let Some(slot) = self.slot() {
            slot.wait_for(address, current::now_ns());
            if address != 0 && self.awaited.get().is_some() {
                self.publish_awaited();
            }
        }
    }

    /// Returns true if no lock is held.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.get() == 0
    }

    /// Returns the held locks, the latest first.
    #[inline]
    pub(crate) fn held(&self) -> impl Iterator<Item = Held> + '_ {
        self.held[..self.length.get()].iter().rev().filter_map(Cell::get)
    }

    /// Returns the latest acquisition of a lock that is still held.
    #[inline]
    pub(crate) fn find(&self, entry: &'static LockEntry) -> Option<Held> {
        self.held().find(|held| std::ptr::eq(held.entry, entry))
    }

    /// Notes a lock, and that the thread is about to block for none any more. Returns false, and
    /// only counts the lock, if the list is full.
    #[inline]
    pub(crate) fn push(&self, held: Held) -> bool {
        let length = self.length.get();
        let Some(position) = self.held.get(length) else {
            self.too_deep.set(self.too_deep.get() + 1);
            self.await_none();
            return false;
        };
        self.awaited.set(None);
        position.set(Some(held));
        self.length.set(length + 1);
        self.sum.set(self.sum.get().wrapping_add(held.share()));
        if let Some(slot) = self.slot() {
            slot.push(length, self.words(&held, false));
        }
        true
    }

    /// Returns true if a lock that is not in the list may be held all the same.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.too_deep.get() > 0
    }

    /// Takes a lock that is not in the list for one that was only counted. Returns false if there
    /// is none.
    pub(crate) fn remove_too_deep(&self) -> bool {
        let count = self.too_deep.get();
        self.too_deep.set(count.saturating_sub(1));
        count > 0
    }

    /// Removes the latest acquisition that `is_it` accepts.
    #[inline(always)]
    pub(crate) fn remove(&self, is_it: impl Fn(&Held) -> bool) -> Option<Held> {
        let length = self.length.get();
        let held = &self.held[..length];
        let at = held.iter().rposition(|held| held.get().as_ref().is_some_and(&is_it))?;
        let removed = held[at].take();
        for pair in held[at..].windows(2) {
            pair[0].set(pair[1].get());
        }
        self.length.set(length - 1);
        let share = removed.as_ref().map_or(0, Held::share);
        self.sum.set(self.sum.get().wrapping_sub(share));
        if let Some(slot) = self.slot() {
            if at + 1 == length {
                slot.pop(at);
                return removed;
            }
            let after = self.held[at..length - 1].iter().filter_map(Cell::get);
            slot.truncate(at, after.map(|held| self.words(&held, false)));
        }
        removed
    }

    /// Returns the key of an acquisition, beside the locks that are held now.
    #[inline]
    pub(crate) fn key(&self, entry: &LockEntry, wanted: Wanted) -> u64 {
        let taken = scramble(!(entry.number() << 3 | wanted.number()));
        scramble(self.sum.get() ^ taken) | 1
    }

    /// Returns true if the thread has seen the acquisition.
    #[inline]
    pub(crate) fn has_seen(&self, key: u64) -> bool {
        self.seen[Self::position(key)].get() == key
    }

    /// Remembers the acquisition as seen.
    pub(crate) fn remember(&self, key: u64) {
        self.seen[Self::position(key)].set(key);
    }

    /// Returns the position of a key.
    #[inline]
    fn position(key: u64) -> usize {
        (key >> 1) as usize % REMEMBERED
    }
}

/// Frees the slot of the calling thread, which ends.
unsafe extern "C" fn at_thread_end(slot: *mut c_void) {
    // In the child of a fork the slot is its parent's.
    if !switch::is_known_on() {
        return;
    }
    // Destructors that run later may lock: then the thread claims another slot.
    let _ = LOCAL.try_with(|local| local.slot.set(Published::No));
    // SAFETY: `current::claim` has left it, of the table, which stays.
    let slot = unsafe { &*slot.cast_const().cast::<Slot>() };
    slot.free();
}

/// Spreads a number over all bits: the last steps of SplitMix64.
#[inline]
fn scramble(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
