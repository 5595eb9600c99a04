//! A sleeper that is woken when another thread loses or gets a processor. It does exactly the same
//! as polling the kernel's switch records.
//!
//! A watch is known by a word, on which its sleeper [parks](crate::inside::park). [`arm`] attaches
//! the word to a thread. The thread's next switch takes it away, and marks the watch. The mark ends
//! a wait whether that has begun or not.
//!
//! The sleeper is woken as by a thread that wakes it at that moment, except that this takes no
//! thread's time: on a real machine it is an interrupt.
//!
//! # Invariants
//!
//! 1. A word is in a thread's `watchers` at most once; it is there from its arming to that thread's
//!    next switch, or until it is disarmed.
//! 2. A watch is in `seen_switch` from such a switch until [`take`]. The thread that marks it wakes
//!    the threads that are parked on its word. A thread that is about to park looks for the mark in
//!    the same step.

use crate::Time;
use crate::scheduler::Status;
use crate::statistics::Activity;
use crate::world::{outside, spend, synchronize, with};

/// Attaches the watch of that word to `thread`, to be marked at its next switch, once. Returns
/// whether there is such a thread, and it has not ended. If it was not armed, that costs a way into
/// the kernel and back.
///
/// ```
/// use stanchion_simulator::inside::{self, Parked};
/// use stanchion_simulator::{Simulation, machines, os::watch};
///
/// let run = Simulation::new(machines::modern(2)).run(|| {
///     let sleeper = inside::spawn(None, None, Box::new(|| inside::sleep(50_000)));
///     inside::work(20_000);
///     let word = 0_u32;
///     let word = (&raw const word).cast();
///     assert!(watch::arm(sleeper.index(), word));
///     let parked = inside::park(word, || watch::has_seen(word), u64::MAX);
///     (parked, watch::take(word))
/// })?;
/// assert_eq!(run.result, (Parked::Woken, true), "woken when the sleeper got a processor again");
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
pub fn arm(thread: usize, word: *const ()) -> bool {
    synchronize();
    let (seen, new) = with(|world, _| {
        let word = world.kernel.memory.identities.of(word);
        let watched = world.kernel.scheduler.threads.get_mut(thread);
        let Some(watched) = watched.filter(|thread| thread.status != Status::Ended) else {
            return (false, false);
        };
        let new = !watched.watchers.contains(&word);
        if new {
            watched.watchers.push(word);
        }
        (true, new)
    })
    .unwrap_or_else(|| outside("machine::presence::watch"));
    if new {
        charge();
    }
    seen
}

/// Undoes [`arm`]. Costs as much, if it was armed.
pub fn disarm(thread: usize, word: *const ()) {
    synchronize();
    let armed = with(|world, _| {
        let word = world.kernel.memory.identities.of(word);
        let Some(watched) = world.kernel.scheduler.threads.get_mut(thread) else { return false };
        let before = watched.watchers.len();
        watched.watchers.retain(|other| *other != word);
        watched.watchers.len() < before
    })
    .unwrap_or_else(|| outside("machine::presence::watch"));
    if armed {
        charge();
    }
}

/// A way into the kernel and out again, as `Scheduler::wake` takes it to be.
fn charge() {
    let wake = with(|world, _| world.kernel.machine.scheduling.wake).unwrap_or(Time::ZERO);
    spend(Time::picos(wake.as_picos() / 4), Activity::Switching);
}

/// Returns whether the watch of that word is marked. Takes no time.
#[must_use]
pub fn has_seen(word: *const ()) -> bool {
    with(|world, _| {
        let word = world.kernel.memory.identities.of(word);
        world.kernel.scheduler.sleepers.is_marked(word)
    })
    .unwrap_or_else(|| outside("machine::presence::watch"))
}

/// Takes the mark away. Returns whether it was there. Takes no time.
pub fn take(word: *const ()) -> bool {
    with(|world, _| {
        let word = world.kernel.memory.identities.of(word);
        world.kernel.scheduler.sleepers.take_mark(word)
    })
    .unwrap_or_else(|| outside("machine::presence::watch"))
}
