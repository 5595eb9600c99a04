//! Wakes a sleeping thread when another thread loses or gets a processor.
//!
//! [`presence`](crate::presence) answers a thread that asks. A thread that sleeps cannot ask. It
//! leaves a [`Watch`] on the threads that matter, and the kernel wakes it when one of them is
//! switched out or in. A scheduler learns in this way that a worker has blocked while all its other
//! processors are idle: its *monitor*, a spare thread, sleeps here.
//!
//! Why not a thread that checks at intervals: it either burns a processor or is late.
//!
//! Why a second record of switches, and not the one that `presence` reads: a ring that wakes a
//! thread raises an interrupt at each switch. In a virtual machine that costs the watched thread
//! some 10 µs a switch, for as long as the ring lives. The second ring belongs to the watch, and is
//! **paused** while it is not armed.
//!
//! Why not an event that is disabled while it is not armed: enabling it interrupts the thread. Why
//! `epoll` and no signal (`F_SETSIG`): a signal is not faster, and its number belongs to the
//! program.
//!
//! Measured on an idle virtual machine of two processors, by `cargo run --release -p
//! stanchion-machine --example watch`:
//!
//! - A switch without records takes 0.8 µs between 2 threads that take turns on one processor, and
//!   1.4 µs among 32 threads.
//! - If all of them are registered with `presence`, it takes 1.4 µs and 2.2 µs.
//! - If they also have the paused rings of a watch, it takes 1.7 µs and 2.6 µs.
//! - Arming again a thread that runs takes 0.6 µs and disturbs no other thread.
//! - From a thread's sleep until the sleeper runs on another, idle processor: p50 38 to 66 µs, p99
//!   53 to 108 µs.
//!
//! # The word
//!
//! - `IDLE`: no thread waits, and no wake-up is pending. The sleeper changes it to `WAITING`, a
//!   thread that calls [`wake`](Watch::wake) changes it to `WOKEN`.
//! - `WAITING`: the sleeper waits, or is about to. The sleeper changes it to `IDLE`. A waker
//!   changes it to `WOKEN` and rings.
//! - `WOKEN`: `wake` was called, and no wait has returned for it yet. The sleeper changes it to
//!   `IDLE`.
//!
//! # Invariants
//!
//! 1. A wait returns [`Woken::Woken`] only if it has changed `WOKEN` to `IDLE`. So each such return
//!    answers at least one call, and no call is lost.
//! 2. A waker that changes `WAITING` to `WOKEN` rings. A sleeper that is rung for looks at the word
//!    again, so a ring that comes too late is harmless.
//!
//! # Orderings
//!
//! A wait that answers a `wake` sees what was written before that call: the caller's swap is
//! Release, the sleeper's is Acquire. A call that finds `WOKEN` also swaps. The sleeper then
//! acquires the last call's swap, and with it the earlier ones, because swaps continue a release
//! sequence.

#[cfg(stanchion_loom)]
mod loom;
#[cfg(not(any(stanchion_loom, stanchion_simulated)))]
mod real;
#[cfg(all(stanchion_simulated, not(stanchion_loom)))]
mod simulated;

#[cfg(stanchion_loom)]
use loom as backend;
#[cfg(not(any(stanchion_loom, stanchion_simulated)))]
use real as backend;
#[cfg(all(stanchion_simulated, not(stanchion_loom)))]
use simulated as backend;

use backend::Eye;

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Deadline;
use crate::presence::Refused;
use std::boxed::Box;

const IDLE: u32 = 0;
const WAITING: u32 = 1;
const WOKEN: u32 = 2;

/// The reason why [`Watch::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Woken {
    /// An armed thread has been switched out or in, or has ended. Each such thread is no longer
    /// armed. Now and then nothing has happened: check.
    Switched,
    /// [`Watch::wake`] was called.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// The reason why the backend's sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux tells of switches"))]
    Switched,
    /// The word no longer has the expected value.
    Changed,
    TimedOut,
}

/// Wakes one sleeping thread when other threads are switched; see the [module](self).
///
/// One thread sleeps at a time, and any number of threads arm, disarm and wake. The sleeper should
/// not watch itself, because going to sleep is a switch. Threads that end while they are armed are
/// harmless. In the child of a fork no thread is armed any more, and none can be: a wait there
/// lasts until it is woken.
///
/// Takes two file descriptors. For each thread that it has armed and that has not ended, it takes
/// one more descriptor and two pages of locked memory. All watches of a process together take
/// descriptors for at most as many threads as an eighth of `RLIMIT_NOFILE`. Beyond that, a thread
/// that is no longer armed gives up its descriptor for the next. If each is armed,
/// [`arm`](Self::arm) returns `false`.
///
/// ```
/// use stanchion_machine::presence::{self, watch::{Watch, Woken}};
/// use stanchion_machine::{clock::Deadline, sync::Arc, thread};
///
/// let watch = Arc::new(Watch::new());
/// let monitor = {
///     let watch = watch.clone();
///     thread::spawn(move || watch.wait(Deadline::NEVER))
/// };
/// watch.wake();
/// assert_eq!(monitor.join().unwrap(), Woken::Woken);
/// ```
#[derive(Debug)]
pub struct Watch {
    /// The state of the sleeper: `IDLE`, `WAITING` or `WOKEN`. Boxed, because its address
    /// identifies the sleeper and must not change when the watch is moved.
    word: Box<AtomicU32>,
    /// The backend's records of the armed threads.
    eye: Eye,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// Returns a watch with no thread armed. Where switch records cannot be had, it sees no
    /// switches ([`refused`](Self::refused)), but it can still be waited on and woken.
    ///
    /// Costs two system calls; the first in a process also costs
    /// [`presence::status`](crate::presence::status).
    #[must_use]
    pub fn new() -> Self {
        Self { word: Box::new(AtomicU32::new(IDLE)), eye: Eye::new() }
    }

    /// Returns the reason why no thread can be armed, if none can: then [`Woken::Switched`] never
    /// comes.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        self.eye.refused()
    }

    /// Arms the watch for the thread with that [`index`](crate::thread::index): its next switch
    /// wakes the sleeper, once. Returns whether it will.
    ///
    /// Returns `false` if the thread is not [registered](crate::presence::register) or has no
    /// switch records. Also returns `false` if there is no memory or descriptor for another ring,
    /// or if the watches have taken all descriptors that they may. To know whether the thread is on
    /// a processor *now*, ask after arming it, so that no switch falls in between.
    ///
    /// Costs some 50 ns if the thread is armed already, else 1 µs. The first time for a thread
    /// costs 20 µs, and an interrupt of the thread if it runs.
    pub fn arm(&self, index: usize) -> bool {
        self.eye.arm(&self.word, index)
    }

    /// Takes an [`arm`](Self::arm) back. Costs some 50 ns if the thread is not armed, else 1 µs. A
    /// switch before that may still end a wait.
    pub fn disarm(&self, index: usize) {
        self.eye.disarm(&self.word, index);
    }

    /// Sleeps until an armed thread is switched, [`wake`](Self::wake) is called, or `deadline` has
    /// passed.
    ///
    /// Events before the call count: a wake-up, or a switch of a thread that was armed then, ends
    /// the wait at once.
    pub fn wait(&self, deadline: Deadline) -> Woken {
        // Relaxed: nothing is published, and `take_call` acquires.
        let begun = self.word.compare_exchange(IDLE, WAITING, Ordering::Relaxed, Ordering::Relaxed);
        // The child of a fork finds `WAITING` if its parent's sleeper slept. It sleeps all the
        // same.
        if begun == Err(WOKEN) {
            self.take_call();
            return Woken::Woken;
        }
        match self.eye.sleep(&self.word, WAITING, deadline) {
            // A call of `wake` that has come meanwhile is left for the next wait.
            Slept::Switched => {
                self.stop_waiting();
                Woken::Switched
            }
            Slept::TimedOut if self.stop_waiting() => Woken::TimedOut,
            Slept::TimedOut | Slept::Changed => {
                self.take_call();
                Woken::Woken
            }
        }
    }

    /// Ends the present wait, or the next one. May be called by any thread. It is not lost if it
    /// comes before the wait. Several calls count as one.
    ///
    /// Costs a system call if a thread waits, else 20 ns.
    pub fn wake(&self) {
        // Release pairs with the Acquire of `take_call`.
        if self.word.swap(WOKEN, Ordering::Release) == WAITING {
            self.eye.ring(&self.word);
        }
    }

    /// Ends the waiting state. Returns false if `wake` was called meanwhile.
    fn stop_waiting(&self) -> bool {
        // Relaxed: nothing was published. If a call is found here, `take_call` acquires it later.
        self.word.compare_exchange(WAITING, IDLE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Answers the calls of `wake` so far; Invariant 1.
    fn take_call(&self) {
        // Acquire pairs with the Release of `wake`.
        let before = self.word.swap(IDLE, Ordering::Acquire);
        debug_assert_eq!(before, WOKEN, "only a sleeper takes calls, and there is one");
    }
}

#[cfg(all(test, not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;
    use core::time::Duration;

    static_assertions::assert_impl_all!(Watch: Send, Sync);

    #[test]
    fn a_call_before_the_wait_ends_it_and_no_other() {
        let watch = Watch::new();
        watch.wake();
        watch.wake();
        assert_eq!(watch.wait(Deadline::NEVER), Woken::Woken);
        assert_eq!(watch.wait(Deadline::after(Duration::from_millis(1))), Woken::TimedOut);
        assert_eq!(watch.wait(Deadline::PAST), Woken::TimedOut);
    }

    #[test]
    fn a_moved_watch_is_the_same() {
        let watch = Watch::new();
        watch.wake();
        let moved = std::boxed::Box::new(watch);
        assert_eq!(moved.wait(Deadline::NEVER), Woken::Woken);
    }
}
