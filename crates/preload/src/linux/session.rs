//! The mode of this process. `stanchion record` sets it in the environment:
//!
//! - `STANCHION_RECORD`: the file with the shared table ([`table`]).
//! - `STANCHION_FILTERS`: the number of filters of system calls under which `stanchion record` runs
//!   itself. A program that runs under more of them is not recorded: a filter could kill it for a
//!   call of the shim.
//! - `STANCHION_ORDER_TABLE`: the file with the table of lock orders, if they are recorded
//!   ([`orders`]).
//! - `STANCHION_EVENTS`: the file with the log of single waits ([`log`]), if they are kept.
//! - `STANCHION_SWITCHES`: `off` if no switch records are to be taken ([`rings`]).
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
use super::{log, maps, message, orders, policies, rings, table};

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
        let opened = if is_filtered() {
            Err(&b"it is run under a filter of system calls"[..])
        } else {
            table::open(path)
        };
        match opened {
            Ok(()) => mode = RECORD,
            Err(why) => message::say(&[
                b"waits of this process are not recorded: ",
                path.to_bytes(),
                b": ",
                why,
            ]),
        }
    }
    if let (RECORD, Some(path)) = (mode, variable(c"STANCHION_EVENTS"))
        && let Err(why) = log::open(path)
    {
        message::say(&[
            b"single waits of this process are not recorded: ",
            path.to_bytes(),
            b": ",
            why,
        ]);
    }
    if variable(c"STANCHION_SWITCHES").is_some_and(|value| value.to_bytes() == b"off") {
        rings::turn_off();
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
    if let (RECORD, Some(path)) = (mode, variable(c"STANCHION_ORDER_TABLE"))
        && let Err(why) = orders::open(path)
    {
        let path = path.to_bytes();
        message::say(&[b"orders of locks of this process are not recorded: ", path, b": ", why]);
    }
    // Release: pairs with the Acquire of `mode`, and shows what was stored above.
    MODE.store(mode, Ordering::Release);
    decided(mode)
}

/// Returns whether this process runs under a filter that `stanchion record` does not run under. The
/// loader has just opened and read files, so this may be done under any filter.
fn is_filtered() -> bool {
    let number = |text: &[u8]| str::from_utf8(text).ok()?.trim().parse::<u32>().ok();
    let Some(known) = variable(c"STANCHION_FILTERS").and_then(|text| number(text.to_bytes()))
    else {
        return false;
    };
    let mut filters = None;
    maps::lines(c"/proc/self/status", |line| {
        filters = line.strip_prefix(b"Seccomp_filters:").and_then(number);
        filters.is_some()
    });
    filters.is_some_and(|filters| filters > known)
}

/// Returns a variable of the environment.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero. Before `main` no thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: null, or a string that ends with a zero and stays.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}
