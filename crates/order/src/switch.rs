//! The switch: off, unless a variable of the environment or the program switches it on.

use std::ffi::OsString;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::{busy, process};

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
    SWITCH.load(Ordering::Relaxed) == OFF
}

/// Returns true if acquisitions are recorded. `begin` gets the variable when it is read.
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
pub(crate) fn switch_on() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| process::around_fork(pause, resume, switch_off));
    if !IS_FORKED.load(Ordering::Relaxed) {
        SWITCH.store(ON, Ordering::Relaxed);
    }
}

/// Records nothing in the calling thread, which forks. Handlers of the program that were registered
/// earlier run after this one, and in the child before [`switch_off`]: their locks are not seen.
extern "C" fn pause() {
    busy::replace(true);
}

/// Goes on in the parent.
extern "C" fn resume() {
    busy::replace(false);
}

extern "C" fn switch_off() {
    IS_FORKED.store(true, Ordering::Relaxed);
    SWITCH.store(OFF, Ordering::Relaxed);
    busy::replace(false);
}

/// Reads the variable once. Until that is done the switch is off, because reading allocates, and
/// the allocator may take a recorded lock.
#[cold]
fn read(begin: fn(OsString)) -> bool {
    if SWITCH.compare_exchange(UNREAD, OFF, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty())
    {
        begin(file);
        switch_on();
    }
    is_known_on()
}
