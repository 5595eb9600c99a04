//! Readers that sleep until the writer of their lock leaves, which lets all of them in at once.
//!
//! Why not the mutex that writers queue at: readers would come through one wake-up after another.
//! Why not a count of waiting readers in the lock: a reader that gives up must know whether it is
//! still in the count, and the child of a fork must forget its parent's readers.
//!
//! | a reader's `state` | in the queue | left by |
//! | --- | --- | --- |
//! | waiting | yes | the lock's writer, which takes all out; or its own thread at the deadline |
//! | admitted | no | |
//!
//! All readers of a lock sleep on one word, the lock's `admissions`, so that one system call wakes
//! them all.
//!
//! # Invariants
//!
//! 1. The queues are touched under the bucket's lock only.
//! 2. `state` becomes admitted under that lock, in the step that takes the reader out. So a reader
//!    that holds the lock at its deadline knows for certain whether it was admitted.
//! 3. A reader lies on its thread's stack, and the thread does not go on before it is out of the
//!    queue.
//!
//! # No wake-up is lost
//!
//! A reader loads `admissions`, finds that it is waiting, and sleeps while `admissions` has that
//! value. The writer stores `state`, then adds to `admissions`, then wakes. If the reader loaded
//! the old value, the kernel does not let it sleep after the addition. If it loaded the new one, it
//! sees the `state` that was stored before.
//!
//! # Orderings
//!
//! `state`: Release by the writer, Acquire by the reader, which then reads what the writer wrote.
//! `admissions`: Release by the writer, Acquire by the reader, for the paragraph above.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

use crate::bucket::{self, Bucket};
use crate::list::{Link, Linked};
use crate::queues::{Entry, Queued};

const WAITING: u32 = 0;
const ADMITTED: u32 = 1;

/// Fewer than for mutexes: only readers that meet a writer, and that writer, look here.
const BUCKETS: usize = park::BUCKETS.div_ceil(16);

stanchion_machine::global! {
    static TABLE: [Bucket<Reader>; BUCKETS] = [const { Bucket::new() }; BUCKETS];
}

/// An entry of a queue. It lies on the stack of the thread that waits, alone on its cache lines.
#[repr(align(128))]
struct Reader {
    /// See the first table of the header.
    state: AtomicU32,
    /// Its links in the queue (Invariant 1).
    entry: Entry<Self>,
}

// SAFETY: its own link, which only the queues use.
unsafe impl Linked for Reader {
    fn link(&self) -> &Link<Self> {
        self.entry.link()
    }
}

// SAFETY: its own entry, which only the queues use.
unsafe impl Queued for Reader {
    fn entry(&self) -> &Entry<Self> {
        &self.entry
    }
}

/// The state of its lock, as a reader finds it that looks once more before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has become a reader of the lock.
    Entered,
    /// A writer is there.
    Writer,
    /// There is no writer, and no room for another reader.
    Full,
}

/// The end of a [`sleep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// The thread is a reader of the lock: by its own look, or because a writer admitted it.
    Entered,
    /// There is no writer, and no room for another reader.
    Full,
    /// The deadline has passed, and the thread is no reader.
    TimedOut,
}

/// Waits until a writer admits the calling thread to the lock that counts its admissions in
/// `admissions`.
///
/// `look` is called first, under the lock of the queue, and must not unwind. `left` is called under
/// that lock when the thread leaves the queue by itself, or does not join it.
pub(crate) fn sleep(
    admissions: &AtomicU32,
    look: impl FnOnce() -> Look,
    left: impl Fn(),
    deadline: Deadline,
) -> Slept {
    let bucket = bucket_of(admissions);
    let reader = Reader { state: AtomicU32::fresh(WAITING), entry: Entry::new(admissions) };
    // Invariant 3.
    let bomb = AbortOnUnwind::armed("a thread panicked while it was in a queue of readers");
    let look = bucket.with(forget, |queues| {
        let look = look();
        if look == Look::Writer {
            // SAFETY: in no queue until now; the bomb keeps the thread from going on before it is
            // out (Invariant 3).
            unsafe { queues.push(&reader) };
        } else {
            left();
        }
        look
    });
    let slept = match look {
        Look::Entered => Slept::Entered,
        Look::Full => Slept::Full,
        Look::Writer => wait(bucket, admissions, &reader, left, deadline),
    };
    bomb.defuse();
    slept
}

fn wait(
    bucket: &Bucket<Reader>,
    admissions: &AtomicU32,
    reader: &Reader,
    left: impl Fn(),
    deadline: Deadline,
) -> Slept {
    loop {
        // Acquire: pairs with the Release addition of `admit_all`.
        let seen = admissions.load(Ordering::Acquire);
        // Acquire: pairs with the Release of `admit_all`.
        if reader.state.load(Ordering::Acquire) == ADMITTED {
            return Slept::Entered;
        }
        if park::wait(admissions, seen, deadline) == park::Woken::TimedOut {
            return bucket.with(forget, |queues| {
                // Relaxed: stored under the lock that is held here (Invariant 2).
                if reader.state.load(Ordering::Relaxed) == ADMITTED {
                    return Slept::Entered;
                }
                // SAFETY: waiting, so it is in its queue (Invariant 2).
                unsafe { queues.remove(reader) };
                left();
                Slept::TimedOut
            });
        }
    }
}

/// Admits all readers that wait for the lock with these admissions.
///
/// `enter` is called under the lock of the queue with their number, before any of them can know.
/// The caller holds the gate, so that no writer comes in between.
#[cold]
pub(crate) fn admit_all(admissions: &AtomicU32, enter: impl FnOnce(u32)) {
    let admitted = bucket_of(admissions).with(forget, |queues| {
        let mut readers = queues.remove_all(admissions);
        let count = readers.iter().count();
        if count > 0 {
            // There are not more threads than fit.
            enter(count as u32);
        }
        loop {
            let reader = readers.pop();
            if reader.is_null() {
                break;
            }
            // SAFETY: taken out, but not admitted yet, so it is alive (Invariant 3).
            let state = unsafe { &raw const (*reader).state };
            // Release: pairs with the reader's Acquire. From here on it may be gone.
            // SAFETY: alive until it sees the store.
            unsafe { (*state).store(ADMITTED, Ordering::Release) };
        }
        if count > 0 {
            // Release: pairs with the Acquire load of a reader about to sleep.
            admissions.fetch_add(1, Ordering::Release);
        }
        count
    });
    if admitted > 0 {
        park::wake_all(admissions);
    }
}

fn bucket_of(admissions: &AtomicU32) -> &'static Bucket<Reader> {
    &TABLE[bucket::index(admissions, BUCKETS)]
}

/// Nothing besides the queues belongs to a bucket.
fn forget() {}
