//! Threads: how they begin and end, and the state of each as another sees it.

use super::clock::{glance, reading};
use super::waiting::fall_asleep;
use crate::scheduler::{Status, Wait};
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{outside, synchronize, with};
use crate::{ThreadId, Time};

/// The state of a thread, as another sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// On a processor.
    Running,
    /// It could run, and was taken off its processor, or has had none yet.
    Preempted,
    /// It could run: its wait is over, and it has had no processor since.
    Woken,
    /// It waits for something else than a processor.
    Blocked,
    /// It has ended.
    Ended,
}

/// Makes a thread that runs `body`, on any processor or on one. If `body` panics the run fails. A
/// backend that joins threads catches that.
///
/// # Panics
///
/// With the text of [`Failure::Threads`](crate::Failure::Threads) or
/// [`Failure::Memory`](crate::Failure::Memory) if there is no room for it, and if the machine has
/// no such processor.
pub fn spawn(
    name: Option<String>,
    pinned: Option<usize>,
    body: Box<dyn FnOnce() + 'static>,
) -> ThreadId {
    spawn_prepared(name, pinned, body, |_, _, _| ())
}

/// [`spawn`], with something to be done before the thread can run.
pub(crate) fn spawn_prepared(
    name: Option<String>,
    pinned: Option<usize>,
    body: Box<dyn FnOnce() + 'static>,
    prepare: impl FnOnce(&mut Kernel, ThreadId, Time),
) -> ThreadId {
    synchronize();
    // `body` is not taken along: where this panics, it is dropped by its owner, outside `with`.
    let stack = with(|world, _| {
        if let Some(processor) = pinned {
            world.kernel.assert_processor(processor);
        }
        world.room()
    })
    .unwrap_or_else(|| outside("thread::spawn"))
    .unwrap_or_else(|failure| panic!("{failure}"));
    with(|world, id| {
        let cost = world.kernel.machine.scheduling.spawn;
        let end = world.kernel.thread(id).time + cost;
        world.kernel.scheduler.threads.spend(id, Activity::Switching, end);
        let made = world.create(stack, (name, pinned), end, body);
        prepare(&mut world.kernel, made, end);
        world.kernel.scheduler.ready_at(made, end);
        made
    })
    .unwrap_or_else(|| outside("thread::spawn"))
}

/// Waits for the end of `thread`.
///
/// # Panics
///
/// If the run has not made so many threads: it is another run's.
pub fn join(thread: ThreadId) {
    synchronize();
    let cost = with(|world, id| {
        let Kernel { machine, scheduler, .. } = &mut world.kernel;
        let threads = &mut scheduler.threads;
        let count = threads.len();
        assert!(thread.index() < count, "{thread} was to be joined, and the run has {count}");
        if threads[thread].status == Status::Ended {
            return None;
        }
        threads[thread].joiners.push(id);
        threads[id].wait_for(Wait::Join(thread));
        Some(machine.scheduling.park)
    })
    .unwrap_or_else(|| outside("JoinHandle::join"));
    if let Some(cost) = cost {
        fall_asleep(cost, Time::NEVER);
    }
}

/// Returns whether `thread` has ended.
#[must_use]
pub fn has_ended(thread: ThreadId) -> bool {
    presence(thread.index()) == Presence::Ended
}

/// The running thread.
#[must_use]
pub fn current() -> ThreadId {
    with(|_, id| id).unwrap_or_else(|| outside("the current thread"))
}

/// Returns the state of the thread of that number. A thread that does not exist has ended.
#[must_use]
pub fn presence(thread: usize) -> Presence {
    glance();
    with(|world, _| {
        let Some(thread) = world.kernel.threads().get(thread) else { return Presence::Ended };
        match thread.status {
            _ if thread.frozen => Presence::Preempted,
            Status::Running | Status::Spinning => Presence::Running,
            Status::Ready if thread.waited => Presence::Woken,
            Status::Ready | Status::Stopped => Presence::Preempted,
            Status::Blocked => Presence::Blocked,
            Status::Ended => Presence::Ended,
        }
    })
    .unwrap_or_else(|| outside("machine::presence"))
}

/// Returns the reading of the code's [clock](super::now) when the thread of that number last lost
/// or got a processor. `None` if it has had none yet, and if it has ended.
#[must_use]
pub fn switched(thread: usize) -> Option<u64> {
    glance();
    with(|world, _| {
        let thread = world.kernel.threads().get(thread)?;
        let at = thread.switched.filter(|_| thread.status != Status::Ended)?;
        Some(reading(at, world.kernel.machine.scale))
    })
    .unwrap_or_else(|| outside("machine::presence"))
}
