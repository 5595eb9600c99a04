//! The locks of `std::sync`, with the same names and functions, that report the order in which they
//! are taken.
//!
//! Not there are functions that are unstable or deprecated in the standard library.
//!
//! ```
//! use stanchion_checked::std::{Condvar, Mutex, RwLock};
//!
//! static READY: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
//! static NAME: RwLock<&str> = RwLock::new("checked");
//!
//! std::thread::spawn(|| {
//!     *READY.0.lock().unwrap() = true;
//!     READY.1.notify_one();
//! });
//! let ready = READY.1.wait_while(READY.0.lock().unwrap(), |ready| !*ready).unwrap();
//! assert!(*ready && *NAME.read().unwrap() == "checked");
//! ```

mod condvar;
mod held;
mod mutex;
mod rw_lock;

pub use ::std::sync::{LockResult, PoisonError, TryLockError, TryLockResult, WaitTimeoutResult};

pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
