//! Being woken when another thread loses or gets a processor.
//!
//! [`presence`](crate::presence) answers who asks. A thread that sleeps asks nobody; it leaves a
//! [`Watch`] behind on the threads that matter, and the kernel wakes it when one of them is
//! switched out or in. That is how a scheduler learns that a worker has blocked while all its other
//! processors are idle: the *lookout*, a spare thread, sleeps here.
//!
//! Why not a thread that looks every so often: it either burns a processor or is late. Why a second
//! record of switches, and not the one that `presence` reads: a ring that wakes somebody raises an
//! interrupt at each switch, which in a virtual machine costs the thread that is watched some 10 µs
//! a switch, for as long as it lives. The second ring belongs to the watch, and is **paused** while
//! it is not armed. Why not an event that is disabled while it is not armed: enabling it interrupts
//! the thread. Why `epoll` and no signal (`F_SETSIG`): a signal is not faster, and its number is
//! the program's.
//!
//! | measured on an idle virtual machine of two processors | |
//! | --- | --- |
//! | a switch, 2 threads in turn on one processor; 32 threads: no records | 0.8 µs; 1.4 µs |
//! | all of them registered with `presence` | 1.4 µs; 2.2 µs |
//! | and their rings of a watch paused | 1.7 µs; 2.6 µs |
//! | arming again a thread that runs | 0.6 µs, disturbs nobody |
//! | from a thread's sleep until the sleeper runs on another, idle processor | p50 38 to 66 µs, p99 53 to 108 µs |
//!
//! (`cargo run --release -p stanchion-machine --example watch`.)
//!
//! # The word
//!
//! | value | means | who changes it |
//! | --- | --- | --- |
//! | `IDLE` | nobody waits, nobody has called | the sleeper: to `WAITING`; a caller: to `WOKEN` |
//! | `WAITING` | the sleeper waits, or is about to | the sleeper: to `IDLE`; a caller: to `WOKEN`, and rings |
//! | `WOKEN` | [`wake`](Watch::wake) was called, and no wait has returned for it yet | the sleeper: to `IDLE` |
//!
//! # Invariants
//!
//! 1. A wait returns [`Woken::Woken`] only if it has changed `WOKEN` to `IDLE`: each such return
//!    answers at least one call, and no call is lost.
//! 2. Who changes `WAITING` to `WOKEN` rings; a sleeper that is rung for looks at the word again,
//!    so a ring that comes too late is harmless.
//!
//! # Orderings
//!
//! What was written before `wake` is seen after the wait that answers it: Release of the caller's
//! swap, Acquire of the sleeper's. A call that finds `WOKEN` also swaps: the sleeper acquires the
//! last one's, and with it, as swaps continue a release sequence, those of the calls before.

use crate::atomic::{AtomicU32, Ordering};
use crate::backend::watch::Eye;
use crate::clock::Deadline;
use crate::refused::Refused;
use std::boxed::Box;

const IDLE: u32 = 0;
const WAITING: u32 = 1;
const WOKEN: u32 = 2;

/// Why [`Watch::wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Woken {
    /// An armed thread has been switched out or in, or has ended; each that has is disarmed. Now
    /// and then nothing has happened: look.
    Switched,
    /// [`Watch::wake`] was called.
    Woken,
    /// The deadline has passed.
    TimedOut,
}

/// What ended the backend's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux tells of switches"))]
    Switched,
    /// The word is not what it was.
    Changed,
    TimedOut,
}

/// Wakes one sleeping thread when others are switched; see the [module](self).
///
/// For one sleeper at a time, and any number of threads that arm, disarm and wake. Who sleeps here
/// should not watch itself: going to sleep is a switch. Threads that end while they are armed are
/// harmless. In the child of a fork nothing is armed any more, and nothing can be: it sleeps until
/// it is woken.
///
/// Takes two file descriptors, and one more and two pages of locked memory for each thread that it
/// has armed and that has not ended. All watches of a process together take descriptors for no more
/// threads than an eighth of `RLIMIT_NOFILE`. Beyond that, a thread that is not armed any more
/// gives its own up for the next; if each is armed, [`arm`](Self::arm) returns `false`.
///
/// ```
/// use machine::{clock::Deadline, presence, sync::Arc, thread, watch::{Watch, Woken}};
///
/// let watch = Arc::new(Watch::new());
/// let lookout = {
///     let watch = watch.clone();
///     thread::spawn(move || watch.wait(Deadline::NEVER))
/// };
/// watch.wake();
/// assert_eq!(lookout.join().unwrap(), Woken::Woken);
/// # use stanchion_machine as machine;
/// ```
#[derive(Debug)]
pub struct Watch {
    /// Boxed: its address is what the sleeper is known by, and must not change when the watch is
    /// moved.
    word: Box<AtomicU32>,
    eye: Eye,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// A watch with nothing armed. Where switch records cannot be had, one that sees nothing
    /// ([`refused`](Self::refused)) but can still be waited on and woken.
    ///
    /// Costs two system calls; the first in a process also
    /// [`presence::status`](crate::presence::status).
    #[must_use]
    pub fn new() -> Self {
        Self { word: Box::new(AtomicU32::new(IDLE)), eye: Eye::new() }
    }

    /// Why no thread can be armed, if none can: then [`Woken::Switched`] never comes.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        self.eye.refused()
    }

    /// Wakes the sleeper at the next switch of the thread with that
    /// [`index`](crate::thread::index), once; says whether it will.
    ///
    /// `false` if the thread is not [registered](crate::presence::register), has no switch records,
    /// or there is no memory or descriptor for another ring, or all that may be taken are. Whether
    /// it is on a processor *now* is to be asked after arming, so that no switch falls in between.
    ///
    /// Some 50 ns if it is armed already; else 1 µs, and at the first time for this thread 20 µs
    /// and an interrupt of it if it runs.
    pub fn arm(&self, index: usize) -> bool {
        self.eye.arm(&self.word, index)
    }

    /// Takes an [`arm`](Self::arm) back. Some 50 ns if it is not armed, else 1 µs. A switch before
    /// that may still end a wait.
    pub fn disarm(&self, index: usize) {
        self.eye.disarm(&self.word, index);
    }

    /// Sleeps until an armed thread is switched, [`wake`](Self::wake) is called, or `deadline` has
    /// passed.
    ///
    /// What has happened before the call counts: a wake-up, or a switch of a thread that was armed
    /// then, ends it at once.
    pub fn wait(&self, deadline: Deadline) -> Woken {
        // Relaxed: nothing is published, and `take_call` acquires.
        let begun = self.word.compare_exchange(IDLE, WAITING, Ordering::Relaxed, Ordering::Relaxed);
        // `WAITING` is what the child of a fork finds if its parent's sleeper slept: it sleeps all
        // the same.
        if begun == Err(WOKEN) {
            self.take_call();
            return Woken::Woken;
        }
        match self.eye.sleep(&self.word, WAITING, deadline) {
            // A call that has come meanwhile is left for the next wait.
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

    /// Ends the wait that goes on, or the next one. From any thread; not lost if it comes before
    /// the wait. Several are as good as one.
    ///
    /// A system call if somebody waits, else 20 ns.
    pub fn wake(&self) {
        // Release pairs with the Acquire of `take_call`.
        if self.word.swap(WOKEN, Ordering::Release) == WAITING {
            self.eye.ring(&self.word);
        }
    }

    /// Whether nobody has called.
    fn stop_waiting(&self) -> bool {
        // Relaxed: nothing was published; a call that is found here is acquired by whoever takes
        // it.
        self.word.compare_exchange(WAITING, IDLE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Answers the calls so far; Invariant 1.
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
