//! The mutexes that somebody had to wait for, by address: a table of fixed size, open addressing.
//!
//! An unlock looks here whether anybody waits, and if so leaves the time: the paper's `releaseTime`. It finds most mutexes missing at the first look,
//! because nobody ever waited for them.
//!
//! | `address` | |
//! | --- | --- |
//! | 0 | never used: a search ends here |
//! | 1 | given up: its mutex was destroyed |
//! | else | that mutex |
//!
//! A mutex may stand twice if two threads met it at once, and a full neighbourhood gives up one that nobody waits for: both cost some release times,
//! nothing else. Everything here is what a wait is described by, never what it depends on; so all of it is Relaxed, except that `address` is
//! published by a Release store for the name that was written before.

use core::mem;

use machine::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use machine::fork::generation;
use stanchion_competitive::waits::shared::Shared;

use super::{Site, place};

const LOCKS: usize = 4096;
/// How far from its place a mutex may lie.
const NEAR: usize = 16;
const SITES: usize = 512;
const RANGES: usize = 64;

const FREE: usize = 0;
const GONE: usize = 1;

/// A mutex that was waited for.
#[repr(C, align(64))]
pub(super) struct Lock {
    address: AtomicUsize,
    /// Its name's place in the shared table and 1; 0 for none.
    name: AtomicU32,
    pub(super) waiting: Waiting,
    /// How often it was released while somebody waited.
    releases: AtomicU32,
    /// When, in nanoseconds; the last ones.
    released_at: [AtomicU64; KEPT],
}

/// How many threads wait for a mutex: the number in the lower half, the [`generation`] of their
/// process in the upper one. A child of a fork has none of them, and begins at 0.
pub(super) struct Waiting(AtomicU64);

impl Waiting {
    /// Counts the calling thread in and returns how many others wait.
    pub(super) fn enter(&self) -> u32 {
        let mine = u64::from(generation()) << 32;
        let add = |bits| Some((if bits >> 32 == mine >> 32 { bits } else { mine }) + 1);
        // Relaxed, here and below: numbers by themselves.
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

/// How many releases are remembered of a mutex.
const KEPT: usize = 20;

static TABLE: [Lock; LOCKS] = [const { Lock::new() }; LOCKS];

impl Lock {
    const fn new() -> Self {
        Self {
            address: AtomicUsize::new(FREE),
            name: AtomicU32::new(0),
            waiting: Waiting(AtomicU64::new(0)),
            releases: AtomicU32::new(0),
            released_at: [const { AtomicU64::new(0) }; KEPT],
        }
    }

    /// How many releases there were.
    pub(super) fn releases(&self) -> u32 {
        self.releases.load(Ordering::Relaxed)
    }

    /// It is released now, by its holder; so there is one at a time.
    pub(super) fn release(&self, now: u64) {
        let release = self.releases();
        self.released_at[release as usize % KEPT].store(now, Ordering::Relaxed);
        self.releases.store(release.wrapping_add(1), Ordering::Relaxed);
    }

    /// When release number `release` was, if that is remembered.
    pub(super) fn released_at(&self, release: u32) -> Option<u64> {
        let ago = self.releases().wrapping_sub(release);
        let remembered = (1..=KEPT as u32).contains(&ago);
        remembered.then(|| self.released_at[release as usize % KEPT].load(Ordering::Relaxed))
    }

    /// Its name's place in the shared table.
    pub(super) fn name(&self) -> Option<u32> {
        self.name.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// Where a mutex may lie.
#[inline]
fn near(mutex: usize) -> impl Iterator<Item = &'static Lock> {
    // Mutexes lie 40 bytes apart or more; fields of equal objects a power of two apart.
    let place = (mutex >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize) >> (usize::BITS - 12);
    (place..place + NEAR).map(|place| &TABLE[place % LOCKS])
}

/// The mutex at that address, if anybody ever waited for it.
#[inline]
pub(super) fn find(mutex: usize) -> Option<&'static Lock> {
    for lock in near(mutex) {
        // Acquire: pairs with the Release of `enter`.
        match lock.address.load(Ordering::Acquire) {
            FREE => return None,
            address if address == mutex => return Some(lock),
            _ => {}
        }
    }
    None
}

/// Gives a mutex a place and a name. Takes some 100 µs for a new name: reads `/proc/self/maps`.
#[cold]
pub(super) fn enter(mutex: usize, site: Site, table: &Shared) -> Option<&'static Lock> {
    let name = name(mutex, site, table).map_or(0, |name| name + 1);
    let free = |address| address == FREE || address == GONE;
    let lock = near(mutex)
        .find(|lock| free(lock.address.load(Ordering::Relaxed)))
        .or_else(|| near(mutex).find(|lock| !lock.waiting.is_any()))?;
    lock.name.store(name, Ordering::Relaxed);
    // Release: pairs with the Acquire of `find`.
    lock.address.store(mutex, Ordering::Release);
    Some(lock)
}

/// The mutex is no more.
pub(super) fn forget(mutex: usize) {
    if let Some(lock) = find(mutex) {
        let _ = lock.address.compare_exchange(mutex, GONE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Names of calls that are known already. Filled from the front, never emptied.
struct Known {
    site: AtomicUsize,
    name: AtomicU32,
}

static SITES_KNOWN: [Known; SITES] =
    [const { Known { site: AtomicUsize::new(0), name: AtomicU32::new(0) } }; SITES];

/// Memory in which no static lies, mostly the allocator's; so that it is looked up once.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

static RANGES_KNOWN: [Range; RANGES] =
    [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; RANGES];

fn name(mutex: usize, site: Site, table: &Shared) -> Option<u32> {
    let known = RANGES_KNOWN.iter().any(|range| {
        let start = range.start.load(Ordering::Relaxed);
        start != 0 && (start..range.end.load(Ordering::Relaxed)).contains(&mutex)
    });
    if !known {
        match place::of_static(mutex) {
            Ok(name) => return table.name(name.as_bytes()),
            Err(range) => remember_range(range.start, range.end),
        }
    }
    if site == 0 {
        return table.name(b"C?");
    }
    for known in &SITES_KNOWN {
        // Acquire: pairs with the Release below.
        match known.site.load(Ordering::Acquire) {
            // A place with a name alone is being filled, or was when this process was forked.
            0 if known.name.load(Ordering::Relaxed) == 0 => break,
            found if found == site => return known.name.load(Ordering::Relaxed).checked_sub(1),
            _ => {}
        }
    }
    let name = match place::of_site(site) {
        Some(name) => table.name(name.as_bytes()),
        None => table.name(b"C?"),
    };
    remember_site(site, name);
    name
}

fn remember_range(start: usize, end: usize) {
    if start == 0 {
        return;
    }
    for range in &RANGES_KNOWN {
        if range.start.load(Ordering::Relaxed) == 0
            && range.end.compare_exchange(0, end, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Until now the range was empty, from 0.
            range.start.store(start, Ordering::Relaxed);
            return;
        }
    }
}

fn remember_site(site: Site, name: Option<u32>) {
    for known in &SITES_KNOWN {
        let bits = name.map_or(0, |name| name + 1);
        if known.site.load(Ordering::Relaxed) == 0
            && known.name.compare_exchange(0, bits, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Release: pairs with the Acquire of `name`.
            known.site.store(site, Ordering::Release);
            return;
        }
    }
}

// An unlock of a mutex that nobody waited for looks at one line of memory.
const _: () = assert!(mem::offset_of!(Lock, waiting) < 64 && mem::align_of::<Lock>() == 64);
