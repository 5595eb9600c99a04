//! The record of a worker: the part of it that other threads read and write. The part that only the
//! worker itself touches is in `worker/state.rs`.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::Ticks;
use stanchion_machine::presence::{self, Presence};

use super::ownership::Ownership;
use crate::detection::monitor::MonitoredWorker;
use crate::detection::observed::ObservedState;
use crate::queues::mailbox::Mailbox;
use crate::stats::live_threads::ThreadCounts;
use crate::thread::handle::Thread;
use crate::thread::kind::ThreadKind;
use crate::thread::priority::Priority;

/// The record of a worker.
pub(crate) struct WorkerRecord {
    /// The part that the worker writes at each scheduling point. It has cache lines of its own,
    /// because others read the rest at each of theirs.
    turn: CachePadded<TurnRecord>,
    /// The slot that the worker owns, or owned last. Written by the thread that gives it one.
    slot: AtomicU32,
    /// The worker's number with [`stanchion_machine::presence`], plus one; 0 while it is not
    /// registered. Written by the worker.
    presence_index: AtomicU32,
    /// The last observation of the worker. Moved by any thread that looks.
    pub(crate) observed: ObservedState,
    /// Set when its present block has been counted as one for which there was no spare worker.
    /// Written by threads that look.
    is_unreplaced: AtomicBool,
    /// The time at which its slot was last taken, in ticks. Written by the taker.
    slot_lost_at: AtomicU64,
    /// Bound threads that others have made ready.
    pub(crate) mailbox: Mailbox<Thread>,
}

/// The part of a record that the worker writes at each scheduling point.
struct TurnRecord {
    /// Which thread may use the worker's slot. Written by the worker, and by a thread that takes
    /// the slot or gives one.
    ownership: Ownership,
    /// The threads that were created on the worker, and that ended there. Written by the worker.
    counts: ThreadCounts,
    /// The kind of the thread that runs, and above [`KIND_BITS`] the number of the turn.
    turn: AtomicU64,
    /// The address at which the present stack begins.
    stack: AtomicUsize,
    /// The threads in its local queue when the turn began.
    local_ready: AtomicUsize,
}

/// The bits of a [`ThreadKind`], which is an address.
const KIND_BITS: u32 = 48;

impl WorkerRecord {
    /// Returns the record of a worker that owns this slot, or none.
    pub(crate) fn new(slot: Option<usize>) -> Self {
        let turn = TurnRecord {
            ownership: if slot.is_some() { Ownership::with_slot() } else { Ownership::idle() },
            counts: ThreadCounts::new(),
            turn: AtomicU64::fresh(0),
            stack: AtomicUsize::fresh(0),
            local_ready: AtomicUsize::fresh(0),
        };
        Self {
            turn: CachePadded::new(turn),
            slot: AtomicU32::fresh(slot.unwrap_or(0) as u32),
            presence_index: AtomicU32::fresh(0),
            observed: ObservedState::new(),
            is_unreplaced: AtomicBool::fresh(false),
            slot_lost_at: AtomicU64::fresh(0),
            mailbox: Mailbox::new(),
        }
    }

    pub(crate) fn ownership(&self) -> &Ownership {
        &self.turn.ownership
    }

    /// Returns the threads that the worker has created, and those that have ended on it.
    pub(crate) fn counts(&self) -> &ThreadCounts {
        &self.turn.counts
    }

    /// Returns the slot that the worker owns, or owned last.
    pub(crate) fn slot(&self) -> usize {
        // Relaxed: written before the worker is given the slot. For others it is a hint.
        self.slot.load(Ordering::Relaxed) as usize
    }

    /// Gives the worker a slot, which the caller has, and wakes it.
    pub(crate) fn give_slot(&self, slot: usize) {
        // Relaxed: `give` is a Release.
        self.slot.store(slot as u32, Ordering::Relaxed);
        self.turn.ownership.give();
    }

    /// Returns the highest priority of the threads in the mailbox.
    pub(crate) fn mailed_priority(&self) -> Option<Priority> {
        if !self.mailbox.is_full() {
            return None;
        }
        self.mailbox.greatest(|thread| thread.header().priority())
    }

    /// Sets the worker's number with [`stanchion_machine::presence`]. Called by the worker.
    pub(crate) fn set_presence_index(&self, index: Option<usize>) {
        // Relaxed: a number.
        self.presence_index.store(index.map_or(0, |index| index as u32 + 1), Ordering::Relaxed);
    }

    /// Returns the time of the last switch, if the kernel records it.
    pub(crate) fn switched_at(&self) -> Option<u64> {
        self.presence_index().and_then(presence::since)
    }

    /// Records that a turn begins. Called by the worker.
    #[inline]
    pub(crate) fn begin_turn(&self, number: u32, kind: ThreadKind) {
        let turn = u64::from(number) << KIND_BITS | kind.to_bits() as u64;
        // Relaxed: a hint for other threads.
        self.turn.turn.store(turn, Ordering::Relaxed);
    }

    /// Returns the number of the present or last turn, modulo a power of two, together with the
    /// kind of its thread.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: a hint.
        self.turn.turn.load(Ordering::Relaxed)
    }

    /// Returns the kind of the thread of the present or last turn.
    pub(crate) fn kind(&self) -> ThreadKind {
        ThreadKind::from_bits((self.turn() & ((1 << KIND_BITS) - 1)) as usize)
    }

    /// Records that the worker goes to the stack that begins there. Called by the worker.
    #[inline]
    pub(crate) fn set_stack(&self, base: usize) {
        // Relaxed: a hint for the thread that reports.
        self.turn.stack.store(base, Ordering::Relaxed);
    }

    /// Returns the address at which the present or last stack begins.
    pub(crate) fn stack(&self) -> usize {
        // Relaxed: a hint.
        self.turn.stack.load(Ordering::Relaxed)
    }

    /// Records the number of threads in the local queue. Called by the worker.
    #[inline]
    pub(crate) fn set_local_ready(&self, count: usize) {
        // Relaxed: a hint. The load comes first, as most often nothing changes.
        if self.turn.local_ready.load(Ordering::Relaxed) != count {
            // Relaxed: as above.
            self.turn.local_ready.store(count, Ordering::Relaxed);
        }
    }

    /// Returns the number of ready threads that only this worker can run, beside the one that it
    /// runs.
    pub(crate) fn ready(&self) -> usize {
        let mailed = if self.mailbox.is_full() { self.mailbox.count() } else { 0 };
        // Relaxed: a hint.
        self.turn.local_ready.load(Ordering::Relaxed) + mailed
    }

    /// Returns the names of the threads in the mailbox.
    pub(crate) fn mailed_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.mailbox.inspect(|thread| names.extend(thread.name().map(String::from)));
        names
    }

    /// Returns whether the worker is in a thread and blocked in the kernel. This takes some 10 µs
    /// where the kernel does not record switches.
    pub(crate) fn is_stuck(&self) -> bool {
        self.ownership().has_thread() && self.examine() == Some(Presence::Blocked)
    }

    /// Asks the kernel for the state of the worker's kernel thread.
    pub(crate) fn examine(&self) -> Option<Presence> {
        self.presence_index().map(presence::examine)
    }

    /// Records that no worker can stand in for this one while it is blocked. Returns whether that
    /// is new for this block.
    pub(crate) fn begin_unreplaced_block(&self) -> bool {
        // Relaxed: a statistic.
        !self.is_unreplaced.swap(true, Ordering::Relaxed)
    }

    /// Records that the worker is back from a block.
    pub(crate) fn end_unreplaced_block(&self) {
        // Relaxed: a statistic.
        self.is_unreplaced.store(false, Ordering::Relaxed);
    }

    /// Records that the slot is about to be taken.
    pub(crate) fn set_slot_lost_at(&self, now: Ticks) {
        // Relaxed: a statistic.
        self.slot_lost_at.store(now.to_bits(), Ordering::Relaxed);
    }

    /// Returns the time at which the slot was last taken.
    pub(crate) fn slot_lost_at(&self) -> Ticks {
        // Relaxed: a statistic.
        Ticks::from_bits(self.slot_lost_at.load(Ordering::Relaxed))
    }
}

impl MonitoredWorker for WorkerRecord {
    fn presence_index(&self) -> Option<usize> {
        // Relaxed: a number.
        (self.presence_index.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    #[inline]
    fn presence(&self) -> Presence {
        self.presence_index().map_or(Presence::Unknown, presence::of)
    }

    fn is_blocked(&self) -> bool {
        self.presence() == Presence::Blocked && self.ownership().is_in_thread()
    }
}
