//! Locals: what each thread has one of, made when it is first asked for, and dropped when the thread ends.
//!
//! A user-level thread's `std::thread_local!` are those of the kernel thread that runs it, which it shares with others. These are its own; a kernel thread
//! has them too.
//!
//! A thread keeps them in a list that is looked through from the end: a comparison each. Why not a number for each key: the first use by any thread would have to agree on it with all others, and
//! every thread's table would be as long as there are keys in the program.
//!
//! # Invariants
//!
//! 1. A thread's list is touched by itself only, while it runs; and is not kept borrowed while code of the user's runs.
//! 2. A value stays where it is until the thread has ended, so that a reference to it may be handed to code that makes other locals.

use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use core::ptr::NonNull;

use crate::thread::panics::{Payload, discard, dropping};
use crate::thread::header as thread;

enum Value {
    /// Being made.
    Coming,
    There(NonNull<dyn Any>),
    /// Dropped, as the thread ends.
    Gone,
}

/// The locals of a thread.
pub(crate) struct Locals(RefCell<Vec<(usize, Value)>>);

impl Locals {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn set(&self, key: usize, value: Value) {
        let mut list = self.0.borrow_mut();
        match list.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, place)) => *place = value,
            None => list.push((key, value)),
        }
    }

    /// The thread ends: drops its values, the youngest first, and those that are made by that. What the first of them panicked with.
    pub(crate) fn end(&self) -> Option<Payload> {
        if self.0.borrow().is_empty() {
            return None;
        }
        let mut first = None;
        loop {
            let mut list = self.0.borrow_mut();
            let Some((_, place)) =
                list.iter_mut().rev().find(|(_, value)| matches!(value, Value::There(_)))
            else {
                break;
            };
            let Value::There(value) = core::mem::replace(place, Value::Gone) else {
                unreachable!("it has just been found")
            };
            drop(list);
            // SAFETY: made by `Box::leak`, and taken out of its only place.
            let value = unsafe { Box::from_raw(value.as_ptr()) };
            if let Some(payload) = dropping(value) {
                match first {
                    None => first = Some(payload),
                    Some(_) => discard(payload),
                }
            }
        }
        self.0.take();
        first
    }
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread is completion, and its value has been dropped")]
pub struct AccessError;

/// A key to a value of each thread, as [`local!`](crate::local) makes it.
///
/// ```
/// use core::cell::RefCell;
/// use stanchion_activations::{LocalKey, Runtime, local};
///
/// local! {
///     static NAMES: RefCell<Vec<&'static str>> = RefCell::new(Vec::new());
/// }
///
/// fn note(key: &'static LocalKey<RefCell<Vec<&'static str>>>, name: &'static str) -> usize {
///     key.with(|names| {
///         names.borrow_mut().push(name);
///         names.borrow().len()
///     })
/// }
/// assert_eq!(Runtime::new(1)?.run(|| (note(&NAMES, "one"), note(&NAMES, "two"))), (1, 2));
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub struct LocalKey<T: 'static> {
    make: fn() -> T,
    /// So that the key has an address of its own.
    _place: u8,
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(make: fn() -> T) -> Self {
        Self { make, _place: 0 }
    }

    /// Calls `body` with the calling thread's value, which is made if there is none yet.
    ///
    /// # Panics
    ///
    /// While the thread ends, when the value has been dropped. If making it asks for it.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        match self.try_with(body) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// [`with`](Self::with), unless the value has been dropped.
    ///
    /// # Errors
    ///
    /// [`AccessError`]: the thread ends, and has dropped the value.
    ///
    /// # Panics
    ///
    /// If making the value asks for it.
    ///
    /// ```
    /// use stanchion_activations::{AccessError, Runtime, local};
    ///
    /// /// Asks for itself when it is dropped.
    /// struct Completed;
    ///
    /// impl Drop for Completed {
    ///     fn drop(&mut self) {
    ///         assert_eq!(LAST.try_with(|_| ()), Err(AccessError));
    ///     }
    /// }
    ///
    /// local! {
    ///     static LAST: Completed = Completed;
    /// }
    /// Runtime::new(1)?.run(|| assert_eq!(LAST.try_with(|_| ()), Ok(())));
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let key = core::ptr::from_ref(self).addr();
        let found = thread::with_current(|thread| {
            let list = thread.header().locals().0.borrow();
            match list.iter().rev().find(|(known, _)| *known == key) {
                None => Ok(None),
                Some((_, Value::There(value))) => Ok(Some(*value)),
                Some((_, Value::Coming)) => panic!("making a thread's value asks for that value"),
                Some((_, Value::Gone)) => Err(AccessError),
            }
        })?;
        let value = match found {
            Some(value) => value,
            None => self.make(key),
        };
        // SAFETY: there until the thread ends (Invariant 2), which is not before this has returned.
        let value = unsafe { value.as_ref() };
        let Some(value) = value.downcast_ref::<T>() else {
            unreachable!("a key has one type");
        };
        Ok(body(value))
    }

    #[cold]
    fn make(&'static self, key: usize) -> NonNull<dyn Any> {
        struct Coming(usize);
        impl Drop for Coming {
            fn drop(&mut self) {
                // It could not be made: the next who asks tries again.
                let key = self.0;
                thread::with_current(|thread| {
                    thread.header().locals().0.borrow_mut().retain(|(known, _)| *known != key);
                });
            }
        }
        thread::with_current(|thread| thread.header().locals().set(key, Value::Coming));
        let coming = Coming(key);
        let value: Box<dyn Any> = Box::new((self.make)());
        core::mem::forget(coming);
        let value = NonNull::from(Box::leak(value));
        thread::with_current(|thread| thread.header().locals().set(key, Value::There(value)));
        value
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// Statics of which each thread has its own: user-level threads, and kernel threads that are none of a runtime's.
///
/// A value is made when its thread first asks for it, in one allocation; later uses cost a call, and a comparison for each local that the thread has first used
/// since. When the thread ends, its values are dropped on it, the youngest first, before it can be joined. If one of them panics then, the others are dropped all the same, and the join tells of the panic, unless
/// the thread has panicked already; at the end of a kernel thread nobody is told.
///
/// ```
/// use core::cell::Cell;
/// use stanchion_activations::{Runtime, local};
///
/// local! {
///     /// How often this thread has asked.
///     static ASKED: Cell<u32> = Cell::new(0);
/// }
/// let ask = || ASKED.with(|asked| asked.replace(asked.get() + 1));
/// let runtime = Runtime::new(1)?;
/// for _ in 0..3 {
///     assert_eq!(runtime.run(move || (ask(), ask())), (0, 1));
/// }
/// assert_eq!(ask(), 0);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[macro_export]
macro_rules! local {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $make:expr);+ $(;)?) => {
        $(
            $(#[$attr])*
            $vis static $name: $crate::LocalKey<$type> = {
                fn make() -> $type {
                    $make
                }
                $crate::LocalKey::new(make)
            };
        )+
    };
}
