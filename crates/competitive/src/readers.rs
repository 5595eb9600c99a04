//! Readers that sleep until a writer of their lock leaves or gives up, which wakes all of them at
//! once.
//!
//! Why not the mutex that writers queue at: readers would come through one wake-up after another.
//! Why not a count of waiting readers in the lock: a reader that gives up must know whether it is
//! still in the count, and the child of a fork must forget its parent's readers.
//!
//! | a reader's `state` | in the queue | left by |
//! | --- | --- | --- |
//! | waiting | yes | a writer, which takes all out; or its own thread at the deadline |
//! | woken | no | |
//! | admitted | no | |
//!
//! A woken reader looks for itself whether it gets in. An admitted one is in. Why not admit all: no
//! writer gets the lock until the last admitted reader has had a processor. Where threads outnumber
//! processors, the other threads soon sleep too, and processors stand idle. So the readers are
//! admitted only if one of them has waited for [`PATIENCE_NS`].
//!
//! All readers of a lock sleep on one word, the lock's `admissions`, so that one system call wakes
//! them all.
//!
//! # Invariants
//!
//! 1. The queues are touched under the bucket's lock only.
//! 2. `state` changes under that lock, in the step that takes the reader out. So a reader that
//!    holds the lock at its deadline knows for certain whether it was woken or admitted.
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
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::park;

use crate::bucket::{self, Bucket};
use crate::list::{Link, Linked};
use crate::parking::PATIENCE_NS;
use crate::queues::{Entry, Queued};

const WAITING: u32 = 0;
const WOKEN: u32 = 1;
const ADMITTED: u32 = 2;

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
    /// The time when its thread came to the lock.
    arrived: Ticks,
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
    /// A writer is there, or waits for the readers inside.
    Writer,
    /// There is no writer, and no room for another reader.
    Full,
}

/// The end of a [`sleep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// The thread is a reader of the lock: by its own look, or because a writer admitted it.
    Entered,
    /// A writer has left, or given up. The thread is no reader yet.
    Woken,
    /// There is no writer, and no room for another reader.
    Full,
    /// The deadline has passed, and the thread is no reader.
    TimedOut,
}

/// Waits until a writer leaves the lock that counts its admissions in `admissions`. The calling
/// thread came to the lock at `arrived`.
///
/// `look` is called first, under the lock of the queue, and must not unwind. `left` is called under
/// that lock when the thread leaves the queue by itself, or does not join it.
pub(crate) fn sleep(
    admissions: &AtomicU32,
    arrived: Ticks,
    look: impl FnOnce() -> Look,
    left: impl Fn(),
    deadline: Deadline,
) -> Slept {
    let bucket = bucket_of(admissions);
    let reader =
        Reader { state: AtomicU32::fresh(WAITING), arrived, entry: Entry::new(admissions) };
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
        // Acquire: pairs with the Release addition of `wake_all`.
        let seen = admissions.load(Ordering::Acquire);
        // Acquire: pairs with the Release of `wake_all`.
        if let Some(slept) = outcome(reader.state.load(Ordering::Acquire)) {
            return slept;
        }
        if park::wait(admissions, seen, deadline) == park::Woken::TimedOut {
            return bucket.with(forget, |queues| {
                // Relaxed: stored under the lock that is held here (Invariant 2).
                if let Some(slept) = outcome(reader.state.load(Ordering::Relaxed)) {
                    return slept;
                }
                // SAFETY: waiting, so it is in its queue (Invariant 2).
                unsafe { queues.remove(reader) };
                left();
                Slept::TimedOut
            });
        }
    }
}

/// Returns the outcome of a wait with that state, if it is over.
fn outcome(state: u32) -> Option<Slept> {
    match state {
        WAITING => None,
        WOKEN => Some(Slept::Woken),
        _ => Some(Slept::Entered),
    }
}

/// Wakes all readers that wait for the lock with these admissions. Admits them if there is `enter`
/// and one of them has waited for [`PATIENCE_NS`].
///
/// `left` is called under the lock of the queue with their number, and then `enter` if they are
/// admitted, before any of them can know. A caller with `enter` holds the gate, so that no writer
/// comes in between.
#[cold]
pub(crate) fn wake_all(
    admissions: &AtomicU32,
    left: impl FnOnce(u32),
    enter: Option<impl FnOnce(u32)>,
) {
    let any = bucket_of(admissions).with(forget, |queues| {
        let mut readers = queues.remove_all(admissions);
        let now = clock::now();
        let waited = |reader: &Reader| now.nanos_since(reader.arrived);
        let (count, longest) = readers
            .iter()
            .fold((0, 0), |(count, longest), reader| (count + 1, waited(reader).max(longest)));
        if count == 0 {
            return false;
        }
        left(count);
        // In a model, where no time passes, it has passed by choice.
        let patient = || longest < PATIENCE_NS && !stanchion_machine::choice();
        let state = match enter {
            Some(enter) if !patient() => {
                enter(count);
                ADMITTED
            }
            _ => WOKEN,
        };
        loop {
            let reader = readers.pop();
            if reader.is_null() {
                break;
            }
            // SAFETY: taken out, but not told so yet, so it is alive (Invariant 3).
            let place = unsafe { &raw const (*reader).state };
            // Release: pairs with the reader's Acquire. From here on it may be gone.
            // SAFETY: alive until it sees the store.
            unsafe { (*place).store(state, Ordering::Release) };
        }
        // Release: pairs with the Acquire load of a reader about to sleep.
        admissions.fetch_add(1, Ordering::Release);
        true
    });
    if any {
        park::wake_all(admissions);
    }
}

fn bucket_of(admissions: &AtomicU32) -> &'static Bucket<Reader> {
    &TABLE[bucket::index(admissions, BUCKETS)]
}

/// Nothing besides the queues belongs to a bucket.
fn forget() {}
