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

use crate::inside;
use crate::services::Kernel;
use crate::world::{outside, suspend, synchronize, with};
use crate::{ThreadId, Time};

pub use crate::services::SLOTS;

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
        let at = world.kernel.thread(id).time;
        world.kernel.assign(thread, (slot, processor), at);
        thread == id && world.kernel.yield_processor(id)
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
    inside::spawn_prepared(name, None, body, |kernel, id, at| {
        kernel.assign(id, (slot, processor), at)
    })
}

/// Takes a thread out of its slot; it is pinned no longer. Takes no time.
pub fn release(thread: ThreadId) {
    synchronize();
    with(|world, id| {
        let at = world.kernel.thread(id).time;
        let Kernel { gangs, scheduler, .. } = &mut world.kernel;
        gangs.release(scheduler, thread, at);
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
        let Kernel { gangs, scheduler, .. } = &mut world.kernel;
        let scheduling = &scheduler.scheduling;
        let takes = scheduling.interrupt + scheduling.skew + scheduling.switch;
        if let Some(quantum) = quantum {
            assert!(
                quantum > takes,
                "a slot was to have the processors for {quantum}, and a broadcast and a switch take {takes}"
            );
        }
        let at = scheduler.threads[id].time;
        gangs.rotate(scheduler, quantum, at);
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
        let at = world.kernel.thread(id).time;
        let Kernel { gangs, scheduler, .. } = &mut world.kernel;
        gangs.broadcast(scheduler, slot, at);
    })
    .unwrap_or_else(|| outside("os::gang::switch_to"));
}

/// The slot that the caller's processor is in.
#[must_use]
pub fn slot() -> usize {
    with(|world, id| {
        let processor = world.kernel.thread(id).processor;
        world.kernel.scheduler.processors[processor].slot.0
    })
    .unwrap_or_else(|| outside("os::gang::slot"))
}

/// Returns the number of broadcasts so far.
#[must_use]
pub fn broadcasts() -> u64 {
    with(|world, _| world.kernel.gangs.broadcasts())
        .unwrap_or_else(|| outside("os::gang::broadcasts"))
}
