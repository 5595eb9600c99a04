//! The order in which threads get a processor: in turn, for a quantum each, beside other
//! applications.
//!
//! There is one queue of ready threads, first come first served. An idle processor takes the first
//! of them that may run on it. A woken thread takes an idle processor at once, its last one if that
//! is among them. A slice ends when its thread notices, at its next shared access or in a stretch
//! of computation, and only if another thread wants the processor. A spinning thread notices
//! nothing: for it an event is announced when another thread begins to want its processor.
//!
//! # Invariants
//!
//! 1. A thread is `Running` or `Spinning` if and only if it is the `current` of exactly one
//!    processor, which is its `processor`.
//! 2. A thread is in `ready` if and only if its status is `Ready`. No processor is idle that could
//!    run one of them, unless it is an address space's.
//! 3. Each change of a thread's status begins a new stretch, so events announced before are stale.

use crate::Time;
use crate::scheduler::event::{Stretch, What};
use crate::scheduler::thread::{Status, ThreadId, Wait};
use crate::services::kernel::State;
use crate::statistics::Activity;

/// One processor, as the scheduler sees it.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// The thread that runs here.
    pub(crate) current: Option<ThreadId>,
    /// The thread that ran here last: putting it back on costs nothing.
    last: Option<ThreadId>,
    /// The time when `current` may be taken off.
    pub(crate) slice_end: Time,
    /// Until when the other applications have it.
    away_until: Time,
    /// The time since when `current` has it.
    since: Time,
    /// The stretch of spinning with an announced end of its slice.
    announced: Option<Stretch>,
}

impl Processor {
    /// The first processor begins with the first thread on it.
    pub(crate) fn new(number: usize) -> Self {
        Self {
            current: None,
            last: (number == 0).then(|| ThreadId::new(0)),
            slice_end: Time::ZERO,
            away_until: Time::ZERO,
            since: Time::ZERO,
            announced: None,
        }
    }

    /// Putting that thread on costs nothing.
    pub(crate) fn ran_last(&mut self, id: ThreadId) {
        self.last = Some(id);
    }

    fn is_idle(&self, at: Time) -> bool {
        self.current.is_none() && self.away_until <= at
    }
}

impl State {
    /// `id` can run from now on.
    pub(crate) fn make_ready(&mut self, id: ThreadId, at: Time) {
        if let Some(space) = self.threads[id.index()].space {
            return self.unblock(id, space, at);
        }
        self.enter(id, Status::Ready, at);
        self.threads[id.index()].wait = Wait::Nothing;
        match self.idle_for(id, at) {
            Some(processor) => self.put_on(id, processor, at),
            None => {
                self.ready.push_back(id);
                self.announce_slices(at);
                self.claim(id, at);
                self.reallocate(at);
            }
        }
        if self.threads[id.index()].entry.is_some() {
            self.gangs_changed(at);
        }
    }

    /// An idle processor for `id`: its last one, or the first.
    pub(crate) fn idle_for(&self, id: ThreadId, at: Time) -> Option<usize> {
        let thread = &self.threads[id.index()];
        let is_idle = |processor: &usize| {
            self.processors[*processor].is_idle(at) && self.spaces.is_ordinary(*processor)
        };
        if let Some(pinned) = thread.pinned {
            return Some(pinned).filter(is_idle);
        }
        let last = Some(thread.processor).filter(is_idle);
        last.or_else(|| (0..self.processors.len()).find(is_idle))
    }

    /// Takes `id` onto the processor `at`, which is idle.
    pub(crate) fn put_on(&mut self, id: ThreadId, at: usize, now: Time) {
        let scheduling = &self.machine.scheduling;
        let processor = &mut self.processors[at];
        let switch = if processor.last == Some(id) { Time::ZERO } else { scheduling.switch };
        processor.current = Some(id);
        processor.last = Some(id);
        processor.since = now;
        let upcall =
            if self.threads[id.index()].is_fresh() { scheduling.upcall } else { Time::ZERO };
        let begin = now + switch + upcall;
        processor.slice_end = begin + scheduling.quantum;
        if core::mem::take(&mut self.first_slice[at]) {
            // The processors' slices do not end together.
            let part = self.random.below(scheduling.quantum.as_picos().max(1));
            if scheduling.applications > 1 {
                self.processors[at].slice_end = begin + Time::picos(part);
            }
        }
        self.enter(id, Status::Running, now);
        let thread = &mut self.threads[id.index()];
        if thread.processor != at {
            thread.statistics.migrations += 1;
        }
        thread.processor = at;
        thread.time = now;
        thread.keep.warned = false;
        self.spend(id, Activity::Switching, begin);
        let stretch = self.threads[id.index()].stretch;
        self.events.announce(begin, What::Run(id, stretch));
        self.switched(id, now);
    }

    /// Gives an idle processor to a thread or space that has a right to it.
    pub(crate) fn dispatch(&mut self, processor: usize, at: Time) {
        if self.spaces.is_empty() {
            self.dispatch_ready(processor, at);
        } else if self.processors[processor].current.is_none() {
            self.arrive(processor, at);
        }
    }

    /// Takes the first ready thread that may run there onto an idle processor.
    pub(crate) fn dispatch_ready(&mut self, processor: usize, at: Time) {
        if !self.spaces.is_ordinary(processor) || !self.processors[processor].is_idle(at) {
            return;
        }
        let mine = |id: &ThreadId| self.threads[id.index()].may_run_on(processor);
        let of_slot = |id: &ThreadId| mine(id) && self.is_first_on(*id, processor);
        let first = self.interruptible.then(|| self.ready.iter().position(of_slot)).flatten();
        let first = first.or_else(|| self.ready.iter().position(mine));
        if let Some(id) = first.and_then(|index| self.ready.remove(index)) {
            self.put_on(id, processor, at);
        }
    }

    /// Takes `id` off its processor, into `status`, and gives the processor to another.
    pub(crate) fn take_off(&mut self, id: ThreadId, status: Status, at: Time) {
        let processor = self.threads[id.index()].processor;
        let left = &mut self.processors[processor];
        debug_assert_eq!(left.current, Some(id), "only a current thread can be taken off");
        left.current = None;
        self.statistics.processors[processor] += at - left.since;
        self.enter(id, status, at);
        self.threads[id.index()].waited = status == Status::Blocked;
        if status == Status::Ready {
            self.ready.push_back(id);
        }
        self.switched(id, at);
        self.left(id, status);
        self.dispatch(processor, at);
        if let Some(space) = self.threads[id.index()].space {
            self.deliver(space, at);
        } else {
            self.reallocate(at);
        }
        if status == Status::Ready {
            self.settle(id, at);
        } else if self.threads[id.index()].entry.is_some() {
            self.gangs_changed(at);
        }
    }

    /// Returns whether another thread wants the processor of `id`.
    fn is_wanted(&self, id: ThreadId) -> bool {
        let thread = &self.threads[id.index()];
        self.machine.scheduling.applications > 1
            || self.spaces.is_called(thread.processor)
            || !thread.may_run_on(thread.processor)
            || self.has_rival(id)
    }

    /// Returns whether a ready thread may have the processor of `id`. A thread of the processor's
    /// slot has no rival: see [`gang`](crate::os::gang), Invariant 2.
    fn has_rival(&self, id: ThreadId) -> bool {
        let processor = self.threads[id.index()].processor;
        self.threads[id.index()].space.is_none()
            && !self.is_first_on(id, processor)
            && self.ready.iter().any(|other| self.threads[other.index()].may_run_on(processor))
    }

    /// Ends the slice of `id` at its own time. Returns whether it had to leave its processor.
    pub(crate) fn end_slice(&mut self, id: ThreadId) -> bool {
        let at = self.threads[id.index()].time;
        if !self.is_wanted(id) {
            self.renew_slice(id, at);
            return false;
        }
        if self.grant(id, at) {
            return false;
        }
        self.preempt(id, at);
        true
    }

    /// Renews the slice of `id`, because no thread waits for its processor.
    fn renew_slice(&mut self, id: ThreadId, at: Time) {
        let thread = &mut self.threads[id.index()];
        thread.keep.warned = false;
        self.processors[thread.processor].slice_end = at + self.machine.scheduling.quantum;
    }

    pub(crate) fn preempt(&mut self, id: ThreadId, at: Time) {
        let processor = self.threads[id.index()].processor;
        self.threads[id.index()].statistics.preemptions += 1;
        let others = self.machine.scheduling.applications.saturating_sub(1);
        if others > 0 {
            let back = at + self.machine.scheduling.quantum * others as u64;
            self.processors[processor].away_until = back;
            self.processors[processor].last = None;
            self.events.announce(back, What::Back(processor));
        }
        let stays = self.threads[id.index()].space.is_some();
        self.take_off(id, if stays { Status::Stopped } else { Status::Ready }, at);
    }

    /// Finds another processor for `id`, which has just lost its own, if it has not been put back
    /// there: an idle one, or it waits for one.
    pub(crate) fn settle(&mut self, id: ThreadId, at: Time) {
        if self.threads[id.index()].status != Status::Ready {
            return;
        }
        match self.idle_for(id, at) {
            Some(processor) => {
                self.ready.retain(|other| *other != id);
                self.put_on(id, processor, at);
            }
            None => self.announce_slices(at),
        }
    }

    /// Gives the processor away if another thread wants it. Returns whether it did.
    pub(crate) fn yield_processor(&mut self, id: ThreadId) -> bool {
        let thread = &self.threads[id.index()];
        let (at, processor) = (thread.time, thread.processor);
        let moves = !thread.may_run_on(processor);
        let wanted = self.has_rival(id);
        if moves || wanted {
            self.take_off(id, Status::Ready, at);
        }
        moves || wanted
    }

    /// Announces the ends of the slices of spinning threads, because a thread waits for a
    /// processor.
    pub(crate) fn announce_slices(&mut self, at: Time) {
        for processor in 0..self.processors.len() {
            if let Some(id) = self.processors[processor].current
                && self.threads[id.index()].status == Status::Spinning
            {
                self.announce_slice_end(id, at);
            }
        }
    }

    /// Announces the end of the slice of `id`, which spins, unless that has been done.
    fn announce_slice_end(&mut self, id: ThreadId, at: Time) {
        let thread = &self.threads[id.index()];
        let processor = &mut self.processors[thread.processor];
        if processor.announced != Some(thread.stretch) {
            processor.announced = Some(thread.stretch);
            let end = processor.slice_end.max(at).max(thread.time);
            self.events.announce(end, What::Slice(id, thread.stretch));
        }
    }

    /// The slice of `id`, which spins, has become shorter.
    pub(crate) fn announce_early_end(&mut self, id: ThreadId, at: Time) {
        let processor = self.threads[id.index()].processor;
        self.processors[processor].announced = None;
        self.announce_slice_end(id, at);
    }

    /// Announces the end of the slice of `id`, which begins to spin: another thread may want its
    /// processor already.
    pub(crate) fn announce_slice(&mut self, id: ThreadId) {
        if self.is_wanted(id) {
            self.announce_slice_end(id, self.threads[id.index()].time);
        }
    }

    /// The slice of a spinning thread is over.
    pub(crate) fn end_spinning_slice(&mut self, id: ThreadId, at: Time) {
        let processor = self.threads[id.index()].processor;
        self.processors[processor].announced = None;
        if self.processors[processor].slice_end > at {
            self.announce_slice_end(id, at);
        } else if !self.is_wanted(id) {
            self.renew_slice(id, at);
        } else if self.grant(id, at) {
            self.announce_slice_end(id, at);
        } else {
            self.interrupt_spinning(id, at);
            self.preempt(id, at);
        }
    }

    /// The other applications give `processor` back.
    pub(crate) fn back(&mut self, processor: usize, at: Time) {
        self.dispatch(processor, at);
    }

    /// A new stretch of `id`'s life begins.
    pub(crate) fn enter(&mut self, id: ThreadId, status: Status, at: Time) {
        let thread = &mut self.threads[id.index()];
        let waited = match thread.status {
            Status::Ready | Status::Stopped => Some(Activity::Ready),
            Status::Blocked => Some(Activity::Blocked),
            Status::Running | Status::Spinning | Status::Ended => None,
        };
        if let (Some(words), Wait::Parked(word), Status::Blocked) =
            (&mut self.words, thread.wait, thread.status)
        {
            words.parked(word, at - thread.since);
        }
        if let Some(activity) = waited {
            self.record(id, None, activity, at);
        }
        let thread = &mut self.threads[id.index()];
        thread.status = status;
        thread.since = at;
        thread.stretch += 1;
    }

    /// `id` did `activity` on its processor from its own time until `end`, which is its own time
    /// now.
    #[inline]
    pub(crate) fn spend(&mut self, id: ThreadId, activity: Activity, end: Time) {
        let thread = &mut self.threads[id.index()];
        let start = thread.time;
        thread.time = end;
        thread.statistics.times.add(activity, end - start);
        if let Some(timeline) = &mut self.timeline {
            timeline.add(id.index(), Some(thread.processor), activity, (start, end));
        }
    }

    fn record(&mut self, id: ThreadId, processor: Option<usize>, activity: Activity, end: Time) {
        let thread = &mut self.threads[id.index()];
        let start = thread.since;
        thread.statistics.times.add(activity, end - start);
        if let Some(timeline) = &mut self.timeline {
            timeline.add(id.index(), processor, activity, (start, end));
        }
    }
}
