//! Is that thread on a processor now?
//!
//! A waiter should spin while the one it waits for runs, and sleep when that one has been preempted
//! or has blocked. On Linux the kernel tells, without privilege: a dummy software event with
//! `context_switch` set writes one record of 16 bytes into a ring that this process maps whenever
//! the thread leaves or takes a processor. The ring's `data_head` then counts switches, its parity
//! is the answer, and the last record says whether the thread was preempted or blocked. One load.
//!
//! A thread must [`register`] itself to be seen. Others then ask by its
//! [`thread::index`](crate::thread::index).
//!
//! # Ways down
//!
//! | what the system allows | [`of`] | [`runs`] |
//! | --- | --- | --- |
//! | switch records ([`Means::Records`]) | all of [`Presence`] | from the same load |
//! | reading another thread's CPU clock ([`Means::CpuClock`]) | [`Presence::Unknown`] | two readings apart: has it moved? About 2 µs |
//! | neither, which shows only in the answer: the means are still [`Means::CpuClock`] | [`Presence::Unknown`] | `None` |
//!
//! [`examine`] also asks the process table: it tells all of [`Presence`] on each of these lines,
//! for a system call or two, and it alone tells a thread that was stopped from one that waits.
//!
//! Distributions set `kernel.perf_event_paranoid` to 3 or 4, and container runtimes filter the
//! call, so the second line is common; [`Registration::refused`] and [`status`] say why it is in
//! force.
//!
//! # What it cannot tell
//!
//! In a virtual machine, a thread whose *virtual* processor has been descheduled still reads as
//! running. A page fault reads as blocked. The answer is old when it arrives: use it to choose
//! between spinning and sleeping, never for correctness.
//!
//! On a simulated machine the scheduler itself answers, exactly, and for every thread, registered
//! or not: what its switches would say, and [`examine`] what the process table would.
//!
//! # After a fork
//!
//! The child knows nothing of its parent's threads: all read as unknown, and its one thread may
//! register afresh.

use crate::backend;
use core::marker::PhantomData;

pub use crate::refused::Refused;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// On a processor.
    Running,
    /// Taken off its processor although it could run on.
    Preempted,
    /// Off its processor because it waits for something.
    Blocked,
    /// Not registered, or the system does not tell.
    Unknown,
}

impl Presence {
    /// Whether it is on a processor; `None` if that is unknown.
    #[inline]
    #[must_use]
    pub const fn runs(self) -> Option<bool> {
        match self {
            Self::Running => Some(true),
            Self::Preempted | Self::Blocked => Some(false),
            Self::Unknown => None,
        }
    }
}

/// How a registered thread can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Means {
    /// By the kernel's switch records.
    Records,
    /// By its CPU clock, if the system lets others read it.
    CpuClock,
}

/// The thread registered itself; dropping this ends it. Not `Send`: it is about this thread.
///
/// A thread may register several times; it is seen until the last registration is dropped or the
/// thread ends. Forgetting one is harmless.
#[derive(Debug)]
#[must_use = "the thread is seen until this is dropped"]
pub struct Registration {
    ticket: backend::presence::Ticket,
    not_send: PhantomData<*const ()>,
}

impl Registration {
    /// How this thread can be seen.
    #[must_use]
    pub fn means(&self) -> Means {
        if self.refused().is_none() { Means::Records } else { Means::CpuClock }
    }

    /// Why there were no switch records for this thread when it registered, if there were none.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        self.ticket.refused()
    }

    /// What others ask for this thread by.
    #[must_use]
    pub fn index(&self) -> usize {
        self.ticket.index()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        backend::presence::unregister(&self.ticket);
    }
}

/// Lets other threads see whether the calling thread is on a processor.
///
/// The first call in a process checks that the kernel's records mean what they should (see
/// [`status`]); later ones cost some 20 µs (`cargo run --release -p stanchion-machine --example
/// costs`) and 8 KiB of locked memory for each thread that is registered at one time.
///
/// Without switch records the thread is registered all the same, to be seen by its CPU clock, and
/// [`Registration::refused`] says why. Whether others can read that clock is not tried: where a
/// filter forbids it, [`runs`] says `None`.
///
/// The kernel is not asked in vain by each thread. A refusal by policy stands for good. One for
/// want of memory or descriptors, or because the events are busy, stands for 100 ms, or until this
/// process gives a ring back: threads that register meanwhile are told the same.
///
/// # Errors
///
/// [`Refused::NoIndex`] if the thread has no [`index`](crate::thread::index),
/// [`Refused::Unsupported`] on a system other than 64-bit Linux, and [`Refused::Other`] if the
/// table of threads cannot be made (no memory, or a Linux before 4.14).
///
/// ```
/// use stanchion_machine::presence::{self, Presence};
/// if let Ok(me) = presence::register() {
///     let seen = presence::of(me.index());
///     assert!(matches!(seen, Presence::Running | Presence::Unknown)); // I am running, or nobody can tell
/// }
/// ```
pub fn register() -> Result<Registration, Refused> {
    backend::presence::register().map(|ticket| Registration { ticket, not_send: PhantomData })
}

/// Where the thread with that [`index`](crate::thread::index) is, from its switch records. A few
/// nanoseconds, no system call.
///
/// [`Presence::Unknown`] for a thread that is not registered, that has ended, or that has no switch
/// records.
#[inline]
#[must_use]
pub fn of(index: usize) -> Presence {
    backend::presence::of(index)
}

/// When the thread with that [`index`](crate::thread::index) was last switched, out of its
/// processor or in, by the kernel's own clock: nanoseconds of
/// [`clock::monotonic`](crate::clock::monotonic). 2 nanoseconds if it is in the cache, no system
/// call. It is the watched thread that pays, a reading of the clock in the kernel at each switch:
/// with its records a switch costs 2.4 µs, without any 1.4 (`cargo run --release -p
/// stanchion-machine --example costs`).
///
/// `None` for a thread without switch records, for one that has not been switched since it
/// registered, and in a model. On a simulated machine it is the virtual moment itself, of any
/// thread that has had a processor and has not ended.
///
/// ```
/// use stanchion_machine::{clock, presence};
/// if let Ok(me) = presence::register() {
///     let before = clock::monotonic();
///     std::thread::sleep(std::time::Duration::from_millis(1));
///     let woken = presence::since(me.index());
///     let after = clock::monotonic();
///     assert!(woken.is_none_or(|woken| before < woken && woken <= after));
/// }
/// ```
#[must_use]
pub fn since(index: usize) -> Option<u64> {
    backend::presence::since(index)
}

/// Whether the thread with that index is on a processor, by whatever [`Means`] there are: its
/// records if it has them, else two readings of its CPU clock some 2 µs apart (two system calls,
/// each of which takes the lock of the thread's run queue: ask seldom).
#[must_use]
pub fn runs(index: usize) -> Option<bool> {
    backend::presence::runs(index)
}

/// Where the thread with that index is, as exactly as can be found out: for who is about to act on
/// it, and can afford some 10 µs.
///
/// | | a thread with records | one without |
/// | --- | --- | --- |
/// | [`of`] says that it runs, or was preempted | that; a load | |
/// | its CPU clock moves | | [`Presence::Running`]; 3 µs |
/// | else, in the system's process table (`/proc`): can run | [`Presence::Preempted`]: it has been woken, and has no processor yet | [`Presence::Preempted`] |
/// | stopped, by SIGSTOP or a debugger | [`Presence::Preempted`] | [`Presence::Preempted`] |
/// | waits | [`Presence::Blocked`] | [`Presence::Blocked`] |
/// | is not there | [`Presence::Unknown`] | [`Presence::Unknown`] |
/// | there is no such table, or no descriptor to read it by | [`Presence::Blocked`] | [`Presence::Blocked`], also one that was preempted; [`Presence::Unknown`] if its clock cannot be read |
///
/// A stopped thread reads as blocked by [`of`]; who would give its work to others should ask here
/// first, or a debugger that stops a program makes it hand over everything.
///
/// ```
/// use stanchion_machine::presence::{self, Presence};
/// if let Ok(me) = presence::register() {
///     assert_ne!(presence::examine(me.index()), Presence::Blocked);
/// }
/// ```
#[must_use]
pub fn examine(index: usize) -> Presence {
    backend::presence::examine(index)
}

/// While this is alive, threads that register get no switch records, as if the system had refused.
#[derive(Debug)]
#[must_use = "records are declined until this is dropped"]
pub struct Declined(());

impl Drop for Declined {
    fn drop(&mut self) {
        backend::presence::decline(false);
    }
}

/// Does without switch records in the whole process, until what this returns is dropped: [`status`]
/// is [`Refused::Declined`], and threads that register have the CPU clock. Those that have records
/// keep them.
///
/// For who wants to see how a program does where the system refuses, and for programs that must not
/// use perf events. In a model, and on a simulated machine, nothing changes.
///
/// ```
/// use stanchion_machine::presence;
/// let declined = presence::decline();
/// assert!(presence::status().is_err());
/// drop(declined);
/// ```
pub fn decline() -> Declined {
    backend::presence::decline(true);
    Declined(())
}

/// A thread that was brought to the processor of the thread that holds this; dropping it gives the
/// affinity back that it had before.
#[derive(Debug)]
#[must_use = "the thread goes back when this is dropped"]
pub struct Pulled {
    thread: backend::presence::Pulled,
}

impl Drop for Pulled {
    fn drop(&mut self) {
        backend::presence::put_back(&self.thread);
    }
}

/// Brings the thread with that index to the calling thread's processor, as soon as the caller
/// leaves that to it: recovery, where a thread that was preempted holds something up, and the
/// caller's processor is better used by it.
///
/// The caller must know that the thread stays registered, and changes its affinity nowhere, until
/// the [`Pulled`] has been dropped: else a thread that has got its number meanwhile is moved, or an
/// older affinity restored. [`stanchion_spin::Recovering`](https://docs.rs/stanchion-spin) keeps a
/// thread that is being pulled from leaving its critical section before.
///
/// Costs three system calls, and two more to undo it. A thread that is pinned to a processor which
/// somebody else has got goes on as soon as the caller leaves it this one, instead of some time
/// slices later.
///
/// `None` if it is not registered, if it may not run there, or if the system cannot do it (not
/// Linux). In a model nothing moves.
pub fn pull(index: usize) -> Option<Pulled> {
    backend::presence::pull(index).map(|thread| Pulled { thread })
}

/// Whether switch records can be had here.
///
/// Asks the kernel for one ring, checks that a sleep and a yield read as what they are, and gives
/// it back. That needs two threads which share a processor: it starts them and waits for their end,
/// less than a millisecond on an idle machine, a few time slices on a busy one. A success is
/// remembered, and so is a refusal that will not go away; a lack of memory or of file descriptors
/// is looked into again.
///
/// # Errors
///
/// Why they cannot be had, and what would mend it.
pub fn status() -> Result<(), Refused> {
    backend::presence::status()
}

#[cfg(all(test, not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;

    // A registration ends the one of the thread that drops it, and speaks of the thread that holds
    // it.
    static_assertions::assert_not_impl_any!(Registration: Send, Sync);

    #[test]
    fn presence_says_whether_a_thread_runs_or_nothing() {
        let all = [Presence::Running, Presence::Preempted, Presence::Blocked, Presence::Unknown];
        assert_eq!(all.map(Presence::runs), [Some(true), Some(false), Some(false), None]);
    }
}
