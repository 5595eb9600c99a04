//! The table in shared memory.
//!
//! ```text
//! magic | processes | losses, one count each | number of lost locks
//! 512 × (process | lost lock)
//! 16384 × (state | process | key | taken lock | path | held locks and their number | threads)
//! 2048 × (state | text)
//! ```
//!
//! All of it is 64-bit words in the machine's own order. Bytes that are all 0, but for the magic,
//! are an empty table. Nothing in it is trusted, because other programs write to it.
//!
//! # Orderings
//!
//! An entry is published by the Release store of its state, and read after an Acquire load. Threads
//! that are added later are numbers by themselves: Relaxed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Acquisition, Hold};
use crate::graph::LONGEST;
use crate::mode::Mode;

/// The first word.
const MAGIC: u64 = u64::from_le_bytes(*b"stanch\x01o");
/// The number of acquisitions that are kept.
const ENTRIES: usize = 16_384;
/// The number of entries, from that of the key on, in which an acquisition may be.
const NEAR: usize = 64;
/// The number of names.
const NAMES: usize = 2048;
/// The number of lost locks that are kept.
const LOST: usize = 512;
/// The number of words of a name.
const WORDS: usize = 30;

/// The state of an entry or a name that is being written; for good, if its writer was killed.
const WRITING: u64 = 1;
/// The state of an entry, and the least of a name: the length of its text is added.
const WRITTEN: u64 = 2;

/// The most locks that a thread may hold at an acquisition that is kept.
pub const MAX_HELD: usize = 16;

/// The most bytes of a name.
pub const MAX_NAME: usize = WORDS * 8;

/// The size of a table in bytes.
pub const SIZE: usize = size_of::<Table>();

/// A table of acquisitions in memory that several processes share.
///
/// ```
/// use stanchion_order::foreign::{Acquisition, Hold, SIZE, Table, header};
/// use stanchion_order::Mode;
///
/// let mut memory = vec![0_u64; SIZE / 8];
/// memory[0] = u64::from_ne_bytes(header());
/// // SAFETY: only this table uses the memory.
/// let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
///
/// let process = table.process_begins();
/// let hold = |lock| Hold { lock, mode: Mode::Exclusive, name: None, place: None };
/// for (thread, held, taken) in [(1, hold(1), hold(2)), (2, hold(2), hold(1))] {
///     let held = &[held];
///     table.add(&Acquisition { process, thread, key: thread, held, taken, path: None });
/// }
/// assert_eq!(table.findings().cycles.len(), 1);
/// ```
#[repr(C)]
pub struct Table {
    /// The mark of such a table.
    magic: AtomicU64,
    /// The number of processes so far.
    processes: AtomicU64,
    /// The counts of losses.
    losses: [AtomicU64; Loss::ALL.len()],
    /// The number of lost locks, also of those beyond the kept ones.
    lost: AtomicU64,
    /// The lost locks: the process, and the lock.
    lost_locks: [[AtomicU64; 2]; LOST],
    /// The acquisitions.
    entries: [Entry; ENTRIES],
    /// The names.
    names: [Name; NAMES],
}

/// A hold in the table.
#[repr(C)]
struct Held {
    /// The number of the lock, and the mode in the lowest byte.
    lock: AtomicU64,
    /// The index of the name plus 1 in the upper half, that of the place plus 1 in the lower.
    names: AtomicU64,
}

#[repr(C)]
struct Entry {
    /// 0, [`WRITING`] or [`WRITTEN`].
    state: AtomicU64,
    /// The number of the process.
    process: AtomicU64,
    /// The key.
    key: AtomicU64,
    /// The taken lock.
    taken: Held,
    /// The index of the path plus 1.
    path: AtomicU64,
    /// The number of held locks.
    count: AtomicU64,
    /// The held locks.
    held: [Held; MAX_HELD],
    /// The first threads: a cycle needs no more to choose from.
    threads: [AtomicU64; LONGEST],
}

#[repr(C)]
struct Name {
    /// 0, [`WRITING`], or [`WRITTEN`] and the length.
    state: AtomicU64,
    /// The text.
    text: [AtomicU64; WORDS],
}

/// A loss of an acquisition, or of a part of it.
///
/// ```
/// use stanchion_order::foreign::Loss;
///
/// assert_ne!(Loss::Deep, Loss::Entry);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The thread held too many locks.
    Deep,
    /// The lock could not be told from others.
    Identity,
    /// The table had no room.
    Entry,
}

impl Loss {
    /// All losses.
    pub(super) const ALL: [Self; 3] = [Self::Deep, Self::Identity, Self::Entry];
}

/// Why memory is not such a table.
///
/// ```
/// use stanchion_order::foreign::{Foreign, Table};
///
/// let memory = [0_u64; 4];
/// // SAFETY: it is that long.
/// let table = unsafe { Table::at(memory.as_ptr().cast(), 32) };
/// assert_eq!(table.err(), Some(Foreign));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has no parts")]
pub struct Foreign;

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not a table of lock orders of this version, which has {SIZE} bytes")
    }
}

impl std::error::Error for Foreign {}

/// Returns the first bytes of a table. The rest, up to [`SIZE`], is 0. Never panics.
///
/// ```
/// assert_eq!(stanchion_order::foreign::header().len(), 8);
/// ```
#[must_use]
pub const fn header() -> [u8; 8] {
    MAGIC.to_ne_bytes()
}

/// An acquisition as it was read.
pub(super) struct Seen {
    /// The process.
    pub(super) process: u64,
    /// The threads.
    pub(super) threads: Vec<u64>,
    /// The held locks.
    pub(super) held: Vec<Hold>,
    /// The taken lock.
    pub(super) taken: Hold,
    /// The index of the path.
    pub(super) path: Option<u32>,
}

impl Table {
    /// Returns the table at `start`. Costs two comparisons, and never panics.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if there is none.
    ///
    /// # Safety
    ///
    /// `length` bytes from `start` on must be readable for `'a`, and writable if any method is
    /// called but [`findings`](Self::findings). All code that uses them meanwhile, in any process,
    /// must do so through a table like this.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// let mut memory = vec![0_u64; SIZE / 8];
    /// memory[0] = u64::from_ne_bytes(header());
    /// // SAFETY: only this table uses the memory.
    /// assert!(unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.is_ok());
    /// ```
    pub unsafe fn at<'a>(start: *const u8, length: usize) -> Result<&'a Self, Foreign> {
        let table = start.cast::<Self>();
        if length != SIZE || !table.is_aligned() {
            return Err(Foreign);
        }
        // SAFETY: the caller's promise. All fields are atomic integers, for which all bits are
        // allowed.
        let table = unsafe { &*table };
        if table.magic.load(Ordering::Relaxed) == MAGIC { Ok(table) } else { Err(Foreign) }
    }

    /// Returns the number of a new process, from 1. Costs an addition, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// assert_eq!((table.process_begins(), table.process_begins()), (1, 2));
    /// ```
    pub fn process_begins(&self) -> u64 {
        self.processes.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Returns the index of a name, which is taken in if there is room. Returns `None` for one that
    /// is empty or longer than [`MAX_NAME`]. Costs a look at each name, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// let queue = table.name(b"queue");
    /// assert!(queue.is_some() && table.name(b"queue") == queue);
    /// ```
    #[must_use]
    pub fn name(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() || text.len() > MAX_NAME {
            return None;
        }
        let written = WRITTEN + text.len() as u64;
        for (index, name) in (0..).zip(&self.names) {
            // Acquire: pairs with the Release below, in any process.
            let mut state = name.state.load(Ordering::Acquire);
            if state == 0 {
                // Relaxed: the text is published below. Acquire: as above.
                match name.state.compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Acquire)
                {
                    Ok(_) => {
                        name.write(text);
                        // Release: pairs with the Acquire of a thread that looks for a name.
                        name.state.store(written, Ordering::Release);
                        return Some(index);
                    }
                    Err(now) => state = now,
                }
            }
            if state == written && name.is(text) {
                return Some(index);
            }
        }
        None
    }

    /// Returns true if the process has made an acquisition with that key, by whichever thread, and
    /// adds the thread to it. Costs a few loads, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// assert!(!table.add_thread(1, 42, 1));
    /// ```
    #[must_use]
    pub fn add_thread(&self, process: u64, key: u64, thread: u64) -> bool {
        for entry in self.near(key) {
            // Acquire: pairs with the Release of `add`.
            match entry.state.load(Ordering::Acquire) {
                0 => return false,
                WRITTEN
                    if entry.key.load(Ordering::Relaxed) == key
                        && entry.process.load(Ordering::Relaxed) == process =>
                {
                    entry.add_thread(thread);
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Returns true if there is room for an acquisition with that key, as far as is known: a caller
    /// need not look up its names otherwise. Costs a few loads, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// assert!(table.has_room(42));
    /// ```
    #[must_use]
    pub fn has_room(&self, key: u64) -> bool {
        // Relaxed: a hint.
        self.near(key).any(|entry| entry.state.load(Ordering::Relaxed) == 0)
    }

    /// Adds an acquisition. One that does not fit is counted. Costs some stores, and never panics.
    ///
    /// See [`Table`] for an example.
    pub fn add(&self, seen: &Acquisition<'_>) {
        if seen.held.len() > MAX_HELD {
            return self.lose(Loss::Deep);
        }
        for entry in self.near(seen.key) {
            // Relaxed: the entry is published below.
            let claimed =
                entry.state.compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_ok() {
                entry.write(seen);
                // Release: pairs with the Acquire of `add_thread` and `read`.
                entry.state.store(WRITTEN, Ordering::Release);
                return;
            }
        }
        self.lose(Loss::Entry);
    }

    /// Counts a loss. Costs an addition, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{Loss, SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// table.lose(Loss::Deep);
    /// assert_eq!(table.findings().losses.too_deep, 1);
    /// ```
    pub fn lose(&self, loss: Loss) {
        self.losses[loss as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a lock of a process from the graph, because a release was not seen. Costs an
    /// addition and two stores, and never panics.
    ///
    /// ```
    /// # use stanchion_order::foreign::{SIZE, Table, header};
    /// # let mut memory = vec![0_u64; SIZE / 8];
    /// # memory[0] = u64::from_ne_bytes(header());
    /// # // SAFETY: only this table uses the memory.
    /// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
    /// table.lose_lock(1, 7);
    /// assert_eq!(table.findings().losses.unseen_releases, 1);
    /// ```
    pub fn lose_lock(&self, process: u64, lock: u64) {
        let index = self.lost.fetch_add(1, Ordering::Relaxed);
        if let Some(lost) = self.lost_locks.get(usize::try_from(index).unwrap_or(usize::MAX)) {
            // Relaxed, both: the table is read when the processes have ended.
            lost[0].store(process, Ordering::Relaxed);
            lost[1].store(lock, Ordering::Relaxed);
        }
    }

    /// Returns the entries in which an acquisition with that key may be.
    fn near(&self, key: u64) -> impl Iterator<Item = &Entry> {
        let first = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        (0..NEAR).map(move |near| &self.entries[(first as usize + near) % ENTRIES])
    }

    /// Returns all acquisitions.
    pub(super) fn acquisitions(&self) -> Vec<Seen> {
        self.entries.iter().filter_map(Entry::read).collect()
    }

    /// Returns the process and number of each lost lock that was kept, and the number of all.
    pub(super) fn lost_locks(&self) -> (Vec<(u64, u64)>, u64) {
        let lost = self.lost.load(Ordering::Relaxed);
        let kept = usize::try_from(lost).unwrap_or(usize::MAX).min(LOST);
        let pair = |[process, lock]: &[AtomicU64; 2]| {
            (process.load(Ordering::Relaxed), lock.load(Ordering::Relaxed))
        };
        (self.lost_locks[..kept].iter().map(pair).collect(), lost)
    }

    /// Returns the count of a loss.
    pub(super) fn lost(&self, loss: Loss) -> u64 {
        self.losses[loss as usize].load(Ordering::Relaxed)
    }

    /// Returns the name with that index.
    pub(super) fn text(&self, index: u32) -> Option<String> {
        self.names.get(index as usize)?.read()
    }
}

impl Held {
    fn write(&self, hold: &Hold) {
        let index = |index: Option<u32>| index.map_or(0, |index| u64::from(index) + 1);
        let lock = hold.lock << 8 | hold.mode.number();
        self.lock.store(lock, Ordering::Relaxed);
        self.names.store(index(hold.name) << 32 | index(hold.place), Ordering::Relaxed);
    }

    fn read(&self) -> Option<Hold> {
        let lock = self.lock.load(Ordering::Relaxed);
        let names = self.names.load(Ordering::Relaxed);
        let mode = Mode::from_number(lock & 0xFF)?;
        let index = |index: u64| (index as u32).checked_sub(1);
        Some(Hold { lock: lock >> 8, mode, name: index(names >> 32), place: index(names) })
    }
}

impl Entry {
    /// Adds a thread, if there is room for one more.
    fn add_thread(&self, thread: u64) {
        for slot in &self.threads {
            // Relaxed, both: a number by itself.
            let found = match slot.load(Ordering::Relaxed) {
                0 => slot
                    .compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed)
                    .map_or_else(|found| found, |_| thread),
                found => found,
            };
            if found == thread {
                return;
            }
        }
    }

    fn write(&self, seen: &Acquisition<'_>) {
        self.process.store(seen.process, Ordering::Relaxed);
        self.key.store(seen.key, Ordering::Relaxed);
        self.taken.write(&seen.taken);
        self.path.store(seen.path.map_or(0, |path| u64::from(path) + 1), Ordering::Relaxed);
        self.count.store(seen.held.len() as u64, Ordering::Relaxed);
        for (to, hold) in self.held.iter().zip(seen.held) {
            to.write(hold);
        }
        self.threads[0].store(seen.thread, Ordering::Relaxed);
    }

    fn read(&self) -> Option<Seen> {
        // Acquire: pairs with the Release of `add`.
        if self.state.load(Ordering::Acquire) != WRITTEN {
            return None;
        }
        let count = usize::try_from(self.count.load(Ordering::Relaxed)).ok()?.min(MAX_HELD);
        let mut threads: Vec<u64> =
            self.threads.iter().map(|thread| thread.load(Ordering::Relaxed)).collect();
        threads.retain(|&thread| thread != 0);
        Some(Seen {
            process: self.process.load(Ordering::Relaxed),
            threads,
            held: self.held[..count].iter().map(Held::read).collect::<Option<_>>()?,
            taken: self.taken.read()?,
            path: (self.path.load(Ordering::Relaxed) as u32).checked_sub(1),
        })
    }
}

impl Name {
    fn write(&self, text: &[u8]) {
        for (word, bytes) in self.text.iter().zip(text.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
    }

    fn is(&self, text: &[u8]) -> bool {
        self.text.iter().zip(text.chunks(8)).all(|(word, bytes)| {
            word.load(Ordering::Relaxed).to_ne_bytes()[..bytes.len()] == *bytes
        })
    }

    fn read(&self) -> Option<String> {
        // Acquire: pairs with the Release of `Table::name`.
        let length = self.state.load(Ordering::Acquire).checked_sub(WRITTEN)?;
        let words = self.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let bytes: Vec<u8> = words.take(usize::try_from(length).ok()?).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.is_empty()).then_some(text)
    }
}
