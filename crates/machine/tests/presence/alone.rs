//! Helpers for tests that change their process (its user, its filters, its limits, a fork) and
//! therefore need one of their own.

use std::fs::File;
use std::process::Command;

const WHICH: &str = "STANCHION_TEST_ALONE";

/// Runs `body`, the body of the test called `test`, in a process of its own. Fails if `body` fails.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(WHICH).is_some_and(|which| which == test) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(WHICH, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(ran.contains("1 passed"), "there is no test of that name: {ran}");
}

/// The user's account of locked memory. The kernel keeps one for all of a user's processes. So
/// tests that exhaust it must not run beside tests that take from it, in any process: a lock on a
/// file keeps them apart.
pub(crate) struct Account {
    /// The locked file, in the process that holds the lock.
    _locked: Option<File>,
}

impl Account {
    /// Takes the account for a test that needs little of it.
    pub(crate) fn shared() -> Self {
        Self::locked(File::lock_shared)
    }

    /// Takes the account for a test that exhausts it.
    pub(crate) fn to_ourselves() -> Self {
        Self::locked(File::lock)
    }

    fn locked(how: impl FnOnce(&File) -> std::io::Result<()>) -> Self {
        // A process that was started for one test does not lock: the test that started it holds the
        // lock.
        if std::env::var_os(WHICH).is_some() {
            return Self { _locked: None };
        }
        // SAFETY: the call takes no pointer.
        let user = unsafe { libc::geteuid() };
        let path = std::env::temp_dir().join(format!("stanchion-locked-memory-{user}"));
        let file = File::options().create(true).append(true).open(path).unwrap();
        how(&file).unwrap();
        Self { _locked: Some(file) }
    }
}

/// Gives up all privilege, if the process has any.
pub(crate) fn become_nobody() {
    const NOBODY: u32 = 65534;
    // SAFETY: the call takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    // SAFETY: no groups are read, because the count is 0.
    assert_eq!(unsafe { libc::setgroups(0, std::ptr::null()) }, 0);
    // SAFETY: the call takes a number.
    assert_eq!(unsafe { libc::setgid(NOBODY) }, 0);
    // SAFETY: the call takes a number.
    assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
}

/// Allows no locked memory beyond what the system grants each user for rings.
pub(crate) fn lock_no_memory() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is live.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }, 0);
}

/// Makes `perf_event_open` fail with `errno`, for this thread and the threads it starts, as a
/// container's filter does.
pub(crate) fn refuse_perf_events(errno: i32) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const SKIP_UNLESS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = [
        step(LOAD, 0, 0), // the call's number
        step(SKIP_UNLESS, 1, libc::SYS_perf_event_open as u32),
        step(ANSWER, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(ANSWER, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    const ON: libc::c_ulong = 1;
    const NOTHING: libc::c_ulong = 0;
    // SAFETY: the call takes only numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, ON, NOTHING, NOTHING, NOTHING) };
    assert_eq!(done, 0);
    // SAFETY: the program and its steps are live; the kernel copies them.
    let done = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER as libc::c_ulong,
            &raw const program,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Runs `body` in a forked child and fails unless it returns.
pub(crate) fn in_a_fork(body: impl FnOnce()) {
    // SAFETY: this process has one other thread, the test runner's. It holds no lock, because it
    // waits for this thread.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let returned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!returned)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child died (signal {}) or failed", status & 0x7f);
}
