//! Changes of a process that last until it ends, and forks.

use std::io::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::{c_int, c_long, c_ulong};

/// The longest time that a forked child takes.
const MOST_SECONDS: u32 = 600;

/// Makes the kernel give `answer`, one of `SECCOMP_RET_…`, to the system call `call` from now on,
/// in all threads of the process. Returns whether the system has filters: an emulator has none.
#[must_use]
pub fn filter(call: c_long, answer: u32) -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const SKIP_UNLESS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = [
        step(LOAD, 0, 0), // the call's number
        step(SKIP_UNLESS, 1, call as u32),
        step(ANSWER, 0, answer),
        step(ANSWER, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    const ON: c_ulong = 1;
    const NOTHING: c_ulong = 0;
    // SAFETY: the call takes only numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, ON, NOTHING, NOTHING, NOTHING) };
    assert_eq!(done, 0);
    // SAFETY: the program and its steps are live; the kernel copies them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    if done != 0 {
        println!("no filters here: {}", Error::last_os_error());
    }
    done == 0
}

/// Returns the answer by which a call fails with `errno`.
#[must_use]
pub const fn refusal(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Lets the process have `more` bytes of address space than it has now.
pub fn limit_memory(more: u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 =
        pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is alive.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) }, 0);
    limit.rlim_cur = pages * 4_096 + more;
    // SAFETY: `limit` is alive.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

/// Returns the number of threads of the process. The kernel counts a thread that ends a moment
/// longer.
#[must_use]
pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

/// Runs `body` in a forked child, which it may not keep for more than ten minutes, and fails unless
/// `body` returns.
pub fn in_a_fork(body: impl FnOnce()) {
    // SAFETY: the child takes no lock that another thread of the parent may have had. It allocates,
    // which glibc makes possible, and may start threads.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: ends a child that waits for ever.
        unsafe { libc::alarm(MOST_SECONDS) };
        let returned = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!returned)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child died (signal {}) or failed", status & 0x7f);
}
