//! The mutexes that threads had to wait for, by address: a table of fixed size with open
//! addressing. Another table of the same kind has the words that threads waited for in `futex`.
//!
//! An unlock looks here whether any thread waits. If so, it stores the time, the paper's
//! `releaseTime`. Most mutexes are missing at the first look, because no thread ever waited for
//! them.
//!
//! `address` is one of these:
//!
//! - 0: never used. A search ends here.
//! - 1: given up. The mutex was destroyed.
//! - Any other value: the address of the mutex.
//!
//! If two threads meet a mutex at once, it may be in the table twice. If all slots near a mutex are
//! taken, one of them without waiters is given up. Both cost some release times and nothing else.
//! The table only describes waits, and no wait depends on it. So a waiter that counts itself and an
//! unlock that looks for waiters share no handshake: an unlock that misses the waiter costs one
//! release time as well. Every access is Relaxed, with two exceptions: `address` and a known call
//! `site` are published by a Release store, because the name was written before.

use core::mem;

use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use stanchion_machine::fork::generation;

use super::unwind::Path;
use super::{Site, place};

/// The number of slots.
const LOCKS: usize = 4096;
/// The number of slots for words.
const WORDS: usize = 1024;
/// The number of slots, from the hash on, in which a mutex may be.
const NEAR: usize = 16;
/// The number of call sites and paths with a known name.
const SITES: usize = 512;
/// The number of memory ranges without statics that are remembered.
const RANGES: usize = 64;

/// The `address` of a slot that was never used.
const FREE: usize = 0;
/// The `address` of a slot after its mutex was destroyed.
const GONE: usize = 1;

/// A slot of the table: a mutex that was waited for.
#[repr(C, align(64))]
pub(super) struct Lock {
    /// `FREE`, `GONE`, or the address of the mutex. Waiters write it, and the thread that destroys
    /// the mutex.
    address: AtomicUsize,
    /// The index of the mutex's name in the shared table plus 1, or 0 without a name. The first
    /// waiter writes it.
    name: AtomicU32,
    /// The threads that wait for the mutex. Waiters write it.
    pub(super) waiting: Waiting,
    /// The number of releases while a thread waited. The holder writes it.
    releases: AtomicU32,
    /// The times of the last releases, in nanoseconds. The holder writes them.
    released_at: [AtomicU64; KEPT],
    /// The numbers of the threads that released it. The holder writes them.
    released_by: [AtomicU32; KEPT],
}

/// A release that is remembered.
#[derive(Clone, Copy)]
pub(super) struct Release {
    /// Its time, in nanoseconds.
    pub(super) at: u64,
    /// The number of the thread.
    pub(super) by: u32,
}

/// The number of threads that wait for a mutex: the count in the lower half, the [`generation`] of
/// their process in the upper half. A child of a fork has none of these threads, and begins at 0.
pub(super) struct Waiting(AtomicU64);

impl Waiting {
    /// Counts the calling thread in and returns how many other threads wait.
    pub(super) fn enter(&self) -> u32 {
        let mine = u64::from(generation()) << 32;
        let add = |bits| Some((if bits >> 32 == mine >> 32 { bits } else { mine }) + 1);
        // Relaxed, here and below: the count orders nothing else.
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let before = before.unwrap_or_else(|bits| bits);
        if before >> 32 == mine >> 32 { before as u32 } else { 0 }
    }

    /// Counts the calling thread out.
    pub(super) fn leave(&self) {
        let mine = u64::from(generation());
        let remove = |bits| (bits >> 32 == mine && bits as u32 > 0).then(|| bits - 1);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, remove);
    }

    /// Returns whether any thread of this process waits.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        let bits = self.0.load(Ordering::Relaxed);
        bits as u32 != 0 && bits >> 32 == u64::from(generation())
    }
}

/// The number of releases that are remembered for a mutex.
const KEPT: usize = 20;

/// The slots. All threads of the process share them.
static TABLE: [Lock; LOCKS] = [const { Lock::new() }; LOCKS];
/// The slots for words. They are never given up, and a word takes the place of another one.
static WORD_TABLE: [Lock; WORDS] = [const { Lock::new() }; WORDS];

impl Lock {
    const fn new() -> Self {
        Self {
            address: AtomicUsize::new(FREE),
            name: AtomicU32::new(0),
            waiting: Waiting(AtomicU64::new(0)),
            releases: AtomicU32::new(0),
            released_at: [const { AtomicU64::new(0) }; KEPT],
            released_by: [const { AtomicU32::new(0) }; KEPT],
        }
    }

    /// Returns the number of releases so far.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load(Ordering::Relaxed)
    }

    /// Records a release. The holder of a mutex calls it, or a thread that wakes others by a word.
    pub(super) fn release(&self, Release { at, by }: Release) {
        let release = self.releases.fetch_add(1, Ordering::Relaxed);
        let place = release as usize % KEPT;
        // A waiter that looks before the last store finds an older time, and does not believe it.
        self.released_by[place].store(by, Ordering::Relaxed);
        self.released_at[place].store(at, Ordering::Relaxed);
    }

    /// Returns release number `release`, if it is remembered.
    pub(super) fn released(&self, release: u32) -> Option<Release> {
        let ago = self.releases().wrapping_sub(release);
        let place = release as usize % KEPT;
        (1..=KEPT as u32).contains(&ago).then(|| Release {
            at: self.released_at[place].load(Ordering::Relaxed),
            by: self.released_by[place].load(Ordering::Relaxed),
        })
    }

    /// Returns the index of the mutex's name in the shared table.
    pub(super) fn name(&self) -> Option<u32> {
        self.name.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// Returns the slots of `table` in which an address may be.
#[inline]
fn near(table: &'static [Lock], address: usize) -> impl Iterator<Item = &'static Lock> {
    // Mutexes are 40 bytes apart or more, and words four. Fields of equal objects are a power of
    // two apart.
    let mixed = (address >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
    let place = mixed >> (usize::BITS - 12);
    (place..place + NEAR).map(|place| &table[place % table.len()])
}

/// Finds the slot of the address in `table`.
#[inline]
fn find_in(table: &'static [Lock], address: usize) -> Option<&'static Lock> {
    for lock in near(table, address) {
        // Acquire: pairs with the Release of `put`.
        match lock.address.load(Ordering::Acquire) {
            FREE => return None,
            found if found == address => return Some(lock),
            _ => {}
        }
    }
    None
}

/// Finds the slot of the mutex at that address. There is one only if a thread has waited for it.
#[inline]
pub(super) fn find(mutex: usize) -> Option<&'static Lock> {
    find_in(&TABLE, mutex)
}

/// Finds the slot of the word at that address. There is one only if a thread has waited for it.
#[inline]
pub(super) fn known_word(word: usize) -> Option<&'static Lock> {
    find_in(&WORD_TABLE, word)
}

/// Returns the slot of the word at that address. It gets one if it has none.
pub(super) fn word(word: usize) -> Option<&'static Lock> {
    known_word(word).or_else(|| put(&WORD_TABLE, word, 0))
}

/// Gives a mutex a slot and a name. A new name takes some 100 µs, because `/proc/self/maps` is
/// read.
#[cold]
pub(super) fn enter(mutex: usize, site: Site, table: &Shared) -> Option<&'static Lock> {
    put(&TABLE, mutex, name(mutex, site, table).map_or(0, |name| name + 1))
}

/// Puts an address into a slot of `table`.
fn put(table: &'static [Lock], address: usize, name: u32) -> Option<&'static Lock> {
    let free = |address| address == FREE || address == GONE;
    let lock = near(table, address)
        .find(|lock| free(lock.address.load(Ordering::Relaxed)))
        .or_else(|| near(table, address).find(|lock| !lock.waiting.is_any()))?;
    lock.name.store(name, Ordering::Relaxed);
    // Release: pairs with the Acquire of `find_in`.
    lock.address.store(address, Ordering::Release);
    Some(lock)
}

/// Gives up the slot of a mutex that no longer exists.
pub(super) fn forget(mutex: usize) {
    if let Some(lock) = find(mutex) {
        let _ = lock.address.compare_exchange(mutex, GONE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A call site or a path of calls with a known name. The array is filled from the front and never
/// emptied.
struct Known {
    /// The address or the key of the path, written after the name. It is 0 while the entry is empty
    /// or being filled.
    site: AtomicUsize,
    /// The index of the name plus 1, or 0 if there is none. The thread that claims the entry writes
    /// it.
    name: AtomicU32,
}

/// The known call sites and paths.
static SITES_KNOWN: [Known; SITES] =
    [const { Known { site: AtomicUsize::new(0), name: AtomicU32::new(0) } }; SITES];

/// A range of memory without statics, mostly the allocator's. It is remembered so that it is looked
/// up once.
struct Range {
    /// The first address, written after `end`. It is 0 while the entry is empty or being filled.
    start: AtomicUsize,
    /// The end of the range. The thread that claims the entry writes it.
    end: AtomicUsize,
}

/// The known ranges.
static RANGES_KNOWN: [Range; RANGES] =
    [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; RANGES];

/// Returns the index of the mutex's name in the shared table: the static at its address, or the
/// call at `site`.
fn name(mutex: usize, site: Site, table: &Shared) -> Option<u32> {
    let is_known = RANGES_KNOWN.iter().any(|range| {
        let start = range.start.load(Ordering::Relaxed);
        start != 0 && (start..range.end.load(Ordering::Relaxed)).contains(&mutex)
    });
    if !is_known {
        match place::of_static(mutex) {
            Ok(name) => return table.name(name.as_bytes()),
            Err(range) => remember_range(range.start, range.end),
        }
    }
    if site == 0 {
        return table.name(b"C?");
    }
    known(site, table, b"C?", || place::of_site(site))
}

/// Returns the index of the name of a wait of that kind by a path of calls, in the shared table.
pub(super) fn path(kind: u8, path: &Path, table: &Shared) -> Option<u32> {
    let key = path.key() ^ usize::from(kind) << 1;
    known(key, table, &[kind, b'?'], || place::of_path(kind, path.addresses()))
}

/// Returns the index of the name of a wait for a condition that was called from `site`, in the
/// shared table.
pub(super) fn condition(site: Site, table: &Shared) -> Option<u32> {
    let kind = place::CONDITION;
    known(site ^ usize::from(kind) << 56, table, &[kind, b'?'], || place::of_path(kind, &[site]))
}

/// Returns the index of the name that `find` finds for the calls with that key, or else of
/// `unknown`. Calls are looked up once.
fn known(
    key: usize,
    table: &Shared,
    unknown: &[u8],
    find: impl FnOnce() -> Option<place::Name>,
) -> Option<u32> {
    let mut has_room = false;
    for known in &SITES_KNOWN {
        // Acquire: pairs with the Release of `remember_site`.
        match known.site.load(Ordering::Acquire) {
            // An entry with a name but no site is being filled, or was being filled when this
            // process was forked.
            0 if known.name.load(Ordering::Relaxed) == 0 => {
                has_room = true;
                break;
            }
            found if found == key => return known.name.load(Ordering::Relaxed).checked_sub(1),
            _ => {}
        }
    }
    // What cannot be remembered is not looked up each time.
    if !has_room {
        return table.name(unknown);
    }
    let name = match find() {
        Some(name) => table.name(name.as_bytes()),
        None => table.name(unknown),
    };
    remember_site(key, name);
    name
}

/// Stores a range without statics in a free entry, if there is one.
fn remember_range(start: usize, end: usize) {
    if start == 0 {
        return;
    }
    for range in &RANGES_KNOWN {
        if range.start.load(Ordering::Relaxed) == 0
            && range.end.compare_exchange(0, end, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Until this store the range is empty, because it starts at 0.
            range.start.store(start, Ordering::Relaxed);
            return;
        }
    }
}

/// Stores the name of a call site or path in a free entry, if there is one.
fn remember_site(site: Site, name: Option<u32>) {
    for known in &SITES_KNOWN {
        let bits = name.map_or(0, |name| name + 1);
        let found = known.site.load(Ordering::Relaxed);
        // Another thread met it at the same time.
        if found == site {
            return;
        }
        if found == 0
            && known.name.compare_exchange(0, bits, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Release: pairs with the Acquire of `known`.
            known.site.store(site, Ordering::Release);
            return;
        }
    }
}

// The unlock of a mutex without waiters reads one cache line of the table.
const _: () = assert!(mem::offset_of!(Lock, waiting) < 64 && mem::align_of::<Lock>() == 64);
