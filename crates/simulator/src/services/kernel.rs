//! The kernel of a run: it joins the scheduler, the memory and the services.
//!
//! Nothing here switches threads. The functions change the state and return whether the calling
//! thread must now be suspended.
//!
//! A thread that loses its processor or becomes ready concerns the scheduler, the gangs and the
//! address spaces, and what one of them decides may take a processor from another thread. So
//! [`take_off`](Kernel::take_off), [`make_ready`](Kernel::make_ready) and
//! [`interrupt`](Kernel::interrupt) are here, and those of address spaces in `allocator.rs`. What
//! one part can do alone is in its own file.
//!
//! # Interrupts
//!
//! An interrupt makes a processor's thread leave at a moment that it could not know of.
//!
//! Elsewhere a thread runs ahead of the events while it computes, as far as its slice goes, as
//! nothing can stop it before. Where interrupts come, computing is an event of its own: the thread
//! is suspended until its end, and an interrupt finds it somewhere in between.
//!
//! | the thread | leaves |
//! | --- | --- |
//! | computes, pauses, or spins in its cache | at once |
//! | waits for the memory, or is being put on | when that is over, before its next access |
//!
//! Requests of [`keep`](crate::os::keep) are not heard then: they are about the end of slices.

use super::barriers::Barriers;
use super::delays::Delays;
use super::gangs::{Gangs, SLOTS};
use super::shared_memory::SharedMemory;
use super::spaces::Spaces;
use crate::arena::Identities;
use crate::failure::Failure;
use crate::memory::Kind;
use crate::scheduler::{Computation, Scheduler, Status, Thread, Threads, Wait, What};
use crate::statistics::{Activity, Statistics};
use crate::timeline::Timeline;
use crate::{Machine, ThreadId, Time};

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

/// The state of a run, but for its coroutines and statics.
pub(crate) struct Kernel {
    /// The machine.
    pub(crate) machine: Machine,
    /// The time of an instruction.
    instruction: Time,
    /// The instructions so far, in hundredths.
    instructions: u64,
    /// A number that no other run of this process has.
    pub(crate) number: u64,
    /// The limits.
    pub(crate) limits: Limits,
    /// The threads, the processors and the events.
    pub(crate) scheduler: Scheduler,
    /// The memory system, and the threads that spin in their caches.
    pub(crate) memory: SharedMemory,
    /// The slots of gangs.
    pub(crate) gangs: Gangs,
    /// The address spaces.
    pub(crate) spaces: Spaces,
    /// The barriers that interrupt other processors.
    pub(crate) barriers: Barriers,
    /// The delays that are still to come.
    delays: Delays,
    /// The factor by which times that the code measures are wrong.
    pub(crate) mismeasured: f64,
    /// The reason why the run has failed, if it has.
    pub(crate) failure: Option<Failure>,
}

/// # The parts
impl Kernel {
    /// The state of run `number` before its first thread.
    pub(crate) fn new(
        machine: Machine,
        identities: Identities,
        threads: Threads,
        delays: Delays,
        limits: Limits,
        (seed, number): (u64, u64),
    ) -> Self {
        Self {
            number,
            limits,
            scheduler: Scheduler::new(&machine, threads, seed),
            memory: SharedMemory::new(&machine, identities, seed),
            gangs: Gangs::default(),
            spaces: Spaces::default(),
            barriers: Barriers::new(machine.membarrier.clone()),
            delays,
            mismeasured: 1.0,
            failure: None,
            instruction: machine.processor.instruction(),
            instructions: 0,
            machine,
        }
    }

    /// The threads.
    pub(crate) fn threads(&self) -> &Threads {
        &self.scheduler.threads
    }

    /// A thread.
    #[inline]
    pub(crate) fn thread(&self, id: ThreadId) -> &Thread {
        &self.scheduler.threads[id]
    }

    /// A thread.
    #[inline]
    pub(crate) fn thread_mut(&mut self, id: ThreadId) -> &mut Thread {
        &mut self.scheduler.threads[id]
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

    /// Returns whether something is to happen before the next action of `id`, or the run is over.
    #[inline]
    pub(crate) fn is_ahead(&self, id: ThreadId) -> bool {
        let time = self.thread(id).time;
        self.scheduler.events.next_at() <= time
            || self.failure.is_some()
            || time >= self.limits.time
    }

    /// Returns whether `id` cannot simply go on.
    #[inline]
    pub(crate) fn must_wait(&self, id: ThreadId) -> bool {
        self.is_ahead(id)
            || self.scheduler.is_out_of_time(id)
            || self.thread(id).is_to_freeze()
            || self.delays.are_due(self.memory.accesses())
    }

    /// Something happens, other than that a thread runs.
    pub(crate) fn happen(&mut self, at: Time, what: What) {
        match what {
            What::Run(..) => unreachable!("the world runs threads"),
            What::TimeOut(id, _) if self.thread(id).status == Status::Spinning => {
                let scheduler = &mut self.scheduler;
                self.memory.interrupt_spinning(&mut scheduler.threads, id, at);
                scheduler.threads.enter(id, Status::Running, at);
                scheduler.run_at(id, at);
            }
            What::TimeOut(id, _) => {
                self.scheduler.time_out(id);
                self.make_ready(id, at);
            }
            What::Ready(id, _) => self.make_ready(id, at),
            What::Slice(id, _) => self.end_spinning_slice(id, at),
            What::Back(processor) => self.dispatch(processor, at),
            What::Turn => self.end_turn(at),
            What::Alarm(number) => self.gangs.alarm(&mut self.scheduler, number, at),
            What::Slot { processor, slot, number } => {
                let scheduler = &mut self.scheduler;
                if let Some(id) = self.gangs.show(scheduler, processor, (slot, number), at) {
                    self.claim(id, at);
                }
            }
        }
    }

    /// Sums up, when all threads have ended.
    pub(crate) fn sum_up(self) -> (Statistics, Option<Timeline>) {
        let system = self.memory.system();
        system.check();
        let Scheduler { threads, processors, .. } = self.scheduler;
        let elapsed = threads.elapsed();
        let (threads, words, timeline) = threads.into_record();
        let line_of = |identity| system.line_of(identity);
        let statistics = Statistics {
            elapsed,
            accesses: *system.totals(),
            instructions: self.instructions,
            interrupts: self.barriers.interrupts(),
            threads,
            processors: processors.iter().map(|processor| processor.busy()).collect(),
            words: words.map(|words| words.sum_up(line_of)).unwrap_or_default(),
        };
        (statistics, timeline)
    }
}

/// # Accesses
impl Kernel {
    /// Has `id` execute so many hundredths of an instruction. Returns the time that it still has to
    /// spend, because interrupts come and may end it.
    #[inline]
    pub(crate) fn execute(&mut self, id: ThreadId, instructions: u32) -> Time {
        self.instructions += u64::from(instructions);
        let time = Time::picos(self.instruction.as_picos() * u64::from(instructions) / 100);
        if time == Time::ZERO || self.scheduler.interruptible {
            return time;
        }
        let scheduler = &mut self.scheduler;
        let began = scheduler.threads[id].time;
        scheduler.threads.spend(id, Activity::Useful, began + time);
        self.memory.serve_interrupts(scheduler, id, began, began + time);
        Time::ZERO
    }

    /// Charges an access of `id`, which is the earliest thing to happen.
    pub(crate) fn access(&mut self, id: ThreadId, address: *const (), kind: Kind) {
        let word = self.memory.identities.of(address);
        self.access_word(id, word, kind);
    }

    /// Returns whether a read of a word by `id` would be a hit now.
    #[inline]
    pub(crate) fn readable(&mut self, id: ThreadId, address: *const ()) -> bool {
        let word = self.memory.identities.of(address);
        let (thread, system) = (self.thread(id), self.memory.system());
        system.readable(thread.time, thread.processor, system.line_of(word))
    }

    /// [`access`](Self::access), with the word by its identity.
    pub(crate) fn access_word(&mut self, id: ThreadId, word: u64, kind: Kind) {
        self.memory.access(&mut self.scheduler, id, word, kind);
        if self.memory.accesses() >= self.limits.accesses {
            self.failure = Some(Failure::accesses(self.limits.accesses, self.threads()));
        }
    }

    /// Has `id` wait until the stores of its processor are done.
    pub(crate) fn fence(&mut self, id: ThreadId) {
        self.memory.fence(&mut self.scheduler, id);
    }

    /// Puts a barrier into the other running threads of the address space of `id`, which is the
    /// earliest of all.
    pub(crate) fn barrier(&mut self, id: ThreadId) {
        let began = self.thread(id).time;
        self.barriers.issue(&mut self.scheduler, id);
        let until = self.thread(id).time;
        self.memory.serve_interrupts(&mut self.scheduler, id, began, until);
    }

    /// Delays `id`, which is about to make an access, if a thread is to be delayed there. Returns
    /// whether it is.
    pub(crate) fn delay(&mut self, id: ThreadId) -> bool {
        let Some(length) = self.delays.take(self.memory.accesses()) else { return false };
        let thread = self.thread_mut(id);
        thread.wait_for(Wait::Sleep);
        let until = thread.time + length;
        self.block(id, until);
        true
    }
}

/// # Threads that become ready, and that leave
impl Kernel {
    /// `id` can run from now on.
    pub(super) fn make_ready(&mut self, id: ThreadId, at: Time) {
        if let Some(space) = self.thread(id).space {
            return self.unblock(id, space, at);
        }
        if self.scheduler.place(id, at) {
            self.claim(id, at);
            self.reallocate(at);
        }
        if self.thread(id).entry.is_some() {
            self.gangs.changed(&mut self.scheduler, at);
        }
    }

    /// Gives an idle processor to a thread or space that has a right to it.
    pub(super) fn dispatch(&mut self, processor: usize, at: Time) {
        if self.spaces.is_empty() {
            self.scheduler.dispatch_ready(processor, at);
        } else if self.scheduler.processors[processor].current.is_none() {
            self.arrive(processor, at);
        }
    }

    /// Takes `id` off its processor, into `status`, and gives the processor to another.
    pub(super) fn take_off(&mut self, id: ThreadId, status: Status, at: Time) {
        let processor = self.scheduler.leave(id, status, at);
        self.spaces.left(&mut self.scheduler.threads, id, status);
        self.dispatch(processor, at);
        if let Some(space) = self.thread(id).space {
            self.deliver(space, at);
        } else {
            self.reallocate(at);
        }
        if status == Status::Ready {
            self.scheduler.settle(id, at);
        } else if self.thread(id).entry.is_some() {
            self.gangs.changed(&mut self.scheduler, at);
        }
    }

    /// Takes `id`, which could go on, off its processor.
    pub(super) fn preempt(&mut self, id: ThreadId, at: Time) {
        self.scheduler.count_preemption(id, at);
        let stays = self.thread(id).space.is_some();
        self.take_off(id, if stays { Status::Stopped } else { Status::Ready }, at);
    }

    /// Gives the processor of `id` away until it is woken, or until `until`.
    pub(crate) fn block(&mut self, id: ThreadId, until: Time) {
        let at = self.thread(id).time;
        self.take_off(id, Status::Blocked, at);
        if until != Time::NEVER {
            self.scheduler.time_out_at(id, until.max(at));
        }
    }

    /// Takes `id` off its processor for good.
    pub(crate) fn freeze(&mut self, id: ThreadId) {
        let thread = self.thread_mut(id);
        thread.frozen = true;
        let at = thread.time;
        self.take_off(id, Status::Blocked, at);
        self.scheduler.threads.close_life(id, at);
    }

    /// Ends `id`: the threads that wait for that go on.
    pub(crate) fn end(&mut self, id: ThreadId) {
        let at = self.thread(id).time;
        self.take_off(id, Status::Ended, at);
        self.scheduler.threads.close_life(id, at);
        self.gangs.release(&mut self.scheduler, id, at);
        for joiner in core::mem::take(&mut self.thread_mut(id).joiners) {
            self.scheduler.rouse(joiner, at);
        }
    }

    /// Ends the slice of `id` at its own time. Returns whether it had to leave its processor.
    pub(crate) fn end_slice(&mut self, id: ThreadId) -> bool {
        let at = self.thread(id).time;
        if !self.scheduler.is_wanted(id) {
            self.scheduler.renew_slice(id, at);
            return false;
        }
        if self.scheduler.grant(id, at) {
            return false;
        }
        self.preempt(id, at);
        true
    }

    /// The slice of a spinning thread is over.
    fn end_spinning_slice(&mut self, id: ThreadId, at: Time) {
        let scheduler = &mut self.scheduler;
        scheduler.forget_announcement(id);
        if scheduler.slice_end(id) > at {
            scheduler.announce_new_end(id, at);
        } else if !scheduler.is_wanted(id) {
            scheduler.renew_slice(id, at);
        } else if scheduler.grant(id, at) {
            scheduler.announce_new_end(id, at);
        } else {
            self.memory.interrupt_spinning(&mut scheduler.threads, id, at);
            self.preempt(id, at);
        }
    }

    /// Gives the processor of `id` away if another thread wants it. Returns whether it did.
    pub(crate) fn yield_processor(&mut self, id: ThreadId) -> bool {
        let thread = self.thread(id);
        let (at, moves) = (thread.time, !thread.may_run_on(thread.processor));
        let leaves = moves || self.scheduler.has_rival(id);
        if leaves {
            self.take_off(id, Status::Ready, at);
        }
        leaves
    }

    /// The thread of `processor` has to leave.
    pub(super) fn interrupt(&mut self, processor: usize, at: Time) {
        let scheduler = &mut self.scheduler;
        let Some(id) = scheduler.processors[processor].current else {
            return self.dispatch(processor, at);
        };
        let slice_end = &mut scheduler.processors[processor].slice_end;
        *slice_end = at.min(*slice_end);
        let thread = &mut scheduler.threads[id];
        let begin = thread.time;
        match (thread.status, thread.computation) {
            (Status::Spinning, _) if begin > at => scheduler.announce_new_end(id, at),
            (Status::Spinning, _) => {
                self.memory.interrupt_spinning(&mut scheduler.threads, id, at);
                self.preempt(id, at);
            }
            (_, Computation::Open(_)) if begin > at => {
                // It has run ahead, and is not there yet: it is to come back when it is, and to
                // notice.
                scheduler.threads.enter(id, Status::Running, begin);
                scheduler.run_at(id, begin);
            }
            (_, Computation::Open(activity)) => {
                thread.computation = Computation::Ended(at - begin);
                scheduler.threads.spend(id, activity, at);
                self.preempt(id, at);
            }
            (_, Computation::None | Computation::Ended(_)) => {}
        }
    }
}

/// # Gangs
impl Kernel {
    /// Puts `thread` into an entry of the matrix, pinned to its processor.
    pub(crate) fn assign(&mut self, thread: ThreadId, (slot, processor): (usize, usize), at: Time) {
        self.assert_processor(processor);
        assert!(slot < SLOTS, "slot {slot} was asked for, and there are {SLOTS}, numbered from 0");
        let applications = self.machine.scheduling.applications;
        assert!(
            applications == 1,
            "gangs are alone on a machine, and this has {applications} applications"
        );
        assert!(
            self.thread(thread).status != Status::Ended,
            "{thread} was to join a gang, and has ended"
        );
        assert!(self.spaces.is_empty(), "a run has gangs or address spaces, not both");
        let scheduler = &mut self.scheduler;
        scheduler.interruptible = true;
        self.gangs.reserve(thread, (slot, processor), scheduler.processors.len());
        self.gangs.release(scheduler, thread, at);
        self.gangs.enter(&mut scheduler.threads, thread, (slot, processor));
        let own = &scheduler.threads[thread];
        match own.status {
            Status::Ready => {
                scheduler.settle(thread, at);
                self.claim(thread, at);
            }
            Status::Running | Status::Spinning if own.processor != processor => {
                let here = own.processor;
                self.interrupt(here, at);
            }
            _ => {}
        }
        self.gangs.changed(&mut self.scheduler, at);
    }

    /// `id`, if it is ready, takes its processor from another that is not of its slot.
    fn claim(&mut self, id: ThreadId, at: Time) {
        let thread = self.thread(id);
        let Some((_, processor)) = thread.entry else { return };
        if thread.status == Status::Ready && self.scheduler.is_first_on(id, processor) {
            self.interrupt(processor, at);
        }
    }
}
