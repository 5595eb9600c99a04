//! The shared memory of a run: what an access takes, and the threads that it wakes.
//!
//! # Spinning costs nothing
//!
//! A thread that looks at a word in its own cache until it changes does nothing that another
//! processor could notice. So it is taken out of the events. It comes back when a write or an
//! exchange of another processor on the *line* is done. (The value may be the same: an exchange
//! that fails invalidates copies too, and the paper's figures depend on that.) It also comes back
//! when its time is up, or when it loses its processor. If it pauses between two looks
//! ([`Machine::pause`]), it comes back when the pause is over in which the write fell.
//!
//! Between its look and its going to sleep other threads may have written. For each line (more
//! exactly, for each of a few thousand groups of lines) `written` keeps how many accesses the run
//! had seen at the last write. The thread keeps that number of its look at the word. It would not
//! do to ask whether its copy of the line is gone: an update leaves it, a write by another thread
//! of the same processor does, and a look at another word of the line brings it back.

use super::jitter::Jitters;
use crate::arena::Identities;
use crate::memory::{Access, Kind, Line, System};
use crate::scheduler::{Scheduler, Status, Threads, Wait};
use crate::statistics::Activity;
use crate::{Machine, ThreadId, Time};
use std::collections::HashMap;

/// The number of groups of lines that share a record of their last write. A collision makes a
/// waiter look once too often.
const GROUPS: usize = 4_096;

/// The memory system of a run, and the threads that spin in their caches.
pub(crate) struct SharedMemory {
    /// The identities of addresses.
    pub(crate) identities: Identities,
    /// The memory system.
    system: System,
    /// The jitter of the run.
    jitters: Jitters,
    /// The time of a pause between two looks of a spinning thread.
    pause: Time,
    /// The threads that spin on each line, with the number of the stretch in which they do.
    spinning: HashMap<Line, Vec<(ThreadId, u64)>>,
    /// The number of accesses at the last write to each group of lines.
    written: Box<[u64]>,
}

impl SharedMemory {
    /// Untouched memory, and empty caches.
    pub(super) fn new(machine: &Machine, identities: Identities, seed: u64) -> Self {
        Self {
            identities,
            system: System::new(machine),
            jitters: Jitters::new(machine, seed),
            pause: machine.pause,
            spinning: HashMap::new(),
            written: vec![0; GROUPS].into_boxed_slice(),
        }
    }

    /// The memory system.
    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    /// Returns the number of accesses so far.
    #[inline]
    pub(super) fn accesses(&self) -> u64 {
        self.system.totals().all
    }

    /// Charges an access of `id`, which is the earliest thing to happen.
    pub(super) fn access(
        &mut self,
        scheduler: &mut Scheduler,
        id: ThreadId,
        word: u64,
        kind: Kind,
    ) {
        let threads = &mut scheduler.threads;
        let line = self.system.line_of(word);
        let (at, processor) = (threads[id].time, threads[id].processor);
        let done = self.system.access(Access { at, processor, line, kind });
        let end = self.jitters.transaction(kind, &done);

        threads[id].statistics.accesses.add(kind, &done);
        if let Some(words) = &mut threads.words {
            words.add(word, kind, at, &done);
        }
        let seen = self.accesses();
        let thread = &mut threads[id];
        thread.looked_at(word, seen);
        if thread.accesses_left != u64::MAX {
            thread.accesses_left -= 1;
        }
        if kind != Kind::Read {
            self.written[group(line)] = seen;
        }
        // A read can take a line away, too. A thread that looks at it then has to fetch it.
        if (kind != Kind::Read || done.invalidated > 0) && !self.spinning.is_empty() {
            self.wake_spinners(scheduler, line, processor, done.reaches);
        }
        let activity = if done.hit { Activity::Useful } else { Activity::Stalled };
        scheduler.threads.spend(id, activity, end);
        self.serve_interrupts(scheduler, id, at, end);
    }

    /// Has `id`, which has done something from `began` to `until`, serve the interrupts of its
    /// processor that came meanwhile.
    #[inline]
    pub(crate) fn serve_interrupts(
        &self,
        scheduler: &mut Scheduler,
        id: ThreadId,
        began: Time,
        until: Time,
    ) {
        let Scheduler { threads, processors, .. } = scheduler;
        let thread = &threads[id];
        let ticks = self.jitters.handlers(thread.processor, began, until);
        let handlers = ticks + processors[thread.processor].serve_interrupts(until);
        if handlers > Time::ZERO {
            let end = thread.time + handlers;
            threads.spend(id, Activity::Switching, end);
        }
    }

    /// Has `id` wait until the stores of its processor are done.
    pub(super) fn fence(&self, scheduler: &mut Scheduler, id: ThreadId) {
        let thread = &scheduler.threads[id];
        let at = thread.time;
        let end = self.system.fence(thread.processor, at);
        scheduler.threads.spend(id, Activity::Stalled, end);
        self.serve_interrupts(scheduler, id, at, end);
    }

    /// A write on `line` reaches the caches at `at`.
    fn wake_spinners(&mut self, scheduler: &mut Scheduler, line: Line, writer: usize, at: Time) {
        let Some(spinners) = self.spinning.remove(&line) else { return };
        for (id, stretch) in spinners {
            let thread = &scheduler.threads[id];
            if thread.stretch == stretch {
                debug_assert_ne!(thread.processor, writer, "a processor runs one thread");
                let at = next_look(thread.time, self.pause, at);
                let at = self.jitters.notices(thread.processor, at);
                let at = scheduler.processors[thread.processor].notices(at);
                stop_spinning(&mut scheduler.threads, id, at);
                scheduler.threads.enter(id, Status::Running, at);
                scheduler.run_at(id, at);
            }
        }
    }

    /// Ends the spinning of `id`, which no write has ended.
    pub(super) fn interrupt_spinning(&mut self, threads: &mut Threads, id: ThreadId, at: Time) {
        if let Wait::Word(word) = threads[id].wait {
            let line = self.system.line_of(word);
            if let Some(spinners) = self.spinning.get_mut(&line) {
                spinners.retain(|(other, _)| *other != id);
                if spinners.is_empty() {
                    self.spinning.remove(&line);
                }
            }
        }
        stop_spinning(threads, id, at);
    }

    /// `id` begins to watch a word until `until`; `false` if its line has been written since it
    /// looked: it must look again.
    pub(crate) fn watch(
        &mut self,
        scheduler: &mut Scheduler,
        id: ThreadId,
        address: *const (),
        until: Time,
    ) -> bool {
        let word = self.identities.of(address);
        let line = self.system.line_of(word);
        let thread = &scheduler.threads[id];
        let seen = thread.last_look(word).is_some_and(|seen| seen >= self.written[group(line)]);
        if !seen || !self.system.holds(thread.processor, line) {
            return false;
        }
        let now = thread.time;
        scheduler.threads.enter(id, Status::Spinning, now);
        let thread = &mut scheduler.threads[id];
        thread.wait = Wait::Word(word);
        self.spinning.entry(line).or_default().push((id, thread.stretch));
        if until != Time::NEVER {
            scheduler.time_out_at(id, until);
        }
        scheduler.announce_slice(id);
        true
    }
}

/// Accounts for the spinning of `id`, which ends at `at`.
fn stop_spinning(threads: &mut Threads, id: ThreadId, at: Time) {
    let thread = &threads[id];
    let (wait, began) = (thread.wait, thread.time);
    if let (Some(words), Wait::Word(word)) = (&mut threads.words, wait) {
        words.spun(word, at - began);
    }
    threads.spend(id, Activity::Spinning, at.max(began));
    threads[id].wait = Wait::Nothing;
}

/// Returns the time at which a thread that has paused since `began`, for `pause` before each look,
/// looks for the first time at `at` or later.
fn next_look(began: Time, pause: Time, at: Time) -> Time {
    if pause == Time::ZERO {
        return at;
    }
    let pauses = at.since(began).as_picos().div_ceil(pause.as_picos()).max(1);
    began + pause * pauses
}

fn group(line: Line) -> usize {
    (line.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - GROUPS.trailing_zeros())) as usize
}
