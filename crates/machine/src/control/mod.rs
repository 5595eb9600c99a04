//! Control of one thread by other threads, with its consent: they interrupt it, or change its
//! priority.
//!
//! A scheduler inside a program gets its threads off their processors by request: the threads check
//! a word, and leave. A thread that does not check the word needs a stronger means. A thread that
//! calls [`allow`] is entered in a [`Place`]. Through it, other threads make that thread run a
//! function in between, wherever it is, or make the system prefer it to other threads. The place is
//! memory of the scheduler's, which one thread uses after another. So a thread that acts on the
//! place allocates and frees nothing.
//!
//! | machine | [`interrupt`](Place::interrupt) | [`prefer`](Place::prefer) |
//! | --- | --- | --- |
//! | Linux, 64 bits | a real-time signal to the thread, a few µs | `SCHED_FIFO`, if permitted |
//! | elsewhere, under loom, simulated | refused | refused |
//!
//! The handler of the signal runs the function. `SCHED_FIFO` needs `RLIMIT_RTPRIO` or
//! `CAP_SYS_NICE`.
//!
//! # Deferral
//!
//! Some code holds a lock for which the function's work waits. Such code must not be interrupted,
//! so it calls [`defer`]. An interruption that arrives then is carried out when the last
//! [`Deferred`] of the thread is dropped. Deferral costs two writes to a thread-local count.
//!
//! # Life and death
//!
//! The system gives numbers of threads out again, even to other programs. So a thread that acts on
//! a place keeps the place's thread from leaving meanwhile: a thread that gives up its [`Allowed`]
//! waits for the few µs that this takes. No signal is sent to its number afterwards.
//!
//! A child of `fork` has none of these threads. In the child each [`Place`] that was taken before
//! is empty, also if the thread that forked was in it. That thread may call [`allow`] again.
//!
//! An interrupted system call is begun again where the system does that (`SA_RESTART`). `poll`,
//! `nanosleep` and the like end early, unless the thread makes them while [`undisturbed`]. The
//! signal is one that is neither handled nor ignored when it is chosen. Its handler stays for good,
//! because a signal may be under way. A program that takes the signal later ends the interruptions,
//! and gets none of the signals: [`still_interrupts`] tells.

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, stanchion_loom, stanchion_simulated))
)))]
mod elsewhere;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, stanchion_loom, stanchion_simulated))
))]
mod real;
#[cfg(all(target_os = "linux", not(any(miri, stanchion_loom, stanchion_simulated))))]
pub mod signal;

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, stanchion_loom, stanchion_simulated))
)))]
use elsewhere as backend;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, stanchion_loom, stanchion_simulated))
))]
use real as backend;

use core::fmt;
use core::marker::PhantomData;

use std::sync::Arc;

/// The work that an interrupted thread does in between.
///
/// # Safety
///
/// `interrupted` runs in a signal handler, between any two instructions of the thread outside of
/// a [`Deferred`] section. The thread may hold any lock there, the allocator's among them. So
/// `interrupted` does not allocate or free, takes no lock, does not panic, and initialises no
/// thread-local. It may use atomics, [`park`](crate::park), and what this thread has used before it
/// called [`allow`].
///
/// `place` returns the same place each time.
pub unsafe trait Interrupted: Send + Sync + 'static {
    /// Returns the place in which other threads find the thread.
    fn place(&self) -> &Place;

    /// Is run for a call of [`Place::interrupt`], or for none: an interruption can be late.
    fn interrupted(&self);
}

/// A rule by which the system chooses between threads that want one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preference {
    /// By shares, as the system chooses between most threads.
    Ordinary,
    /// Before all ordinary threads, and before those with a smaller number, until the thread
    /// sleeps. The number is from 1 to 99. On Linux such threads together leave a twentieth of each
    /// second to others (`kernel.sched_rt_runtime_us`).
    Before(u8),
}

/// Lets other threads control the calling thread, until the guard is dropped or the thread ends.
///
/// # Errors
///
/// [`Refused::Unsupported`] where threads cannot be controlled. [`Refused::Already`] if the thread
/// allows it already, or is ending, or if another thread is in the place.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use stanchion_machine::control::{self, Interrupted, Place};
///
/// #[derive(Default)]
/// struct Count(AtomicU32, Place);
/// // SAFETY: adds to a number.
/// unsafe impl Interrupted for Count {
///     fn place(&self) -> &Place {
///         &self.1
///     }
///     fn interrupted(&self) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// if control::can_interrupt().is_ok() {
///     let count = Arc::new(Count::default());
///     let allowed = control::allow(count.clone())?;
///     assert!(count.1.interrupt());
///     assert_eq!(count.0.load(Ordering::Relaxed), 1, "the calling thread is interrupted at once");
///     drop(allowed);
///     assert!(!count.1.interrupt(), "the place is empty");
/// }
/// # Ok::<(), control::Refused>(())
/// ```
pub fn allow<I: Interrupted>(interrupted: Arc<I>) -> Result<Allowed, Refused> {
    backend::allow(interrupted).map(|allowed| Allowed { _allowed: allowed, not_send: PhantomData })
}

/// Returns whether threads can be interrupted here. If so, the signal is chosen and its handler is
/// in place from now on.
///
/// # Errors
///
/// [`Refused`] and what would mend it.
pub fn can_interrupt() -> Result<(), Refused> {
    backend::can_interrupt()
}

/// Returns whether threads can still be interrupted, that is whether the signal that
/// [`can_interrupt`] has chosen still has its handler. If the program later installs a handler of
/// its own for the signal, ignores it, or resets it, then no signal is sent any more, and
/// [`Place::interrupt`] returns false. Another call of [`can_interrupt`] chooses another signal,
/// for all threads.
///
/// Costs a system call. May be called by a handler of signals. Before a signal is chosen the answer
/// is that nothing is wrong.
///
/// # Errors
///
/// [`Refused::Taken`]. [`Refused::Unsupported`] where threads cannot be interrupted.
pub fn still_interrupts() -> Result<(), Refused> {
    backend::still_interrupts()
}

/// Keeps the signal of [`Place::interrupt`] from the calling thread until the guard is dropped, so
/// that no system call of the thread ends early with `EINTR` for it. An interruption that arrives
/// meanwhile is carried out then. Guards nest.
///
/// [`defer`] is cheaper, but does not protect system calls: its signals arrive, and are recorded.
///
/// Costs two system calls, the second when the guard is dropped. A thread that is started meanwhile
/// inherits the mask, which changes nothing for it unless it calls [`allow`], which lifts it.
#[must_use = "the signal arrives again when this is dropped"]
pub fn undisturbed() -> Undisturbed {
    Undisturbed { _masked: backend::undisturbed(), not_send: PhantomData }
}

/// A section in which no signal of [`Place::interrupt`] arrives at the calling thread. Not `Send`:
/// it belongs to this thread.
#[derive(Debug)]
pub struct Undisturbed {
    /// The backend's mask of the signal, undone when it is dropped.
    _masked: backend::Undisturbed,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

/// Returns whether this process may prefer threads by `Preference::Before(level)`. It tries that on
/// the calling thread and then restores the thread's policy.
///
/// # Errors
///
/// [`Refused`] and what would mend it.
pub fn can_prefer(level: u8) -> Result<(), Refused> {
    if !(1..=99).contains(&level) {
        return Err(Refused::NoLevel { level });
    }
    backend::can_prefer(level)
}

/// Makes the system choose the calling thread by `preference`; returns whether it does. Threads
/// that the thread starts are ordinary ones.
///
/// Costs a system call, and neither allocates nor waits.
pub fn prefer(preference: Preference) -> bool {
    backend::prefer(preference)
}

/// Puts interruptions of the calling thread off until the guard is dropped. Guards nest.
#[inline]
#[must_use = "interruptions are carried out again when this is dropped"]
pub fn defer() -> Deferred {
    backend::defer();
    Deferred { not_send: PhantomData }
}

/// A section in which the calling thread is not interrupted. Not `Send`: it belongs to this thread.
#[derive(Debug)]
pub struct Deferred {
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

impl Drop for Deferred {
    #[inline]
    fn drop(&mut self) {
        backend::undefer();
    }
}

/// The calling thread's consent to be controlled, until this is dropped. The thread keeps its
/// preference then. Not `Send`: it belongs to this thread.
#[derive(Debug)]
#[must_use = "the thread cannot be controlled any more when this is dropped"]
pub struct Allowed {
    /// The backend's entry of the thread in its place, removed when it is dropped.
    _allowed: backend::Allowed,
    /// Makes the guard neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

/// A place in which other threads find a thread that they can control, if there is one.
#[derive(Default)]
pub struct Place(pub(crate) backend::Place);

impl Place {
    /// A place without a thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the thread soon run the function that it passed to [`allow`]. Returns whether it will.
    /// At most one interruption is under way to a thread. An interruption that comes after this
    /// call sees what the caller wrote before it, whichever thread sent the signal.
    ///
    /// Costs a system call. Does not allocate; a thread that is leaving waits until this is done.
    pub fn interrupt(&self) -> bool {
        self.0.interrupt()
    }

    /// Makes the system choose the thread by `preference`; returns whether it does. Threads that
    /// the thread starts are ordinary ones.
    ///
    /// Costs a system call. Does not allocate; a thread that is leaving waits until this is done.
    pub fn prefer(&self, preference: Preference) -> bool {
        self.0.prefer(preference)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.0).finish()
    }
}

/// A reason why a thread cannot be controlled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Not supported on this machine.
    Unsupported {
        /// The operating system.
        os: &'static str,
    },
    /// The thread can be controlled already, or is ending, or another thread is in its place.
    Already,
    /// No signal is free, because the program handles or ignores each.
    NoSignal {
        /// The first signal that was tried.
        from: i32,
        /// The last one.
        to: i32,
    },
    /// The program has taken the signal for itself since it was chosen.
    Taken {
        /// The signal.
        signal: i32,
    },
    /// There are only the levels 1 to 99.
    NoLevel {
        /// The level asked for.
        level: u8,
    },
    /// The user may not prefer threads at that level.
    NoPermission {
        /// The level asked for.
        level: u8,
        /// The highest that the limit allows; 0 is none.
        limit: u64,
    },
    /// Any other error.
    Other {
        /// The system call.
        call: &'static str,
        /// The error that it returned.
        errno: i32,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { os } => write!(
                f,
                "threads can be interrupted and preferred on 64-bit Linux only; this is \
                 {os}"
            ),
            Self::Already => f.write_str(
                "the thread can be controlled already, or is ending, or another is in its \
                 place",
            ),
            Self::NoSignal { from, to } => write!(
                f,
                "no signal is free: the program handles or ignores every one from {from} \
                 to {to}; leave one at its default"
            ),
            Self::Taken { signal } => write!(
                f,
                "the program has taken signal {signal}, which was free before: let it take \
                 another, or take it before"
            ),
            Self::NoLevel { level } => {
                write!(f, "level {level} of preference: there are the levels 1 to 99")
            }
            Self::NoPermission { level, limit } => write!(
                f,
                "this user may not prefer threads by SCHED_FIFO at level {level} (its \
                 limit is {limit}): raise RLIMIT_RTPRIO (`ulimit -r`), or grant \
                 CAP_SYS_NICE"
            ),
            Self::Other { call, errno } => write!(f, "{call} failed with error {errno}"),
        }
    }
}

impl core::error::Error for Refused {}
