//! Once: the first to come does it, the others wait until it is done. And a cell that is written that way.
//!
//! Why not a mutex around a flag: what is done once is looked at for ever, and that must cost a load.
//!
//! | `word` | | left by |
//! | --- | --- | --- |
//! | 0 | not done | whoever comes, who makes it running |
//! | running + its number | a thread does it | that thread: to done, or to 0 if it failed |
//! | running + its number + asleep | the same, and others sleep | the same, and it wakes all |
//! | done | for ever | nobody, but [`OnceLock::take`] with the cell to itself |
//!
//! # Invariants
//!
//! 1. The word leaves 0 by an exchange, so one thread at a time is running; and only that thread leaves running, by [`Running`]'s drop, whatever
//!    happens.
//! 2. The value of a [`OnceLock`] is there exactly if its word is done. It is written while running, and then only lent.
//!
//! # No wake-up is lost
//!
//! A waiter sleeps only while the word is what it saw, with `asleep` in it. The running thread exchanges the word for another and finds `asleep`, or
//! `asleep` could not be set any more.
//!
//! # Orderings
//!
//! Done is written with Release and looked at with Acquire, which makes visible what was done. Running begins with Acquire and ends in failure with
//! Release, so that who tries again sees what the one before has left.
//!
//! Source: `pthread_once` of POSIX 1003.1c, 1995; sleeping on the word itself is the futex's (Drepper, "Futexes are tricky", 2011).

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};

use machine::atomic::{AtomicU32, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::wait::spin_for;
use machine::{park, thread};

use crate::cost;

/// Done: no other bit is set then.
const DONE: u32 = 1;
/// A thread does it.
const RUNNING: u32 = 2;
/// Others sleep until it has.
const ASLEEP: u32 = 4;
/// Where the running thread's number begins: its index and 1, or 0 if it has none.
const NUMBER: u32 = 8;

/// Something that is done once, by the first thread to come; the others wait for it.
///
/// | | |
/// | --- | --- |
/// | asking when it is done | one load |
/// | waiting | spins for C, see [`cost`], then sleeps |
/// | size | 4 bytes |
///
/// If it panics it is not done: the panic goes on, and the next to come, or one of those that wait, does it.
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
    word: AtomicU32,
}

/// The right to do it: makes the word done, or 0 again if it is dropped before.
struct Running<'o> {
    once: &'o Once,
    outcome: u32,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let address: *const AtomicU32 = &self.once.word;
        // Release: pairs with the Acquire of who finds it done, or tries again.
        if self.once.word.swap(self.outcome, Ordering::Release) & ASLEEP != 0 {
            park::wake_at(address, usize::MAX);
        }
    }
}

impl Once {
    /// Not done yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Whether it is done. If so, what was done is visible.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        // Acquire: pairs with the Release of `Running`.
        self.word.load(Ordering::Acquire) == DONE
    }

    /// Does it, or waits until another thread has.
    ///
    /// # Panics
    ///
    /// If `body` does, which leaves it not done; and if `body` calls this for the same `Once`, which would wait for itself. (A thread without a
    /// [number](machine::thread::index) is not recognized, and waits.)
    #[inline]
    pub fn call_once(&self, body: impl FnOnce()) {
        if !self.is_completed() {
            let Ok(()) = self.run(|| {
                body();
                Ok::<(), core::convert::Infallible>(())
            });
        }
    }

    /// Does it, unless another thread has; its failure leaves it not done.
    #[cold]
    fn run<E>(&self, body: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let number = thread::index().map_or(0, |index| (index as u32 + 1) * NUMBER);
        loop {
            // Acquire: pairs with the Release of a thread that has failed before, or of one that has done it.
            match self.word.compare_exchange(
                0,
                RUNNING | number,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let mut running = Running { once: self, outcome: 0 };
                    body()?;
                    running.outcome = DONE;
                    return Ok(());
                }
                Err(DONE) => return Ok(()),
                Err(word) if number != 0 && word & !ASLEEP == RUNNING | number => {
                    self.called_again()
                }
                Err(word) => self.wait(word),
            }
        }
    }

    #[cold]
    fn called_again(&self) -> ! {
        panic!(
            "what is done once at {self:p} was asked for while this thread did it: it would wait for itself; do not call it from its own body"
        )
    }

    /// Waits until the word is another one than what this thread saw.
    fn wait(&self, seen: u32) {
        let is_over = |word: u32| word & RUNNING == 0;
        // Relaxed: the next look acquires.
        if spin_for(&self.word, Ordering::Relaxed, is_over, cost::current()).is_some() {
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

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("completed", &self.is_completed()).finish()
    }
}

/// A cell that is written once, by the first thread to come, and read by all from then on.
///
/// | | |
/// | --- | --- |
/// | reading what is there | one load |
/// | size | the value's and 4 bytes |
///
/// ```
/// use stanchion_competitive::OnceLock;
///
/// static NAME: OnceLock<String> = OnceLock::new();
/// assert_eq!(NAME.get(), None);
/// assert_eq!(NAME.get_or_init(|| "first".to_owned()), "first");
/// assert_eq!(NAME.set("second".to_owned()), Err("second".to_owned()));
/// assert_eq!(NAME.get().map(String::as_str), Some("first"));
/// ```
///
/// What is shared is lent to all threads, and may be dropped by any:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// // Not `Sync`: two threads would change the cell at once.
/// shared::<stanchion_competitive::OnceLock<std::cell::Cell<u32>>>();
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// // `Sync` but not `Send`: it could be put in by one thread and dropped by another.
/// shared::<stanchion_competitive::OnceLock<std::sync::MutexGuard<'static, u32>>>();
/// ```
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a reference is lent to any thread (`T: Sync`), and the value may be put in by one and taken out or dropped by another (`T: Send`).
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// SAFETY: it owns the value.
unsafe impl<T: Send> Send for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// The value, if there is one. Does not wait.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: it is done.
        self.once.is_completed().then(|| unsafe { self.lend() })
    }

    /// The value, if there is one, for the sole owner.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.once.is_completed() {
            return None;
        }
        // SAFETY: Invariant 2.
        Some(unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Puts `value` in, if the cell is empty. Waits if another thread is about to.
    ///
    /// # Errors
    ///
    /// The value back, if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("a body runs once"));
        value.map_or(Ok(()), Err)
    }

    /// The value; if there is none, that which `init` makes. If several threads come at once, one makes it and the others wait.
    ///
    /// # Panics
    ///
    /// If `init` does, which leaves the cell empty; and if `init` asks for the value of this cell, as [`Once::call_once`] does.
    #[inline]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        let Ok(value) = self.get_or_try_init(|| Ok::<T, core::convert::Infallible>(init()));
        value
    }

    /// [`get_or_init`](Self::get_or_init) with an `init` that may fail, which leaves the cell empty: the next one to come tries again.
    ///
    /// # Errors
    ///
    /// That of `init`.
    ///
    /// # Panics
    ///
    /// As [`get_or_init`](Self::get_or_init).
    ///
    /// ```
    /// use stanchion_competitive::OnceLock;
    /// let port = OnceLock::new();
    /// assert!(port.get_or_try_init(|| "none".parse::<u16>()).is_err());
    /// assert_eq!(port.get_or_try_init(|| "80".parse::<u16>()), Ok(&80));
    /// ```
    #[inline]
    pub fn get_or_try_init<E>(&self, init: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if !self.once.is_completed() {
            self.once.run(|| {
                let value = init()?;
                // SAFETY: Invariant 1: nobody else is running, and what is not done is not lent.
                self.value.with_mut(|place| _ = unsafe { &mut *place }.write(value));
                Ok(())
            })?;
        }
        // SAFETY: it is done, by this thread or by one that `run` or `is_completed` has seen with Acquire.
        Ok(unsafe { self.lend() })
    }

    /// Takes the value out, and leaves the cell empty.
    #[must_use]
    pub fn take(&mut self) -> Option<T> {
        if !self.once.is_completed() {
            return None;
        }
        self.once = Once::new();
        // SAFETY: Invariant 2: it was done, and is not any more.
        Some(unsafe { self.value.get_mut().assume_init_read() })
    }

    /// The value, if there is one.
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// # Safety
    ///
    /// It must be done, and seen to be by an Acquire.
    unsafe fn lend(&self) -> &T {
        self.value.with(|place| {
            // SAFETY: nobody writes what is done without the cell to itself, and the pointer is good for as long as `self` is borrowed.
            let place = unsafe { &*place };
            // SAFETY: Invariant 2.
            unsafe { place.assume_init_ref() }
        })
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

// A cell is empty or has a whole value, whatever panics.
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let cell = Self::new();
        // It is empty.
        let _ = cell.set(value);
        cell
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}
