//! Once: the first thread to come runs a body, and the others wait until that is done.
//!
//! Why not a mutex around a flag: threads look for ever at something that is done once, and that
//! look must cost a load.
//!
//! | `word` | | left by |
//! | --- | --- | --- |
//! | 0 | not done | a thread that comes to run a body |
//! | poisoned | not done, and the last body panicked | the same |
//! | either + asleep | the same; threads sleep in [`Once::wait`] | the same; `asleep` stays |
//! | running + a number | that thread runs its body | that thread |
//! | running + a number + asleep | the same, and others sleep | that thread, which wakes all |
//! | done | for ever | no thread, but [`OnceLock::take`] with the cell to itself |
//!
//! [`OnceLock::take`]: crate::OnceLock::take
//!
//! # Invariants
//!
//! 1. `running` is set by an exchange of a word without it. So one thread at a time is running.
//! 2. Only that thread ends `running`, by [`Running`]'s drop, whatever happens: as done if its body
//!    returned, as 0 if the body gave up, as poisoned if it panicked.
//!
//! # No wake-up is lost
//!
//! A waiter sleeps only while the word is the one that it saw, with `asleep` in it. `asleep` stays
//! in the word until the running thread ends. That thread exchanges the word for another, and wakes
//! all if it finds `asleep`. Or `asleep` could not be set any more, because the word had changed.
//!
//! # Orderings
//!
//! Done is written with Release and looked at with Acquire, which makes the body's work visible.
//! Running begins with Acquire and ends in failure with Release. So the next thread to try sees the
//! work of the one before. So does a thread that panics because it sees poisoned.
//!
//! Source: `pthread_once` of POSIX 1003.1c, 1995. Sleeping on the word itself is the futex's idea
//! (Drepper, "Futexes are tricky", 2011).

use core::convert::Infallible;
use core::fmt;

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::spin_for;
use stanchion_machine::{park, thread};

use crate::cost;

/// Done: no other bit is set then.
const DONE: u32 = 1;
/// A thread runs its body.
const RUNNING: u32 = 2;
/// Others sleep until it is done, or has failed.
const ASLEEP: u32 = 4;
/// No thread runs its body, and the last one to do so panicked.
const POISONED: u32 = 8;
/// The lowest bit of the running thread's number: its index and 1, or 0 if it has none.
const NUMBER: u32 = 16;

/// A body that is run once, by the first thread to come; the others wait for it.
///
/// | | |
/// | --- | --- |
/// | asking when it is done | one load |
/// | waiting | spins for C, see [`cost`], then sleeps |
/// | size | 4 bytes |
///
/// If the body panics, it is not done: the panic goes on. The next thread to come, or one of those
/// that wait in [`call_once`](Self::call_once), runs its own body.
///
/// In the child of a fork, a body that another thread of the parent was running never ends:
/// whatever waits for it there waits for ever, as with `std::sync::Once`. A body that forks goes on
/// in the child.
///
/// # Differences from `parking_lot::Once` and `std::sync::Once`
///
/// There [`call_once`](Self::call_once) panics for ever after a body has panicked. Here it tries
/// again, as [`OnceLock`](crate::OnceLock) does in all three. So a body can begin more than once;
/// it ends once. A body that relies on having begun only once asks for the state:
/// [`call_once_force`](Self::call_once_force) tells whether one has panicked, in all three.
/// [`wait`](Self::wait) panics then, in all three, because it runs no body itself.
///
/// ```
/// use stanchion_competitive::Once;
///
/// let start = Once::new();
/// let mut started = 0;
/// start.call_once(|| started += 1);
/// start.call_once(|| started += 1);
/// assert!(started == 1 && start.is_completed());
/// ```
pub struct Once {
    /// The state, and the running thread. Written by that thread, and by waiters that sleep.
    word: AtomicU32,
}

/// The state of a [`Once`]: how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No body was run, or the last one gave up without a panic.
    New,
    /// The last body that was run panicked.
    Poisoned,
    /// A thread runs its body.
    InProgress,
    /// A body has returned.
    Done,
}

impl OnceState {
    /// Returns `true` for [`Poisoned`](Self::Poisoned).
    #[must_use]
    pub const fn is_poisoned(self) -> bool {
        matches!(self, Self::Poisoned)
    }

    /// Returns `true` for [`Poisoned`](Self::Poisoned), under `parking_lot`'s older name.
    #[must_use]
    pub const fn poisoned(self) -> bool {
        self.is_poisoned()
    }

    /// Returns `true` for [`Done`](Self::Done).
    #[must_use]
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::Done)
    }

    /// Returns `true` for [`Done`](Self::Done), under `parking_lot`'s older name.
    #[must_use]
    pub const fn done(self) -> bool {
        self.is_completed()
    }

    /// Returns the state that a word says.
    const fn of(word: u32) -> Self {
        match word & (DONE | RUNNING | POISONED) {
            DONE => Self::Done,
            POISONED => Self::Poisoned,
            0 => Self::New,
            _ => Self::InProgress,
        }
    }
}

/// The right to run a body. Its drop ends `running` (Invariant 2).
struct Running<'o> {
    /// The `Once` that the body belongs to.
    once: &'o Once,
    /// The word that it leaves.
    outcome: u32,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let address: *const AtomicU32 = &self.once.word;
        // Release: pairs with the Acquire of a thread that finds it done, poisoned, or tries again.
        if self.once.word.swap(self.outcome, Ordering::Release) & ASLEEP != 0 {
            park::wake_at(address, usize::MAX);
        }
    }
}

impl Once {
    /// Creates one that is not done.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Creates one that is done: it runs no body.
    ///
    /// ```
    /// use stanchion_competitive::{Once, OnceState};
    /// static NOTHING_TO_DO: Once = Once::new_completed();
    /// assert_eq!(NOTHING_TO_DO.state(), OnceState::Done);
    /// ```
    #[must_use]
    pub const fn new_completed() -> Self {
        Self { word: AtomicU32::new(DONE) }
    }

    /// Returns whether it is done. If so, the body's work is visible.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        // Acquire: pairs with the Release of `Running`.
        self.word.load(Ordering::Acquire) == DONE
    }

    /// Returns how far it has come. A hint, except that if it is done, the body's work is visible.
    ///
    /// ```
    /// use stanchion_competitive::{Once, OnceState};
    /// let once = Once::new();
    /// assert_eq!(once.state(), OnceState::New);
    /// once.call_once(|| assert_eq!(once.state(), OnceState::InProgress));
    /// assert_eq!(once.state(), OnceState::Done);
    /// ```
    #[must_use]
    pub fn state(&self) -> OnceState {
        // Acquire: as in `is_completed`.
        OnceState::of(self.word.load(Ordering::Acquire))
    }

    /// Runs `body`, or waits until another thread has run its own.
    ///
    /// # Panics
    ///
    /// If `body` does, which leaves it not done; and if `body` calls this for the same `Once`,
    /// which would wait for itself. (A thread without a [number](stanchion_machine::thread::index)
    /// is not recognized, and waits.)
    #[inline]
    pub fn call_once(&self, body: impl FnOnce()) {
        self.call_once_force(|_| body());
    }

    /// Runs `body`, or waits until another thread has run its own; tells `body` the state before
    /// it.
    ///
    /// That is [`OnceState::Poisoned`] if the last body panicked, else [`OnceState::New`].
    ///
    /// # Panics
    ///
    /// As [`call_once`](Self::call_once).
    ///
    /// ```
    /// use std::panic::catch_unwind;
    /// use stanchion_competitive::Once;
    ///
    /// static SETUP: Once = Once::new();
    /// assert!(catch_unwind(|| SETUP.call_once(|| panic!("half way"))).is_err());
    /// SETUP.call_once_force(|state| assert!(state.is_poisoned()));
    /// assert!(SETUP.is_completed());
    /// ```
    #[inline]
    pub fn call_once_force(&self, body: impl FnOnce(OnceState)) {
        if !self.is_completed() {
            let Ok(()) = self.run(|state| {
                body(state);
                Ok::<(), Infallible>(())
            });
        }
    }

    /// Waits until a thread has run its body. Runs none itself.
    ///
    /// ```
    /// use stanchion_competitive::Once;
    /// static READY: Once = Once::new();
    /// let waiter = std::thread::spawn(|| READY.wait());
    /// READY.call_once(|| ());
    /// waiter.join().unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If the last body panicked and no thread runs another: it might wait for ever. If it is
    /// called from a body of the same `Once`.
    #[inline]
    pub fn wait(&self) {
        if !self.is_completed() {
            self.wait_until_done(false);
        }
    }

    /// Waits until a thread has run its body, also if one has panicked.
    ///
    /// # Panics
    ///
    /// If it is called from a body of the same `Once`.
    #[inline]
    pub fn wait_force(&self) {
        if !self.is_completed() {
            self.wait_until_done(true);
        }
    }

    /// Runs `body`, unless another thread has run its own; an error of `body` leaves it not done.
    #[cold]
    pub(crate) fn run<E>(&self, body: impl FnOnce(OnceState) -> Result<(), E>) -> Result<(), E> {
        let mine = running();
        // The word that it takes to be there: without `running`.
        let mut idle = 0;
        loop {
            let begun = idle & ASLEEP | mine;
            // Acquire: pairs with the Release of a thread that has failed before, or has done it.
            match self.word.compare_exchange(idle, begun, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    let mut running = Running { once: self, outcome: POISONED };
                    let result = body(OnceState::of(idle));
                    running.outcome = if result.is_ok() { DONE } else { 0 };
                    return result;
                }
                Err(DONE) => return Ok(()),
                Err(word) if word & RUNNING == 0 => idle = word,
                Err(word) => {
                    self.refuse_own(word, mine);
                    self.sleep_while(word);
                }
            }
        }
    }

    #[cold]
    fn wait_until_done(&self, ignores_poison: bool) {
        let mine = running();
        loop {
            // Acquire: pairs with the Release of the thread that has done it, or panicked.
            let word = self.word.load(Ordering::Acquire);
            if word == DONE {
                return;
            }
            if word & POISONED != 0 && !ignores_poison {
                poisoned(self);
            }
            self.refuse_own(word, mine);
            self.sleep_while(word);
        }
    }

    /// Panics if the thread whose running word is `mine` runs its body.
    fn refuse_own(&self, word: u32, mine: u32) {
        if mine != RUNNING && word & !ASLEEP == mine {
            panic!(
                "what is done once at {self:p} was asked for while this thread did it: it would wait for itself; do not call it from its own body"
            );
        }
    }

    /// Waits until the word is another one than what this thread saw, or about that long.
    fn sleep_while(&self, seen: u32) {
        let is_over = |word: u32| word & RUNNING == 0;
        // Spinning is worth while only if a body runs. Relaxed: the next look acquires.
        if seen & RUNNING != 0
            && spin_for(&self.word, Ordering::Relaxed, is_over, cost::current()).is_some()
        {
            return;
        }
        // Relaxed: as above. If it is another one by now, the caller looks again.
        let asleep = seen | ASLEEP;
        if seen == asleep
            || self
                .word
                .compare_exchange(seen, asleep, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            park::wait(&self.word, asleep, Deadline::NEVER);
        }
    }
}

/// Returns the word of a `Once` while the calling thread runs its body. It is [`RUNNING`] if the
/// thread has no number.
fn running() -> u32 {
    RUNNING | thread::index().map_or(0, |index| (index as u32 + 1) * NUMBER)
}

#[cold]
fn poisoned(once: &Once) -> ! {
    panic!(
        "waiting for what is done once at {once:p}: the thread that did it panicked, and no thread has tried again; `wait_force` waits for one that does"
    )
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
