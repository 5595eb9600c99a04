//! Keys to values of which each thread has its own: user-level threads, and kernel threads that
//! belong to no runtime. The values are in `thread/locals.rs`.
//!
//! The `std::thread_local!` values of a user-level thread are those of the kernel thread that runs
//! it, which it shares with others. These are its own.

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;

use crate::thread::locals::{Locals, Value};
use crate::worker::context::with_current;

/// The error of asking for a value that was dropped already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread is ending, and its value has been dropped")]
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
    /// Makes the value of a thread.
    make: fn() -> T,
    /// A byte, so that the key has an address of its own.
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
    /// While the thread ends, after the value was dropped. If making the value asks for it.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        match self.try_with(body) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Does the same as [`with`](Self::with), unless the value was dropped.
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
    /// struct Last;
    ///
    /// impl Drop for Last {
    ///     fn drop(&mut self) {
    ///         assert_eq!(LAST.try_with(|_| ()), Err(AccessError));
    ///     }
    /// }
    ///
    /// local! {
    ///     static LAST: Last = Last;
    /// }
    /// Runtime::new(1)?.run(|| assert_eq!(LAST.try_with(|_| ()), Ok(())));
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let key = core::ptr::from_ref(self).addr();
        let value = match with_locals(|locals| locals.get(key)) {
            None => self.make(key),
            Some(Value::Ready(value)) => value,
            Some(Value::Coming) => panic!("making a thread's value asks for that value"),
            Some(Value::Gone) => return Err(AccessError),
        };
        // SAFETY: it stays until the thread ends (Invariant 2 of `locals.rs`), which is not before
        // this has returned.
        let value = unsafe { value.as_ref() };
        let Some(value) = value.downcast_ref::<T>() else {
            unreachable!("a key has one type");
        };
        Ok(body(value))
    }

    #[cold]
    fn make(&'static self, key: usize) -> NonNull<dyn Any> {
        /// Forgets a value that could not be made.
        struct Coming(usize);
        impl Drop for Coming {
            fn drop(&mut self) {
                with_locals(|locals| locals.forget(self.0));
            }
        }
        with_locals(|locals| locals.start(key));
        let coming = Coming(key);
        let value: Box<dyn Any> = Box::new((self.make)());
        core::mem::forget(coming);
        with_locals(|locals| locals.finish(key, value))
    }
}

fn with_locals<R>(body: impl FnOnce(&Locals) -> R) -> R {
    with_current(|thread| body(thread.header().locals()))
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// Declares statics of which each thread has its own: user-level threads, and kernel threads that
/// belong to no runtime.
///
/// A value is made when its thread first asks for it, in one allocation. Later uses cost a call,
/// and a comparison for each local that the thread has first used since.
///
/// When the thread ends, its values are dropped on it, the youngest first, before it can be joined.
/// If one of these drops panics, the others happen all the same. The join returns the panic, unless
/// the thread has panicked already. At the end of a kernel thread the panic is lost.
///
/// ```
/// use core::cell::Cell;
/// use stanchion_activations::{Runtime, local};
///
/// local! {
///     /// The number of times that this thread has asked.
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
