//! The order in which threads take locks (`stanchion record --orders`).
//!
//! Each thread has a list of the locks that it holds. When it is about to block for a lock while it
//! holds others, and has not done so before in these modes, the acquisition goes into a table that
//! `stanchion record` searches when the program has ended ([`Table`]). The first one of the process
//! has its path of calls there. An attempt, or a lock with a time, makes no such acquisition: it
//! blocks for nothing for good. A lock that it took is held all the same.
//!
//! A thread that waits for a condition blocks for the condition's mutex on its way back. The mutex
//! stays in the list meanwhile: the thread takes no other lock, and a cancellation leaves it held.
//!
//! The list lies in the thread's own memory, and a signal handler that locks may change it at any
//! time. A raw thread (`clone`) may share it with another one. So each index is checked, and all
//! that can come of it is a wrong list.

use core::cell::Cell;
use core::ffi::{CStr, c_int};
use core::ptr;

use stanchion_machine::atomic::{AtomicPtr, AtomicU64, Ordering};
use stanchion_machine::fork::generation;
use stanchion_order::Mode;
use stanchion_order::foreign::{Acquisition, Hold, Loss, MAX_HELD, SIZE, Table};

use super::marks::{self, Lock};
use super::unwind::{self, Registers};
use super::{errno, place, table};

/// The number of acquisitions that a thread remembers.
const SEEN: usize = 64;

/// The table, or null. The thread that decides the mode of the process writes it.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The number of this process in the table, in the upper half, and the [`generation`] in which it
/// was given, in the lower.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// The last number of a thread. Threads that get a number write it.
static LAST_THREAD: AtomicU64 = AtomicU64::new(0);

/// A lock that a thread holds.
#[derive(Clone, Copy)]
struct Held {
    /// The lock.
    lock: Lock,
    /// The number of the lock.
    number: u64,
    /// The address to which the call that took it returns.
    site: usize,
    /// The mode.
    mode: Mode,
    /// The number of times that the thread has taken it.
    depth: u32,
}

/// The memory of a thread.
struct Local {
    /// The held locks. The first `count` of them are in use.
    held: [Cell<Held>; MAX_HELD],
    /// The number of held locks in the list.
    count: Cell<usize>,
    /// The number of held locks for which the list had no room.
    too_deep: Cell<u32>,
    /// The number of the thread, or 0 before it has one.
    thread: Cell<u64>,
    /// The sum of the hashes of the held locks.
    hash: Cell<u64>,
    /// The keys of acquisitions that the thread has made, each at a place that the key gives.
    seen: [Cell<u64>; SEEN],
}

std::thread_local! {
    /// The memory of the calling thread. It needs no destructor.
    static LOCAL: Local = const { Local::new() };
}

/// An acquisition that a thread wants to make.
pub(super) struct Wanted {
    /// The lock.
    pub(super) lock: Lock,
    /// The mode.
    pub(super) mode: Mode,
    /// True if the thread blocks for the lock without a limit.
    pub(super) blocks: bool,
}

/// Returns whether orders are recorded.
#[inline]
pub(super) fn is_on() -> bool {
    // Relaxed: a thread that uses the table loads it again.
    !TABLE.load(Ordering::Relaxed).is_null()
}

/// Returns the table.
fn shared() -> Option<&'static Table> {
    // Acquire: pairs with the Release of `open`.
    // SAFETY: null, or a mapping that stays for good.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// Maps the table in the file at `path`.
pub(super) fn open(path: &CStr) -> Result<(), &'static [u8]> {
    if !marks::are_kept() {
        return Err(b"the locks of this C library have no room for their numbers");
    }
    let start = table::map(path, SIZE)?;
    // SAFETY: mapped for good. All processes use it only through tables like this one.
    let table = unsafe { Table::at(start, SIZE) }
        .map_err(|_| &b"it is not a table of lock orders of this version"[..])?;
    // Release: shows the table. The first thread stores the one that all threads use.
    let _ = TABLE.compare_exchange(
        ptr::null_mut(),
        ptr::from_ref(table).cast_mut(),
        Ordering::Release,
        Ordering::Relaxed,
    );
    Ok(())
}

/// Calls `take` to take a lock, and records the acquisition.
///
/// # Safety
///
/// It must be a lock.
#[inline(never)]
pub(super) unsafe fn around(
    wanted: &Wanted,
    registers: Registers,
    take: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let number = unsafe { wanted.lock.number() };
    if let Some(number) = number {
        // SAFETY: as above.
        LOCAL.with(|local| unsafe { local.acquiring(wanted, number, registers) });
    } else if let Some(table) = shared() {
        table.lose(Loss::Identity);
    }
    let result = take();
    // A mutex with a number is not a robust one, so each other result is an error.
    if let (0, Some(number)) = (result, number) {
        // SAFETY: as above.
        LOCAL.with(|local| unsafe { local.acquired(wanted, number, registers.code) });
    }
    result
}

/// Calls `release` to release a lock, and records that.
///
/// # Safety
///
/// It must be a lock.
#[inline(never)]
pub(super) unsafe fn release(lock: Lock, release: impl FnOnce() -> c_int) -> c_int {
    if LOCAL.with(|local| local.released(lock.address())) {
        return release();
    }
    // Another thread has taken it, or this one by a function that the shim does not see. Once it is
    // free, its memory may be as well.
    // SAFETY: the caller's promise.
    let number = unsafe { lock.take_number() };
    let result = release();
    if let (0, Some(number), Some(table)) = (result, number, shared()) {
        table.lose_lock(process(table), number);
    }
    result
}

/// Records that the thread will block for the mutex of a condition for which it is about to wait.
///
/// # Safety
///
/// It must be a mutex.
pub(super) unsafe fn waits_with(mutex: super::Mutex, registers: Registers) {
    LOCAL.with(|local| local.comes_back(mutex.addr(), registers));
}

/// Forgets the number of a lock that ends.
///
/// # Safety
///
/// It must be a lock.
pub(super) unsafe fn ends(lock: Lock) {
    // SAFETY: the caller's promise.
    let _ = unsafe { lock.take_number() };
}

/// Returns the number of this process in the table.
fn process(table: &Table) -> u64 {
    let known = PROCESS.load(Ordering::Relaxed);
    if known as u32 == generation() && known != 0 {
        return known >> 32;
    }
    let new = table.process_begins();
    let bits = new << 32 | u64::from(generation());
    // Relaxed, both: a number by itself. Of several threads that ask first, one gives it.
    match PROCESS.compare_exchange(known, bits, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        Err(other) => other >> 32,
    }
}

/// Mixes a value into a hash.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (value ^ value >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Returns the hash of a lock in a mode.
fn hash_of(number: u64, mode: Mode) -> u64 {
    mix(number << 3 | mode as u64)
}

impl Local {
    const fn new() -> Self {
        const NONE: Held = Held {
            lock: Lock::Mutex(ptr::null_mut()),
            number: 0,
            site: 0,
            mode: Mode::Exclusive,
            depth: 0,
        };
        Self {
            held: [const { Cell::new(NONE) }; MAX_HELD],
            count: Cell::new(0),
            too_deep: Cell::new(0),
            thread: Cell::new(0),
            hash: Cell::new(0),
            seen: [const { Cell::new(0) }; SEEN],
        }
    }

    /// Returns the held locks.
    fn all(&self) -> &[Cell<Held>] {
        &self.held[..self.count.get().min(MAX_HELD)]
    }

    /// Returns the index of the held lock at that address.
    #[inline]
    fn find(&self, address: usize) -> Option<usize> {
        self.all().iter().rposition(|held| held.get().lock.address() == address)
    }

    /// Removes the held lock with that index.
    #[inline]
    fn remove(&self, index: usize) {
        let all = self.all();
        let Some(held) = all.get(index).map(Cell::get) else { return };
        for at in index + 1..all.len() {
            all[at - 1].set(all[at].get());
        }
        self.count.set(all.len() - 1);
        self.hash.set(self.hash.get().wrapping_sub(hash_of(held.number, held.mode)));
    }

    /// Notes that the thread is about to take a lock.
    #[inline]
    unsafe fn acquiring(&self, wanted: &Wanted, number: u64, registers: Registers) {
        if self.count.get() == 0 {
            return;
        }
        if let Some(index) = self.find(wanted.lock.address()) {
            if self.held[index].get().number != number {
                // Another lock was made there, or its release was not seen.
                self.remove(index);
            // SAFETY: the caller's promise.
            } else if unsafe { wanted.lock.is_recursive() } {
                return;
            }
        }
        if wanted.blocks && self.count.get() > 0 {
            let hold = (wanted.lock, number, wanted.mode);
            self.blocks_for(hold, self.hash.get(), None, registers);
        }
    }

    /// Notes that the thread is about to block for a lock while it holds those with that hash. They
    /// are all but the one with the index `except`.
    #[inline]
    fn blocks_for(
        &self,
        (lock, number, mode): (Lock, u64, Mode),
        hash: u64,
        except: Option<usize>,
        registers: Registers,
    ) {
        let taken = hash_of(number, mode).rotate_left(17) ^ u64::from(generation());
        let key = mix(hash ^ mix(taken)) | 1;
        let seen = &self.seen[key as usize >> 1 & (SEEN - 1)];
        if seen.get() != key {
            seen.set(key);
            errno::kept(|| self.first(key, (lock, number, mode), except, registers));
        }
    }

    /// Writes an acquisition into the table that the thread has not made, or not lately.
    #[cold]
    #[inline(never)]
    fn first(
        &self,
        key: u64,
        (lock, number, mode): (Lock, u64, Mode),
        except: Option<usize>,
        registers: Registers,
    ) {
        let Some(table) = shared() else { return };
        let process = process(table);
        if self.thread.get() == 0 {
            self.thread.set(LAST_THREAD.fetch_add(1, Ordering::Relaxed) + 1);
        }
        let thread = self.thread.get();
        if self.too_deep.get() > 0 {
            // A lock is held that the list does not have, and could keep the acquisition apart.
            return table.lose(Loss::Deep);
        }
        if table.add_thread(process, key, thread) {
            return;
        }
        if !table.has_room(key) {
            return table.lose(Loss::Entry);
        }
        let name = |name: Option<place::Name>| table.name(name?.as_bytes());
        let hold = |lock: Lock, number, mode, site: usize| Hold {
            lock: number,
            mode,
            name: name(place::static_of_module(lock.address())),
            place: name(place::path_of_module(&[site])),
        };
        let mut held = [hold(lock, number, mode, registers.code); MAX_HELD];
        let taken = held[0];
        let mut count = 0;
        for (index, one) in self.all().iter().enumerate() {
            if Some(index) != except {
                let Held { lock, number, site, mode, .. } = one.get();
                held[count] = hold(lock, number, mode, site);
                count += 1;
            }
        }
        held[..count].sort_unstable_by_key(|hold| (hold.lock, hold.mode));
        let path = unwind::walk(registers);
        let path = name(place::path_of_module(path.addresses()));
        table.add(&Acquisition { process, thread, key, held: &held[..count], taken, path });
    }

    /// Notes that the thread holds a lock.
    #[inline]
    unsafe fn acquired(&self, wanted: &Wanted, number: u64, site: usize) {
        if let Some(index) = self.find(wanted.lock.address()) {
            let held = self.held[index].get();
            let again = held.number == number
                && (wanted.mode != Mode::Exclusive
                    // SAFETY: the caller's promise.
                    || unsafe { wanted.lock.is_recursive() });
            if again {
                self.held[index].set(Held { depth: held.depth.saturating_add(1), ..held });
                return;
            }
            // The lock was free, so its release was not seen.
            self.remove(index);
        }
        let count = self.count.get();
        let Some(room) = self.held.get(count) else {
            self.too_deep.set(self.too_deep.get() + 1);
            return;
        };
        let Wanted { lock, mode, .. } = *wanted;
        room.set(Held { lock, number, site, mode, depth: 1 });
        self.hash.set(self.hash.get().wrapping_add(hash_of(number, mode)));
        self.count.set(count + 1);
    }

    /// Notes that the thread is about to release a lock. Returns false if it does not hold it.
    #[inline]
    fn released(&self, address: usize) -> bool {
        let Some(index) = self.find(address) else {
            let too_deep = self.too_deep.get();
            self.too_deep.set(too_deep.saturating_sub(1));
            return too_deep > 0;
        };
        let held = self.held[index].get();
        if held.depth > 1 {
            self.held[index].set(Held { depth: held.depth - 1, ..held });
        } else {
            self.remove(index);
        }
        true
    }

    /// Notes that the thread will take the mutex at that address again, which it releases now.
    fn comes_back(&self, address: usize, registers: Registers) {
        let Some(index) = self.find(address) else { return };
        let held = self.held[index].get();
        // A mutex that is held twice stays held.
        if held.depth == 1 && self.count.get() > 1 {
            let hash = self.hash.get().wrapping_sub(hash_of(held.number, held.mode));
            self.blocks_for((held.lock, held.number, held.mode), hash, Some(index), registers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers from which no walk leads on.
    const NOWHERE: Registers = Registers { code: 0, stack: 0, frame: 0 };

    #[test]
    fn a_thread_s_list_has_what_it_holds() {
        let mut mutexes = [libc::PTHREAD_MUTEX_INITIALIZER; MAX_HELD + 2];
        let locks: Vec<_> =
            mutexes.iter_mut().map(|mutex| Lock::Mutex(ptr::from_mut(mutex))).collect();
        let local = Local::new();
        let take = |lock: Lock| {
            let wanted = Wanted { lock, mode: Mode::Exclusive, blocks: true };
            // SAFETY: a mutex, here and below.
            let number = unsafe { lock.number() }.unwrap();
            // SAFETY: as above.
            unsafe { local.acquiring(&wanted, number, NOWHERE) };
            // SAFETY: as above.
            unsafe { local.acquired(&wanted, number, 0) };
        };
        locks.iter().for_each(|&lock| take(lock));
        assert_eq!((local.count.get(), local.too_deep.get()), (MAX_HELD, 2));
        // In any order.
        assert!(local.released(locks[3].address()) && local.released(locks[0].address()));
        assert_eq!(local.find(locks[3].address()), None);
        assert_eq!(local.find(locks[4].address()), Some(2));
        let [end, last] = [&locks[MAX_HELD], &locks[MAX_HELD + 1]].map(|lock| lock.address());
        assert!(local.released(end) && local.released(last), "those without room are counted");
        assert!(!local.released(end));
        // A lock that was made anew in the place of a held one is another one.
        // SAFETY: as above.
        let before = unsafe { locks[1].take_number() };
        take(locks[1]);
        let index = local.find(locks[1].address()).unwrap();
        assert!(Some(local.held[index].get().number) > before);
        let all: Vec<_> = local.all().iter().map(|held| held.get().lock.address()).collect();
        all.into_iter().for_each(|address| assert!(local.released(address)));
        assert_eq!((local.count.get(), local.hash.get()), (0, 0));
    }
}
