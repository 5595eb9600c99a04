//! The functions that stand before those of the C library.
//!
//! Each looks up the mode and acts on it. A function that may make the program wait first stores
//! the address that called it. Only assembly can read that address.

use core::ffi::c_int;

use libc::{clockid_t, pthread_condattr_t, pthread_mutexattr_t, timespec};

use super::session::{self, Mode};
use super::{Cond, Mutex, Site, cond, errno, layout, locks, mutex, real, waits};

/// The time for which a thread waits.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// Without a limit.
    Ever,
    /// Until a time on the clock of the day.
    Time(*const timespec),
    /// Until a time on this clock.
    Clock(clockid_t, *const timespec),
}

impl Until {
    /// Locks a mutex of the C library, with this limit.
    unsafe fn real_lock(self, mutex: Mutex) -> c_int {
        match self {
            // SAFETY: the caller's promise.
            Self::Ever => unsafe { real::mutex_lock(mutex) },
            // SAFETY: the caller's promise.
            Self::Time(until) => unsafe { real::mutex_timedlock(mutex, until) },
            // SAFETY: the caller's promise.
            Self::Clock(clock, until) => unsafe { real::mutex_clocklock(mutex, clock, until) },
        }
    }

    /// Waits for a condition variable of the C library, with this limit.
    unsafe fn real_wait(self, cond: Cond, mutex: Mutex) -> c_int {
        match self {
            // SAFETY: the caller's promise.
            Self::Ever => unsafe { real::cond_wait(cond, mutex) },
            // SAFETY: the caller's promise.
            Self::Time(until) => unsafe { real::cond_timedwait(cond, mutex, until) },
            // SAFETY: the caller's promise.
            Self::Clock(clock, until) => unsafe { real::cond_clockwait(cond, mutex, clock, until) },
        }
    }
}

/// Locks a mutex as the mode says: passes the call on, records the wait, or uses the replaced
/// mutex.
pub(super) unsafe fn lock(mutex: Mutex, site: Site, until: Until) -> c_int {
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
            session::locks(table);
            // SAFETY: the caller's promise.
            unsafe { lock_recorded(table, mutex, site, until) }
        }
        Mode::Replace(table, operations) => {
            session::locks(table);
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

/// Locks a mutex of the C library, and records the wait if the mutex is held.
#[inline]
unsafe fn lock_recorded(
    table: &stanchion_competitive::waits::shared::Shared,
    mutex: Mutex,
    site: Site,
    until: Until,
) -> c_int {
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
            unsafe { real::mutex_unlock(mutex) }
        }
    }
}

/// Waits for a condition variable as the mode says.
unsafe fn wait(cond: Cond, mutex: Mutex, site: Site, until: Until) -> c_int {
    match session::mode() {
        // SAFETY: the caller's promise.
        Mode::Replace(..) if unsafe { layout::is_ours_too(cond, mutex) } => {
            // SAFETY: the caller's promise.
            errno::kept(|| unsafe { cond::wait(cond, mutex, site, until) })
        }
        // SAFETY: the caller's promise.
        Mode::Off => unsafe { until.real_wait(cond, mutex) },
        Mode::Record(_) | Mode::Replace(..) => {
            waits::releases(mutex);
            // SAFETY: the caller's promise.
            unsafe { until.real_wait(cond, mutex) }
        }
    }
}

/// Defines exported functions. Each passes its arguments and the address of its caller to another
/// function.
macro_rules! with_site {
    ($($name:ident => $target:ident($($argument:ident: $type:ty),*) $x86:literal $arm:literal;)*) => { $(
        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // The return address is on top of the stack. The arguments stay where they are.
            core::arch::naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {target}", target = sym $target)
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            core::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {target}", target = sym $target)
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $target($($argument,)* 0) }
        }
    )* };
}

with_site! {
    pthread_mutex_lock => lock_from(mutex: Mutex) "rsi" "x1";
    pthread_mutex_timedlock => timedlock_from(mutex: Mutex, until: *const timespec) "rdx" "x2";
    pthread_mutex_clocklock => clocklock_from(mutex: Mutex, clock: clockid_t, until: *const timespec) "rcx" "x3";
    pthread_cond_wait => wait_from(cond: Cond, mutex: Mutex) "rdx" "x2";
    pthread_cond_timedwait => timedwait_from(cond: Cond, mutex: Mutex, until: *const timespec) "rcx" "x3";
    pthread_cond_clockwait => clockwait_from(cond: Cond, mutex: Mutex, clock: clockid_t, until: *const timespec) "r8" "x4";
}

unsafe extern "C-unwind" fn lock_from(mutex: Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { lock(mutex, site, Until::Ever) }
}

unsafe extern "C-unwind" fn timedlock_from(
    mutex: Mutex,
    until: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { lock(mutex, site, Until::Time(until)) }
}

unsafe extern "C-unwind" fn clocklock_from(
    mutex: Mutex,
    clock: clockid_t,
    until: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { lock(mutex, site, Until::Clock(clock, until)) }
}

unsafe extern "C-unwind" fn wait_from(cond: Cond, mutex: Mutex, site: Site) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, site, Until::Ever) }
}

unsafe extern "C-unwind" fn timedwait_from(
    cond: Cond,
    mutex: Mutex,
    until: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, site, Until::Time(until)) }
}

unsafe extern "C-unwind" fn clockwait_from(
    cond: Cond,
    mutex: Mutex,
    clock: clockid_t,
    until: *const timespec,
    site: Site,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, site, Until::Clock(clock, until)) }
}

/// Defines exported functions with the signatures of the C library.
macro_rules! exported {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => { $(
        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int $body
    )* };
}

exported! {
    fn pthread_mutex_trylock(mutex: Mutex) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(table, operations) if unsafe { layout::is_ours(mutex) } => {
                session::locks(table);
                // SAFETY: the caller's promise.
                unsafe { mutex::try_lock(operations, mutex) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { real::mutex_trylock(mutex) },
        }
    }

    fn pthread_mutex_unlock(mutex: Mutex) {
        // SAFETY: the caller's promise.
        unsafe { unlock(mutex) }
    }

    fn pthread_mutex_init(mutex: Mutex, attributes: *const pthread_mutexattr_t) {
        if !matches!(session::mode(), Mode::Off) {
            // An earlier mutex at this address may have ended without `pthread_mutex_destroy`.
            locks::forget(mutex.addr());
        }
        // SAFETY: the caller's promise. A replaced mutex is zeros at first as well.
        unsafe { real::mutex_init(mutex, attributes) }
    }

    fn pthread_mutex_destroy(mutex: Mutex) {
        let mode = session::mode();
        if !matches!(mode, Mode::Off) {
            locks::forget(mutex.addr());
        }
        match mode {
            // SAFETY: the caller's promise.
            Mode::Replace(_, operations) if unsafe { layout::is_ours(mutex) } => {
                // SAFETY: the caller's promise.
                unsafe { mutex::destroy(operations, mutex) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { real::mutex_destroy(mutex) },
        }
    }

    fn pthread_cond_init(cond: Cond, attributes: *const pthread_condattr_t) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(..) => unsafe { cond::init(cond, attributes) },
            // SAFETY: the caller's promise.
            _ => unsafe { real::cond_init(cond, attributes) },
        }
    }

    fn pthread_cond_destroy(cond: Cond) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(..) => errno::kept(|| unsafe { cond::destroy(cond) }),
            // SAFETY: the caller's promise.
            _ => unsafe { real::cond_destroy(cond) },
        }
    }

    fn pthread_cond_signal(cond: Cond) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(..) => errno::kept(|| unsafe { cond::signal(cond) }),
            // SAFETY: the caller's promise.
            _ => unsafe { real::cond_signal(cond) },
        }
    }

    fn pthread_cond_broadcast(cond: Cond) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(..) => errno::kept(|| unsafe { cond::broadcast(cond) }),
            // SAFETY: the caller's promise.
            _ => unsafe { real::cond_broadcast(cond) },
        }
    }
}

/// Runs when the library is loaded, before `main`.
extern "C" fn begin() {
    if let Mode::Off = session::mode() {
        return;
    }
    layout::warm_up();
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
