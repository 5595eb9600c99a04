//! The state of a run: the threads, the events to come, the memory.
//!
//! Nothing here switches threads. The functions change the state and return whether the calling
//! thread must now be suspended.
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

use crate::arena::Identities;
use crate::failure::Failure;
use crate::locals::Locals;
use crate::memory::{Access, Kind, Line, System};
use crate::os::gang::Gangs;
use crate::random::Random;
use crate::scheduler::dispatch::Processor;
use crate::scheduler::event::{Events, Stretch, What};
use crate::scheduler::thread::{Outcome, Status, Thread, ThreadId, Wait};
use crate::services::allocator::Spaces;
use crate::services::delays::Delays;
use crate::services::jitter::Jitters;
use crate::statistics::{Activity, Statistics, Words};
use crate::timeline::Timeline;
use crate::{Machine, Time};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The number of groups of lines that share a record of their last write. A collision makes a
/// waiter look once too often.
const GROUPS: usize = 4_096;

/// Calls that take no time, one after the other, that are free.
const FREE_GLANCES: u32 = 16;
/// The time of each after those.
const GLANCE: Time = Time::nanos(20);

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The greatest virtual time.
    pub(crate) time: Time,
    /// The most shared accesses.
    pub(crate) accesses: u64,
    /// The most threads.
    pub(crate) threads: usize,
}

pub(crate) struct State {
    /// The machine.
    pub(crate) machine: Machine,
    /// The memory system.
    pub(crate) memory: System,
    /// The identities of addresses.
    pub(crate) identities: Identities,
    /// The events to come.
    pub(crate) events: Events,
    /// The threads, by number.
    pub(crate) threads: Vec<Thread>,
    /// The processors, by number.
    pub(crate) processors: Vec<Processor>,
    /// Set for a processor until its first slice has begun.
    pub(crate) first_slice: Vec<bool>,
    /// The threads that are ready, in the order in which they came.
    pub(crate) ready: VecDeque<ThreadId>,
    /// By the identity of the word, in the order in which they came.
    parked: HashMap<u64, VecDeque<(ThreadId, u64)>>,
    /// The threads that spin on each line.
    spinning: HashMap<Line, Vec<(ThreadId, Stretch)>>,
    /// The number of accesses at the last write to each group of lines.
    written: Box<[u64]>,
    /// The moment of the last event.
    pub(crate) now: Time,
    /// Set if a thread may have to leave its processor at a moment that is not known before; see
    /// `os::interrupt`.
    pub(crate) interruptible: bool,
    /// The words of watches that have seen a switch and have not been taken yet; see `os::watch`.
    pub(crate) seen_switch: BTreeSet<u64>,
    /// The delays that are still to come.
    pub(crate) delays: Delays,
    /// The jitter of the run.
    pub(crate) jitters: Jitters,
    /// The slots of gangs.
    pub(crate) gangs: Gangs,
    /// The address spaces.
    pub(crate) spaces: Spaces,
    /// The statics of the run.
    pub(crate) globals: Locals,
    /// The run's randomness.
    pub(crate) random: Random,
    /// The limits.
    pub(crate) limits: Limits,
    /// The counts.
    pub(crate) statistics: Statistics,
    /// The timeline, if it is recorded.
    pub(crate) timeline: Option<Timeline>,
    /// The counts by word, if words are counted.
    pub(crate) words: Option<Words>,
    /// The reason why the run has failed, if it has.
    pub(crate) failure: Option<Failure>,
    /// A number that no other run of this process has.
    pub(crate) number: u64,
}

impl State {
    pub(crate) fn new(
        machine: Machine,
        identities: Identities,
        (seed, number): (u64, u64),
        limits: Limits,
        timeline: bool,
        words: Option<usize>,
    ) -> Self {
        let count = machine.processors;
        Self {
            memory: System::new(&machine),
            identities,
            events: Events::default(),
            threads: Vec::new(),
            processors: (0..count).map(Processor::new).collect(),
            first_slice: vec![true; count],
            ready: VecDeque::new(),
            parked: HashMap::new(),
            spinning: HashMap::new(),
            written: vec![0; GROUPS].into_boxed_slice(),
            now: Time::ZERO,
            interruptible: false,
            seen_switch: BTreeSet::new(),
            delays: Delays::new(seed, 0, 0),
            jitters: Jitters::new(&machine, seed),
            gangs: Gangs::default(),
            spaces: Spaces::default(),
            globals: Locals::default(),
            random: Random::new(seed),
            limits,
            statistics: Statistics { processors: vec![Time::ZERO; count], ..Statistics::default() },
            timeline: timeline.then(Timeline::default),
            words: words.map(Words::new),
            failure: None,
            number,
            machine,
        }
    }

    pub(crate) fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    pub(crate) fn thread_mut(&mut self, id: ThreadId) -> &mut Thread {
        &mut self.threads[id.index()]
    }

    /// Charges an access of `id`, which is the earliest thing to happen.
    pub(crate) fn access(&mut self, id: ThreadId, address: *const (), kind: Kind) {
        let word = self.identities.of(address);
        self.access_word(id, word, kind);
    }

    /// [`access`](Self::access), with the word by its identity.
    pub(crate) fn access_word(&mut self, id: ThreadId, word: u64, kind: Kind) {
        let line = self.memory.line_of(word);
        let (at, processor) = (self.thread(id).time, self.thread(id).processor);
        let done = self.memory.access(Access { at, processor, line, kind });
        let end = self.jitters.transaction(kind, &done);

        self.threads[id.index()].statistics.accesses.add(kind, &done);
        if let Some(words) = &mut self.words {
            words.add(word, kind, at, &done);
        }
        let seen = self.memory.totals().all;
        let thread = &mut self.threads[id.index()];
        thread.looked_at(word, seen);
        if thread.accesses_left != u64::MAX {
            thread.accesses_left -= 1;
        }
        if kind != Kind::Read {
            self.written[group(line)] = seen;
        }
        // A read can take a line away, too. A thread that looks at it then has to fetch it.
        if (kind != Kind::Read || done.invalidated > 0) && !self.spinning.is_empty() {
            self.wake_spinners(line, processor, done.reaches);
        }
        self.spend(id, if done.hit { Activity::Useful } else { Activity::Stalled }, end);
        self.serve_interrupts(id, at, end);
        if seen >= self.limits.accesses {
            self.failure = Some(Failure::accesses(self));
        }
    }

    /// A write on `line` reaches the caches at `at`.
    fn wake_spinners(&mut self, line: Line, writer: usize, at: Time) {
        let Some(spinners) = self.spinning.remove(&line) else { return };
        for (id, stretch) in spinners {
            let thread = self.thread(id);
            if thread.stretch == stretch {
                debug_assert_ne!(thread.processor, writer, "a processor runs one thread");
                let at = next_look(thread.time, self.machine.pause, at);
                let at = self.jitters.notices(thread.processor, at);
                self.stop_spinning(id, at);
                self.enter(id, Status::Running, at);
                let stretch = self.thread(id).stretch;
                self.events.announce(at, What::Run(id, stretch));
            }
        }
    }

    /// Ends the spinning of `id`, which no write has ended.
    pub(crate) fn interrupt_spinning(&mut self, id: ThreadId, at: Time) {
        if let Wait::Word(identity) = self.thread(id).wait {
            let line = self.memory.line_of(identity);
            if let Some(spinners) = self.spinning.get_mut(&line) {
                spinners.retain(|(other, _)| *other != id);
                if spinners.is_empty() {
                    self.spinning.remove(&line);
                }
            }
        }
        self.stop_spinning(id, at);
    }

    /// Accounts for the spinning of `id`, which ends at `at`.
    fn stop_spinning(&mut self, id: ThreadId, at: Time) {
        let thread = &self.threads[id.index()];
        if let (Some(words), Wait::Word(word)) = (&mut self.words, thread.wait) {
            words.spun(word, at - thread.time);
        }
        self.spend(id, Activity::Spinning, at.max(self.thread(id).time));
        self.thread_mut(id).wait = Wait::Nothing;
    }

    /// `id` begins to watch a word until `until`; `false` if its line has been written since it
    /// looked: it must look again.
    pub(crate) fn watch(&mut self, id: ThreadId, address: *const (), until: Time) -> bool {
        let identity = self.identities.of(address);
        let line = self.memory.line_of(identity);
        let thread = self.thread(id);
        let seen = thread.last_look(identity).is_some_and(|seen| seen >= self.written[group(line)]);
        if !seen || !self.memory.holds(thread.processor, line) {
            return false;
        }
        let now = self.thread(id).time;
        self.enter(id, Status::Spinning, now);
        let thread = self.thread_mut(id);
        thread.wait = Wait::Word(identity);
        let stretch = thread.stretch;
        self.spinning.entry(line).or_default().push((id, stretch));
        if until != Time::NEVER {
            self.events.announce(until, What::TimeOut(id, stretch));
        }
        self.announce_slice(id);
        true
    }

    /// Announces that `id` is going to sleep on a word; from now on a wake-up finds it.
    pub(crate) fn enqueue(&mut self, id: ThreadId, address: *const ()) {
        let identity = self.identities.of(address);
        let thread = self.thread_mut(id);
        thread.wait = Wait::Parked(identity);
        thread.outcome = Outcome::Open;
        // The number of its sleeps tells this one from the next on the same word.
        thread.sleeps += 1;
        let sleep = thread.sleeps;
        self.parked.entry(identity).or_default().push_back((id, sleep));
    }

    /// Takes `id` out of whatever queue it sleeps in: later wake-ups pass it by.
    fn forget(&mut self, id: ThreadId) {
        if let Wait::Parked(identity) = self.thread(id).wait
            && let Some(queue) = self.parked.get_mut(&identity)
        {
            queue.retain(|(other, _)| *other != id);
            if queue.is_empty() {
                self.parked.remove(&identity);
            }
        }
    }

    /// Gives the processor of `id` away until it is woken, or until `until`.
    pub(crate) fn block(&mut self, id: ThreadId, until: Time) {
        let at = self.thread(id).time;
        self.take_off(id, Status::Blocked, at);
        if until != Time::NEVER {
            let stretch = self.thread(id).stretch;
            self.events.announce(until.max(at), What::TimeOut(id, stretch));
        }
    }

    /// Wakes up to `count` sleepers of a word. Returns how many.
    pub(crate) fn wake(&mut self, waker: ThreadId, address: *const (), count: usize) -> usize {
        let identity = self.identities.of(address);
        let mut woken = 0;
        while woken < count {
            let Some(id) = self.next_sleeper(identity) else { break };
            woken += 1;
            let now = self.thread(waker).time;
            let asleep = self.thread(id).status == Status::Blocked;
            let idle = asleep && self.idle_for(id, now).is_some();
            let kick = if idle { self.machine.scheduling.kick } else { Time::ZERO };
            let end = now + self.machine.scheduling.wake + kick;
            self.spend(waker, Activity::Switching, end);
            self.rouse(id, end);
        }
        if woken == 0 {
            // The way into the kernel and out again, taken to be a quarter of it.
            let wake = self.machine.scheduling.wake;
            let end = self.thread(waker).time + Time::picos(wake.as_picos() / 4);
            self.spend(waker, Activity::Switching, end);
        }
        woken
    }

    /// Takes the first sleeper of a word out of its queue.
    pub(crate) fn next_sleeper(&mut self, identity: u64) -> Option<ThreadId> {
        loop {
            let queue = self.parked.get_mut(&identity)?;
            let next = queue.pop_front();
            if queue.is_empty() {
                self.parked.remove(&identity);
            }
            let (id, sleep) = next?;
            if self.thread(id).sleeps == sleep && self.thread(id).outcome == Outcome::Open {
                return Some(id);
            }
        }
    }

    /// Ends the wait of `id`, which may still be on its way to sleep.
    pub(crate) fn rouse(&mut self, id: ThreadId, at: Time) {
        let thread = self.thread_mut(id);
        thread.outcome = Outcome::Woken;
        if thread.status == Status::Blocked && !thread.frozen {
            // A deadline that passes from now on is too late.
            self.enter(id, Status::Blocked, at);
            let stretch = self.thread(id).stretch;
            let ready = at + self.machine.scheduling.wakeup;
            self.events.announce(ready, What::Ready(id, stretch));
        }
    }

    /// A call of `id` that takes no time. A loop of such calls must not stand still: a few are
    /// free, each after those takes as long as reading a clock does on a machine of today. Says
    /// whether it did.
    pub(crate) fn glance(&mut self, id: ThreadId) -> bool {
        let thread = self.thread_mut(id);
        let (at, times) = thread.glances;
        let times = if at == thread.time { times.saturating_add(1) } else { 0 };
        let takes = times >= FREE_GLANCES;
        let end = thread.time + if takes { GLANCE } else { Time::ZERO };
        thread.glances = (end, times);
        self.spend(id, Activity::Useful, end);
        takes
    }

    /// Something happens, other than that a thread runs.
    pub(crate) fn happen(&mut self, at: Time, what: What) {
        match what {
            What::Run(..) => unreachable!("the world runs threads"),
            What::TimeOut(id, _) => match self.thread(id).status {
                Status::Spinning => {
                    self.interrupt_spinning(id, at);
                    self.enter(id, Status::Running, at);
                    let stretch = self.thread(id).stretch;
                    self.events.announce(at, What::Run(id, stretch));
                }
                _ => {
                    self.forget(id);
                    self.thread_mut(id).outcome = Outcome::TimedOut;
                    self.make_ready(id, at);
                }
            },
            What::Ready(id, _) => self.make_ready(id, at),
            What::Slice(id, _) => self.end_spinning_slice(id, at),
            What::Back(processor) => self.back(processor, at),
            What::Turn => self.end_turn(at),
            What::Alarm(number) => self.alarm(number, at),
            What::Slot { processor, slot, number } => self.show_slot(processor, (slot, number), at),
        }
    }

    /// Returns whether an event is about something that is over.
    pub(crate) fn is_stale(&self, what: What) -> bool {
        match what {
            What::Run(id, stretch)
            | What::TimeOut(id, stretch)
            | What::Ready(id, stretch)
            | What::Slice(id, stretch) => self.thread(id).stretch != stretch,
            What::Back(_) | What::Turn | What::Alarm(_) | What::Slot { .. } => false,
        }
    }

    /// A new thread, which can run once its maker has spent the time to make it.
    pub(crate) fn create(
        &mut self,
        name: Option<String>,
        pinned: Option<usize>,
        now: Time,
    ) -> ThreadId {
        let id = ThreadId::new(self.threads.len());
        // What the statistics keep is a copy, outside the run's memory, which they would keep else.
        let copy = name.clone();
        let mut thread = Thread::new(name, pinned, now);
        thread.statistics.name = copy;
        thread.statistics.life.0 = now;
        self.threads.push(thread);
        id
    }

    /// `id`, which is new, can run at `at`.
    pub(crate) fn announce_ready(&mut self, id: ThreadId, at: Time) {
        let stretch = self.thread(id).stretch;
        self.events.announce(at, What::Ready(id, stretch));
    }

    /// Panics if the machine has no such processor.
    pub(crate) fn assert_processor(&self, processor: usize) {
        let count = self.machine.processors;
        assert!(
            processor < count,
            "processor {processor} was asked for, and {} has {count}, numbered from 0",
            self.machine.name
        );
    }

    /// Ends `id`: the threads that wait for that go on.
    pub(crate) fn end(&mut self, id: ThreadId) {
        let at = self.thread(id).time;
        self.take_off(id, Status::Ended, at);
        self.thread_mut(id).statistics.life.1 = at;
        self.release(id, at);
        self.statistics.elapsed = self.statistics.elapsed.max(at);
        for joiner in core::mem::take(&mut self.thread_mut(id).joiners) {
            self.rouse(joiner, at);
        }
    }

    /// Sums up, when all threads have ended.
    pub(crate) fn sum_up(mut self) -> (Statistics, Option<Timeline>) {
        self.memory.check();
        let threads = self.threads.into_iter().map(|thread| thread.statistics);
        self.statistics.threads = threads.collect();
        self.statistics.accesses = *self.memory.totals();
        let line_of = |identity| self.memory.line_of(identity);
        self.statistics.words = self.words.map(|words| words.sum_up(line_of)).unwrap_or_default();
        (self.statistics, self.timeline)
    }

    /// Returns whether no thread is left that could do anything.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.status == Status::Ended || thread.frozen)
    }
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
