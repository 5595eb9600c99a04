//! The switch: off, unless a variable of the environment or the program switches it on.

use std::ffi::OsString;
use std::hint;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::process;

/// The variable that names the file of reports.
pub(crate) const VARIABLE: &str = "STANCHION_ORDERS";

const OFF: u8 = 0;
const ON: u8 = 1;
/// The variable was not read yet.
const UNREAD: u8 = 2;

// Relaxed everywhere: the switch guards no data, and an acquisition that sees it late is not noted.
static SWITCH: AtomicU8 = AtomicU8::new(UNREAD);

/// True in the child of a fork. Relaxed: its first thread sets it, before there are others.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Returns true if nothing is recorded. Costs a load and a branch, and nothing else. A switch that
/// was not read yet may be on: the caller asks [`is_on`] then, out of line.
#[inline]
pub(crate) fn is_off() -> bool {
    let is_off = SWITCH.load(Ordering::Relaxed) == OFF;
    if !is_off {
        hint::cold_path();
    }
    is_off
}

/// Returns true if acquisitions are recorded. `begin` gets the variable when it is read,
/// and calls [`switch_on`].
#[inline]
pub(crate) fn is_on(begin: fn(OsString)) -> bool {
    match SWITCH.load(Ordering::Relaxed) {
        OFF => false,
        ON => true,
        _ => read(begin),
    }
}

/// Returns true if the switch is on, and reads no variable.
#[inline]
pub(crate) fn is_known_on() -> bool {
    SWITCH.load(Ordering::Relaxed) == ON
}

/// Switches the recorder on. The child of a fork is off, and stays so: another thread of its parent
/// may have had the record, and is not there to give it back.
/// `pause` is called before a fork, and `resume` after it in the parent.
pub(crate) fn switch_on(pause: extern "C" fn(), resume: extern "C" fn()) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| process::around_fork(pause, resume, switch_off));
    if !IS_FORKED.load(Ordering::Relaxed) {
        SWITCH.store(ON, Ordering::Relaxed);
    }
}

extern "C" fn switch_off() {
    IS_FORKED.store(true, Ordering::Relaxed);
    SWITCH.store(OFF, Ordering::Relaxed);
}

/// Reads the variable once. Until that is done the switch is off, because reading allocates, and
/// the allocator may take a recorded lock.
#[cold]
fn read(begin: fn(OsString)) -> bool {
    if SWITCH.compare_exchange(UNREAD, OFF, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty())
    {
        begin(file);
    }
    is_known_on()
}
