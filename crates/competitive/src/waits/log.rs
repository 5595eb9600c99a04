//! A log of single waits that several processes write: the contents of a file that each of them has
//! mapped.
//!
//! ```text
//! header | 16384 × (a thread's name) | the log's capacity × (a wait)
//! ```
//!
//! As in [`shared`](super::shared), all of it is words in the machine's own order, and the file is
//! read on the machine that wrote it.
//!
//! # Sampling
//!
//! Each wait has a number, and its number has a level: a random one, by which one wait in 2 is of
//! level 1 or above, one in 4 of level 2 or above, and so on. The entries are filled in rounds. In
//! round 0 each wait takes the next entry. In round k only waits of level k or above are kept. Each
//! takes the next entry with a wait of a lower level, which is about every second one. So at any
//! time the waits of the round's level are all there, and they are a sample of the whole run.
//!
//! Why not a ring that forgets the oldest: a program is slow in its middle as well as at its end.
//! Why not a random entry for each wait: then each wait costs a cache miss in memory that is as
//! large as the log.
//!
//! # Invariants
//!
//! 1. Bytes that are all 0 but for the [`header`] are an empty log without room.
//! 2. Only entries below `ready` are written. The recorder has seen to it that the file has memory
//!    for them, so that a full disk does not end a program that writes there.
//! 3. Nothing in the log is trusted: indices are bounded, text is checked.
//!
//! # Orderings
//!
//! An [`Entry`] is a sequence lock of its own. All other words are numbers by themselves:
//! Relaxed, but for `ready`.

use core::fmt;
use core::mem;
use core::slice;
use std::collections::BTreeMap;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, Ordering};

pub use super::entry::{Entry, Wait};

const MAGIC: u64 = u64::from_le_bytes(*b"stanch\x01l");
/// The number of threads that can have a name.
const NAMES: usize = 16_384;
/// The number of places, from the hash on, in which the name of a thread may be.
const NEAR: usize = 16;
/// The number of entries that a wait tries.
const TRIES: usize = 32;

/// The length of a thread's name, in bytes: the kernel's, with a zero at the end.
pub const NAME: usize = 16;

/// The numbers at the beginning of a log.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// The mark of such a file.
    magic: AtomicU64,
    /// The number of entries that it may have. Written by the recorder.
    capacity: AtomicU64,
    /// The number of entries that have memory. Written by the recorder.
    ready: AtomicU64,
    /// The number of waits that found no entry. Counted by the waiter.
    late: AtomicU64,
    /// The number of waits. Counted by the waiter.
    seen: CachePadded<AtomicU64>,
    /// The number of entries that were looked at so far: the round and the index of the next.
    /// Counted by the waiter.
    next: CachePadded<AtomicU64>,
}

/// A place for the name of a thread.
#[repr(C)]
struct Name {
    /// The process in the upper half and the thread in the lower; 0 if it is free. Written by the
    /// thread, as is the next.
    thread: AtomicU64,
    /// The text, up to its first zero.
    text: [AtomicU64; NAME / 8],
    /// Room for later versions.
    spare: AtomicU64,
}

/// All before the entries.
#[repr(C)]
struct Front {
    /// The numbers.
    header: Header,
    /// The names.
    names: [Name; NAMES],
}

/// A log of waits. See the file's head.
#[derive(Clone, Copy)]
pub struct Log<'t> {
    /// The numbers.
    header: &'t Header,
    /// The names of threads.
    names: &'t [Name],
    /// The waits.
    entries: &'t [Entry],
}

/// Why memory or a file is not a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// It begins otherwise: another program's file, or another version's.
    Magic,
    /// It is not as long as a log of its capacity.
    Size {
        /// Its length.
        found: usize,
    },
    /// It does not begin at a multiple of 128.
    Alignment,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("it does not begin as a log of waits of this version does"),
            Self::Size { found } => {
                write!(f, "it has {found} bytes, which is not the length of its log of waits")
            }
            Self::Alignment => f.write_str("it does not begin at a multiple of 128 bytes"),
        }
    }
}

impl core::error::Error for Foreign {}

/// The place in a file of the number of entries that were used, for a reader that does not map it.
pub const USED_AT: usize = mem::offset_of!(Front, header) + mem::offset_of!(Header, next);

/// Returns the length in bytes of a file with so many entries.
#[must_use]
pub const fn size(entries: usize) -> usize {
    mem::size_of::<Front>() + entries * mem::size_of::<Entry>()
}

/// Returns the number of entries in a file of so many bytes.
#[must_use]
pub const fn entries(bytes: usize) -> usize {
    bytes.saturating_sub(mem::size_of::<Front>()) / mem::size_of::<Entry>()
}

/// Returns the first bytes of a new file for so many entries. The rest, up to its [`size`], is 0.
#[must_use]
pub fn header(entries: usize) -> [u8; 16] {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..].copy_from_slice(&(entries as u64).to_ne_bytes());
    header
}

/// The final content of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// The number of waits that were seen.
    pub seen: u64,
    /// The number of these that found no entry, although they should have been kept.
    pub late: u64,
    /// The waits that were kept, in no order: a sample of those that were seen.
    pub waits: Vec<Wait>,
    /// The names of threads, by process and thread.
    pub names: BTreeMap<(u32, u32), String>,
}

/// Returns the level of a wait: 0 for every second one, 1 for every fourth one, and so on, at
/// random.
fn level(number: u64) -> u64 {
    // The end of SplitMix64.
    let mixed = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31).trailing_zeros().into()
}

impl Header {
    /// Returns the numbers of an empty log of so many entries, all of which have memory.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self {
            magic: AtomicU64::new(MAGIC),
            capacity: AtomicU64::new(entries as u64),
            ready: AtomicU64::new(entries as u64),
            late: AtomicU64::new(0),
            seen: CachePadded::new(AtomicU64::new(0)),
            next: CachePadded::new(AtomicU64::new(0)),
        }
    }
}

impl<'t> Log<'t> {
    /// Returns a log in these parts, without names of threads.
    ///
    /// ```
    /// use stanchion_competitive::waits::log::{Entry, Header, Log, Wait};
    ///
    /// let (header, entries) = (Header::new(2), [Entry::new(), Entry::new()]);
    /// let log = Log::of(&header, &entries);
    /// let wait = Wait {
    ///     process: 7,
    ///     thread: 8,
    ///     start_ns: 1_000,
    ///     length_ns: 90,
    ///     name: None,
    ///     waker: 9,
    ///     meanwhile: None,
    /// };
    /// log.add(&wait);
    /// assert_eq!(log.gather().waits, [wait]);
    /// ```
    #[must_use]
    pub fn of(header: &'t Header, entries: &'t [Entry]) -> Self {
        Self { header, names: &[], entries }
    }

    /// Returns the log at `start`.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if it is none.
    ///
    /// # Safety
    ///
    /// `length` bytes from `start` on must be readable for `'t`, and writable if any method is
    /// called that adds, notes, grows or limits. For an entry that holds only once it is
    /// [ready](Self::grow). All code that accesses them meanwhile, in any process, must do so
    /// through a log like this.
    pub unsafe fn at(start: *const u8, length: usize) -> Result<Self, Foreign> {
        let front = start.cast::<Front>();
        if !front.is_aligned() {
            return Err(Foreign::Alignment);
        }
        if length < size(0) {
            return Err(Foreign::Size { found: length });
        }
        // SAFETY: the caller's promise, and it is large enough and aligned. Its fields are atomic
        // integers, for which all bits are allowed.
        let Front { header, names } = unsafe { &*front };
        if header.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(Foreign::Magic);
        }
        let number = entries(length);
        if length != size(number) || header.capacity.load(Ordering::Relaxed) > number as u64 {
            return Err(Foreign::Size { found: length });
        }
        let first = start.wrapping_add(size(0)).cast::<Entry>();
        // SAFETY: so many entries follow, by the caller's promise. They are aligned to 8. All bits
        // are allowed for their atomic integers.
        let entries = unsafe { slice::from_raw_parts(first, number) };
        Ok(Self { header, names, entries })
    }

    /// Counts a wait, and writes it into an entry if it is to be kept. Allocates nothing, takes no
    /// lock.
    #[inline]
    pub fn add(&self, wait: &Wait) {
        let number = self.header.seen.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let level = level(number);
        let Some(capacity) = self.capacity() else { return };
        for _ in 0..TRIES {
            let next = self.header.next.load(Ordering::Relaxed);
            let round = next / capacity;
            // The wait is left out by the sample.
            if level < round {
                return;
            }
            let index = next % capacity;
            // Acquire: pairs with the Release of `grow`, after which there is memory.
            if index >= self.header.ready.load(Ordering::Acquire) {
                break;
            }
            let taken = self.header.next.compare_exchange(
                next,
                next.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            // Another wait has taken the entry, or it has a wait that stays: try the next one.
            if taken.is_ok()
                && self.entries[index as usize].write(number, |old| self::level(old) < round, wait)
            {
                return;
            }
        }
        self.header.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the name of a thread. Allocates nothing, takes no lock. If there is no room for it,
    /// the thread has none.
    pub fn note(&self, process: u32, thread: u32, name: &[u8; NAME]) {
        let thread = u64::from(process) << 32 | u64::from(thread);
        let place = thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - NAMES.ilog2());
        for near in 0..NEAR.min(self.names.len()) {
            let name_of = &self.names[(place as usize + near) % self.names.len()];
            let found = match name_of.thread.compare_exchange(
                0,
                thread,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => thread,
                Err(found) => found,
            };
            // An earlier thread may have had the number.
            if found == thread {
                for (word, bytes) in name_of.text.iter().zip(name.chunks_exact(8)) {
                    let bytes = bytes.try_into().unwrap_or_default();
                    word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
                }
                return;
            }
        }
    }

    /// Returns the number of entries that it may have, or `None` if there are none.
    #[inline]
    fn capacity(&self) -> Option<u64> {
        let capacity = self.header.capacity.load(Ordering::Relaxed);
        Some(capacity.min(self.entries.len() as u64)).filter(|&capacity| capacity > 0)
    }

    /// Returns the number of entries that were written so far, at most as many as it may have.
    #[must_use]
    pub fn used(&self) -> usize {
        let next = self.header.next.load(Ordering::Relaxed);
        next.min(self.entries.len() as u64) as usize
    }

    /// Allows waits to be written into the first `entries`. There must be memory for them.
    pub fn grow(&self, entries: usize) {
        let entries = entries.min(self.entries.len()) as u64;
        // Release: pairs with the Acquire of `add`.
        self.header.ready.store(entries, Ordering::Release);
    }

    /// Makes do with the first `entries`, which have memory: there is no more.
    pub fn limit(&self, entries: usize) {
        self.header.capacity.store(entries as u64, Ordering::Relaxed);
    }

    /// Returns its content now.
    #[must_use]
    pub fn gather(&self) -> Logged {
        let next = self.header.next.load(Ordering::Relaxed);
        let seen = self.header.seen.load(Ordering::Relaxed);
        // A log that has become full just now has left out no wait.
        let capacity = self.capacity().filter(|&capacity| seen > capacity);
        let round = capacity.map_or(0, |capacity| next / capacity);
        // The others have no memory, and are not looked at.
        // Acquire: pairs with the Release of `grow`.
        let ready = self.header.ready.load(Ordering::Acquire).min(self.entries.len() as u64);
        let entries = self.entries[..ready as usize].iter().filter_map(Entry::read);
        let kept = entries.filter(|&(number, _)| level(number) >= round);
        let names = self.names.iter().filter_map(Name::read);
        Logged {
            seen,
            late: self.header.late.load(Ordering::Relaxed),
            waits: kept.map(|(_, wait)| wait).collect(),
            names: names.collect(),
        }
    }
}

impl Name {
    /// Returns the thread and its name, if there is one.
    fn read(&self) -> Option<((u32, u32), String)> {
        let thread = self.thread.load(Ordering::Relaxed);
        let words = self.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let bytes: Vec<u8> = words.take_while(|&byte| byte != 0).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        (thread != 0).then_some((((thread >> 32) as u32, thread as u32), text))
    }
}

impl fmt::Debug for Log<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("header", self.header)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory as a file of zeros with that header would be.
    struct Memory(Vec<Line>);

    #[derive(Clone, Copy)]
    #[repr(align(128))]
    struct Line(#[allow(dead_code, reason = "only its size counts")] [u64; 16]);

    impl Memory {
        /// Memory for that even number of entries.
        fn new(entries: usize) -> Self {
            let mut lines = vec![Line([0; 16]); size(entries).div_ceil(128)];
            let head = header(entries);
            for (word, bytes) in lines[0].0.iter_mut().zip(head.chunks(8)) {
                *word = u64::from_ne_bytes(bytes.try_into().unwrap());
            }
            Self(lines)
        }

        fn at(&mut self, length: usize) -> Result<Log<'_>, Foreign> {
            assert!(length <= self.0.len() * 128);
            // SAFETY: borrowed from the vector, which is that long.
            unsafe { Log::at(self.0.as_mut_ptr().cast::<u8>(), length) }
        }
    }

    fn wait(number: u64) -> Wait {
        Wait {
            process: 1,
            thread: 2,
            start_ns: number,
            length_ns: 3,
            name: None,
            waker: 0,
            meanwhile: None,
        }
    }

    fn starts(log: &Log<'_>) -> Vec<u64> {
        let mut starts: Vec<_> = log.gather().waits.iter().map(|wait| wait.start_ns).collect();
        starts.sort_unstable();
        starts
    }

    #[test]
    fn a_log_that_is_not_full_has_all_waits() {
        let mut memory = Memory::new(64);
        let log = memory.at(size(64)).unwrap();
        log.grow(64);
        (1..=64).for_each(|number| log.add(&wait(number)));
        assert_eq!(starts(&log), (1..=64).collect::<Vec<_>>());
        assert_eq!(log.used(), 64);
    }

    #[test]
    fn a_full_log_has_a_sample_of_all_waits() {
        let mut memory = Memory::new(64);
        let log = memory.at(size(64)).unwrap();
        log.grow(64);
        let mut full = 0;
        for number in 1..=100_000 {
            log.add(&wait(number));
            if number % 97 == 0 {
                let round = log.header.next.load(Ordering::Relaxed) / 64;
                let all: Vec<u64> = (1..=number).filter(|&number| level(number) >= round).collect();
                assert_eq!(starts(&log), all, "after {number}");
                full += usize::from(all.len() > 32);
            }
        }
        let logged = log.gather();
        assert_eq!((logged.seen, logged.late), (100_000, 0));
        assert!(full > 500 && logged.waits.len() <= 64, "{full}");
    }

    #[test]
    fn entries_without_memory_are_not_written() {
        let mut memory = Memory::new(64);
        let log = memory.at(size(64)).unwrap();
        log.add(&wait(1));
        log.grow(2);
        (2..=5).for_each(|number| log.add(&wait(number)));
        assert_eq!((starts(&log), log.gather().late), (vec![2, 3], 3));
        log.limit(2);
        for number in 6..1_000 {
            log.add(&wait(number));
        }
        let logged = log.gather();
        assert!(logged.waits.len() <= 2 && logged.seen == 999, "{logged:?}");
        assert!(log.entries[2..].iter().all(|entry| entry.read().is_none()));
        log.limit(0);
        log.add(&wait(1_000));
        assert_eq!(log.gather().seen, 1_000);
    }

    #[test]
    fn threads_have_the_name_that_was_noted_last() {
        let mut memory = Memory::new(0);
        let log = memory.at(size(0)).unwrap();
        log.note(7, 8, b"worker\0\0\0\0\0\0\0\0\0\0");
        log.note(7, 9, b"\x1b\xff of 16 bytes\0\0");
        log.note(7, 8, b"other\0 left over");
        let names = log.gather().names;
        assert_eq!(names[&(7, 8)], "other");
        assert_eq!(names[&(7, 9)], "?\u{fffd} of 16 bytes");
        (0..20_000).for_each(|thread| log.note(8, thread, &[b'x'; NAME]));
        assert!(log.gather().names.len() > 10_000);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let mut memory = Memory::new(4);
        assert_eq!(memory.at(size(4) - 1).unwrap_err(), Foreign::Size { found: size(4) - 1 });
        assert_eq!(memory.at(size(2)).unwrap_err(), Foreign::Size { found: size(2) });
        assert_eq!(memory.at(8).unwrap_err(), Foreign::Size { found: 8 });
        let start = memory.0.as_ptr().cast::<u8>().wrapping_add(8);
        // SAFETY: it is refused before it is read.
        let shifted = unsafe { Log::at(start, size(2)) };
        assert_eq!(shifted.unwrap_err(), Foreign::Alignment);
        memory.0[0].0[0] ^= 1;
        assert_eq!(memory.at(size(4)).unwrap_err(), Foreign::Magic);
        assert_eq!(entries(size(4)), 4);
    }
}
