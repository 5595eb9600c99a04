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

use super::event::{Events, What};
use super::processor::Processor;
use super::sleepers::Sleepers;
use super::thread::{Computation, Outcome, Status, ThreadId, Wait};
use super::threads::Threads;
use crate::machine::Scheduling;
use crate::random::Random;
use crate::statistics::Activity;
use crate::{Machine, Time};
use std::collections::VecDeque;

/// The fraction of the golden ratio, in units of 2^-64. The fractions of its multiples are spread
/// evenly, however many there are.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The threads, the processors and the events of a run.
pub(crate) struct Scheduler {
    /// The costs of scheduling on the machine.
    pub(crate) scheduling: Scheduling,
    /// The events to come.
    pub(crate) events: Events,
    /// The threads, by number.
    pub(crate) threads: Threads,
    /// The processors, by number.
    pub(crate) processors: Vec<Processor>,
    /// The threads that sleep on words.
    pub(crate) sleepers: Sleepers,
    /// The threads that are ready, in the order in which they came.
    ready: VecDeque<ThreadId>,
    /// Set if a thread may have to leave its processor at a moment that is not known before.
    pub(crate) interruptible: bool,
    /// The run's randomness.
    pub(crate) random: Random,
}

/// # Threads that get and lose a processor
impl Scheduler {
    /// No thread yet. The processors are idle.
    pub(crate) fn new(machine: &Machine, threads: Threads, seed: u64) -> Self {
        Self {
            scheduling: machine.scheduling.clone(),
            events: Events::default(),
            threads,
            processors: (0..machine.processors).map(Processor::new).collect(),
            sleepers: Sleepers::default(),
            ready: VecDeque::new(),
            interruptible: false,
            random: Random::new(seed),
        }
    }

    /// Returns an idle processor for `id`: its last one, or the first.
    pub(crate) fn idle_for(&self, id: ThreadId, at: Time) -> Option<usize> {
        let thread = &self.threads[id];
        let is_idle = |processor: &usize| {
            self.processors[*processor].is_idle(at) && self.processors[*processor].is_ordinary()
        };
        if let Some(pinned) = thread.pinned {
            return Some(pinned).filter(is_idle);
        }
        let last = Some(thread.processor).filter(is_idle);
        last.or_else(|| (0..self.processors.len()).find(is_idle))
    }

    /// Puts `id`, which can run, on an idle processor. Returns whether it has to wait for one.
    pub(crate) fn place(&mut self, id: ThreadId, at: Time) -> bool {
        self.threads.enter(id, Status::Ready, at);
        self.threads[id].wait = Wait::Nothing;
        match self.idle_for(id, at) {
            Some(processor) => {
                self.put_on(id, processor, at);
                false
            }
            None => {
                self.ready.push_back(id);
                self.announce_slices(at);
                true
            }
        }
    }

    /// Takes `id` onto the processor `at`, which is idle.
    pub(crate) fn put_on(&mut self, id: ThreadId, at: usize, now: Time) {
        let scheduling = &self.scheduling;
        let count = self.processors.len() as u64;
        let processor = &mut self.processors[at];
        let switch = if processor.last == Some(id) { Time::ZERO } else { scheduling.switch };
        processor.current = Some(id);
        processor.last = Some(id);
        processor.since = now;
        processor.forget_interrupts(now);
        let upcall = if self.threads[id].is_fresh() { scheduling.upcall } else { Time::ZERO };
        let begin = now + switch + upcall;
        processor.slice_end = begin + scheduling.quantum;
        if core::mem::take(&mut processor.first_slice) {
            // The processors' turns do not begin together. They are spread evenly over the round,
            // whatever the number of processors: by multiples of the golden ratio. So at any time
            // this application has about its share of the processors, as has each other one.
            let round = scheduling.quantum.as_picos() * scheduling.applications as u64;
            let part = (at as u64).wrapping_mul(GOLDEN_RATIO);
            let part = ((u128::from(part) * u128::from(round)) >> 64) as u64;
            let late = self.random.below((round / count).max(1));
            if scheduling.applications > 1 {
                let phase = (part + late) % round;
                processor.slice_end = begin + Time::picos(phase % scheduling.quantum.as_picos());
                processor.first_away = Some(phase / scheduling.quantum.as_picos());
            }
        }
        self.threads.enter(id, Status::Running, now);
        let thread = &mut self.threads[id];
        if thread.processor != at {
            thread.statistics.migrations += 1;
        }
        thread.processor = at;
        thread.time = now;
        thread.keep.warned = false;
        self.threads.spend(id, Activity::Switching, begin);
        self.run_at(id, begin);
        self.switched(id, now);
    }

    /// Takes the first ready thread that may run there onto an idle processor.
    pub(crate) fn dispatch_ready(&mut self, processor: usize, at: Time) {
        let idle = &self.processors[processor];
        if !idle.is_ordinary() || !idle.is_idle(at) {
            return;
        }
        let mine = |id: &ThreadId| self.threads[*id].may_run_on(processor);
        let of_slot = |id: &ThreadId| mine(id) && self.is_first_on(*id, processor);
        let first = self.interruptible.then(|| self.ready.iter().position(of_slot)).flatten();
        let first = first.or_else(|| self.ready.iter().position(mine));
        if let Some(id) = first.and_then(|index| self.ready.remove(index)) {
            self.put_on(id, processor, at);
        }
    }

    /// Takes `id` off its processor, into `status`. Returns the processor, which is idle then.
    pub(crate) fn leave(&mut self, id: ThreadId, status: Status, at: Time) -> usize {
        let processor = self.threads[id].processor;
        let left = &mut self.processors[processor];
        debug_assert_eq!(left.current, Some(id), "only a current thread can be taken off");
        left.current = None;
        left.busy += at - left.since;
        self.threads.enter(id, status, at);
        self.threads[id].waited = status == Status::Blocked;
        if status == Status::Ready {
            self.ready.push_back(id);
        }
        self.switched(id, at);
        processor
    }

    /// Finds another processor for `id`, which has just lost its own, if it has not been put back
    /// there: an idle one, or it waits for one.
    pub(crate) fn settle(&mut self, id: ThreadId, at: Time) {
        if self.threads[id].status != Status::Ready {
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

    /// Counts a preemption of `id`, which is about to leave its processor. The other applications
    /// have that next, if there are some.
    pub(crate) fn count_preemption(&mut self, id: ThreadId, at: Time) {
        let thread = &mut self.threads[id];
        thread.statistics.preemptions += 1;
        let applications = self.scheduling.applications as u64;
        if applications > 1 {
            let processor = &mut self.processors[thread.processor];
            let others = processor.first_away.take().unwrap_or(applications - 1);
            let back = at + self.scheduling.quantum * others;
            processor.away_until = back;
            processor.last = None;
            self.events.announce(back, What::Back(thread.processor));
        }
    }

    /// Returns whether `id` has `processor` before others: it is in the processor's slot.
    pub(crate) fn is_first_on(&self, id: ThreadId, processor: usize) -> bool {
        self.threads[id].entry == Some((self.processors[processor].slot.0, processor))
    }

    /// Returns the processors of an address space.
    pub(crate) fn processors_of(&self, space: usize) -> impl Iterator<Item = usize> {
        let is_its = move |&processor: &usize| self.processors[processor].owner == Some(space);
        (0..self.processors.len()).filter(is_its)
    }

    /// Returns whether each thread on a processor finds one there (a part of Invariant 1).
    pub(crate) fn is_sound(&self) -> bool {
        let mut on = self.threads.iter().filter(|thread| thread.is_on_processor());
        on.all(|thread| self.processors[thread.processor].current.is_some())
    }

    /// Returns the number of threads without an address space that could use a processor.
    pub(crate) fn ordinary_demand(&self) -> usize {
        let ordinary = |id: ThreadId| self.threads[id].space.is_none();
        let on = self.processors.iter().filter(|processor| processor.current.is_some_and(ordinary));
        on.count() + self.ready.len()
    }

    /// Returns whether a ready thread may run on `processor`.
    pub(crate) fn has_ready_for(&self, processor: usize) -> bool {
        self.ready.iter().any(|id| self.threads[*id].may_run_on(processor))
    }
}

/// # Slices
impl Scheduler {
    /// Returns whether another thread wants the processor of `id`.
    pub(crate) fn is_wanted(&self, id: ThreadId) -> bool {
        let thread = &self.threads[id];
        self.scheduling.applications > 1
            || self.processors[thread.processor].called
            || !thread.may_run_on(thread.processor)
            || self.has_rival(id)
    }

    /// Returns whether a ready thread may have the processor of `id`. A thread of the processor's
    /// slot has no rival: see [`gang`](crate::os::gang), Invariant 2.
    pub(crate) fn has_rival(&self, id: ThreadId) -> bool {
        let thread = &self.threads[id];
        thread.space.is_none()
            && !self.is_first_on(id, thread.processor)
            && self.has_ready_for(thread.processor)
    }

    /// Returns whether the slice of `id` is over.
    #[inline]
    pub(crate) fn is_out_of_time(&self, id: ThreadId) -> bool {
        self.threads[id].time >= self.slice_end(id)
    }

    /// Returns the time when `id` may be taken off its processor.
    pub(crate) fn slice_end(&self, id: ThreadId) -> Time {
        self.processors[self.threads[id].processor].slice_end
    }

    /// Renews the slice of `id`, because no thread waits for its processor.
    pub(crate) fn renew_slice(&mut self, id: ThreadId, at: Time) {
        let thread = &mut self.threads[id];
        thread.keep.warned = false;
        self.processors[thread.processor].slice_end = at + self.scheduling.quantum;
    }

    /// Returns whether `id` may stay for a while because it has asked for that (see `os::keep`):
    /// its slice is over at `at`, and another thread waits for the processor.
    pub(crate) fn grant(&mut self, id: ThreadId, at: Time) -> bool {
        let thread = &mut self.threads[id];
        let processor = &mut self.processors[thread.processor];
        let until = processor.slice_end + self.scheduling.grace;
        if thread.keep.depth == 0 || self.interruptible {
            return false;
        }
        if thread.keep.warned || until <= at {
            thread.statistics.breaches += 1;
            return false;
        }
        thread.keep.warned = true;
        thread.statistics.graces += 1;
        processor.slice_end = until;
        true
    }

    /// Announces the ends of the slices of spinning threads, because a thread waits for a
    /// processor.
    pub(crate) fn announce_slices(&mut self, at: Time) {
        for processor in 0..self.processors.len() {
            if let Some(id) = self.processors[processor].current
                && self.threads[id].status == Status::Spinning
            {
                self.announce_slice_end(id, at);
            }
        }
    }

    /// Announces the end of the slice of `id`, which spins, unless that has been done.
    fn announce_slice_end(&mut self, id: ThreadId, at: Time) {
        let thread = &self.threads[id];
        let processor = &mut self.processors[thread.processor];
        if processor.announced != Some(thread.stretch) {
            processor.announced = Some(thread.stretch);
            let end = processor.slice_end.max(at).max(thread.time);
            self.events.announce(end, What::Slice(id, thread.stretch));
        }
    }

    /// Announces the end of the slice of `id`, which spins, once more: its end has moved.
    pub(crate) fn announce_new_end(&mut self, id: ThreadId, at: Time) {
        self.forget_announcement(id);
        self.announce_slice_end(id, at);
    }

    /// Forgets that the end of the slice of `id` is announced.
    pub(crate) fn forget_announcement(&mut self, id: ThreadId) {
        self.processors[self.threads[id].processor].announced = None;
    }

    /// Announces the end of the slice of `id`, which begins to spin: another thread may want its
    /// processor already.
    pub(crate) fn announce_slice(&mut self, id: ThreadId) {
        if self.is_wanted(id) {
            self.announce_slice_end(id, self.threads[id].time);
        }
    }

    /// Spends up to `left` of the time of `id` on `activity`, until its slice ends. Returns for how
    /// long. `None` if it cannot know yet, because interrupts come: see
    /// [`compute`](Self::compute).
    pub(crate) fn spend_slice(
        &mut self,
        id: ThreadId,
        left: Time,
        activity: Activity,
    ) -> Option<Time> {
        if self.interruptible {
            return None;
        }
        let begin = self.threads[id].time;
        let end = (begin + left).min(self.slice_end(id).max(begin));
        self.threads.spend(id, activity, end);
        Some(end - begin)
    }

    /// Begins a computation of `id` that an interrupt can end. If nothing else can happen before
    /// its end, ends it at once and returns its length.
    pub(crate) fn compute(&mut self, id: ThreadId, left: Time, activity: Activity) -> Option<Time> {
        let begin = self.threads[id].time;
        let end = (begin + left).min(self.slice_end(id).max(begin));
        if end < self.events.next_at() {
            self.threads.spend(id, activity, end);
            return Some(end - begin);
        }
        self.threads[id].computation = Computation::Open(activity);
        self.run_at(id, end);
        None
    }

    /// Ends a computation of `id` that began at `begin`: it is over, or was ended before. Returns
    /// its length.
    pub(crate) fn end_computation(&mut self, id: ThreadId, begin: Time) -> Time {
        match core::mem::replace(&mut self.threads[id].computation, Computation::None) {
            Computation::Ended(done) => done,
            Computation::None => Time::ZERO,
            Computation::Open(activity) => {
                let end = self.events.now();
                self.threads.spend(id, activity, end);
                end - begin
            }
        }
    }
}

/// # Events, and threads that sleep
impl Scheduler {
    /// Announces that `id` goes on at `at`, if that is the same stretch of its life.
    pub(crate) fn run_at(&mut self, id: ThreadId, at: Time) {
        self.events.announce(at, What::Run(id, self.threads[id].stretch));
    }

    /// Announces that `id` goes on when all that is earlier has happened.
    pub(crate) fn queue_up(&mut self, id: ThreadId) {
        self.run_at(id, self.threads[id].time);
    }

    /// Announces that `id`, which waits, can run at `at`.
    pub(crate) fn ready_at(&mut self, id: ThreadId, at: Time) {
        self.events.announce(at, What::Ready(id, self.threads[id].stretch));
    }

    /// Announces that the time is up at `at` for which `id` wanted to wait.
    pub(crate) fn time_out_at(&mut self, id: ThreadId, at: Time) {
        self.events.announce(at, What::TimeOut(id, self.threads[id].stretch));
    }

    /// Returns whether an event is about something that is over.
    pub(crate) fn is_stale(&self, what: What) -> bool {
        match what {
            What::Run(id, stretch)
            | What::TimeOut(id, stretch)
            | What::Ready(id, stretch)
            | What::Slice(id, stretch) => self.threads[id].stretch != stretch,
            What::Back(_) | What::Turn | What::Alarm(_) | What::Slot { .. } => false,
        }
    }

    /// Announces that `id` is going to sleep on a word; from now on a wake-up finds it.
    pub(crate) fn enqueue(&mut self, id: ThreadId, word: u64) {
        let thread = &mut self.threads[id];
        thread.wait_for(Wait::Parked(word));
        thread.sleeps += 1;
        self.sleepers.add(word, id, thread.sleeps);
    }

    /// Takes `id`, for which the time is up, out of whatever queue it sleeps in.
    pub(crate) fn time_out(&mut self, id: ThreadId) {
        if let Wait::Parked(word) = self.threads[id].wait {
            self.sleepers.remove(word, id);
        }
        self.threads[id].outcome = Outcome::TimedOut;
    }

    /// Wakes up to `count` sleepers of a word. Returns how many.
    pub(crate) fn wake(&mut self, waker: ThreadId, word: u64, count: usize) -> usize {
        let mut woken = 0;
        while woken < count {
            let Some(id) = self.sleepers.next(word, &self.threads) else { break };
            woken += 1;
            let now = self.threads[waker].time;
            let end = now + self.scheduling.wake + self.kick(id, now);
            self.threads.spend(waker, Activity::Switching, end);
            self.rouse(id, end);
        }
        if woken == 0 {
            let end = self.threads[waker].time + self.scheduling.call();
            self.threads.spend(waker, Activity::Switching, end);
        }
        woken
    }

    /// Returns the time of the interrupt that a wake-up of `id` takes: none if it finds no idle
    /// processor.
    fn kick(&self, id: ThreadId, at: Time) -> Time {
        let asleep = self.threads[id].status == Status::Blocked;
        let idle = asleep && self.idle_for(id, at).is_some();
        if idle { self.scheduling.kick } else { Time::ZERO }
    }

    /// Ends the wait of `id`, which may still be on its way to sleep.
    pub(crate) fn rouse(&mut self, id: ThreadId, at: Time) {
        let thread = &mut self.threads[id];
        thread.outcome = Outcome::Woken;
        if thread.status == Status::Blocked && !thread.frozen {
            // A deadline that passes from now on is too late.
            self.threads.enter(id, Status::Blocked, at);
            self.ready_at(id, at + self.scheduling.wakeup);
        }
    }

    /// Marks the watches of `id`, which has lost or got its processor at `at`.
    fn switched(&mut self, id: ThreadId, at: Time) {
        self.threads[id].switched = Some(at);
        for word in core::mem::take(&mut self.threads[id].watchers) {
            self.sleepers.mark(word);
            while let Some(sleeper) = self.sleepers.next(word, &self.threads) {
                let kick = self.kick(sleeper, at);
                self.rouse(sleeper, at + self.scheduling.wake + kick);
            }
        }
    }
}
