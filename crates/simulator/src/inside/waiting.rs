//! Computation and waiting: all that takes a thread time besides its accesses.

use super::access::access;
use super::clock::{glance, moment, scaled, time, unscaled};
use super::run::is_running;
use crate::Time;
use crate::machine::Machine;
use crate::memory::Kind;
use crate::scheduler::{Outcome, Wait};
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{self, outside, suspend, synchronize, with};

/// Why [`park`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// A thread woke the word.
    Woken,
    /// The word had changed already: nothing was waited for.
    Changed,
    /// The time is up.
    TimedOut,
}

/// Computes for `nanos` nanoseconds of the machine: no scale.
pub fn work(nanos: u64) {
    if !is_running() {
        outside("machine::work");
    }
    if nanos == 0 {
        glance();
    }
    world::spend(Time::nanos(nanos), Activity::Useful);
}

/// Spins for `nanos` nanoseconds of the code's clock without looking at anything.
pub fn pause(nanos: u64) {
    if !is_running() {
        outside("a pause");
    }
    if nanos == 0 {
        glance();
    }
    world::spend(scaled(nanos), Activity::Spinning);
}

/// Looks at the word until another processor has written on its line, or until `nanos` of the
/// code's clock have passed (`u64::MAX`: for ever); returns how many have. The caller then looks
/// for itself; it may find nothing new.
///
/// On a machine without caches this is a pause between two looks.
pub fn watch(address: *const (), nanos: u64) -> u64 {
    if !is_running() {
        outside("a wait");
    }
    glance();
    let span = scaled(nanos);
    let begin = time();
    let gap = with(|world, id| {
        let Kernel { machine, memory, scheduler, .. } = &mut world.kernel;
        match memory.system().poll() {
            Some(gap) => Some(gap.max(machine.pause).min(span)),
            None if memory.watch(scheduler, id, address, begin + span) => None,
            None => Some(machine.pause.min(span)),
        }
    })
    .unwrap_or_else(|| outside("a wait"));
    match gap {
        Some(gap) => world::spend(gap, Activity::Spinning),
        None => suspend(),
    }
    let scale = with(|world, _| world.kernel.machine.scale).unwrap_or(1.0);
    // The last pause may have begun in time and ended too late.
    unscaled(time() - begin, scale).min(nanos)
}

/// The time of one turn of a waiting loop beside its look, if the processor has no pause hint, in
/// nanoseconds of the code's clock: a few instructions.
const TURN_NS: u64 = 2;

/// Returns the time of one [`hint`], in whole nanoseconds of the code's clock, at least 1.
#[must_use]
pub fn hint_nanos() -> u64 {
    let (pause, scale) = with(|world, _| (world.kernel.machine.pause, world.kernel.machine.scale))
        .unwrap_or_else(|| outside("the length of a pause"));
    if pause == Time::ZERO {
        return TURN_NS;
    }
    ((pause.as_picos() as f64 / 1e3 / scale).round() as u64).max(1)
}

/// Returns the time in which a line comes from the processor that has written it, in whole
/// nanoseconds of the code's clock, at least 1, as the run
/// [measures](crate::Simulation::mismeasured) it.
#[must_use]
pub fn transfer_nanos() -> u64 {
    measured("the length of a transfer", |machine| machine.memory.transfer())
}

/// Returns the time of a call to the kernel that need not wait, a wake-up without a sleeper, in
/// whole nanoseconds of the code's clock, at least 1, as the run
/// [measures](crate::Simulation::mismeasured) it.
#[must_use]
pub fn call_nanos() -> u64 {
    measured("the length of a call", |machine| machine.scheduling.call())
}

/// Returns a time of the machine as the code measures it.
fn measured(what: &str, time: impl Fn(&Machine) -> Time) -> u64 {
    let picos = |machine: &Machine| time(machine).as_picos() as f64 / machine.scale;
    let picos = with(|world, _| picos(&world.kernel.machine)).unwrap_or_else(|| outside(what));
    as_measured((picos / 1e3).round() as u64).max(1)
}

/// Returns a time that the code has measured, as it is to see it: wrong by the factor of the
/// [run](crate::Simulation::mismeasured).
#[must_use]
pub fn as_measured(nanos: u64) -> u64 {
    match with(|world, _| world.kernel.mismeasured) {
        Some(factor) if factor != 1.0 => (nanos as f64 * factor).round() as u64,
        _ => nanos,
    }
}

/// Spins for one pause hint of the machine ([`Machine::pause`](crate::Machine::pause)).
pub fn hint() {
    let pause = with(|world, _| world.kernel.machine.pause).unwrap_or_else(|| outside("a pause"));
    world::spend(if pause == Time::ZERO { scaled(TURN_NS) } else { pause }, Activity::Spinning);
}

/// Gives the processor to another thread that is ready, if there is one. Costs a switch.
pub fn yield_now() {
    synchronize();
    let cost = with(|world, _| world.kernel.machine.scheduling.switch)
        .unwrap_or_else(|| outside("thread::yield_now"));
    // Never for nothing: a loop around it would not end.
    world::spend(cost.max(Time::nanos(1)), Activity::Switching);
    synchronize();
    if with(|world, id| world.kernel.yield_processor(id)) == Some(true) {
        suspend();
    }
}

/// Gives the processor away for `nanos` of the code's clock.
pub fn sleep(nanos: u64) {
    if !is_running() {
        outside("thread::sleep");
    }
    glance();
    let span = scaled(nanos);
    with(|world, id| {
        let until = world.kernel.thread(id).time + span;
        let thread = world.kernel.thread_mut(id);
        thread.wait_for(Wait::Sleep);
        world.kernel.block(id, until);
    })
    .unwrap_or_else(|| outside("thread::sleep"));
    suspend();
}

/// Sleeps on the word at `address` unless `changed` returns that it is not as expected. The thread
/// sleeps until it is woken or until `until` on the code's clock (`u64::MAX`: never).
///
/// `changed` is called once, and going to sleep is one step with it as seen from every [`wake`].
pub fn park(address: *const (), changed: impl FnOnce() -> bool, until: u64) -> Parked {
    if !is_running() {
        outside("machine::park::wait");
    }
    access(address, Kind::Read);
    if changed() {
        return Parked::Changed;
    }
    let until = moment(until);
    if until <= time() {
        return Parked::TimedOut;
    }
    let cost = with(|world, id| {
        let Kernel { memory, scheduler, .. } = &mut world.kernel;
        scheduler.enqueue(id, memory.identities.of(address));
        scheduler.scheduling.park
    })
    .unwrap_or(Time::ZERO);
    fall_asleep(cost, until)
}

/// Spends the time of going to sleep, and sleeps unless it was woken meanwhile.
pub(super) fn fall_asleep(cost: Time, until: Time) -> Parked {
    world::spend(cost, Activity::Switching);
    synchronize();
    let sleeps = with(|world, id| {
        let sleeps = world.kernel.thread(id).outcome == Outcome::Open;
        if sleeps {
            world.kernel.block(id, until);
        }
        sleeps
    });
    if sleeps == Some(true) {
        suspend();
    }
    with(|world, id| {
        let thread = world.kernel.thread_mut(id);
        thread.wait = Wait::Nothing;
        match thread.outcome {
            Outcome::TimedOut => Parked::TimedOut,
            Outcome::Open | Outcome::Woken => Parked::Woken,
        }
    })
    .unwrap_or(Parked::Woken)
}

/// Wakes up to `count` threads that sleep on the word at `address`, in the order in which they
/// came. Returns how many. The word is not read.
pub fn wake(address: *const (), count: usize) -> usize {
    glance();
    with(|world, id| {
        let Kernel { memory, scheduler, .. } = &mut world.kernel;
        scheduler.wake(id, memory.identities.of(address), count)
    })
    .unwrap_or_else(|| outside("machine::park::wake"))
}
