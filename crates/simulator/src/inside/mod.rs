//! The requests of a virtual thread's code to its machine: for authors of a backend.
//!
//! Each function that needs a run panics outside one, naming itself. The exception is [`access`]: a
//! word may be read and written before a run and after it, which costs nothing and is not counted.
//!
//! An access **takes effect when it is issued**: [`access`] returns to a thread that is the
//! earliest of all, and nothing else runs until it calls the simulator again. So the caller does
//! the plain operation right after it, and a run is sequentially consistent.

use crate::arena;
use crate::scheduler::{Outcome, Status, Wait};
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{self, outside, suspend, synchronize, with};
use crate::{ThreadId, Time};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

mod statics;

pub use crate::memory::Kind;
pub use statics::{Global, Local};

/// The reading of the code's clock when a run begins, in nanoseconds: not 0, which some code takes
/// for "never".
const EPOCH_NS: u64 = 1_000_000_000;

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

/// Returns whether a virtual thread runs on this thread of the operating system.
#[inline]
#[must_use]
pub fn is_running() -> bool {
    world::is_running()
}

/// Charges an access of the word at `address`, and lets all that is earlier happen before it.
/// Nothing outside a run.
#[inline]
pub fn access(address: *const (), kind: Kind) {
    let alone = with(|world, id| {
        let alone = !world.kernel.must_wait(id);
        if alone {
            world.kernel.access(id, address, kind);
        }
        alone
    });
    if alone == Some(false) {
        synchronize();
        if with(|world, id| world.kernel.delay(id)) == Some(true) {
            suspend();
        }
        with(|world, id| world.kernel.access(id, address, kind));
    }
}

/// Returns whether this machine releases by an exchange, so that a store that releases is one.
/// `false` outside a run.
#[must_use]
pub fn releases_by_exchange() -> bool {
    with(|world, _| world.kernel.machine.release_by_exchange).unwrap_or(false)
}

/// Lets all that is earlier happen first. A fence costs nothing on these machines: their accesses
/// are in order.
pub fn fence() {
    if is_running() {
        glance();
    }
}

/// Lets all that is earlier happen first, for a call that takes no time: see `Threads::glance`.
fn glance() {
    with(|world, id| world.kernel.scheduler.threads.glance(id));
    synchronize();
}

/// The code's clock, in nanoseconds; see [`Machine::scale`](crate::Machine::scale). Free, unless it
/// is read again and again with nothing in between.
#[must_use]
pub fn now() -> u64 {
    if with(|world, id| world.kernel.scheduler.threads.glance(id)) == Some(true) {
        synchronize();
    }
    with(|world, id| reading(world.kernel.thread(id).time, world.kernel.machine.scale))
        .unwrap_or_else(|| outside("the clock"))
}

/// Returns the reading of the code's clock at `time`.
fn reading(time: Time, scale: f64) -> u64 {
    EPOCH_NS.saturating_add(unscaled(time, scale))
}

/// A length on the code's clock, on the machine's.
fn scaled(nanos: u64) -> Time {
    let scale = with(|world, _| world.kernel.machine.scale).unwrap_or_else(|| outside("the clock"));
    scaled_by(nanos, scale)
}

fn scaled_by(nanos: u64, scale: f64) -> Time {
    if nanos == u64::MAX {
        return Time::NEVER;
    }
    // Rounded up: a wait is never shorter than it should be.
    let picos = (nanos as f64 * 1e3 * scale).ceil();
    if picos >= u64::MAX as f64 { Time::NEVER } else { Time::picos(picos as u64) }
}

/// Converts a length on the machine's clock to the code's: the most that has passed by then. It is
/// not just a division: its rounding would make a moment that has come seem to lie ahead.
fn unscaled(time: Time, scale: f64) -> u64 {
    let near = (time.as_picos() as f64 / 1e3 / scale) as u64;
    match near.checked_add(1) {
        Some(next) if scaled_by(next, scale) <= time => next,
        _ => near,
    }
}

/// A moment on the code's clock, on the machine's.
fn moment(until: u64) -> Time {
    if until == u64::MAX { Time::NEVER } else { scaled(until.saturating_sub(EPOCH_NS)) }
}

/// Returns the time of the running thread, on the machine's clock: no scale.
///
/// # Panics
///
/// Outside a run.
#[must_use]
pub fn time() -> Time {
    with(|world, id| world.kernel.thread(id).time).unwrap_or_else(|| outside("the clock"))
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
fn fall_asleep(cost: Time, until: Time) -> Parked {
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

/// A number of the run that no other run of this process has.
#[must_use]
pub fn run_number() -> u64 {
    with(|world, _| world.kernel.number).unwrap_or_else(|| outside("the run's number"))
}

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

/// The processor that the running thread is kept on, by [`spawn`] or [`pin`]; none if it is free.
#[must_use]
pub fn pinned() -> Option<usize> {
    with(|world, id| world.kernel.thread(id).pinned).unwrap_or_else(|| outside("machine::topology"))
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

/// Returns the reading of the code's [clock](now) when the thread of that number last lost or got a
/// processor. `None` if it has had none yet, and if it has ended.
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

/// A number from the seed: another one at each call, the same ones in each run.
#[must_use]
pub fn entropy() -> u64 {
    with(|world, _| world.kernel.scheduler.random.next())
        .unwrap_or_else(|| outside("machine::hint::entropy"))
}

/// A number for the word at `address` that is the same on every run: what a table hashed by address
/// must hash instead.
#[must_use]
pub fn identity(address: *const ()) -> u64 {
    with(|world, _| world.kernel.memory.identities.of(address))
        .unwrap_or_else(|| outside("an address"))
}

/// Names the words in `bytes` bytes from `address` on, for
/// [`Statistics::words`](crate::Statistics::words).
///
/// What has the same name is counted together. Of nested names the one that begins last holds, and
/// the shortest of those; a name stays with its memory, whatever comes to lie there later.
///
/// Takes no time. Nothing outside a run, and in a run that does not count words.
pub fn label(address: *const (), bytes: usize, name: &str) {
    with(|world, _| {
        let Kernel { memory, scheduler, .. } = &mut world.kernel;
        if let Some(words) = &mut scheduler.threads.words {
            words.label(&mut memory.identities, address, bytes, name);
        }
    })
    .unwrap_or_default();
}

/// A copy of `text` for the rest of the process, which is what a `&'static str` says and a static
/// of the run does not keep. One for each text.
#[must_use]
pub fn keep(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // Not of the run's memory, which it would keep too.
    let _outside = arena::outside();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.get(text).copied().unwrap_or_else(|| {
        let copy: &'static str = Box::leak(text.into());
        kept.insert(copy);
        copy
    })
}

/// The panic of a call that would leave the simulation.
///
/// # Panics
///
/// Always.
#[cold]
#[track_caller]
pub fn forbidden(call: &str) -> ! {
    panic!(
        "{call} would reach the real machine from inside a simulation, which has none: \
         use what `machine` has for it, or keep it out of the simulated code"
    )
}
