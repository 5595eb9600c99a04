//! The functions that stand before those of the C library.
//!
//! Each looks up the mode and acts on it. A function that may make the program wait first passes on
//! the registers of its caller. Only assembly can read them.

use core::ffi::{CStr, c_char, c_int, c_ulong};

use libc::{
    clockid_t, pthread_condattr_t, pthread_mutexattr_t, pthread_rwlock_t, pthread_t, sem_t,
    timespec,
};

use stanchion_competitive::waits::current::Kind;

use super::current::{self, Place};
use super::marks::Lock;
use super::session::{self, Mode};
use super::until::Until;
use super::unwind::Registers;
use super::waits::Waker;
use super::{
    Cond, Mutex, Site, cond, dispatch, errno, layout, locks, module, mutex, orders, real, waits,
};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::{calls, futex};

/// Waits for a condition variable as the mode says.
unsafe fn wait(cond: Cond, mutex: Mutex, registers: Registers, until: Until) -> c_int {
    let site = registers.code;
    match session::mode() {
        // SAFETY: the caller's promise.
        Mode::Replace(table, _) if unsafe { layout::is_ours_too(cond, mutex) } => {
            // SAFETY: the caller's promise.
            errno::kept(|| unsafe { cond::wait(table, cond, mutex, site, until) })
        }
        // SAFETY: the caller's promise.
        Mode::Off => unsafe { until.real_wait(cond, mutex) },
        Mode::Record(table) | Mode::Replace(table, _) => {
            let name = errno::kept(|| locks::condition(site, table));
            waits::releases(mutex);
            if orders::is_on() {
                // SAFETY: the caller's promise.
                unsafe { orders::waits_with(mutex, registers) };
            }
            let since = waits::now();
            let place = Place { kind: Kind::Condition, address: cond.addr(), name, since };
            // SAFETY: the caller's promise.
            waits::call(table, &place, Waker::InTurn, || unsafe { until.real_wait(cond, mutex) })
        }
    }
}

/// Defines exported functions. Each passes its arguments and the registers of its caller to another
/// function: the address to which it returns, and the stack and frame pointers after the call. One
/// with four arguments passes no frame pointer.
macro_rules! with_registers {
    ($($name:ident => $target:ident($($argument:ident: $type:ty),*) $x86:literal $arm:literal;)*) => { $(
        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // The return address is on top of the stack. The arguments stay where they are.
            core::arch::naked_asm!($x86, "jmp {target}", target = sym $target)
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            core::arch::naked_asm!($arm, "b {target}", target = sym $target)
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $target($($argument,)* 0, 0, 0) }
        }
    )* };
}

with_registers! {
    pthread_mutex_lock => lock_from(mutex: Mutex)
        "mov rsi, [rsp]\nlea rdx, [rsp + 8]\nmov rcx, rbp" "mov x1, x30\nmov x2, sp\nmov x3, x29";
    pthread_mutex_trylock => trylock_from(mutex: Mutex)
        "mov rsi, [rsp]\nlea rdx, [rsp + 8]\nmov rcx, rbp" "mov x1, x30\nmov x2, sp\nmov x3, x29";
    pthread_mutex_timedlock => timedlock_from(mutex: Mutex, until: *const timespec)
        "mov rdx, [rsp]\nlea rcx, [rsp + 8]\nmov r8, rbp" "mov x2, x30\nmov x3, sp\nmov x4, x29";
    pthread_mutex_clocklock => clocklock_from(mutex: Mutex, clock: clockid_t, until: *const timespec)
        "mov rcx, [rsp]\nlea r8, [rsp + 8]\nmov r9, rbp" "mov x3, x30\nmov x4, sp\nmov x5, x29";
    pthread_cond_wait => wait_from(cond: Cond, mutex: Mutex)
        "mov rdx, [rsp]\nlea rcx, [rsp + 8]\nmov r8, rbp" "mov x2, x30\nmov x3, sp\nmov x4, x29";
    pthread_cond_timedwait => timedwait_from(cond: Cond, mutex: Mutex, until: *const timespec)
        "mov rcx, [rsp]\nlea r8, [rsp + 8]\nmov r9, rbp" "mov x3, x30\nmov x4, sp\nmov x5, x29";
    // There is no register left for the frame pointer.
    pthread_cond_clockwait => clockwait_from(cond: Cond, mutex: Mutex, clock: clockid_t, until: *const timespec)
        "mov r8, [rsp]\nlea r9, [rsp + 8]" "mov x4, x30\nmov x5, sp";
}

unsafe extern "C-unwind" fn lock_from(
    mutex: Mutex,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { dispatch::lock(mutex, Registers { code, stack, frame }, Until::Ever) }
}

unsafe extern "C-unwind" fn trylock_from(
    mutex: Mutex,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { dispatch::try_lock(mutex, Registers { code, stack, frame }) }
}

unsafe extern "C-unwind" fn timedlock_from(
    mutex: Mutex,
    until: *const timespec,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { dispatch::lock(mutex, Registers { code, stack, frame }, Until::Time(until)) }
}

unsafe extern "C-unwind" fn clocklock_from(
    mutex: Mutex,
    clock: clockid_t,
    until: *const timespec,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    let until = Until::Clock(clock, until);
    // SAFETY: the caller's promise.
    unsafe { dispatch::lock(mutex, Registers { code, stack, frame }, until) }
}

unsafe extern "C-unwind" fn wait_from(
    cond: Cond,
    mutex: Mutex,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, Registers { code, stack, frame }, Until::Ever) }
}

unsafe extern "C-unwind" fn timedwait_from(
    cond: Cond,
    mutex: Mutex,
    until: *const timespec,
    code: Site,
    stack: usize,
    frame: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, Registers { code, stack, frame }, Until::Time(until)) }
}

unsafe extern "C-unwind" fn clockwait_from(
    cond: Cond,
    mutex: Mutex,
    clock: clockid_t,
    until: *const timespec,
    code: Site,
    stack: usize,
) -> c_int {
    let registers = Registers { code, stack, frame: 0 };
    // SAFETY: the caller's promise.
    unsafe { wait(cond, mutex, registers, Until::Clock(clock, until)) }
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
    fn pthread_mutex_unlock(mutex: Mutex) {
        // SAFETY: the caller's promise.
        unsafe { dispatch::unlock(mutex) }
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
        if orders::is_on() {
            // SAFETY: the caller's promise.
            unsafe { orders::ends(Lock::Mutex(mutex)) };
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
            mode => {
                wakes(mode, cond.addr());
                // SAFETY: the caller's promise.
                unsafe { real::cond_signal(cond) }
            }
        }
    }

    fn pthread_cond_broadcast(cond: Cond) {
        match session::mode() {
            // SAFETY: the caller's promise.
            Mode::Replace(..) => errno::kept(|| unsafe { cond::broadcast(cond) }),
            mode => {
                wakes(mode, cond.addr());
                // SAFETY: the caller's promise.
                unsafe { real::cond_broadcast(cond) }
            }
        }
    }

    // The C library's function has arguments without types, and passes on five numbers.
    fn prctl(option: c_int, second: c_ulong, third: c_ulong, fourth: c_ulong, fifth: c_ulong) {
        // SAFETY: the caller's promise.
        let call = || unsafe { real::prctl(option, second, third, fourth, fifth) };
        if option == libc::PR_SET_SECCOMP {
            dispatch::install_filter(|| call().into()) as c_int
        } else {
            call()
        }
    }

    fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) {
        let mode = session::mode();
        wakes(mode, lock.addr());
        // SAFETY: the caller's promise.
        let release = || unsafe { real::rwlock_unlock(lock) };
        // The mode decides whether orders are recorded.
        if matches!(mode, Mode::Record(_)) && orders::is_on() {
            // SAFETY: as above.
            return unsafe { orders::release(Lock::RwLock(lock), release) };
        }
        release()
    }

    fn pthread_setname_np(thread: pthread_t, name: *const c_char) {
        // SAFETY: the caller's promise.
        let result = unsafe { real::setname(thread, name) };
        if result == 0 && !matches!(session::mode(), Mode::Off) {
            // SAFETY: the caller's promise.
            if let Some(thread) = unsafe { current::number_of(thread) } {
                // SAFETY: the C library has read it as a text.
                current::renamed(thread, unsafe { CStr::from_ptr(name) }.to_bytes());
            }
        }
        result
    }

    fn sem_post(semaphore: *mut sem_t) {
        wakes(session::mode(), semaphore.addr());
        // SAFETY: the caller's promise.
        unsafe { real::sem_post(semaphore) }
    }
}

/// Notes, if waits are recorded, that this thread is about to wake others by the address.
#[inline]
fn wakes(mode: Mode, address: usize) {
    if !matches!(mode, Mode::Off) {
        waits::wakes(address);
    }
}

/// Does before the program starts what its first wait would do otherwise. It reads the clock's rate
/// and the quota of processor time. It asks the kernel for its barrier and for a page that a fork
/// wipes. It numbers the first thread.
fn warm_up() {
    stanchion_machine::warm_up();
    let _ = stanchion_competitive::cost::current();
}

/// Runs when the library is loaded, before `main`.
extern "C" fn begin() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        futex::begin();
        calls::begin();
    }
    if let Mode::Off = session::mode() {
        return;
    }
    real::begin();
    module::begin();
    warm_up();
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
