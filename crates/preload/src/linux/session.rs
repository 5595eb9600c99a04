//! The mode of this process. `stanchion record` sets it in the environment:
//!
//! - `STANCHION_RECORD`: the file with the shared table ([`table`]).
//! - `STANCHION_LOCK`: the policy of the locks that replace the program's locks, if they are to be
//!   replaced.
//!
//! The mode is decided once, at the first call of any of the shim's functions. A lock that was
//! taken by the C library's function must be released by it too. Several threads may decide at
//! once, with the same result.

use core::ffi::CStr;
use core::ptr;

use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::atomic::{AtomicPtr, AtomicU8, Ordering};

use super::mutex::Operations;
use super::{message, policies, table};

/// The value of `MODE` before the first call.
const UNDECIDED: u8 = 0;
/// The number of [`Mode::Off`].
const OFF: u8 = 1;
/// The number of [`Mode::Record`].
const RECORD: u8 = 2;
/// The number of [`Mode::Replace`].
const REPLACE: u8 = 3;

/// The mode of the process. Threads that decide write it last.
static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);
/// The operations of the chosen policy, or null. Threads that decide write it.
static OPERATIONS: AtomicPtr<Operations> = AtomicPtr::new(ptr::null_mut());

/// The mode of the process.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    /// Every call is passed on.
    Off,
    /// Waits are recorded.
    Record(&'static Shared),
    /// Waits are recorded, and the locks are replaced.
    Replace(&'static Shared, &'static Operations),
}

/// Returns the mode of the process. The first call decides it.
#[inline]
pub(super) fn mode() -> Mode {
    // Acquire: pairs with the Release of `decide`.
    match MODE.load(Ordering::Acquire) {
        UNDECIDED => decide(),
        mode => decided(mode),
    }
}

/// Returns the mode with this number.
#[inline]
fn decided(mode: u8) -> Mode {
    let table = table::recorded();
    // SAFETY: null, or a static.
    let operations = unsafe { OPERATIONS.load(Ordering::Relaxed).as_ref() };
    match (mode, table, operations) {
        (RECORD, Some(table), _) => Mode::Record(table),
        (REPLACE, Some(table), Some(operations)) => Mode::Replace(table, operations),
        _ => Mode::Off,
    }
}

/// Decides the mode from the environment.
#[cold]
fn decide() -> Mode {
    let mut mode = OFF;
    if let Some(path) = variable(c"STANCHION_RECORD") {
        match table::open(path) {
            Ok(()) => mode = RECORD,
            Err(why) => message::say(&[
                b"waits of this process are not recorded: ",
                path.to_bytes(),
                b": ",
                why,
            ]),
        }
    }
    if let (RECORD, Some(policy)) = (mode, variable(c"STANCHION_LOCK")) {
        match policies::operations(policy.to_bytes()) {
            Ok(operations) => {
                let operations = ptr::from_ref(operations).cast_mut();
                OPERATIONS.store(operations, Ordering::Relaxed);
                mode = REPLACE;
            }
            Err(why) => message::say(&[b"locks of this process are not replaced: ", why]),
        }
    }
    // Release: pairs with the Acquire of `mode`, and shows what was stored above.
    MODE.store(mode, Ordering::Release);
    decided(mode)
}

/// Returns a variable of the environment.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero. Before `main` no thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: null, or a string that ends with a zero and stays.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}
