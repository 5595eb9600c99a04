//! A table of waits that several processes count in: the contents of a file that each of them has
//! mapped.
//!
//! Why not a file from each process at its end: a program ends by `_exit`, by a signal, or by
//! `exec`, and then it does not write the file. Counts in shared memory are in the file already.
//! Nor need the files of a hundred processes be added up, each with buckets of its own width.
//!
//! ```text
//! magic | width of a bucket | processes | processes that locked | waits without a name
//! waits with the name of an earlier one | waits that went on unseen | losses
//! 2048 × (a wait that goes on)
//! 512 × (state | text | counters)
//! ```
//!
//! All of it is 64-bit words in the machine's own order: the file is read on the machine that wrote
//! it, and thrown away.
//!
//! | `state` of a name | |
//! | --- | --- |
//! | 0 | free |
//! | 1 | being written; for good, if its writer was killed meanwhile |
//! | 2 + n | taken, its text n bytes long; never changes again |
//!
//! # Invariants
//!
//! 1. Bytes that are all 0 but for the [`header`] are a table without waits.
//! 2. Nothing in the table is trusted: other programs write to it, and one may run wild. Numbers
//!    are bounded, text is checked.
//!
//! # Orderings
//!
//! The text is published by the Release store of `state` and read after its Acquire load. All other
//! words are numbers by themselves: Relaxed.

use core::fmt;
use core::mem;
use std::collections::BTreeMap;

use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::buckets::{self, MAX_UNIT_NS};
use super::counters::{Counters, Writers};
use super::current::{CurrentWait, Slot, Taken};
use super::distribution::{Counts, Distribution, Observation};
use super::loss::Loss;
use crate::cost;

const MAGIC: u64 = u64::from_le_bytes(*b"stanch\x02w");
const NAMES: usize = 512;
/// The number of waits that go on at a time and can be seen.
const SLOTS: usize = 2048;
/// The number of slots, from the thread's own on, in which its wait may be.
const NEAR: usize = 16;
const WORDS: usize = 30;
const WRITING: u64 = 1;
const TAKEN: u64 = 2;

/// Longer names than this, in bytes, are not taken.
pub const MAX_NAME: usize = WORDS * mem::size_of::<u64>();

/// The length of the file, in bytes. Most of it stays empty and takes no space.
pub const SIZE: usize = mem::size_of::<Shared>();

/// A table in memory that several processes share. See the file's head.
#[repr(C)]
pub struct Shared {
    /// The mark of such a file.
    magic: AtomicU64,
    /// The width of the buckets around C, in nanoseconds.
    unit: AtomicU64,
    /// The number of processes. Counted by each.
    processes: AtomicU64,
    /// The number of processes that locked. Counted by each.
    lockers: AtomicU64,
    /// The number of waits that found the table of names full. Counted by the waiter.
    nameless: AtomicU64,
    /// The number of waits with a name that was not looked up for them. Counted by the waiter.
    unwalked: AtomicU64,
    /// The number of waits that found no slot while they went on. Counted by the waiter.
    unseen: AtomicU64,
    /// The losses of all processes, a bit for each. Set by the process that loses something.
    losses: AtomicU64,
    /// The waits that go on. Written by the waiters.
    slots: [Slot; SLOTS],
    /// The names and their counts.
    names: [Name; NAMES],
}

#[repr(C)]
struct Name {
    /// Free, being written, or the length of the text. Written by the thread that takes the name.
    state: AtomicU64,
    /// The text. Written by the thread that takes the name.
    text: [AtomicU64; WORDS],
    /// The counts. Written by every process.
    counters: Counters,
}

/// Why memory or a file is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// It begins otherwise: another program's file, or another version's.
    Magic,
    /// It is not [`SIZE`] bytes long.
    Size {
        /// Its length.
        found: usize,
    },
    /// It does not begin at a multiple of 8.
    Alignment,
    /// The width of its buckets is impossible.
    Unit {
        /// The width that stands in it.
        unit: u64,
    },
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => {
                f.write_str("it does not begin as a shared table of waits of this version does")
            }
            Self::Size { found } => {
                write!(f, "it has {found} bytes, a shared table of waits has {SIZE}")
            }
            Self::Alignment => f.write_str("it does not begin at a multiple of 8 bytes"),
            Self::Unit { unit } => {
                write!(f, "its buckets are {unit} ns wide, which cannot be: 1 to {MAX_UNIT_NS}")
            }
        }
    }
}

impl core::error::Error for Foreign {}

/// The first bytes of a new file, for a C of `cost_ns`; the rest, up to [`SIZE`], is 0.
#[must_use]
pub fn header(cost_ns: u64) -> [u8; 16] {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..].copy_from_slice(&buckets::unit(cost_ns).to_ne_bytes());
    header
}

/// The final content of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The number of processes that counted in it, or would have. A child of a fork is counted once
    /// it takes a lock.
    pub processes: u64,
    /// The number of these that took a lock.
    pub lockers: u64,
    /// The number of waits that found the table of names full.
    pub nameless: u64,
    /// The number of waits that have the name of an earlier wait, because looking for their own
    /// would have taken too long.
    pub unwalked: u64,
    /// The reasons for which less is known of some waits.
    pub losses: Vec<Loss>,
    /// The width of a bucket in nanoseconds.
    pub unit_ns: u64,
    /// C in nanoseconds: the tenth hundredth of the wake latencies if there are a hundred, else the
    /// value that the table was made for.
    pub cost_ns: u64,
    /// The waits by name.
    pub locks: BTreeMap<String, Distribution>,
    /// All names in the table, by index. An empty one cannot be read.
    pub names: Vec<String>,
}

/// A wait that a thread has begun, and where it is written.
#[derive(Debug)]
#[must_use = "the wait goes on until `end_wait`"]
pub struct Begun {
    /// The index of the slot.
    slot: usize,
    /// The right to clear it.
    taken: Taken,
}

impl Shared {
    /// Returns the table at `start`.
    ///
    /// # Errors
    ///
    /// [`Foreign`] if it is none.
    ///
    /// # Safety
    ///
    /// `length` bytes from `start` on must be readable for `'a`, and writable if any method is
    /// called that counts, names, or begins or ends a wait. All code that accesses them meanwhile,
    /// in any process, must do so through a table like this.
    pub unsafe fn at<'a>(start: *const u8, length: usize) -> Result<&'a Self, Foreign> {
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
        if table.magic.load(Ordering::Relaxed) != MAGIC {
            return Err(Foreign::Magic);
        }
        match table.unit.load(Ordering::Relaxed) {
            1..=MAX_UNIT_NS => Ok(table),
            unit => Err(Foreign::Unit { unit }),
        }
    }

    /// One more process counts here.
    pub fn process_begins(&self) {
        self.processes.fetch_add(1, Ordering::Relaxed);
    }

    /// This process took its first lock.
    pub fn process_locks(&self) {
        self.lockers.fetch_add(1, Ordering::Relaxed);
    }

    /// Finds a name or takes a free slot for it; `None` if there is none, or the name is empty or
    /// longer than [`MAX_NAME`]. Allocates nothing, takes no lock.
    #[must_use]
    pub fn name(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() || text.len() > MAX_NAME {
            return None;
        }
        for (index, name) in (0..).zip(&self.names) {
            // Acquire: pairs with the Release below, in any process.
            let mut state = name.state.load(Ordering::Acquire);
            if state == 0 {
                match name.state.compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Acquire)
                {
                    Ok(_) => {
                        name.write(text);
                        // Release: pairs with the Acquire of a thread that looks for a name.
                        name.state.store(TAKEN + text.len() as u64, Ordering::Release);
                        return Some(index);
                    }
                    Err(now) => state = now,
                }
            }
            if state == TAKEN + text.len() as u64 && name.is(text) {
                return Some(index);
            }
            // One that is being written may become this one: then it stands twice, and is added up
            // when read.
        }
        None
    }

    /// Counts a wait under a name; one without a name is only counted as such.
    pub fn add(&self, name: Option<u32>, wait: &Observation) {
        // Checked when the table was found; a wild program could still have overwritten it.
        let unit = self.unit.load(Ordering::Relaxed).clamp(1, MAX_UNIT_NS);
        match name.and_then(|index| self.names.get(index as usize)) {
            Some(name) => name.counters.add(wait, unit, Writers::Many),
            None => {
                self.nameless.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts waits that were added with the name of an earlier one, because looking for their own
    /// would have taken too long.
    pub fn add_unwalked(&self, waits: u64) {
        self.unwalked.fetch_add(waits, Ordering::Relaxed);
    }

    /// Notes a loss. Costs a load if it has been noted before.
    #[inline]
    pub fn lose(&self, loss: Loss) {
        if self.losses.load(Ordering::Relaxed) & loss.bit() == 0 {
            self.losses.fetch_or(loss.bit(), Ordering::Relaxed);
        }
    }

    /// Writes where a thread waits from now on. Without a free slot near the thread's own, it only
    /// counts the wait as unseen. Allocates nothing, takes no lock.
    #[inline]
    pub fn begin_wait(&self, wait: &CurrentWait) -> Option<Begun> {
        // The numbers of threads that live at the same time differ, and mostly by little. So each
        // has a slot of its own, unless there are very many.
        for near in 0..NEAR {
            let slot = (wait.thread as usize).wrapping_add(near) % SLOTS;
            if let Some(taken) = self.slots[slot].begin(wait) {
                return Some(Begun { slot, taken });
            }
        }
        self.unseen.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Clears the place where the thread's wait is written.
    #[inline]
    pub fn end_wait(&self, begun: Begun) {
        self.slots[begun.slot].end(begun.taken);
    }

    /// Clears the waits of processes that `is_gone` says are gone. A process that ends while its
    /// threads wait leaves them behind.
    pub fn clear_waits(&self, mut is_gone: impl FnMut(u32) -> bool) {
        for slot in &self.slots {
            slot.clear(&mut is_gone);
        }
    }

    /// Returns the waits that go on, with their names. A thread that ended in its wait is among
    /// them.
    #[must_use]
    pub fn current_waits(&self) -> Vec<(CurrentWait, Option<String>)> {
        let named = |wait: CurrentWait| {
            let name = wait.name.and_then(|index| self.names.get(index as usize));
            (wait, name.and_then(Name::text))
        };
        self.slots.iter().filter_map(Slot::read).map(named).collect()
    }

    /// Returns the number of waits that found no slot while they went on.
    #[must_use]
    pub fn unseen_waits(&self) -> u64 {
        self.unseen.load(Ordering::Relaxed)
    }

    /// Returns its content now.
    #[must_use]
    pub fn gather(&self) -> Gathered {
        let unit = self.unit.load(Ordering::Relaxed).clamp(1, MAX_UNIT_NS);
        let mut counted = BTreeMap::<String, Counts>::new();
        for name in &self.names {
            let Some(text) = name.text() else { continue };
            // Adding keeps each count within its bounds (Invariant 2).
            let mut counts = Counts::new();
            counts.add(&name.counters.read());
            if counts.waits() > 0 {
                counted.entry(text).or_insert_with(Counts::new).add(&counts);
            }
        }
        let locks: BTreeMap<_, _> = counted
            .into_iter()
            .map(|(name, counts)| (name, Distribution::reconcile(unit, counts)))
            .collect();
        let mut all = Distribution::new(unit);
        for waits in locks.values() {
            // Of one unit, so it does not fail.
            let _ = all.merge(waits);
        }
        let seen: u64 = all.wake_latencies().map(|(_, count)| count).sum();
        let measured = all.wake_latency_quantile_ns(0.1).filter(|_| seen >= 100);
        let cost_ns = measured.unwrap_or(unit * 100 / 8).clamp(cost::MIN_NS, cost::MAX_NS);
        Gathered {
            processes: self.processes.load(Ordering::Relaxed),
            lockers: self.lockers.load(Ordering::Relaxed),
            nameless: self.nameless.load(Ordering::Relaxed),
            unwalked: self.unwalked.load(Ordering::Relaxed),
            losses: Loss::of(self.losses.load(Ordering::Relaxed)),
            unit_ns: unit,
            cost_ns,
            locks,
            names: self.names.iter().map(|name| name.text().unwrap_or_default()).collect(),
        }
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

    fn text(&self) -> Option<String> {
        // Acquire: pairs with the Release of `Shared::name`.
        let length = self.state.load(Ordering::Acquire).checked_sub(TAKEN)?;
        let words = self.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let bytes: Vec<u8> = words.take(usize::try_from(length).ok()?).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::current::Kind;

    /// Memory as a file of zeros with that header would be.
    struct Memory(Vec<u64>);

    impl Memory {
        fn new(cost: u64) -> Self {
            let mut words = vec![0; SIZE / 8];
            for (word, bytes) in words.iter_mut().zip(header(cost).chunks(8)) {
                *word = u64::from_ne_bytes(bytes.try_into().unwrap());
            }
            Self(words)
        }

        fn table(&mut self) -> Result<&Shared, Foreign> {
            let start = self.0.as_mut_ptr().cast::<u8>();
            // SAFETY: borrowed from the vector, which is that long.
            unsafe { Shared::at(start, self.0.len() * 8) }
        }
    }

    fn wait(length_ns: u64) -> Observation {
        Observation { length_ns, ..Observation::default() }
    }

    #[test]
    fn what_is_counted_is_gathered() {
        let mut memory = Memory::new(5_000);
        let table = memory.table().unwrap();
        table.process_begins();
        table.process_locks();
        let queue = table.name(b"queue");
        let stack = table.name(b"stack");
        assert_eq!(table.name(b"queue"), queue);
        assert_ne!(stack, queue);
        (0..10).for_each(|i| table.add(queue, &wait(100 * i)));
        table.add(stack, &wait(1));
        table.add(None, &wait(1));
        let found = table.gather();
        assert_eq!((found.processes, found.lockers, found.nameless), (1, 1, 1));
        assert_eq!((found.unit_ns, found.cost_ns), (400, 5_000));
        assert!(found.losses.is_empty());
        for loss in [Loss::Stack, Loss::Filter, Loss::Stack] {
            table.lose(loss);
        }
        assert_eq!(table.gather().losses, [Loss::Filter, Loss::Stack]);
        let counts: Vec<_> =
            found.locks.iter().map(|(name, waits)| (name.as_str(), waits.count())).collect();
        assert_eq!(counts, [("queue", 10), ("stack", 1)]);
        assert_eq!(found.locks["queue"].total_ns(), 4_500);
    }

    #[test]
    fn a_full_table_and_unfit_names_are_refused() {
        let mut memory = Memory::new(5_000);
        let table = memory.table().unwrap();
        assert_eq!(table.name(b""), None);
        assert_eq!(table.name(&[b'x'; MAX_NAME + 1]), None);
        for i in 0..NAMES {
            assert_eq!(table.name(format!("lock {i}").as_bytes()), Some(i as u32));
        }
        assert_eq!(table.name(b"one more"), None);
        assert_eq!(table.name(b"lock 7"), Some(7), "those that are there are found");
    }

    #[test]
    fn waits_that_go_on_are_seen_with_their_names() {
        let mut memory = Memory::new(5_000);
        let table = memory.table().unwrap();
        let wait = |thread, name| CurrentWait {
            process: 1,
            thread,
            since_ns: 5,
            name,
            kind: Kind::Mutex,
            address: 0x10,
        };
        let first = wait(70, table.name(b"queue"));
        let begun = table.begin_wait(&first).unwrap();
        // This one's place is the same.
        let second = wait(70 + SLOTS as u32, None);
        let other = table.begin_wait(&second).unwrap();
        let expected = [(first, Some("queue".to_owned())), (second, None)];
        assert_eq!(table.current_waits(), expected);
        table.end_wait(begun);
        assert_eq!(table.current_waits(), expected[1..]);
        table.end_wait(other);
        assert!(table.current_waits().is_empty());
        let kept: Vec<_> = (0..NEAR).map(|_| table.begin_wait(&first)).collect();
        assert!(kept.iter().all(Option::is_some));
        assert!(table.begin_wait(&first).is_none(), "there is no slot left");
        assert_eq!((table.unseen_waits(), table.current_waits().len()), (1, NEAR));
        table.clear_waits(|process| process != 1);
        assert_eq!(table.current_waits().len(), NEAR);
        table.clear_waits(|process| process == 1);
        assert!(table.current_waits().is_empty() && table.begin_wait(&first).is_some());
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let mut memory = Memory::new(0);
        memory.0[0] ^= 1;
        assert_eq!(memory.table().err(), Some(Foreign::Magic));
        let mut memory = Memory::new(0);
        memory.0[1] = 0;
        assert_eq!(memory.table().err(), Some(Foreign::Unit { unit: 0 }));
        memory.0.pop();
        assert_eq!(memory.table().err(), Some(Foreign::Size { found: SIZE - 8 }));
    }

    #[test]
    fn wild_writes_are_survived() {
        let mut memory = Memory::new(5_000);
        memory.table().unwrap().name(b"queue").unwrap();
        // Past the header everything is overwritten.
        memory.0[8..].iter_mut().for_each(|word| *word = u64::MAX);
        let table = memory.table().unwrap();
        let found = table.gather();
        assert_eq!(found.locks.len(), 1, "all names have become the same nonsense");
        assert_eq!(table.name(b"queue"), None);
        table.add(Some(u32::MAX), &wait(5));
        // All phases are 3, which no thread writes.
        assert!(table.current_waits().is_empty());
    }

    #[test]
    fn threads_that_want_the_same_name_get_counts_that_add_up() {
        let mut memory = Memory::new(5_000);
        let table = memory.table().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let name = table.name(b"shared");
                    (0..1_000).for_each(|_| table.add(name, &wait(900)));
                });
            }
        });
        assert_eq!(table.gather().locks["shared"].count(), 4_000);
    }

    #[test]
    fn cost_is_what_waking_was_seen_to_cost() {
        let mut memory = Memory::new(5_000);
        let table = memory.table().unwrap();
        let name = table.name(b"queue");
        for latency in 0..200 {
            let wait = Observation {
                length_ns: 50_000,
                blocked: true,
                wake_latency_ns: Some(10_000 + latency * 100),
                ..Observation::default()
            };
            table.add(name, &wait);
        }
        let cost = table.gather().cost_ns;
        assert!((10_000..15_000).contains(&cost), "{cost}");
    }
}
