//! The locks that threads hold and wait for now, in memory that other processes read.
//!
//! While the recorder is on, each thread writes the locks that it holds, and the lock that it is
//! about to block for, into a slot of its own. `stanchion stalls` reads the slots through the file
//! that the memory belongs to. So a program that hangs is explained without a signal to it, and
//! without stopping it. The memory has no name in a file system and ends with the process.
//!
//! | `owner` of a slot | |
//! | --- | --- |
//! | 0 | free |
//! | n | taken by the thread n; also after its end, if it still held a lock |
//!
//! # Invariants
//!
//! 1. Only the thread that has taken a slot writes to it, until it frees the slot at its end.
//! 2. A reader that finds the same even version before and after it reads the other words has the
//!    state of one moment.
//! 3. A place is written once.
//! 4. A reader trusts nothing in the memory: a program may run wild. Numbers are bounded, and text
//!    is checked.
//!
//! # Orderings
//!
//! A slot is a sequence lock with one writer. The words are written between a Release fence after
//! the version has become odd, and a Release store of the next even version. They are read between
//! an Acquire load of the version and an Acquire fence before it is loaded again. The text of a
//! place is published by the Release store of its length and read after an Acquire load of it.

mod memory;
mod place;
mod slot;

use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mode::Mode;

pub(crate) use memory::End;
use place::Place;
use slot::creation_label;
pub(crate) use slot::{LockWords, Slot, label};

const MAGIC: u64 = u64::from_le_bytes(*b"stanch\x01h");
/// The number of threads with a slot.
const SLOTS: usize = 2048;
/// The number of slots, from the thread's own on, that a thread looks at.
const NEAR: usize = 64;
/// The number of places.
const PLACES: usize = 1024;
/// The number of positions, from its own on, at which a place is looked for.
const PROBES: usize = 8;

/// The name of the memory, as it stands in `/proc/PID/maps` and as a descriptor's link.
pub const NAME: &str = "/memfd:stanchion-locks (deleted)";

/// The length of the memory, in bytes. Most of it stays empty and takes no space.
pub const SIZE: usize = size_of::<Table>();

/// A table in memory that other processes read. See the module's head.
///
/// ```
/// use stanchion_order::{Identity, Mode, current, switch_on};
///
/// switch_on();
/// let lock = Identity::new();
/// lock.acquired(Mode::Exclusive);
/// // Where the system has no such memory, there is no table.
/// if let Some(table) = current::own() {
///     let threads = table.threads();
///     assert_eq!(threads[0].held[0].mode, Some(Mode::Exclusive));
///     assert!(threads[0].held[0].created.is_some());
/// }
/// lock.released(Mode::Exclusive);
/// ```
#[repr(C)]
pub struct Table {
    /// The mark of such memory. Written before it is shared, as is the next one.
    magic: AtomicU64,
    /// The process that writes it.
    process: AtomicU64,
    /// The number of threads that found no slot. Counted by each.
    unseen: AtomicU64,
    /// Room for later versions.
    spare: [AtomicU64; 13],
    /// The places in the program's source. Written by the thread that first uses one.
    places: [Place; PLACES],
    /// The threads.
    slots: [Slot; SLOTS],
}

/// The reason why memory is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// It begins otherwise: it is of another version.
    Magic,
    /// It is not [`SIZE`] bytes long.
    Size {
        /// Its length.
        found: usize,
    },
    /// It does not begin at a multiple of 8.
    Alignment,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("it does not begin as a table of locks of this version"),
            Self::Size { found } => {
                write!(f, "it has {found} bytes, a table of locks of this version has {SIZE}")
            }
            Self::Alignment => f.write_str("it does not begin at a multiple of 8 bytes"),
        }
    }
}

impl std::error::Error for Foreign {}

/// The state of a thread that holds a recorded lock or waits for one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadState {
    /// The system's number of the thread.
    pub thread: u32,
    /// True if the thread has ended and still held a lock. Another thread may have its number now.
    pub has_ended: bool,
    /// The locks that it holds, the latest last.
    pub held: Vec<LockState>,
    /// The number of locks that it holds beyond those in the list.
    pub more: usize,
    /// The lock that it is about to block for. It may have it already, and not have said so.
    pub awaited: Option<AwaitedState>,
    /// Its wait in a patched `parking_lot_core`.
    pub wait: Option<WaitState>,
}

/// A lock that a thread holds or wants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockState {
    /// The number of the lock, as in the report of orders.
    pub number: u64,
    /// The address of the lock.
    pub address: u64,
    /// The mode, if it is known to this version.
    pub mode: Option<Mode>,
    /// The place of the acquisition, if there was room for it.
    pub place: Option<String>,
    /// The place of the lock's creation, or of its first use if that is not known.
    pub created: Option<String>,
    /// True if `created` is the place of creation.
    pub is_created: bool,
}

/// A lock that a thread is about to block for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedState {
    /// The lock.
    pub lock: LockState,
    /// True if the thread waits for a condition first, and has released the lock meanwhile.
    pub is_condition: bool,
    /// The time since when, on the monotonic clock in nanoseconds, exact to some milliseconds.
    pub since_ns: u64,
}

/// A wait for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitState {
    /// The address.
    pub address: u64,
    /// The time since when, as above.
    pub since_ns: u64,
}

static OWN: OnceLock<Option<&'static Table>> = OnceLock::new();

/// Returns the table of this process, and makes it at the first call. Returns `None` where the
/// system has no such memory or refuses it. Costs some system calls once, and never panics.
///
/// The first acquisition makes it too, while the recorder is on.
///
/// ```
/// if let Some(table) = stanchion_order::current::own() {
///     assert_eq!(table.process(), std::process::id());
/// }
/// ```
pub fn own() -> Option<&'static Table> {
    *OWN.get_or_init(|| {
        let start = memory::shared(SIZE)?;
        // SAFETY: mapped for good, zeroed, and as long and aligned as a table. Its fields are
        // atomic integers, for which all bits are allowed.
        let table: &'static Table = unsafe { &*start.cast() };
        table.process.store(std::process::id().into(), Ordering::Relaxed);
        // Release: pairs with the Acquire of `Table::at`, in another process.
        table.magic.store(MAGIC, Ordering::Release);
        Some(table)
    })
}

impl Table {
    /// Returns the table at `start`, which another process has made. Never panics.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if there is none.
    ///
    /// # Safety
    ///
    /// `length` bytes from `start` on must be readable for `'a`. All code that writes to them
    /// meanwhile, in any process, must be that of such a table.
    ///
    /// ```
    /// use stanchion_order::current::{Foreign, Table};
    ///
    /// let words = [0_u64; 4];
    /// // SAFETY: 32 bytes can be read.
    /// let table = unsafe { Table::at(words.as_ptr(), 32) };
    /// assert_eq!(table.err(), Some(Foreign::Size { found: 32 }));
    /// ```
    pub unsafe fn at<'a>(start: *const u64, length: usize) -> Result<&'a Self, Foreign> {
        if length != SIZE {
            return Err(Foreign::Size { found: length });
        }
        let table = start.cast::<Self>();
        if !table.is_aligned() {
            return Err(Foreign::Alignment);
        }
        // SAFETY: the caller's promise, and it is large enough and aligned. Its fields are atomic
        // integers, for which all bits are allowed.
        let table = unsafe { &*table };
        // Acquire: pairs with the Release of `own`, before the process is read.
        if table.magic.load(Ordering::Acquire) != MAGIC {
            return Err(Foreign::Magic);
        }
        Ok(table)
    }

    /// Returns the process that writes the table. The child of a fork has its parent's. Costs a
    /// load, and never panics.
    ///
    /// ```
    /// # use stanchion_order::current::own;
    /// assert!(own().is_none_or(|table| table.process() > 0));
    /// ```
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed) as u32
    }

    /// Returns the number of threads that found no slot: their locks are not here. Costs a load,
    /// and never panics.
    ///
    /// ```
    /// # use stanchion_order::current::own;
    /// assert!(own().is_none_or(|table| table.unseen() == 0));
    /// ```
    #[must_use]
    pub fn unseen(&self) -> u64 {
        self.unseen.load(Ordering::Relaxed)
    }

    /// Returns the threads that hold a lock or wait, each at one moment. A thread that locks all
    /// the time may be missing. Reads the whole table, and never panics.
    ///
    /// ```
    /// # use stanchion_order::current::own;
    /// assert!(own().is_none_or(|table| table.threads().is_empty()));
    /// ```
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadState> {
        let states = self.slots.iter().filter_map(|slot| slot.read(|index| self.place(index)));
        let is_idle = |state: &ThreadState| {
            state.held.is_empty() && state.awaited.is_none() && state.wait.is_none()
        };
        states.filter(|state| !is_idle(state)).collect()
    }

    /// Returns the text of a place.
    fn place(&self, index: usize) -> Option<String> {
        self.places.get(index)?.text()
    }

    /// Returns the index of a place, and writes the place if it is new. Returns `None` if there is
    /// no room near its position. Allocates nothing, and takes no lock.
    #[inline]
    fn index_of(&self, place: &'static Location<'static>) -> Option<usize> {
        let pointer = std::ptr::from_ref(place).addr() as u64;
        // A place has 24 bytes, so near ones differ in the bits from the third on.
        let start = (pointer >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 10);
        let near = |near| (start as usize + near) % PLACES;
        (0..PROBES).map(near).find(|&index| self.places[index].is_or_becomes(pointer, place))
    }
}

/// Returns the index of a place in the table of this process.
#[inline]
pub(crate) fn index_of(place: &'static Location<'static>) -> Option<usize> {
    own()?.index_of(place)
}

/// Returns the part of a label that is the same for all acquisitions of a lock.
pub(crate) fn creation(place: &'static Location<'static>, is_created: bool) -> u64 {
    creation_label(index_of(place), is_created)
}

/// Takes a slot for the calling thread. `end` runs at the thread's end. Without a free slot near
/// its own, the thread is only counted as unseen. Allocates nothing.
#[cold]
pub(crate) fn claim(end: End) -> Option<&'static Slot> {
    let table = own()?;
    let thread = memory::thread();
    let slot = (0..NEAR).find_map(|near| {
        let slot = &table.slots[(thread as usize + near) % SLOTS];
        slot.take(thread).then_some(slot)
    });
    let Some(slot) = slot else {
        table.unseen.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    if !memory::at_thread_end(end, std::ptr::from_ref(slot).cast()) {
        slot.free();
        return None;
    }
    Some(slot)
}

/// Returns the time on the monotonic clock in nanoseconds, exact to some milliseconds.
#[inline]
pub(crate) fn now_ns() -> u64 {
    memory::coarse_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of zeros, as new memory is.
    fn table() -> Box<Table> {
        // SAFETY: atomic integers, for which zeros are a value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn the_layout_is_that_of_whole_lines() {
        assert_eq!((size_of::<Place>(), size_of::<Slot>()), (128, 512));
        assert_eq!(PLACES, 1 << 10, "`index_of` takes that many bits");
    }

    #[test]
    fn a_place_has_one_index_and_its_text() {
        let table = table();
        let (here, there) = (Location::caller(), Location::caller());
        let index = table.index_of(here).unwrap();
        assert_eq!(table.index_of(here), Some(index));
        assert_eq!(table.index_of(there) == Some(index), std::ptr::eq(here, there));
        let text = table.place(index).unwrap();
        assert_eq!(text, format!("{}:{}:{}", here.file(), here.line(), here.column()));
        assert_eq!(table.place(PLACES), None);
    }

    #[test]
    fn memory_of_another_version_is_refused() {
        let table = table();
        let start = std::ptr::from_ref(&*table).cast::<u64>();
        // SAFETY: it lives to the end of the test.
        let at = |start, length| unsafe { Table::at(start, length) }.map(Table::process);
        assert_eq!(at(start, SIZE), Err(Foreign::Magic));
        assert_eq!(at(start.cast::<u8>().wrapping_add(1).cast(), SIZE), Err(Foreign::Alignment));
        table.magic.store(MAGIC, Ordering::Relaxed);
        assert_eq!(at(start, SIZE), Ok(0));
        assert!(table.threads().is_empty());
    }
}
