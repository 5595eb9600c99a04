//! Waits that do not go through pthread mutexes: calls of `futex` by `syscall`. Filters of system
//! calls that are installed by `syscall` are noticed here too ([`filter`](super::filter)).
//!
//! The locks of Rust's standard library, of parking_lot, of crossbeam and of GLib wait so. Each
//! wait is named after the path of calls that led to it ([`sampling`]), because the word that a
//! thread waits for is often its own.
//!
//! A thread that is woken and does not get its lock waits again, and counts again. A wait that ends
//! with its time counts. A wait that never began, because the word had another value, does not. A
//! wait counts with its whole length if another thread moved the waiter to another word. A wait for
//! several words (`futex_waitv`) counts as one wait, without an address: its words are not read,
//! because their list may be anywhere. Waits for priority-inheriting words are not recorded.
//!
//! All other system calls go on as they came. For them the function `syscall` jumps to the C
//! library's and has no frame of its own, so that a child of `clone` finds what it would find
//! without the shim.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem;

use stanchion_machine::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::session::{self, Mode};
use super::unwind::Registers;
use super::{dispatch, errno, maps, place, sampling, table, waits};

/// The function that makes system calls: the C library's, once it was found. `begin` writes it.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(direct as *const () as *mut c_void);

/// The type of that function. It unwinds if the thread is cancelled in it.
type Real = unsafe extern "C-unwind" fn(c_long, ...) -> c_long;

/// The first address of the shim's code. `begin` writes it, and the next.
static OWN_START: AtomicUsize = AtomicUsize::new(0);
/// The address after the last of the shim's code.
static OWN_END: AtomicUsize = AtomicUsize::new(0);

/// The bits of an operation that are not its command: private, and the clock.
const FLAGS: c_int = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;

/// The operations of `seccomp` that install a filter.
const SETS_FILTER: [c_uint; 2] = [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER];

/// Finds the C library's function and the shim's own code, before `main`.
pub(super) fn begin() {
    // SAFETY: the name ends with a zero.
    let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
    if !real.is_null() {
        // Relaxed: a thread that finds the old address makes the call without the C library.
        REAL.store(real, Ordering::Relaxed);
    }
    let me = begin as *const () as usize;
    maps::visit(|mapping| {
        let here = (mapping.start..mapping.end).contains(&me);
        if here {
            // Relaxed: a thread that sees only one of both finds an empty range, and records
            // nothing.
            OWN_START.store(mapping.start, Ordering::Relaxed);
            OWN_END.store(mapping.end, Ordering::Relaxed);
        }
        here
    });
}

/// Makes a system call. Looks before at those of `futex` and `futex_waitv`, which may wait or wake,
/// and at those that may install a filter.
///
/// # Safety
///
/// As `syscall` of the C library.
#[unsafe(no_mangle)]
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn syscall() -> c_long {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {futex_number}",
        "je 1f",
        "cmp rdi, {seccomp_number}",
        "je 1f",
        "cmp rdi, {prctl_number}",
        "je 1f",
        "cmp rdi, {waitv_number}",
        "jne 2f",
        // The arguments stay in their registers. On the stack come the seventh, then the stack
        // pointer and the frame pointer after the call, and the address that it returns to.
        "1: lea r11, [rsp + 8]",
        "sub rsp, 8",
        "push qword ptr [r11 - 8]",
        "push rbp",
        "push r11",
        "push qword ptr [r11]",
        ".cfi_adjust_cfa_offset 40",
        "call {looked_at}",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "ret",
        "2: jmp qword ptr [rip + {real}]",
        ".cfi_endproc",
        futex_number = const libc::SYS_futex,
        waitv_number = const libc::SYS_futex_waitv,
        seccomp_number = const libc::SYS_seccomp,
        prctl_number = const libc::SYS_prctl,
        looked_at = sym looked_at,
        real = sym REAL,
    )
}

/// Makes a system call, until the C library's function was found.
///
/// # Safety
///
/// As `syscall` of the C library.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn direct() -> c_long {
    core::arch::naked_asm!(
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2: mov rdi, rax",
        "jmp {failed}",
        failed = sym failed,
    )
}

/// Makes a system call. Looks before at those of `futex` and `futex_waitv`, which may wait or wake,
/// and at those that may install a filter.
///
/// # Safety
///
/// As `syscall` of the C library.
#[unsafe(no_mangle)]
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn syscall() -> c_long {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "cmp x0, {futex_number}",
        "b.eq 1f",
        "cmp x0, {seccomp_number}",
        "b.eq 1f",
        "cmp x0, {prctl_number}",
        "b.eq 1f",
        "cmp x0, {waitv_number}",
        "b.ne 2f",
        // The arguments stay in their registers. Behind them come the stack pointer and the frame
        // pointer after the call, and the address that it returns to.
        "1: mov x7, sp",
        "stp x29, x30, [sp, -32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset 29, -32",
        ".cfi_offset 30, -24",
        "mov x29, sp",
        "ldr x9, [sp]",
        "stp x9, x30, [sp, -16]!",
        ".cfi_def_cfa_offset 48",
        "bl {looked_at}",
        "add sp, sp, 16",
        "ldp x29, x30, [sp], 32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore 29",
        ".cfi_restore 30",
        "ret",
        "2: adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "br x16",
        ".cfi_endproc",
        futex_number = const libc::SYS_futex,
        waitv_number = const libc::SYS_futex_waitv,
        seccomp_number = const libc::SYS_seccomp,
        prctl_number = const libc::SYS_prctl,
        looked_at = sym looked_at,
        real = sym REAL,
    )
}

/// Makes a system call, until the C library's function was found.
///
/// # Safety
///
/// As `syscall` of the C library.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn direct() -> c_long {
    core::arch::naked_asm!(
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, 4095",
        "b.cs 2f",
        "ret",
        "2: b {failed}",
        failed = sym failed,
    )
}

/// Sets `errno` from the result of a system call that failed.
unsafe extern "C" fn failed(result: c_long) -> c_long {
    errno::set(-result as c_int);
    -1
}

/// Returns whether the address is in the shim's own code. It is, if that is not known yet.
pub(super) fn is_own(code: usize) -> bool {
    let own = OWN_START.load(Ordering::Relaxed)..OWN_END.load(Ordering::Relaxed);
    own.contains(&code) || own.is_empty()
}

/// Makes the call, and records it if it waits. `stack`, `frame` and `code` are the registers after
/// the call.
///
/// # Safety
///
/// As the system call in the kernel's manual.
#[allow(clippy::too_many_arguments, reason = "they are those of the system call")]
unsafe extern "C-unwind" fn looked_at(
    number: c_long,
    word: usize,
    operation: usize,
    value: usize,
    timeout: usize,
    second: usize,
    third: usize,
    stack: usize,
    frame: usize,
    code: usize,
) -> c_long {
    let real = || {
        let address = REAL.load(Ordering::Relaxed);
        // SAFETY: the C library's function, or `direct`, which has the same arguments.
        let real = unsafe { mem::transmute::<*mut c_void, Real>(address) };
        // SAFETY: the caller's promise.
        unsafe { real(number, word, operation, value, timeout, second, third) }
    };
    match number {
        libc::SYS_prctl if word as c_int == libc::PR_SET_SECCOMP => {
            return dispatch::install_filter(real);
        }
        libc::SYS_seccomp if SETS_FILTER.contains(&(word as c_uint)) => {
            return dispatch::install_filter(real);
        }
        libc::SYS_prctl | libc::SYS_seccomp => return real(),
        _ => {}
    }
    let (Mode::Record(table) | Mode::Replace(table, _)) = session::mode() else { return real() };
    // The shim's own waits are those of its replaced locks, and have names already.
    if is_own(code) {
        return real();
    }
    let wait = |address| {
        table::count_locking_process(table);
        let since = waits::now();
        let name = sampling::name(place::FUTEX, Registers { code, stack, frame }, since, table);
        waits::futex(table, address, since, name, real)
    };
    if number == libc::SYS_futex_waitv {
        return wait(waits::SEVERAL);
    }
    match operation as c_int & !FLAGS {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => wait(word),
        command @ (libc::FUTEX_WAKE
        | libc::FUTEX_WAKE_BITSET
        | libc::FUTEX_WAKE_OP
        | libc::FUTEX_REQUEUE
        | libc::FUTEX_CMP_REQUEUE) => {
            waits::wakes(word);
            if command == libc::FUTEX_WAKE_OP {
                waits::wakes(second);
            }
            real()
        }
        _ => real(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_call_has_results_and_errors_as_the_c_library_s() {
        let address = direct as *const () as *mut c_void;
        // SAFETY: it has the arguments of `syscall`.
        let direct = unsafe { mem::transmute::<*mut c_void, Real>(address) };
        // SAFETY: asks for a number.
        let process = unsafe { direct(libc::SYS_getpid) };
        assert_eq!(process, c_long::from(std::process::id()));
        // SAFETY: not a file.
        let result = unsafe { direct(libc::SYS_close, -1) };
        assert_eq!((result, errno::last()), (-1, libc::EBADF));
        let word = 7_u32;
        let (wait, none) = (libc::FUTEX_WAIT_BITSET, 0_usize);
        // SAFETY: the word has another value, so the call does not wait. All arguments are used.
        let result = unsafe { direct(libc::SYS_futex, &raw const word, wait, 8, none, none, 1) };
        assert_eq!((result, errno::last()), (-1, libc::EAGAIN));
    }
}
