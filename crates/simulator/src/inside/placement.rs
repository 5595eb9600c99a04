//! Processors, and the threads that are kept on one.

use crate::ThreadId;
use crate::scheduler::Status;
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{self, outside, suspend, synchronize, with};

/// Returns the number of processors of the machine.
#[must_use]
pub fn processors() -> usize {
    with(|world, _| world.kernel.machine.processors).unwrap_or_else(|| outside("machine::topology"))
}

/// The processor of the running thread.
#[must_use]
pub fn processor() -> usize {
    with(|world, id| world.kernel.thread(id).processor)
        .unwrap_or_else(|| outside("machine::topology"))
}

/// Keeps the running thread on one processor from now on, or frees it. Returns the setting before.
/// The thread leaves its gang.
///
/// # Panics
///
/// If the machine has no such processor.
pub fn pin(processor: Option<usize>) -> Option<usize> {
    synchronize();
    let (before, moves) = with(|world, id| {
        if let Some(processor) = processor {
            world.kernel.assert_processor(processor);
        }
        let own = world.kernel.thread(id);
        assert!(own.space.is_none(), "an activation runs where its address space has a processor");
        let before = own.pinned;
        let at = world.kernel.thread(id).time;
        let Kernel { gangs, scheduler, .. } = &mut world.kernel;
        gangs.release(scheduler, id, at);
        world.kernel.thread_mut(id).pinned = processor;
        let here = world.kernel.thread(id).processor;
        (before, processor.is_some_and(|processor| processor != here))
    })
    .unwrap_or_else(|| outside("machine::topology::pin"));
    if moves && with(|world, id| world.kernel.yield_processor(id)) == Some(true) {
        suspend();
    }
    before
}

/// The processor that the running thread is kept on, by [`spawn`](super::spawn) or [`pin`]; none if
/// it is free.
#[must_use]
pub fn pinned() -> Option<usize> {
    with(|world, id| world.kernel.thread(id).pinned).unwrap_or_else(|| outside("machine::topology"))
}

/// Brings a thread that could run, and has no processor, to the one of the running thread, and
/// keeps it there; returns where it was kept before. Costs a wake-up. `None` if it runs, waits, has
/// ended, or belongs to an address space or a gang, which see to their own.
///
/// # Panics
///
/// Outside a run.
#[must_use = "what it was before is to be put back by `put_back`"]
pub fn pull(thread: usize) -> Option<Option<usize>> {
    let cost = with(|world, _| world.kernel.machine.scheduling.wake)
        .unwrap_or_else(|| outside("machine::presence::pull"));
    world::spend(cost, Activity::Switching);
    synchronize();
    with(|world, id| {
        let here = world.kernel.thread(id).processor;
        let pulled = world.kernel.scheduler.threads.get_mut(thread)?;
        let own = pulled.space.is_some() || pulled.entry.is_some();
        (pulled.status == Status::Ready && !own).then(|| pulled.pinned.replace(here))
    })
    .flatten()
}

/// Undoes a [`pull`]: the thread is kept where it was kept `before`, and goes there at once if it
/// does not run now, else at the end of its slice.
///
/// # Panics
///
/// Outside a run.
pub fn put_back(thread: usize, before: Option<usize>) {
    let cost = with(|world, _| world.kernel.machine.scheduling.wake)
        .unwrap_or_else(|| outside("machine::presence::pull"));
    world::spend(cost, Activity::Switching);
    synchronize();
    with(|world, id| {
        let at = world.kernel.thread(id).time;
        let Some(pulled) = world.kernel.scheduler.threads.get_mut(thread) else { return };
        pulled.pinned = before;
        world.kernel.scheduler.settle(ThreadId::new(thread), at);
    });
}
