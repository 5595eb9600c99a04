//! Tells whether another thread is on a processor now.
//!
//! A waiter should spin while the thread it waits for runs, and sleep when that thread has been
//! preempted or has blocked. On Linux the kernel tells, without privilege. The means is a dummy
//! software event with `context_switch` set. It writes one record of 16 bytes into a ring that this
//! process maps, whenever the thread leaves or takes a processor. The ring's `data_head` then
//! counts switches, and its parity is the answer. The last record says whether the thread was
//! preempted or blocked. A query costs one load.
//!
//! A thread must [`register`] itself to be seen. Other threads then query it by its
//! [`thread::index`](crate::thread::index).
//!
//! Two modules go further with the same records. `switches` has the history of a thread, switch by
//! switch, on the real machine. [`watch`] wakes a sleeping thread when another one is switched.
//!
//! # Fallbacks
//!
//! What a thread can be seen by depends on what the system allows:
//!
//! - Switch records ([`Means::Records`]): [`of`] returns each value of [`Presence`], and [`runs`]
//!   answers from the same load.
//! - Reading another thread's CPU clock ([`Means::CpuClock`]): [`of`] returns
//!   [`Presence::Unknown`]. [`runs`] reads the clock twice and checks whether it has moved, which
//!   takes about 2 µs.
//! - Neither: [`of`] returns [`Presence::Unknown`] and [`runs`] returns `None`. Only these answers
//!   show it: the means are still [`Means::CpuClock`].
//!
//! [`examine`] also reads the process table. It returns each value of [`Presence`] in all three
//! cases, for a system call or two. It alone distinguishes a thread that was stopped from one that
//! waits.
//!
//! Distributions set `kernel.perf_event_paranoid` to 3 or 4, and container runtimes filter the
//! call, so the second case is common. [`Registration::refused`] and [`status`] return the reason.
//!
//! # Limits
//!
//! In a virtual machine, a thread reads as running even if its *virtual* processor has been
//! descheduled. A page fault reads as blocked. The answer is old when it arrives: use it to choose
//! between spinning and sleeping, never for correctness.
//!
//! On a simulated machine the scheduler itself answers, exactly, and for every thread, registered
//! or not. [`of`] returns what the thread's switches would say, and [`examine`] what the process
//! table would say.
//!
//! # After a fork
//!
//! The child knows nothing of its parent's threads: all read as unknown, and its one thread may
//! register again.

mod refused;
#[cfg(not(any(stanchion_loom, stanchion_simulated)))]
pub mod switches;
pub mod watch;

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

use core::marker::PhantomData;

pub use refused::Refused;

/// The state of a thread with respect to processors.
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
    /// Returns whether it is on a processor, or `None` if that is unknown.
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

/// The means by which a registered thread can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Means {
    /// By the kernel's switch records.
    Records,
    /// By its CPU clock, if the system lets other threads read it.
    CpuClock,
}

/// A guard that keeps the calling thread registered until it is dropped. Not `Send`: it belongs to
/// this thread.
///
/// A thread may register several times. It is seen until the last registration is dropped or the
/// thread ends. Forgetting one is harmless.
#[derive(Debug)]
#[must_use = "the thread is seen until this is dropped"]
pub struct Registration {
    /// The backend's entry of the thread.
    ticket: backend::Ticket,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

impl Registration {
    /// Returns the means by which this thread can be seen.
    #[must_use]
    pub fn means(&self) -> Means {
        if self.refused().is_none() { Means::Records } else { Means::CpuClock }
    }

    /// Returns the reason why there were no switch records for this thread when it registered, if
    /// there were none.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        self.ticket.refused()
    }

    /// Returns the index by which other threads query this thread.
    #[must_use]
    pub fn index(&self) -> usize {
        self.ticket.index()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        backend::unregister(&self.ticket);
    }
}

/// Lets other threads see whether the calling thread is on a processor.
///
/// The first call in a process checks that the kernel's records mean what they should (see
/// [`status`]). Later calls cost some 20 µs (`cargo run --release -p stanchion-machine --example
/// costs`). Each thread that is registered takes 8 KiB of locked memory.
///
/// Without switch records the thread is registered all the same, to be seen by its CPU clock, and
/// [`Registration::refused`] returns the reason. The call does not test whether other threads can
/// read that clock. Where a filter forbids it, [`runs`] returns `None`.
///
/// A refusal by the kernel is remembered, so that not each thread asks in vain. A refusal by policy
/// stands for good. A refusal for want of memory or descriptors, or because the events are busy,
/// stands for 100 ms, or until this process gives a ring back. Threads that register meanwhile get
/// the same refusal.
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
///     // The caller is running, unless the system does not tell.
///     assert!(matches!(seen, Presence::Running | Presence::Unknown));
/// }
/// ```
pub fn register() -> Result<Registration, Refused> {
    backend::register().map(|ticket| Registration { ticket, not_send: PhantomData })
}

/// Returns where the thread with that [`index`](crate::thread::index) is, from its switch records.
/// Costs a few nanoseconds and no system call.
///
/// Returns [`Presence::Unknown`] for a thread that is not registered, that has ended, or that has
/// no switch records.
#[inline]
#[must_use]
pub fn of(index: usize) -> Presence {
    backend::of(index)
}

/// Returns when the thread with that [`index`](crate::thread::index) was last switched out or in,
/// by the kernel's own clock: nanoseconds of [`clock::monotonic`](crate::clock::monotonic). Costs 2
/// nanoseconds if the record is in the cache, and no system call. The watched thread pays for it,
/// because the kernel reads the clock at each switch. With its records a switch costs 2.4 µs,
/// without any 1.4 (`cargo run --release -p stanchion-machine --example costs`).
///
/// Returns `None` for a thread without switch records, for one that has not been switched since it
/// registered, and in a model. On a simulated machine it returns the virtual moment itself, for any
/// thread that has had a processor and has not ended.
///
/// ```
/// use stanchion_machine::{clock, presence};
/// if let Ok(me) = presence::register() {
///     let before = clock::monotonic();
///     std::thread::sleep(std::time::Duration::from_millis(20));
///     let woken = presence::since(me.index());
///     let after = clock::monotonic();
///     assert!(woken.is_none_or(|woken| before < woken && woken <= after));
/// }
/// ```
#[must_use]
pub fn since(index: usize) -> Option<u64> {
    backend::since(index)
}

/// Returns whether the thread with that index is on a processor, by the [`Means`] that there are.
/// It uses the thread's records if it has them, else two readings of its CPU clock some 2 µs apart.
/// Those are two system calls, each of which takes the lock of the thread's run queue, so call it
/// seldom.
#[must_use]
pub fn runs(index: usize) -> Option<bool> {
    backend::runs(index)
}

/// Returns where the thread with that index is, as exactly as can be found out: for a caller that
/// is about to act on it, and can afford some 10 µs.
///
/// For a thread with records:
///
/// - If [`of`] returns that it runs or was preempted, that is the answer. It costs a load.
/// - Otherwise it is looked up in the system's process table (`/proc`). If it can run, the answer
///   is [`Presence::Preempted`]: it has been woken and has no processor yet.
///
/// For a thread without records:
///
/// - If its CPU clock moves, the answer is [`Presence::Running`]. That costs 3 µs.
/// - Otherwise it is looked up in the process table. If it can run, the answer is
///   [`Presence::Preempted`].
///
/// For both, by the process table:
///
/// - A thread that SIGSTOP or a debugger has stopped is [`Presence::Preempted`].
/// - A thread that waits is [`Presence::Blocked`].
/// - A thread that does not exist is [`Presence::Unknown`].
/// - If there is no such table, or no descriptor to read it by, then the answer is
///   [`Presence::Blocked`], for a thread without records even if it was preempted. It is
///   [`Presence::Unknown`] if the thread has no records and its clock cannot be read.
///
/// A stopped thread reads as blocked by [`of`]. A program that would give such a thread's work to
/// other threads should call `examine` first. Otherwise a debugger that stops it makes it hand over
/// all its work.
///
/// ```
/// use stanchion_machine::presence::{self, Presence};
/// if let Ok(me) = presence::register() {
///     assert_ne!(presence::examine(me.index()), Presence::Blocked);
/// }
/// ```
#[must_use]
pub fn examine(index: usize) -> Presence {
    backend::examine(index)
}

/// A guard: while it lives, threads that register get no switch records, as if the system had
/// refused.
#[derive(Debug)]
#[must_use = "records are declined until this is dropped"]
pub struct Declined(());

impl Drop for Declined {
    fn drop(&mut self) {
        backend::decline(false);
    }
}

/// Declines switch records in the whole process until the returned guard is dropped. Meanwhile
/// [`status`] is [`Refused::Declined`], and threads that register are seen by their CPU clock.
/// Threads that have records keep them.
///
/// For programs that must not use perf events, and to see how a program works where the system
/// refuses them. In a model, and on a simulated machine, nothing changes.
///
/// ```
/// use stanchion_machine::presence;
/// let declined = presence::decline();
/// assert!(presence::status().is_err());
/// drop(declined);
/// ```
pub fn decline() -> Declined {
    backend::decline(true);
    Declined(())
}

/// A thread that was moved to the processor of the thread that holds this. Dropping it restores the
/// affinity that the moved thread had before.
#[derive(Debug)]
#[must_use = "the thread goes back when this is dropped"]
pub struct Pulled {
    /// The backend's record of the thread and of its former affinity.
    thread: backend::Pulled,
}

impl Drop for Pulled {
    fn drop(&mut self) {
        backend::put_back(&self.thread);
    }
}

/// Moves the thread with that index to the calling thread's processor, where it runs as soon as the
/// caller leaves the processor to it. This is recovery: a preempted thread holds others up and can
/// use the caller's processor better than the caller.
///
/// The caller must know that the thread stays registered, and changes its affinity nowhere, until
/// the [`Pulled`] has been dropped. Otherwise a thread that has got its number meanwhile may be
/// moved, or an older affinity restored.
/// [`stanchion_spin::Recovering`](https://docs.rs/stanchion-spin) keeps a thread that is being
/// pulled from leaving its critical section before.
///
/// Costs three system calls, and two more to undo it. If the thread is pinned to a processor that
/// another thread has got, it continues as soon as the caller leaves it this processor, instead of
/// some time slices later.
///
/// Returns `None` if the thread is not registered, if it may not run there, or if the system cannot
/// move it (not Linux). In a model nothing moves.
pub fn pull(index: usize) -> Option<Pulled> {
    backend::pull(index).map(|thread| Pulled { thread })
}

/// Returns whether switch records can be had here.
///
/// It asks the kernel for one ring, checks that a sleep and a yield read as what they are, and
/// gives the ring back. For that it starts two threads which share a processor, and waits for their
/// end. That takes less than a millisecond on an idle machine, and a few time slices on a busy one.
/// A success is remembered, and so is a refusal that will not go away. After a lack of memory or of
/// file descriptors, the next call tries again.
///
/// # Errors
///
/// [`Refused`], with the reason why they cannot be had and what would mend it.
pub fn status() -> Result<(), Refused> {
    backend::status()
}

#[cfg(all(test, not(any(stanchion_loom, stanchion_simulated))))]
mod tests {
    use super::*;

    // Dropping a registration ends the registration of the thread that drops it, and its methods
    // describe the thread that holds it.
    static_assertions::assert_not_impl_any!(Registration: Send, Sync);

    #[test]
    fn presence_says_whether_a_thread_runs_or_nothing() {
        let all = [Presence::Running, Presence::Preempted, Presence::Blocked, Presence::Unknown];
        assert_eq!(all.map(Presence::runs), [Some(true), Some(false), Some(false), None]);
    }
}
