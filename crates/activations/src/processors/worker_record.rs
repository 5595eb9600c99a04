//! A worker, a kernel thread that runs user-level ones, as the others may touch it. What only it
//! touches is in `scheduler_loop.rs`.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Fresh, Ordering};
use machine::clock::{Deadline, Ticks};
use machine::presence::{self, Presence};

use crate::stats::live_threads::ThreadCounts;
use crate::thread::kind::ThreadKind;
use crate::queues::mailbox::Mail;
use crate::detection::observed::ObservedState;
use crate::queues::prioritized::LocalQueue;
use crate::thread::priority::Priority;
use crate::processors::ownership::Ownership;
use crate::thread::header::Thread;

/// What others may touch of a worker.
pub(crate) struct WorkerRecord {
    often: CachePadded<WrittenOften>,
    /// Its slot, while it has one.
    slot: AtomicU32,
    /// Its number with [`machine::presence`], and one more; 0 while it is not registered.
    presence_index: AtomicU32,
    note: ObservedState,
    /// Its present block has been counted as one for which there was no spare worker.
    is_unreplaced: AtomicBool,
    /// When its slot was last taken, in ticks.
    lost: AtomicU64,
    mail: Mail<Thread>,
}

/// What the worker writes at each scheduling point, apart from what others read at each of theirs.
struct WrittenOften {
    ownership: Ownership,
    /// Threads that it has created, and that have ended on it.
    count: ThreadCounts,
    /// The kind of the thread that has its turn, and above [`KIND_BITS`] the number of the turn.
    turn: AtomicU64,
    /// Where the stack begins that it is on.
    stack: AtomicUsize,
    /// Its own threads that were ready when its turn began.
    ready: AtomicUsize,
}

/// Bits of a [`ThreadKind`], which is an address.
const KIND_BITS: u32 = 48;

impl WorkerRecord {
    pub(crate) fn new(slot: Option<usize>) -> Self {
        let often = WrittenOften {
            ownership: if slot.is_some() { Ownership::with_slot() } else { Ownership::spare() },
            count: ThreadCounts::new(),
            turn: AtomicU64::fresh(0),
            stack: AtomicUsize::fresh(0),
            ready: AtomicUsize::fresh(0),
        };
        Self {
            often: CachePadded::new(own),
            slot: AtomicU32::fresh(slot.unwrap_or(0) as u32),
            presence_index: AtomicU32::fresh(0),
            note: ObservedState::new(),
            is_unreplaced: AtomicBool::fresh(false),
            lost: AtomicU64::fresh(0),
            mail: Mail::new(),
        }
    }

    pub(crate) fn ownership(&self) -> &Ownership {
        &self.often.ownership
    }

    /// Its slot; the last one that it had, if it has none.
    pub(crate) fn slot(&self) -> usize {
        // Relaxed: written before it is given the slot; others take it for a hint.
        self.slot.load(Ordering::Relaxed) as usize
    }

    /// Gives it a slot, which the caller has, and wakes it.
    pub(crate) fn take_slot(&self, slot: usize) {
        // Relaxed: `give` is a Release.
        self.slot.store(slot as u32, Ordering::Relaxed);
        self.often.ownership.give();
    }

    pub(crate) fn has_mail(&self) -> bool {
        // A thread that must not miss it has a fence before.
        self.mail.is_there()
    }

    /// A thread that began here is ready again. The caller sees to it that it is looked at.
    pub(crate) fn mail(&self, thread: Thread) {
        self.mail.send(thread);
    }

    /// Sleeps until there is mail, or the deadline has passed; may return for nothing. By the
    /// worker.
    pub(crate) fn await_mail(&self, deadline: Deadline) {
        self.mail.wait(deadline);
    }

    /// Returns whether it sleeps until there is mail, and there is none, as far as is known.
    pub(crate) fn awaits_mail(&self) -> bool {
        self.mail.is_awaited()
    }

    /// Returns the highest priority of the threads that it has been mailed.
    pub(crate) fn mail_priority(&self) -> Option<Priority> {
        self.mail.greatest(|thread| thread.header().priority())
    }

    /// Moves what it has been mailed to its own threads.
    pub(crate) fn read_mail(&self, own: &mut LocalQueue) {
        self.mail.take(|thread| own.push_back(thread));
    }

    /// It has registered with [`machine::presence`], under that number, or is not registered any
    /// more.
    pub(crate) fn set_presence_index(&self, index: Option<usize>) {
        // Relaxed: a number.
        self.presence_index.store(index.map_or(0, |index| index as u32 + 1), Ordering::Relaxed);
    }

    /// Its number with [`machine::presence`], if it is registered.
    pub(crate) fn presence_index(&self) -> Option<usize> {
        // Relaxed: a number.
        (self.presence_index.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Where it is, if it can be seen.
    #[inline]
    pub(crate) fn presence(&self) -> Presence {
        self.presence_index().map_or(Presence::Unknown, presence::of)
    }

    /// When it was last switched, if the kernel says so.
    pub(crate) fn switched_at(&self) -> Option<u64> {
        self.presence_index().and_then(presence::since)
    }

    /// Its turn of that number begins, with a thread of that kind. By the worker.
    #[inline]
    pub(crate) fn begins_turn(&self, number: u32, kind: ThreadKind) {
        // Relaxed: a hint for other workers.
        let turn = u64::from(number) << KIND_BITS | kind.to_bits() as u64;
        self.often.turn.store(turn, Ordering::Relaxed);
    }

    /// Which turn it has, or had last, modulo something, together with the kind of its thread.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: a hint.
        self.often.turn.load(Ordering::Relaxed)
    }

    /// It goes to the stack that begins there. By the worker.
    #[inline]
    pub(crate) fn goes_to(&self, stack: usize) {
        // Relaxed: a hint for the thread that looks.
        self.often.stack.store(stack, Ordering::Relaxed);
    }

    /// Where the stack begins that it is on, or was last.
    pub(crate) fn stack(&self) -> usize {
        // Relaxed: a hint.
        self.often.stack.load(Ordering::Relaxed)
    }

    /// So many of its own threads are ready beside the one that it runs. By the worker.
    #[inline]
    pub(crate) fn leaves_ready(&self, count: usize) {
        // Relaxed: hints. A look first, as mostly nothing changes.
        if self.often.ready.load(Ordering::Relaxed) != count {
            self.often.ready.store(count, Ordering::Relaxed);
        }
    }

    /// How many threads are ready that only this worker can run, beside the one that it runs.
    pub(crate) fn ready(&self) -> usize {
        // Relaxed: a hint.
        self.often.ready.load(Ordering::Relaxed) + if self.has_mail() { self.mail.len() } else { 0 }
    }

    /// The names of those of them that others have made ready since its turn began.
    pub(crate) fn names_in_mail(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.mail.look(|thread| names.extend(thread.name().map(String::from)));
        names
    }

    /// Whether it is in a thread and blocked in the kernel. Some 10 µs where the kernel does not
    /// record switches.
    pub(crate) fn is_stuck(&self) -> bool {
        let seen = self.presence_index().map(presence::examine);
        self.ownership().has_thread() && seen == Some(Presence::Blocked)
    }

    /// The kind of the thread that it runs, or has run last.
    pub(crate) fn kind(&self) -> ThreadKind {
        ThreadKind::from_bits((self.turn() & ((1 << KIND_BITS) - 1)) as usize)
    }

    /// What was last seen of it.
    pub(crate) fn note(&self) -> &ObservedState {
        &self.note
    }

    /// No worker can stand in for it while it is blocked. Returns whether that is the first look
    /// at this block to find so.
    pub(crate) fn begins_unreplaced_block(&self) -> bool {
        // Relaxed: a statistic.
        !self.is_unreplaced.swap(true, Ordering::Relaxed)
    }

    /// A look has found it back from a block.
    pub(crate) fn ends_unreplaced_block(&self) {
        // Relaxed: a statistic.
        self.is_unreplaced.store(false, Ordering::Relaxed);
    }

    /// Whether it is blocked in the middle of a thread, as far as is known.
    pub(crate) fn is_blocked(&self) -> bool {
        self.presence() == Presence::Blocked && self.ownership().is_in_thread()
    }

    /// Its slot is about to be taken.
    pub(crate) fn note_lost_slot(&self, now: Ticks) {
        // Relaxed: for a statistic.
        self.lost.store(now.to_bits(), Ordering::Relaxed);
    }

    /// When its slot was taken, if it was.
    pub(crate) fn lost_at(&self) -> Ticks {
        // Relaxed: for a statistic.
        Ticks::from_bits(self.lost.load(Ordering::Relaxed))
    }

    /// The threads that it has created, and that have ended on it.
    pub(crate) fn count(&self) -> &ThreadCounts {
        &self.often.count
    }
}
