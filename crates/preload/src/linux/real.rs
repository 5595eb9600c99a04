//! The C library's own functions, behind the shim's functions of the same names.
//!
//! All are found at once, at the first call of any of the shim's functions, which is before `main`.
//! A later search could wait for the loader.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::mem;
use core::ptr;

use libc::{
    clockid_t, pthread_barrier_t, pthread_condattr_t, pthread_mutexattr_t, pthread_rwlock_t,
    pthread_t, sem_t, timespec,
};
use stanchion_machine::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::{Cond, Mutex, message};

/// Declares functions that call the next library's function of that name.
macro_rules! real {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        struct Addresses { $($name: AtomicPtr<c_void>,)* }

        static ADDRESSES: Addresses = Addresses { $($name: AtomicPtr::new(ptr::null_mut()),)* };

        fn find_all() {
            // Relaxed: a thread that does not see an address finds it again.
            $(ADDRESSES.$name.store(find($symbol), Ordering::Relaxed);)*
            // Release: pairs with the Acquire of `found`.
            FOUND.store(true, Ordering::Release);
        }

        $(
            #[doc = concat!("The C library's function.\n\n# Safety\n\nAs `", stringify!($symbol), "` in the C library's manual.")]
            #[inline]
            pub(super) unsafe fn $name($($argument: $type),*) -> c_int {
                found();
                let address = ADDRESSES.$name.load(Ordering::Relaxed);
                if address.is_null() {
                    return libc::ENOSYS;
                }
                // SAFETY: the address of the C function of that name, which has these arguments. It
                // unwinds if the thread is cancelled in it.
                let function = unsafe {
                    mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> c_int>(address)
                };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

/// True once all addresses are stored.
static FOUND: AtomicBool = AtomicBool::new(false);

real! {
    mutex_init = c"pthread_mutex_init" (mutex: Mutex, attributes: *const pthread_mutexattr_t);
    mutex_destroy = c"pthread_mutex_destroy" (mutex: Mutex);
    mutex_lock = c"pthread_mutex_lock" (mutex: Mutex);
    mutex_trylock = c"pthread_mutex_trylock" (mutex: Mutex);
    mutex_timedlock = c"pthread_mutex_timedlock" (mutex: Mutex, until: *const timespec);
    mutex_clocklock = c"pthread_mutex_clocklock" (mutex: Mutex, clock: clockid_t, until: *const timespec);
    mutex_unlock = c"pthread_mutex_unlock" (mutex: Mutex);
    cond_init = c"pthread_cond_init" (cond: Cond, attributes: *const pthread_condattr_t);
    cond_destroy = c"pthread_cond_destroy" (cond: Cond);
    cond_wait = c"pthread_cond_wait" (cond: Cond, mutex: Mutex);
    cond_timedwait = c"pthread_cond_timedwait" (cond: Cond, mutex: Mutex, until: *const timespec);
    cond_clockwait = c"pthread_cond_clockwait" (cond: Cond, mutex: Mutex, clock: clockid_t, until: *const timespec);
    cond_signal = c"pthread_cond_signal" (cond: Cond);
    cond_broadcast = c"pthread_cond_broadcast" (cond: Cond);
    rwlock_rdlock = c"pthread_rwlock_rdlock" (lock: *mut pthread_rwlock_t);
    rwlock_tryrdlock = c"pthread_rwlock_tryrdlock" (lock: *mut pthread_rwlock_t);
    rwlock_timedrdlock = c"pthread_rwlock_timedrdlock" (lock: *mut pthread_rwlock_t, until: *const timespec);
    rwlock_clockrdlock = c"pthread_rwlock_clockrdlock" (lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec);
    rwlock_wrlock = c"pthread_rwlock_wrlock" (lock: *mut pthread_rwlock_t);
    rwlock_trywrlock = c"pthread_rwlock_trywrlock" (lock: *mut pthread_rwlock_t);
    rwlock_timedwrlock = c"pthread_rwlock_timedwrlock" (lock: *mut pthread_rwlock_t, until: *const timespec);
    rwlock_clockwrlock = c"pthread_rwlock_clockwrlock" (lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec);
    rwlock_unlock = c"pthread_rwlock_unlock" (lock: *mut pthread_rwlock_t);
    sem_wait = c"sem_wait" (semaphore: *mut sem_t);
    sem_trywait = c"sem_trywait" (semaphore: *mut sem_t);
    sem_timedwait = c"sem_timedwait" (semaphore: *mut sem_t, until: *const timespec);
    sem_clockwait = c"sem_clockwait" (semaphore: *mut sem_t, clock: clockid_t, until: *const timespec);
    sem_post = c"sem_post" (semaphore: *mut sem_t);
    barrier_wait = c"pthread_barrier_wait" (barrier: *mut pthread_barrier_t);
    setname = c"pthread_setname_np" (thread: pthread_t, name: *const c_char);
    join = c"pthread_join" (thread: pthread_t, result: *mut *mut c_void);
    timedjoin = c"pthread_timedjoin_np" (thread: pthread_t, result: *mut *mut c_void, until: *const timespec);
    clockjoin = c"pthread_clockjoin_np" (thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, until: *const timespec);
    nanosleep = c"nanosleep" (time: *const timespec, rest: *mut timespec);
    clock_nanosleep = c"clock_nanosleep" (clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec);
    usleep = c"usleep" (micros: c_uint);
    sleep = c"sleep" (seconds: c_uint);
    prctl = c"prctl" (option: c_int, second: c_ulong, third: c_ulong, fourth: c_ulong, fifth: c_ulong);
}

/// Returns whether an attempt for a read-write lock can do no harm. Before version 2.30 of the C
/// library it could stall other threads for good (bug 23844). That version brought the functions
/// with a clock.
pub(super) fn has_sound_attempts() -> bool {
    found();
    !ADDRESSES.rwlock_clockrdlock.load(Ordering::Relaxed).is_null()
}

/// The result of `_dl_find_object`.
#[repr(C)]
pub(super) struct Found {
    /// Flags without meaning today.
    pub(super) flags: u64,
    /// The first address of the module.
    pub(super) start: *const u8,
    /// The address after its last.
    pub(super) end: *const u8,
    /// The loader's record of the module.
    pub(super) map: *const c_void,
    /// The index of its unwind tables (`.eh_frame_hdr`).
    pub(super) index: *const u8,
    /// Room for later versions.
    pub(super) reserved: [u64; 7],
}

/// The type of `_dl_find_object`.
pub(super) type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The address of `_dl_find_object`, or null.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Finds `_dl_find_object`, before `main`.
pub(super) fn begin() {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    // Relaxed: a thread that does not see the address finds no path of calls.
    FIND_OBJECT.store(address, Ordering::Relaxed);
}

/// Returns the C library's function that finds the module of an address without a lock. It came
/// with version 2.35.
#[inline]
pub(super) fn find_object() -> Option<FindObject> {
    let address = FIND_OBJECT.load(Ordering::Relaxed);
    // SAFETY: the address of the C function of that name, which has this type.
    (!address.is_null()).then(|| unsafe { mem::transmute::<*mut c_void, FindObject>(address) })
}

/// Makes sure that the addresses have been found.
#[inline]
fn found() {
    // Acquire: pairs with the Release of `find_all`.
    if !FOUND.load(Ordering::Acquire) {
        find_all();
    }
}

/// Finds one function in the libraries behind the shim.
#[cold]
fn find(symbol: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    // Others came later, such as those with a clock in version 2.30. A program that calls one of
    // them has it.
    let name = symbol.to_bytes();
    let is_old = (name.starts_with(b"pthread_mutex_") || name.starts_with(b"pthread_cond_"))
        && !name.windows(5).any(|part| part == b"clock");
    if address.is_null() && is_old {
        message::say(&[b"there is no ", name, b" to stand before: is this the GNU C library?"]);
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    address
}
