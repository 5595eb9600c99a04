//! Gang scheduling by slots, as on the Makbilan: threads of one slot run at the same time, each on
//! its own processor.
//!
//! ```text
//!            processor 0   1   2   3
//! slot 0         a    a   a   b
//! slot 1         c    c   c   c
//! slot 2         d    d   -   -
//! ```
//!
//! A broadcast takes all processors to the next slot that has a thread that can run. The last slot
//! is followed by the first.
//!
//! "When the broadcast interrupt is received, the interrupt handler reduces the priority of the
//! current task (if any), and raises the priority of the task in the next slot." So if a
//! processor's entry in the slot is empty, or its thread there is blocked, the processor runs any
//! other thread that is ready on it.
//!
//! A thread that is in no slot gets a processor only where no thread of the slot can run: the
//! program keeps one for it, or an entry of a slot.
//!
//! | a broadcast comes from | when |
//! | --- | --- |
//! | the alarm | the slot's quantum is over, and another slot has a thread that can run |
//! | any processor | no thread of the slot can run any more, and one of another slot can |
//! | a program | it calls [`switch_to`] |
//!
//! It reaches each processor after the machine's
//! [`interrupt`](crate::machine::Scheduling::interrupt) and up to its
//! [`skew`](crate::machine::Scheduling::skew) more, from the run's seed. The work of the handler is
//! in the cost of a switch.
//!
//! # Invariants
//!
//! 1. An entry (slot, processor) has at most one thread, which is pinned to that processor. A
//!    thread has at most one entry.
//! 2. On each processor the thread of its slot runs if it can run: it takes the processor from any
//!    other, and no other takes it from it.
//! 3. An alarm is announced only while at least two slots have threads that can run: a program that
//!    stands still is a deadlock, not an endless alarm.
//!
//! Source: Feitelson and Rudolph 1992, sections 3.2 and 3.3; Ousterhout 1982 for the matrix.

use crate::Time;
use crate::inside;
use crate::scheduler::event::What;
use crate::scheduler::thread::{Status, ThreadId};
use crate::services::kernel::State;
use crate::world::{outside, suspend, synchronize, with};

/// The most slots: "the real numbers in MAXI are 15 and 512".
pub const SLOTS: usize = 512;

/// The slots of a run.
#[derive(Debug, Default)]
pub(crate) struct Gangs {
    /// The threads of each slot, by processor.
    slots: Vec<Vec<Option<ThreadId>>>,
    /// The slot of the last broadcast.
    current: usize,
    /// The slot of each processor, and the broadcast that took it there.
    shown: Vec<(usize, u64)>,
    /// The time that a slot has the processors, if an alarm ends it.
    quantum: Option<Time>,
    /// The number of broadcasts so far.
    broadcasts: u64,
    /// The number of the alarm that counts, and whether it is announced.
    alarm: u64,
    /// Set if the alarm is announced.
    armed: bool,
}

/// Puts a thread into a slot, pinned to a processor. It leaves any entry that it had.
/// Takes no time beyond the switches that it causes.
///
/// # Panics
///
/// If the entry is another thread's, the thread has ended, there is no such processor or no such
/// slot ([`SLOTS`]), the machine has other applications (a broadcast would not be heard while they
/// have a processor), or the run has address spaces.
pub fn assign(thread: ThreadId, slot: usize, processor: usize) {
    synchronize();
    let leaves = with(|world, id| {
        let at = world.state.thread(id).time;
        world.state.assign(thread, (slot, processor), at);
        thread == id && world.state.yield_processor(id)
    });
    match leaves {
        Some(true) => suspend(),
        Some(false) => {}
        None => outside("os::gang::assign"),
    }
}

/// Makes a thread in a slot, pinned to a processor: [`inside::spawn`] and [`assign`] in one, so
/// that it runs nowhere else before.
///
/// # Panics
///
/// As those do.
pub fn spawn(
    name: Option<String>,
    (slot, processor): (usize, usize),
    body: Box<dyn FnOnce() + 'static>,
) -> ThreadId {
    inside::spawn_prepared(name, None, body, |state, id, at| {
        state.assign(id, (slot, processor), at)
    })
}

/// Takes a thread out of its slot; it is pinned no longer. Takes no time.
pub fn release(thread: ThreadId) {
    synchronize();
    with(|world, id| {
        let at = world.state.thread(id).time;
        world.state.release(thread, at);
    })
    .unwrap_or_else(|| outside("os::gang::release"));
}

/// From now on an alarm ends each slot after so long; `None` ends that. The machine's own is
/// [`quantum`](crate::machine::Scheduling::quantum).
///
/// ```
/// use stanchion_simulator::{Simulation, Time, inside, machines, os::gang};
///
/// let run = Simulation::new(machines::makbilan()).run(|| {
///     gang::rotate(Some(Time::millis(50)));
///     for entry in (0..2).flat_map(|slot| (0..10).map(move |processor| (slot, processor))) {
///         gang::spawn(None, entry, Box::new(|| inside::work(100_000_000)));
///     }
/// })?;
/// assert!(run.statistics.elapsed > Time::millis(200));
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
///
/// # Panics
///
/// If a slot's time would be over before its threads are on their processors.
pub fn rotate(quantum: Option<Time>) {
    synchronize();
    with(|world, id| {
        let state = &mut world.state;
        let scheduling = &state.machine.scheduling;
        let takes = scheduling.interrupt + scheduling.skew + scheduling.switch;
        if let Some(quantum) = quantum {
            assert!(
                quantum > takes,
                "a slot was to have the processors for {quantum}, and a broadcast and a switch take {takes}"
            );
        }
        let at = state.thread(id).time;
        state.gangs.quantum = quantum;
        state.gangs.armed = false;
        state.gangs.alarm += 1;
        state.gangs_changed(at);
    })
    .unwrap_or_else(|| outside("os::gang::rotate"));
}

/// Broadcasts: all processors go to `slot`, the caller's among them. What a coordinator with an
/// alarm of its own calls. Takes the caller no time.
///
/// # Panics
///
/// If there is no such slot ([`SLOTS`]).
pub fn switch_to(slot: usize) {
    assert!(slot < SLOTS, "slot {slot} was asked for, and there are {SLOTS}, numbered from 0");
    synchronize();
    with(|world, id| {
        let at = world.state.thread(id).time;
        world.state.broadcast(slot, at);
    })
    .unwrap_or_else(|| outside("os::gang::switch_to"));
}

/// The slot that the caller's processor is in.
#[must_use]
pub fn slot() -> usize {
    with(|world, id| {
        let state = &world.state;
        state.gangs.shown.get(state.thread(id).processor).map_or(0, |(slot, _)| *slot)
    })
    .unwrap_or_else(|| outside("os::gang::slot"))
}

/// Returns the number of broadcasts so far.
#[must_use]
pub fn broadcasts() -> u64 {
    with(|world, _| world.state.gangs.broadcasts).unwrap_or_else(|| outside("os::gang::broadcasts"))
}

impl Gangs {
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl State {
    fn assign(&mut self, thread: ThreadId, (slot, processor): (usize, usize), at: Time) {
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
        let processors = self.processors.len();
        self.interruptible = true;
        let gangs = &mut self.gangs;
        gangs.shown.resize(processors, (0, 0));
        if gangs.slots.len() <= slot {
            gangs.slots.resize(slot + 1, vec![None; processors]);
        }
        if let Some(other) = gangs.slots[slot][processor].filter(|other| *other != thread) {
            panic!(
                "processor {processor} of slot {slot} is {other}'s, and {thread} was to have it"
            );
        }
        self.release(thread, at);
        self.gangs.slots[slot][processor] = Some(thread);
        let own = self.thread_mut(thread);
        (own.entry, own.pinned) = (Some((slot, processor)), Some(processor));
        match own.status {
            Status::Ready => {
                self.settle(thread, at);
                self.claim(thread, at);
            }
            Status::Running | Status::Spinning if own.processor != processor => {
                let here = own.processor;
                self.interrupt(here, at);
            }
            _ => {}
        }
        self.gangs_changed(at);
    }

    /// Takes `thread` out of its entry.
    pub(crate) fn release(&mut self, thread: ThreadId, at: Time) {
        let own = self.thread_mut(thread);
        if let Some((slot, processor)) = own.entry.take() {
            own.pinned = None;
            self.gangs.slots[slot][processor] = None;
            self.gangs_changed(at);
        }
    }

    /// Returns whether `id` has `processor` before others: it is in the processor's slot.
    pub(crate) fn is_first_on(&self, id: ThreadId, processor: usize) -> bool {
        let slot = self.gangs.shown.get(processor).map_or(0, |(slot, _)| *slot);
        self.threads[id.index()].entry == Some((slot, processor))
    }

    /// `id`, which is ready, takes its processor from another that is not of its slot.
    pub(crate) fn claim(&mut self, id: ThreadId, at: Time) {
        let Some((_, processor)) = self.thread(id).entry else { return };
        if self.thread(id).status == Status::Ready && self.is_first_on(id, processor) {
            self.interrupt(processor, at);
        }
    }

    /// A thread that has an entry may run now, or may run no longer.
    pub(crate) fn gangs_changed(&mut self, at: Time) {
        let Some(quantum) = self.gangs.quantum else { return };
        let Some(next) = self.next_slot() else { return };
        if self.slot_is_idle(self.gangs.current) {
            self.broadcast(next, at);
            self.gangs.armed = false;
        }
        if !self.gangs.armed && self.next_slot().is_some() {
            self.gangs.armed = true;
            self.gangs.alarm += 1;
            self.events.announce(at + quantum, What::Alarm(self.gangs.alarm));
        }
    }

    /// The alarm of that number goes off.
    pub(crate) fn alarm(&mut self, number: u64, at: Time) {
        if number != self.gangs.alarm {
            return;
        }
        self.gangs.armed = false;
        if let Some(next) = self.next_slot() {
            self.broadcast(next, at);
        }
        self.gangs_changed(at);
    }

    /// The slot after the current one that has a thread that can run, if it is another.
    fn next_slot(&self) -> Option<usize> {
        let (count, current) = (self.gangs.slots.len(), self.gangs.current);
        (1..count).map(|step| (current + step) % count).find(|slot| !self.slot_is_idle(*slot))
    }

    fn slot_is_idle(&self, slot: usize) -> bool {
        let can_run = |id: &ThreadId| {
            matches!(self.thread(*id).status, Status::Ready | Status::Running | Status::Spinning)
        };
        !self.gangs.slots.get(slot).is_some_and(|entries| entries.iter().flatten().any(can_run))
    }

    fn broadcast(&mut self, slot: usize, at: Time) {
        self.gangs.current = slot;
        self.gangs.broadcasts += 1;
        let (number, scheduling) = (self.gangs.broadcasts, &self.machine.scheduling);
        let (interrupt, skew) = (scheduling.interrupt, scheduling.skew.as_picos() + 1);
        self.interruptible = true;
        for processor in 0..self.processors.len() {
            let late = Time::picos(self.random.below(skew));
            self.events.announce(at + interrupt + late, What::Slot { processor, slot, number });
        }
    }

    /// A broadcast reaches a processor, unless a later one has already.
    pub(crate) fn show_slot(&mut self, processor: usize, (slot, number): (usize, u64), at: Time) {
        let count = self.processors.len();
        self.gangs.shown.resize(count, (0, 0));
        if self.gangs.shown[processor].1 > number {
            return;
        }
        self.gangs.shown[processor] = (slot, number);
        let entry = self.gangs.slots.get(slot).and_then(|entries| entries[processor]);
        match entry {
            Some(id) if self.thread(id).status == Status::Ready => self.claim(id, at),
            // A thread that was first is so no longer: others may want its processor.
            _ => self.announce_slices(at),
        }
    }
}
