//! Locks and unlocks a mutex as the mode says. The functions of the shim call it, and so does a
//! wait for a replaced condition variable.

use core::ffi::{c_int, c_long};

use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::asymmetric;

use super::marks::Lock;
use super::orders::Wanted;
use super::session::{self, Mode};
use super::until::Until;
use super::unwind::Registers;
use super::{Mutex, Site, filter, layout, mutex, orders, real, table, waits};

/// Locks a mutex as the mode says: passes the call on, records the wait, or uses the replaced
/// mutex.
pub(super) unsafe fn lock(mutex: Mutex, registers: Registers, until: Until) -> c_int {
    let site = registers.code;
    if let Until::Clock(clock, _) = until
        && !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
    {
        // The C library refuses such a clock before it looks whether the mutex is free.
        return libc::EINVAL;
    }
    match session::mode() {
        // SAFETY: the caller's promise.
        Mode::Off => unsafe { until.real_lock(mutex) },
        Mode::Record(table) => {
            table::count_locking_process(table);
            // SAFETY: the caller's promise.
            let take = || unsafe { lock_recorded(table, mutex, site, until) };
            if !orders::is_on() {
                return take();
            }
            let wanted = wanted(mutex, matches!(until, Until::Ever));
            // SAFETY: as above.
            unsafe { orders::around(&wanted, registers, take) }
        }
        Mode::Replace(table, operations) => {
            table::count_locking_process(table);
            // SAFETY: the caller's promise.
            if unsafe { layout::is_ours(mutex) } {
                // SAFETY: as above.
                unsafe { mutex::lock(operations, table, mutex, site, until) }
            } else {
                // SAFETY: as above.
                unsafe { lock_recorded(table, mutex, site, until) }
            }
        }
    }
}

/// Returns an acquisition of a mutex.
fn wanted(mutex: Mutex, blocks: bool) -> Wanted {
    Wanted { lock: Lock::Mutex(mutex), mode: stanchion_order::Mode::Exclusive, blocks }
}

/// Tries to lock a mutex as the mode says.
pub(super) unsafe fn try_lock(mutex: Mutex, registers: Registers) -> c_int {
    // SAFETY: the caller's promise.
    let take = || unsafe { real::mutex_trylock(mutex) };
    match session::mode() {
        // SAFETY: the caller's promise.
        Mode::Replace(table, operations) if unsafe { layout::is_ours(mutex) } => {
            table::count_locking_process(table);
            // SAFETY: the caller's promise.
            unsafe { mutex::try_lock(operations, mutex) }
        }
        Mode::Record(_) if orders::is_on() => {
            // SAFETY: the caller's promise.
            unsafe { orders::around(&wanted(mutex, false), registers, take) }
        }
        _ => take(),
    }
}

/// Locks a mutex of the C library, and records the wait if the mutex is held.
#[inline]
unsafe fn lock_recorded(table: &Shared, mutex: Mutex, site: Site, until: Until) -> c_int {
    // This holds for every kind of mutex: an attempt that does not return `EBUSY` has done the same
    // as a lock.
    // SAFETY: the caller's promise.
    let attempt = || unsafe { real::mutex_trylock(mutex) };
    let result = attempt();
    if result != libc::EBUSY {
        return result;
    }
    // SAFETY: the caller's promise.
    waits::wait(table, mutex, site, attempt, || unsafe { until.real_lock(mutex) })
}

/// Unlocks a mutex as the mode says.
pub(super) unsafe fn unlock(mutex: Mutex) -> c_int {
    match session::mode() {
        // SAFETY: the caller's promise.
        Mode::Replace(_, operations) if unsafe { layout::is_ours(mutex) } => {
            // SAFETY: the caller's promise.
            unsafe { mutex::unlock(operations, mutex) }
        }
        // SAFETY: the caller's promise.
        Mode::Off => unsafe { real::mutex_unlock(mutex) },
        Mode::Record(_) | Mode::Replace(..) => {
            waits::releases(mutex);
            // SAFETY: the caller's promise.
            let release = || unsafe { real::mutex_unlock(mutex) };
            if orders::is_on() {
                // SAFETY: as above.
                return unsafe { orders::release(Lock::Mutex(mutex), release) };
            }
            release()
        }
    }
}

/// Installs a filter of system calls by `call`, as the program asks for. From then on the shim
/// makes no calls of its own.
#[cold]
pub(super) fn install_filter(call: impl FnOnce() -> c_long) -> c_long {
    match session::mode() {
        Mode::Off => return call(),
        Mode::Record(_) => {}
        // The replaced locks ask the kernel for barriers, and can do without.
        Mode::Replace(..) => asymmetric::never_use_membarrier(),
    }
    filter::install(call)
}
