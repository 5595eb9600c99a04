//! Filters of system calls, for programs that install one and for tests that run a program under
//! one.

use std::io::Error;

use libc::{c_int, c_long, sock_filter};

/// The code that loads a word of the call.
const LOAD: u16 = 0x20;
/// The code that compares with a number, and jumps.
const IS: u16 = 0x15;
/// The code that ends with a verdict.
const VERDICT: u16 = 0x06;

/// The program of a filter.
pub(crate) type Filter = Vec<sock_filter>;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Returns a filter that fails a call with that error. If an argument is given by index and value,
/// only calls with it fail.
pub(crate) fn refusing(number: c_long, argument: Option<(u32, u32)>, error: c_int) -> Filter {
    let (errno, allow) = (libc::SECCOMP_RET_ERRNO | error as u32, libc::SECCOMP_RET_ALLOW);
    let mut filter = vec![step(LOAD, 0, 0, 0)];
    match argument {
        None => filter.push(step(IS, 0, 1, number as u32)),
        Some((index, value)) => filter.extend([
            step(IS, 0, 3, number as u32),
            step(LOAD, 0, 0, 16 + 8 * index),
            step(IS, 0, 1, value),
        ]),
    }
    filter.extend([step(VERDICT, 0, 0, errno), step(VERDICT, 0, 0, allow)]);
    filter
}

/// Returns a filter that kills the process at any call but these.
#[allow(dead_code, reason = "tests do not run under one")]
pub(crate) fn allowing_only(numbers: &[c_long]) -> Filter {
    let mut filter = vec![step(LOAD, 0, 0, 0)];
    for number in numbers {
        filter.push(step(IS, 0, 1, *number as u32));
        filter.push(step(VERDICT, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    filter.push(step(VERDICT, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    filter
}

/// The ways to install a filter.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "tests use one of them")]
pub(crate) enum Way {
    /// The function `prctl`, for this thread and those that it makes.
    Prctl,
    /// The system call `prctl` by `syscall`, for the same.
    PrctlCall,
    /// The system call `seccomp` by `syscall`, for all threads.
    Seccomp,
    /// The system call `seccomp` by an instruction, for all threads.
    Inlined,
}

/// Installs a filter. It allocates nothing.
pub(crate) fn install(filter: &mut [sock_filter], way: Way) -> Result<(), Error> {
    let program =
        libc::sock_fprog { len: filter.len().try_into().unwrap(), filter: filter.as_mut_ptr() };
    let program = &raw const program;
    // SAFETY: gives up the right to gain privileges.
    let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let (set, all) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    let (option, mode) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
    let installed = match way {
        // SAFETY: a program of a filter, here and below.
        Way::Prctl => c_long::from(unsafe { libc::prctl(option, mode, program) }),
        // SAFETY: as above.
        Way::PrctlCall => unsafe { libc::syscall(libc::SYS_prctl, option, mode, program) },
        // SAFETY: as above.
        Way::Seccomp => unsafe { libc::syscall(libc::SYS_seccomp, set, all, program) },
        Way::Inlined => {
            let (set, all, program) = (set as usize, all as usize, program.expose_provenance());
            // SAFETY: as above.
            unsafe { inlined(libc::SYS_seccomp, set, all, program) }
        }
    };
    if given_up == 0 && installed == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Makes a system call with three arguments by an instruction.
#[cfg(target_arch = "x86_64")]
unsafe fn inlined(number: c_long, first: usize, second: usize, third: usize) -> c_long {
    let result: c_long;
    // SAFETY: the caller's promise. The kernel changes these registers only.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// Makes a system call with three arguments by an instruction.
#[cfg(target_arch = "aarch64")]
unsafe fn inlined(number: c_long, first: usize, second: usize, third: usize) -> c_long {
    let result: c_long;
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second,
            in("x2") third,
        );
    }
    result
}

/// The variable with calls to refuse, as `NUMBER:ERROR,NUMBER:ERROR`.
pub(crate) const REFUSED: &str = "STANCHION_TEST_REFUSED";

/// Refuses the system calls that the variable names, by filters that the shim does not see.
#[allow(dead_code, reason = "tests set the variable")]
pub(crate) fn refuse_by_variable() {
    let Some(refused) = std::env::var_os(REFUSED) else { return };
    for one in refused.to_str().unwrap().split(',') {
        let (number, error) = one.split_once(':').unwrap();
        let mut filter = refusing(number.parse().unwrap(), None, error.parse().unwrap());
        install(&mut filter, Way::Inlined).unwrap();
    }
}
