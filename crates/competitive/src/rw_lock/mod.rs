//! The reader-writer lock: a mutex as gate for writers, a word that counts readers, and a queue of
//! readers that a writer wakes together.
//!
//! Why not one queue of readers and writers: it hands the lock from each to the next, and lets it
//! stand still for a wake-up each time. Here writers pass a gate one at a time. The gate is the
//! mutex of this crate, with a policy that decides how long to spin for it. Readers never take the
//! gate.
//!
//! Why a writer leaves the gate before it sleeps: when the last reader leaves, the lock is free. A
//! sleeper with the gate would keep all other writers out until it has a processor.
//!
//! | `word` | gate held by | |
//! | --- | --- | --- |
//! | n readers | no thread, or an upgradable reader | free for readers |
//! | n readers + writer | the writer | it waits for them to leave; no other reader gets in |
//! | n readers + wanted | any or none | writers sleep until they leave; no other reader gets in |
//! | wanted | any or none | free for all: the last reader wakes those writers |
//! | n readers + writer + asleep | the writer | it sleeps with the gate; the last reader wakes it |
//! | writer, perhaps + asleep | the writer | it has the lock |
//!
//! `wanted` may also be set beside `writer`. A writer sleeps with the gate if it has waited for 10
//! ms, or was an upgradable reader.
//!
//! ```text
//! read:    no writer, and not wanted beside readers: word += reader; wanted is cleared
//!          else: spin for C; then waiting += 1, heavy(), join the queue of readers, sleep
//! write:   take the gate; word += writer; spin for C until no reader is left
//!          else: word -= writer, += wanted; leave the gate; sleep; begin anew
//!          after 10 ms: word += asleep; sleep until no reader is left
//! leave a read:   word -= reader; if there is none now, and asleep or wanted: wake the writers
//! leave a write:  word = 0; light();
//!                 if waiting is not 0: wake all readers in the queue;
//!                 leave the gate
//! ```
//!
//! A writer that leaves, or gives up, wakes all readers that wait, whether or not another writer
//! waits at the gate. They begin anew. Meanwhile the lock is free for the threads that run. If one
//! of the readers has waited for 10 ms, the writer that leaves also adds all of them to the word:
//! they are in, and the next writer waits for them. So a reader waits for at most one writer after
//! the one that it meets when 10 ms have passed, unless writers give up, and a writer then for one
//! crowd of readers.
//!
//! An upgradable reader keeps writers from the gate, and so from the lock. When it comes it clears
//! `wanted`, and wakes those that `wanted` has kept out.
//!
//! # Invariants
//!
//! 1. `writer` and `asleep` are set and cleared by the holder of the gate only, and are clear when
//!    it leaves the gate. `wanted` is set by it.
//! 2. While `writer` is set, a reader is added only beside another reader, and only if it asks to
//!    read recursively. So the readers that a writer waits for come to an end, and once there are
//!    none the word is the writer's own, but for `wanted`, which another one that gives up may
//!    clear.
//! 3. Readers are counted in 29 bits. A reader neither gets in nor queues up if there are
//!    `READERS_MAX`. So there are never more than that and the threads that had queued up before,
//!    and `READERS_MAX` is far enough below 2^29 for those.
//! 4. `waiting` is at least the number of readers in the queue. The child of a fork inherits its
//!    parent's count. Then releases look into the queue in vain, and all else stays right.
//! 5. While a writer sleeps without the gate and there are readers, `wanted` is set, or a thread is
//!    about to wake that writer. `wanted` is cleared where there is no reader: then the last one
//!    wakes the writers. A writer that gives up clears it beside readers, and wakes the others.
//! 6. While a reader sleeps, a writer will leave or give up, or an upgradable reader has taken the
//!    gate and is about to wake that reader. In the child of a fork the writer may be missing.
//!
//! Not an invariant, unlike the mutex's: a writer's release touches the lock after readers may have
//! it. So the lock must not be freed before that release has returned. Safe code cannot do so.
//!
//! # No wake-up is lost
//!
//! A writer sleeps only while the word is the one that it saw, with readers and with `asleep` or
//! `wanted` in it. Readers that leave change the word. The last one finds that bit in the word that
//! it changed. Or the writer set it later, and found no reader. For `wanted` see Invariant 5.
//!
//! A reader adds to `waiting`, passes the heavy fence of [`ADMISSION`], and looks for the writer
//! once more, under the lock of the queue. A writer clears `writer`, or `wanted` if it gives up,
//! passes the light fence, and looks at `waiting`. So the reader finds no writer, or the writer
//! finds the reader. For the queue itself see [`readers`](crate::readers).
//!
//! # Orderings
//!
//! A reader is added with Acquire, which pairs with the Release store of the writer before, or of
//! its downgrade. It leaves with Release, which pairs with the Acquire of the writer's looks at the
//! word, since every change in between is a read-modify-write. Writers among themselves have the
//! gate. `waiting` is Relaxed: the [`Handshake`] [`ADMISSION`] orders it.
//!
//! Source: the problem is from Courtois, Heymans and Parnas, "Concurrent control with readers and
//! writers", CACM 1971; the gate is their second solution's. Letting all readers in between two
//! writers, which happens here once one of them has waited for 10 ms, is phase fairness
//! (Brandenburg and Anderson, "Reader-writer synchronization for shared-memory multiprocessor
//! real-time systems", ECRTS 2009).

use core::fmt;

use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::{self, Deadline};
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::park;
use stanchion_machine::wait::{Patient, WaitPolicy, spin_for, wait_until_deadline};

use crate::cost;
use crate::mutex::RawPolicyMutex;
use crate::readers::{self, Look, Slept};

mod recursive;
mod traits;
mod writer;

pub use recursive::ReadRecursive;

/// A writer that leaves or gives up, against a reader that is about to sleep: the writer sees that
/// the reader waits, or the reader finds no writer. The reader does not know which thread that is.
const ADMISSION: Handshake =
    Handshake::new("RawRwLock::word", "RawRwLock::waiting", Reach::AllThreads);

/// A writer holds the gate, and has the lock or waits for readers to leave.
const WRITER: u32 = 1;
/// It sleeps.
const ASLEEP: u32 = 2;
/// Writers that have left the gate sleep until no reader is left, or are about to.
const WANTED: u32 = 4;
/// One reader.
const READER: u32 = 8;
/// The bits that count readers.
const READERS: u32 = !(WRITER | ASLEEP | WANTED);
/// The most readers that get in by themselves: 2^29 - 2^24. Linux has at most 2^22 threads, and a
/// system with more memory for threads' stacks than 2^24 of them need is not in sight.
const READERS_MAX: u32 = (1 << 29) - (1 << 24);

/// A lock that many may hold to read, or one to write.
///
/// - Uncontended: reading takes one compare-exchange, and one locked instruction to release.
///   Writing takes a mutex, one locked instruction and a store more.
/// - Writers never starve. While a writer waits for the readers inside, it keeps new readers out,
///   but for those of [`ReadRecursive`]. Once those inside have left, the first thread that comes
///   has the lock. A writer that has waited for 10 ms since it first met readers keeps the gate
///   when it has it again, and waits for the readers of that moment only.
/// - Readers never starve. A reader that has waited for C sleeps until a writer leaves. Then it
///   tries again. If it has waited for 10 ms by then, it is in at once, with all other readers that
///   sleep.
/// - The gate has the order and the bound of its mutex. With [`RawPolicyMutex`] a writer that has
///   slept for 10 ms is next, at most every 5 ms. A policy that never sleeps has no bound. A writer
///   that has left the gate to sleep comes to it anew.
/// - Size: the mutex's and 12 bytes: 24 to 28.
/// - It has deadlines, downgrade and upgrade.
///
/// There is no poison. Read guards may go to other threads if the data may. Write guards and
/// upgradable guards are the mutex's, and stay.
///
/// A thread must not read again while it reads: if a writer has come in between, each waits for the
/// other. [`ReadRecursive`] is for that. Nor may a thread write while it reads, or the other way
/// round; [`upgrade`](lock_api::RwLockUpgradableReadGuard::upgrade) and
/// [`downgrade`](lock_api::RwLockWriteGuard::downgrade) are for that.
///
/// # Fork
///
/// In the child of a fork, a lock that another thread of the parent held stays held. So does a lock
/// that a thread of the parent was about to write, tried to, or had just written, if it held the
/// gate at that moment: in the child it neither comes to have the lock nor leaves the gate. With
/// `std::sync::RwLock` such a lock can be taken. If a thread of the parent waited for readers to
/// leave, new readers in the child may wait for ever.
///
/// # Panics
///
/// Locking panics if the thread holds the gate already, as a writer or upgradable reader does.
/// Reading panics if there are 2^29 - 2^24 readers, which only forgetting guards can bring about,
/// and so does the downgrade of an upgradable guard. A try is refused then. A try with a deadline
/// waits for it; if it lies beyond the clock's end, that too panics.
pub struct RawRwLock<G = RawPolicyMutex> {
    /// Held by the writer, or the upgradable reader.
    gate: G,
    /// The first table of the header.
    word: AtomicU32,
    /// Readers that sleep, or are about to (Invariant 4).
    waiting: AtomicU32,
    /// The number of times that readers were woken together, wrapping: the word on which they
    /// sleep. Written by writers that leave or give up, and by upgradable readers that come.
    admissions: AtomicU32,
}

/// A lock that many may hold to read, or one to write, see [`RawRwLock`].
///
/// ```
/// use stanchion_competitive::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
///
/// static PRICES: RwLock<Vec<u32>> = RwLock::new(Vec::new());
/// PRICES.write().push(3);
/// {
///     let (one, other) = (PRICES.read(), PRICES.try_read().unwrap());
///     assert_eq!(one.len(), other.len());
///     assert!(PRICES.try_write().is_none());
/// }
/// // Reads beside other readers, and writes if it must.
/// let prices = PRICES.upgradable_read();
/// if !prices.contains(&4) {
///     let mut prices = RwLockUpgradableReadGuard::upgrade(prices);
///     prices.push(4);
///     let prices = RwLockWriteGuard::downgrade(prices);
///     assert_eq!(*prices, [3, 4]);
/// }
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// The guard of a [`RwLock`] that is read.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// The guard of a [`RwLock`] that is written.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// The guard of a [`RwLock`] that is read, and may come to be written.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A guard of a part of what a [`RwLock`] protects, to read.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// A guard of a part of what a [`RwLock`] protects, to write.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A reader-writer lock with writers that wait at the gate as `P` decides.
///
/// ```
/// use stanchion_competitive::{PolicyRwLock, policy::AlwaysBlock};
/// let lock = PolicyRwLock::<_, AlwaysBlock>::new(1);
/// *lock.write() += 1;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type PolicyRwLock<T, P> = lock_api::RwLock<RawRwLock<RawPolicyMutex<P>>, T>;

impl<G> RawRwLock<G> {
    /// Creates a free lock behind that gate, which must be free.
    #[must_use]
    pub const fn with_gate(gate: G) -> Self {
        Self {
            gate,
            word: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            admissions: AtomicU32::new(0),
        }
    }

    /// Returns how many readers there are. A hint.
    #[must_use]
    pub fn readers(&self) -> usize {
        // Relaxed: out of date when it is returned.
        (self.word.load(Ordering::Relaxed) / READER) as usize
    }

    /// Returns how many readers sleep until a writer leaves, or are about to. A hint.
    #[must_use]
    pub fn waiting_readers(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.waiting.load(Ordering::Relaxed) as usize
    }

    /// Becomes a reader, if the word lets it.
    #[inline]
    fn enter(&self, may_enter: impl Fn(u32) -> bool) -> Look {
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            // Before the look for a writer: a reader must not queue up in a full lock, because the
            // writer would admit it (Invariant 3).
            if word / READER >= READERS_MAX {
                return Look::Full;
            }
            if !may_enter(word) {
                return Look::Writer;
            }
            // Clears `wanted` if there was no reader: see Invariant 5.
            let more = if word & READERS == 0 { READER } else { word + READER };
            // Acquire: pairs with the Release store of the last writer. Relaxed: it is tried again.
            match self.word.compare_exchange_weak(word, more, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Look::Entered,
                Err(now) => word = now,
            }
        }
    }

    /// Becomes a reader, unless a writer is there, or one waits for the readers inside.
    #[inline]
    fn try_read(&self) -> Look {
        self.enter(is_open)
    }

    /// Waits until the thread is a reader. Returns whether it is, or the deadline came first.
    #[cold]
    fn read_slow(&self, deadline: Deadline) -> bool {
        let arrived = clock::now();
        loop {
            // Relaxed: becoming a reader acquires.
            if spin_for(&self.word, Ordering::Relaxed, is_open, cost::current()).is_some()
                && self.try_read() == Look::Entered
            {
                return true;
            }
            // Relaxed: ordered by `ADMISSION`.
            self.waiting.fetch_add(1, Ordering::Relaxed);
            ADMISSION.heavy();
            let left = || {
                // Relaxed: a writer that still sees it only looks in vain.
                self.waiting.fetch_sub(1, Ordering::Relaxed);
            };
            match readers::sleep(&self.admissions, arrived, || self.try_read(), left, deadline) {
                Slept::Entered => return true,
                Slept::Woken => {}
                Slept::TimedOut => return false,
                Slept::Full if deadline == Deadline::NEVER => self.too_many(),
                Slept::Full => {
                    let has_room = |word: u32| word / READER < READERS_MAX;
                    let mut policy = <Patient>::start();
                    // Relaxed: becoming a reader acquires.
                    let order = Ordering::Relaxed;
                    if wait_until_deadline(&self.word, order, has_room, &mut policy, deadline)
                        .is_none()
                    {
                        return false;
                    }
                }
            }
        }
    }

    #[cold]
    fn too_many(&self) -> ! {
        panic!(
            "the lock at {self:p} has {READERS_MAX} readers, all it can count: guards were forgotten with `mem::forget`; drop them"
        )
    }

    /// Wakes all readers that sleep, or are about to.
    ///
    /// The caller holds the gate and there is no writer, or `may_admit` is false.
    #[inline]
    fn wake_readers(&self, may_admit: bool) {
        ADMISSION.light();
        // Relaxed: ordered by `ADMISSION`.
        if self.waiting.load(Ordering::Relaxed) != 0 {
            let left = |count| {
                // Relaxed: as where a reader leaves by itself.
                self.waiting.fetch_sub(count, Ordering::Relaxed);
            };
            let enter = |count| {
                // Relaxed: it goes on with the release sequence of the store that cleared `writer`.
                // It fits (Invariant 3).
                self.word.fetch_add(count * READER, Ordering::Relaxed);
            };
            readers::wake_all(&self.admissions, left, may_admit.then_some(enter));
        }
    }

    /// Becomes the writer. Returns whether there is no reader: the lock is the caller's.
    ///
    /// The caller holds the gate.
    #[inline]
    fn claim(&self) -> bool {
        // Acquire: pairs with the Release of readers that have left.
        self.word.fetch_or(WRITER, Ordering::Acquire) & READERS == 0
    }

    /// Becomes the writer and waits until no reader is left. If the deadline comes first, returns
    /// `false`, and the thread is no writer any more.
    ///
    /// The caller holds the gate, and keeps it.
    #[inline]
    fn exclude(&self, deadline: Deadline) -> bool {
        self.claim() || self.drain_spinning() || self.drain(deadline)
    }

    /// Waits for C until no reader is left. Returns whether there is none.
    ///
    /// The caller is the writer.
    #[cold]
    fn drain_spinning(&self) -> bool {
        // Acquire: pairs with the Release of readers that leave.
        spin_for(&self.word, Ordering::Acquire, is_empty, cost::current()).is_some()
    }

    /// Sleeps until no reader is left. If the deadline comes first, returns `false`, and the thread
    /// is no writer any more.
    ///
    /// The caller is the writer.
    #[cold]
    fn drain(&self, deadline: Deadline) -> bool {
        loop {
            // Acquire: pairs with the Release of readers that leave.
            let word = self.word.fetch_or(ASLEEP, Ordering::Acquire) | ASLEEP;
            if is_empty(word) {
                return true;
            }
            if park::wait(&self.word, word, deadline) == park::Woken::TimedOut {
                self.give_up(WRITER | ASLEEP, true);
                return false;
            }
        }
    }

    /// Stops waiting for readers: clears these bits and `wanted`, which kept other readers out, and
    /// wakes all that wait because of them.
    ///
    /// The caller holds the gate, or `may_admit` is false. The bits are its own.
    #[cold]
    fn give_up(&self, bits: u32, may_admit: bool) {
        // Relaxed: nothing was written.
        let word = self.word.fetch_and(!(bits | WANTED), Ordering::Relaxed);
        if word & WANTED != 0 {
            // They wait on.
            park::wake_all(&self.word);
        }
        // If another thread is the writer, it wakes the readers when it leaves.
        if word & !bits & WRITER == 0 {
            self.wake_readers(may_admit);
        }
    }

    /// Lets readers in that a writer without the gate keeps out.
    ///
    /// The caller has just taken the gate, and is no writer.
    #[inline]
    fn open(&self) {
        // Relaxed: only the holder of the gate sets it.
        if self.word.load(Ordering::Relaxed) & WANTED == 0 {
            self.wake_readers(true);
        } else {
            self.give_up(0, true);
        }
    }

    /// Becomes the writer, if there is neither reader nor writer. The caller holds the gate.
    fn try_exclude(&self) -> bool {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        // `wanted` alone is a free lock.
        while word & !WANTED == 0 {
            // Acquire: pairs with the Release of readers that have left. Relaxed: nothing is done
            // then.
            match self.word.compare_exchange(word, WRITER, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Ends the writing of the caller, which holds the gate; `rest` is 0, or one reader that it
    /// stays.
    #[inline]
    fn end_writing(&self, rest: u32) {
        // Release: pairs with the Acquire of readers. By Invariant 2 the word is this thread's but
        // for `wanted`, which it clears.
        self.word.store(rest, Ordering::Release);
        self.wake_readers(true);
    }
}

/// Returns whether a reader may enter.
fn is_open(word: u32) -> bool {
    word & WRITER == 0 && (word & WANTED == 0 || is_empty(word))
}

/// Returns whether there is no reader.
fn is_empty(word: u32) -> bool {
    word & READERS == 0
}

impl RawRwLock {
    /// Returns a free lock behind the default mutex.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_gate(RawPolicyMutex::new())
    }
}

impl<G: RawMutex> Default for RawRwLock<G> {
    fn default() -> Self {
        <Self as lock_api::RawRwLock>::INIT
    }
}

impl<G> fmt::Debug for RawRwLock<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRwLock").field("readers", &self.readers()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use lock_api::{RawRwLock as _, RawRwLockTimed as _};
    use stanchion_machine::clock::Instant;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn one_reader_too_many_is_refused() {
        let lock = RawRwLock::<RawPolicyMutex>::INIT;
        lock.word.store((READERS_MAX - 1) * READER, Ordering::Relaxed);
        let last = lock.try_lock_shared().expect("room for one");
        assert!(lock.try_lock_shared().is_none());
        assert!(lock.try_lock_shared_for(Duration::ZERO).is_none());
        let timeout = Duration::from_millis(20);
        let began = Instant::now();
        assert!(lock.try_lock_shared_for(timeout).is_none());
        assert!(began.elapsed() >= timeout, "gave up after {:?}", began.elapsed());
        // SAFETY: acquired above.
        unsafe { lock.unlock_shared(last) };
        assert!(lock.try_lock_shared_for(timeout).is_some(), "there is room again");
        let locks = AssertUnwindSafe(|| _ = lock.lock_shared());
        let refused = catch_unwind(locks).unwrap_err();
        let message = refused.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("guards were forgotten"), "{message}");
        // The refused reader has left everything as it was.
        assert!(!lock.gate.is_locked());
        assert_eq!(lock.word.load(Ordering::Relaxed), READERS_MAX * READER);
        assert_eq!(lock.waiting_readers(), 0);
    }

    /// A writer that waits in a full lock and gives up admits no reader beyond the limit.
    #[test]
    fn a_reader_does_not_queue_up_in_a_full_lock() {
        let lock = RawRwLock::<RawPolicyMutex>::INIT;
        let full_and_draining = (READERS_MAX * READER) | WRITER;
        lock.word.store(full_and_draining, Ordering::Relaxed);
        assert_eq!(lock.try_read(), Look::Full);
        assert!(lock.try_lock_shared_for(Duration::from_millis(2)).is_none());
        assert_eq!(lock.word.load(Ordering::Relaxed), full_and_draining);
        assert_eq!(lock.waiting_readers(), 0);
    }
}
