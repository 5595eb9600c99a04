//! A cell that is written once. What decides which thread writes it is a [`Once`].
//!
//! # Invariants
//!
//! 1. A thread writes the value only while it runs the body of the cell's [`Once`].
//! 2. The value is there exactly if the [`Once`] is done. Then it is only lent, but for a thread
//!    that has the cell to itself.

use core::convert::Infallible;
use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};

use stanchion_machine::cell::UnsafeCell;

use crate::once::Once;

/// A cell that is written once, by the first thread to come, and then read by all.
///
/// | | |
/// | --- | --- |
/// | reading the value | one load |
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
/// The value is lent to all threads, and any may drop it:
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
///
/// A borrowed value must outlive the cell. `std`'s cell may hold a reference to something that is
/// dropped before it, which takes an unstable attribute of the language:
///
/// ```compile_fail,E0597
/// let cell = stanchion_competitive::OnceLock::new();
/// {
///     let text = String::new();
///     cell.set(&text).unwrap();
/// }
/// ```
pub struct OnceLock<T> {
    /// The state of the cell.
    once: Once,
    /// The value, once it is written. Written by the thread that `once` lets run.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a reference is lent to any thread (`T: Sync`), and the value may be put in by one thread
// and taken out or dropped by another (`T: Send`).
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// SAFETY: it owns the value.
unsafe impl<T: Send> Send for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates an empty cell.
    #[must_use]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Returns the value, if there is one. Does not wait.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: it is done.
        self.once.is_completed().then(|| unsafe { self.lend() })
    }

    /// Returns the value for the sole owner, if there is one.
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

    /// Returns the value; makes it by `init` first if there is none. If several threads come at
    /// once, one makes it and the others wait.
    ///
    /// # Panics
    ///
    /// If `init` does, which leaves the cell empty; and if `init` asks for the value of this cell,
    /// as [`Once::call_once`] does.
    #[inline]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        let Ok(value) = self.get_or_try_init(|| Ok::<T, Infallible>(init()));
        value
    }

    /// Returns the value; makes it first, if there is none, by an `init` that may fail. A failure
    /// leaves the cell empty, and the next thread to come tries again.
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
            self.once.run(|_| {
                let value = init()?;
                // SAFETY: Invariant 1: no other thread is running, and a value is not lent before
                // it is done.
                self.value.with_mut(|slot| _ = unsafe { &mut *slot }.write(value));
                Ok(())
            })?;
        }
        // SAFETY: it is done, by this thread or by one that `run` or `is_completed` has seen with
        // Acquire.
        Ok(unsafe { self.lend() })
    }

    /// Waits until there is a value, and returns it. Makes none itself.
    ///
    /// It goes on to wait if the thread that makes the value panics or fails, until another thread
    /// makes one.
    ///
    /// # Panics
    ///
    /// If it is called from an `init` of the same cell, which would wait for itself.
    ///
    /// ```
    /// use stanchion_competitive::OnceLock;
    /// static ADDRESS: OnceLock<String> = OnceLock::new();
    /// let reader = std::thread::spawn(|| ADDRESS.wait().len());
    /// ADDRESS.set("localhost".to_owned()).unwrap();
    /// assert_eq!(reader.join().unwrap(), 9);
    /// ```
    #[inline]
    pub fn wait(&self) -> &T {
        self.once.wait_force();
        // SAFETY: it is done, as `wait_force` has seen with Acquire.
        unsafe { self.lend() }
    }

    /// Puts `value` in and returns it, if the cell is empty. Waits if another thread is about to.
    ///
    /// # Errors
    ///
    /// The value that is there already, and `value` back.
    ///
    /// # Panics
    ///
    /// As [`get_or_init`](Self::get_or_init).
    ///
    /// ```
    /// use stanchion_competitive::OnceLock;
    /// let cell = OnceLock::new();
    /// assert_eq!(cell.try_insert(1), Ok(&1));
    /// assert_eq!(cell.try_insert(2), Err((&1, 2)));
    /// ```
    pub fn try_insert(&self, value: T) -> Result<&T, (&T, T)> {
        let mut value = Some(value);
        let there = self.get_or_init(|| value.take().expect("a body runs once"));
        match value {
            None => Ok(there),
            Some(value) => Err((there, value)),
        }
    }

    /// Returns the value for the sole owner; if there is none, makes it by `init` first.
    ///
    /// # Panics
    ///
    /// If `init` does, which leaves the cell empty.
    ///
    /// ```
    /// use stanchion_competitive::OnceLock;
    /// let mut cell = OnceLock::new();
    /// *cell.get_mut_or_init(|| 1) += 1;
    /// assert_eq!(cell.get(), Some(&2));
    /// ```
    pub fn get_mut_or_init(&mut self, init: impl FnOnce() -> T) -> &mut T {
        let Ok(value) = self.get_mut_or_try_init(|| Ok::<T, Infallible>(init()));
        value
    }

    /// Returns the value for the sole owner; if there is none, makes it by `init`, which may fail.
    ///
    /// # Errors
    ///
    /// That of `init`, which leaves the cell empty.
    ///
    /// # Panics
    ///
    /// As [`get_mut_or_init`](Self::get_mut_or_init).
    pub fn get_mut_or_try_init<E>(
        &mut self,
        init: impl FnOnce() -> Result<T, E>,
    ) -> Result<&mut T, E> {
        self.get_or_try_init(init)?;
        // SAFETY: Invariant 2: it is done.
        Ok(unsafe { self.value.get_mut().assume_init_mut() })
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

    /// Returns the value, if there is one.
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Lends the value.
    ///
    /// # Safety
    ///
    /// It must be done, and seen to be by an Acquire.
    unsafe fn lend(&self) -> &T {
        self.value.with(|slot| {
            // SAFETY: a done value is written only with the cell to itself, and the pointer is good
            // for as long as `self` is borrowed.
            let slot = unsafe { &*slot };
            // SAFETY: Invariant 2.
            unsafe { slot.assume_init_ref() }
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

/// Clones the value: the clone of an empty cell is empty, also if a thread is about to fill it.
impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::from)
    }
}

/// Two cells are equal if both are empty, or both have a value and the values are equal.
impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}
