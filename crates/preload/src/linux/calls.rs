//! Waits in other functions of the C library: for read-write locks, semaphores, barriers and
//! conditions, for the end of a thread, and for time.
//!
//! Each is named after its path of calls, with a letter for the function. A wait counts if the
//! thread left its processor in it.

use core::ffi::{c_int, c_uint, c_void};

use libc::{clockid_t, pthread_barrier_t, pthread_t, sem_t, timespec};

use stanchion_competitive::waits::current::Kind;
use stanchion_machine::atomic::{AtomicPtr, Ordering};

use super::current::{self, Place};
use super::marks::{Lock, RwLock};
use super::orders::Wanted;
use super::session::{self, Mode};
use super::until::Until;
use super::unwind::Registers;
use super::waits::Waker;
use super::{Site, errno, futex, orders, real, sampling, table, waits};

/// The letters of names, by what a thread waits for.
mod kind {
    /// A read-write lock.
    pub(super) const RW_LOCK: u8 = b'R';
    /// A semaphore.
    pub(super) const SEMAPHORE: u8 = b'M';
    /// A barrier.
    pub(super) const BARRIER: u8 = b'B';
    /// The end of a thread.
    pub(super) const JOIN: u8 = b'J';
    /// Time.
    pub(super) const SLEEP: u8 = b'T';
}

/// Defines exported functions. Each passes its arguments and the registers of its caller to another
/// function.
macro_rules! with_registers {
    ($($name:ident => $target:ident($($argument:ident: $type:ty),*) $x86:literal $arm:literal;)*) => { $(
        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // On the stack come the frame pointer, the stack pointer after the call, and the
            // address that it returns to: `Registers`, from its end.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "lea r11, [rsp + 8]",
                "push rbp",
                "push r11",
                "push qword ptr [r11 - 8]",
                ".cfi_adjust_cfa_offset 24",
                concat!("mov ", $x86, ", rsp"),
                "call {target}",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // Behind the saved registers come `Registers`.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov x9, sp",
                "stp x29, x30, [sp, -48]!",
                ".cfi_def_cfa_offset 48",
                ".cfi_offset 29, -48",
                ".cfi_offset 30, -40",
                "stp x30, x9, [sp, 16]",
                "str x29, [sp, 32]",
                "mov x29, sp",
                concat!("add ", $arm, ", sp, 16"),
                "bl {target}",
                "ldp x29, x30, [sp], 48",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore 29",
                ".cfi_restore 30",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }
    )* };
}

with_registers! {
    pthread_rwlock_rdlock => read(lock: RwLock) "rsi" "x1";
    pthread_rwlock_timedrdlock => timed_read(lock: RwLock, until: Time) "rdx" "x2";
    pthread_rwlock_clockrdlock => clock_read(lock: RwLock, clock: clockid_t, until: Time) "rcx" "x3";
    pthread_rwlock_wrlock => write(lock: RwLock) "rsi" "x1";
    pthread_rwlock_timedwrlock => timed_write(lock: RwLock, until: Time) "rdx" "x2";
    pthread_rwlock_clockwrlock => clock_write(lock: RwLock, clock: clockid_t, until: Time) "rcx" "x3";
    sem_wait => take(semaphore: Semaphore) "rsi" "x1";
    sem_timedwait => timed_take(semaphore: Semaphore, until: Time) "rdx" "x2";
    sem_clockwait => clock_take(semaphore: Semaphore, clock: clockid_t, until: Time) "rcx" "x3";
    pthread_barrier_wait => meet(barrier: *mut pthread_barrier_t) "rsi" "x1";
    pthread_join => join(thread: pthread_t, result: Out) "rdx" "x2";
    pthread_timedjoin_np => timed_join(thread: pthread_t, result: Out, until: Time) "rcx" "x3";
    pthread_clockjoin_np => clock_join(thread: pthread_t, result: Out, clock: clockid_t, until: Time) "r8" "x4";
    nanosleep => short_sleep(time: Time, rest: *mut timespec) "rdx" "x2";
    clock_nanosleep => clock_sleep(clock: clockid_t, flags: c_int, time: Time, rest: *mut timespec) "r8" "x4";
    usleep => micros_sleep(micros: c_uint) "rsi" "x1";
    sleep => seconds_sleep(seconds: c_uint) "rsi" "x1";
}

type Semaphore = *mut sem_t;
type Time = *const timespec;
type Out = *mut *mut c_void;
type Caller = *const Registers;

/// Calls `block`, and records it as a wait of that kind for the object at `address`, unless
/// `attempt` says that there is no need to wait. The address of a thread is its handle.
///
/// # Safety
///
/// `caller` points to registers.
unsafe fn call(
    kind: u8,
    address: usize,
    caller: Caller,
    attempt: impl FnOnce() -> Option<c_int>,
    block: impl FnOnce() -> c_int,
) -> c_int {
    let (Mode::Record(table) | Mode::Replace(table, _)) = session::mode() else { return block() };
    // SAFETY: the caller's promise.
    let registers = unsafe { *caller };
    // The shim itself may sleep, in a lock that it has put in the place of another.
    if futex::is_own(registers.code) {
        return block();
    }
    if !matches!(kind, kind::JOIN | kind::SLEEP) {
        table::count_locking_process(table);
    }
    if let Some(result) = errno::kept(attempt) {
        return result;
    }
    let since = waits::now();
    let name = errno::kept(|| sampling::name(kind, registers, since, table));
    let (kind, address, waker) = match kind {
        kind::RW_LOCK => (Kind::RwLock, address, Waker::Overtakable),
        kind::SEMAPHORE => (Kind::Semaphore, address, Waker::Overtakable),
        kind::BARRIER => {
            // The last thread that arrives wakes the others, and no thread knows yet which is it.
            waits::wakes(address);
            (Kind::Unknown, address, Waker::Last)
        }
        kind::JOIN => (Kind::Join, 0, thread(address)),
        _ => (Kind::Unknown, 0, Waker::Unknown),
    };
    let place = Place { kind, address, name, since };
    waits::call(table, &place, waker, block)
}

/// Returns the thread that ends a wait for its end.
fn thread(handle: usize) -> Waker {
    // SAFETY: the caller of the function that waits passes a thread that has not been joined.
    let thread = unsafe { current::number_of(handle as pthread_t) };
    thread.map_or(Waker::Unknown, Waker::Thread)
}

/// No attempt.
fn at_once() -> Option<c_int> {
    None
}

/// Defines targets of exported functions.
macro_rules! targets {
    ($($target:ident($($argument:ident: $type:ty),*) = $kind:ident at $address:expr, $attempt:expr, $real:ident;)*) => { $(
        unsafe extern "C-unwind" fn $target($($argument: $type,)* caller: Caller) -> c_int {
            // SAFETY: the caller's promise; the registers lie on the stack.
            unsafe { call(kind::$kind, $address, caller, $attempt, || real::$real($($argument),*)) }
        }
    )* };
}

targets! {
    take(semaphore: Semaphore) = SEMAPHORE at semaphore.addr(), || take_free(semaphore), sem_wait;
    timed_take(semaphore: Semaphore, until: Time) = SEMAPHORE at semaphore.addr(), || at_a_time(until, || take_free(semaphore)), sem_timedwait;
    clock_take(semaphore: Semaphore, clock: clockid_t, until: Time) = SEMAPHORE at semaphore.addr(), || by_a_clock(clock, until, || take_free(semaphore)), sem_clockwait;
    meet(barrier: *mut pthread_barrier_t) = BARRIER at barrier.addr(), at_once, barrier_wait;
    join(thread: pthread_t, result: Out) = JOIN at thread as usize, at_once, join;
    timed_join(thread: pthread_t, result: Out, until: Time) = JOIN at thread as usize, at_once, timedjoin;
    clock_join(thread: pthread_t, result: Out, clock: clockid_t, until: Time) = JOIN at thread as usize, at_once, clockjoin;
    short_sleep(time: Time, rest: *mut timespec) = SLEEP at 0, at_once, nanosleep;
    clock_sleep(clock: clockid_t, flags: c_int, time: Time, rest: *mut timespec) = SLEEP at 0, at_once, clock_nanosleep;
    micros_sleep(micros: c_uint) = SLEEP at 0, at_once, usleep;
    seconds_sleep(seconds: c_uint) = SLEEP at 0, at_once, sleep;
}

/// Defines targets of exported functions that take a read-write lock, for reading or for writing,
/// until a time.
macro_rules! lock_targets {
    ($($target:ident($($argument:ident: $type:ty),*) = $access:ident, $until:expr, $real:ident;)*) => { $(
        unsafe extern "C-unwind" fn $target(lock: RwLock, $($argument: $type,)* caller: Caller) -> c_int {
            // SAFETY: the caller's promise.
            let block = || unsafe { real::$real(lock, $($argument),*) };
            // SAFETY: the caller's promise; the registers lie on the stack.
            unsafe { lock_until(lock, Access::$access, $until, caller, block) }
        }
    )* };
}

lock_targets! {
    read() = Read, Until::Ever, rwlock_rdlock;
    timed_read(until: Time) = Read, Until::Time(until), rwlock_timedrdlock;
    clock_read(clock: clockid_t, until: Time) = Read, Until::Clock(clock, until), rwlock_clockrdlock;
    write() = Write, Until::Ever, rwlock_wrlock;
    timed_write(until: Time) = Write, Until::Time(until), rwlock_timedwrlock;
    clock_write(clock: clockid_t, until: Time) = Write, Until::Clock(clock, until), rwlock_clockwrlock;
}

/// Takes a read-write lock, by `block` if it is not free.
///
/// # Safety
///
/// `lock` must be one, and `caller` point to registers.
unsafe fn lock_until(
    lock: RwLock,
    access: Access,
    until: Until,
    caller: Caller,
    block: impl FnOnce() -> c_int,
) -> c_int {
    let free = || match access {
        // SAFETY: the caller's promise.
        Access::Read => unsafe { read_free(lock) },
        // SAFETY: as above.
        Access::Write => unsafe { write_free(lock) },
    };
    let attempt = || match until {
        Until::Ever => free(),
        Until::Time(until) => at_a_time(until, free),
        Until::Clock(clock, until) => by_a_clock(clock, until, free),
    };
    // SAFETY: the caller's promise.
    let take = || unsafe { call(kind::RW_LOCK, lock.addr(), caller, attempt, block) };
    let blocks = matches!(until, Until::Ever);
    // SAFETY: as above.
    unsafe { ordered(lock, access, blocks, caller, take) }
}

/// The ways to take a read-write lock.
#[derive(Clone, Copy)]
enum Access {
    /// Beside other readers.
    Read,
    /// Alone.
    Write,
}

/// Calls `take` to take a lock, and records its order if orders are recorded.
///
/// # Safety
///
/// `lock` must be one, and `caller` point to registers.
unsafe fn ordered(
    lock: RwLock,
    access: Access,
    blocks: bool,
    caller: Caller,
    take: impl FnOnce() -> c_int,
) -> c_int {
    if !orders::is_on() {
        return take();
    }
    let mode = match access {
        // SAFETY: the caller's promise.
        Access::Read => unsafe { Lock::reading(lock) },
        Access::Write => stanchion_order::Mode::Exclusive,
    };
    let wanted = Wanted { lock: Lock::RwLock(lock), mode, blocks };
    // SAFETY: the caller's promise.
    let registers = unsafe { *caller };
    // SAFETY: as above.
    unsafe { orders::around(&wanted, registers, take) }
}

/// Defines exported functions that are needed for orders alone. Each jumps to its target, or to the
/// C library's function once it is known that orders are not recorded. The address to which it
/// returns is behind its argument.
macro_rules! for_orders {
    ($($name:ident => $target:ident, $pointer:ident;)*) => { $(
        /// The function to jump to. `begin` writes it.
        static $pointer: AtomicPtr<c_void> = AtomicPtr::new($target as *const () as *mut c_void);

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name(lock: RwLock) -> c_int {
            core::arch::naked_asm!(
                "mov rsi, [rsp]",
                "jmp qword ptr [rip + {pointer}]",
                pointer = sym $pointer,
            )
        }

        #[doc = concat!("# Safety\n\nAs `", stringify!($name), "` of the C library.")]
        #[unsafe(no_mangle)]
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name(lock: RwLock) -> c_int {
            core::arch::naked_asm!(
                "mov x1, x30",
                "adrp x16, {pointer}",
                "ldr x16, [x16, :lo12:{pointer}]",
                "br x16",
                pointer = sym $pointer,
            )
        }
    )*

        /// Has these functions jump to the C library's, if orders are not recorded. Before `main`.
        pub(super) fn begin() {
            if matches!(session::mode(), Mode::Record(_)) && orders::is_on() {
                return;
            }
            $(
                let name = concat!(stringify!($name), "\0").as_ptr().cast();
                // SAFETY: the name ends with a zero.
                let real = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
                if !real.is_null() {
                    // Relaxed: either function will do.
                    $pointer.store(real, Ordering::Relaxed);
                }
            )*
        }
    };
}

for_orders! {
    pthread_rwlock_tryrdlock => try_read, TRY_READ;
    pthread_rwlock_trywrlock => try_write, TRY_WRITE;
}

unsafe extern "C-unwind" fn try_read(lock: RwLock, site: Site) -> c_int {
    let registers = Registers::of_code(site);
    // SAFETY: the caller's promise.
    let take = || unsafe { real::rwlock_tryrdlock(lock) };
    // SAFETY: as above.
    unsafe { ordered(lock, Access::Read, false, &raw const registers, take) }
}

unsafe extern "C-unwind" fn try_write(lock: RwLock, site: Site) -> c_int {
    let registers = Registers::of_code(site);
    // SAFETY: the caller's promise.
    let take = || unsafe { real::rwlock_trywrlock(lock) };
    // SAFETY: as above.
    unsafe { ordered(lock, Access::Write, false, &raw const registers, take) }
}

/// Makes the attempt if the time is one. If it is none, the function that waits refuses it.
fn at_a_time(until: Time, attempt: impl FnOnce() -> Option<c_int>) -> Option<c_int> {
    // SAFETY: the caller of the function that waits passes a time.
    let is_time = (0..1_000_000_000).contains(&unsafe { (*until).tv_nsec });
    is_time.then(attempt).flatten()
}

/// Makes the attempt if the clock and the time are ones that such functions take.
fn by_a_clock(
    clock: clockid_t,
    until: Time,
    attempt: impl FnOnce() -> Option<c_int>,
) -> Option<c_int> {
    let is_clock = clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC;
    is_clock.then(|| at_a_time(until, attempt)).flatten()
}

/// Takes the lock for reading if it is free.
unsafe fn read_free(lock: RwLock) -> Option<c_int> {
    // SAFETY: the caller's promise.
    real::has_sound_attempts().then(|| free(unsafe { real::rwlock_tryrdlock(lock) })).flatten()
}

/// Takes the lock for writing if it is free.
unsafe fn write_free(lock: RwLock) -> Option<c_int> {
    // SAFETY: the caller's promise.
    real::has_sound_attempts().then(|| free(unsafe { real::rwlock_trywrlock(lock) })).flatten()
}

/// Takes the semaphore if it is free. As each wait for it, this is a place where a thread can be
/// cancelled.
unsafe fn take_free(semaphore: Semaphore) -> Option<c_int> {
    unsafe extern "C-unwind" {
        fn pthread_testcancel();
    }
    // SAFETY: the caller's promise, which allows a cancellation.
    unsafe { pthread_testcancel() };
    // SAFETY: the caller's promise.
    free(unsafe { real::sem_trywait(semaphore) })
}

/// Returns the result of an attempt that succeeded. Any other is for the function that waits: it
/// knows more errors.
fn free(result: c_int) -> Option<c_int> {
    (result == 0).then_some(0)
}
