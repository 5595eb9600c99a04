//! Runs the program and waits for its end. Signals that are meant for it are passed on.

use std::ffi::{OsStr, OsString};
use std::mem;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use stanchion_machine::presence::switches::Ring;

use super::Refusal;

/// The exit status of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended(ExitStatus);

impl Ended {
    /// Its own code; as a shell has it, 128 and the number of the signal that ended it.
    pub(super) fn exit_code(self) -> u8 {
        let code = self.0.code().or_else(|| self.0.signal().map(|signal| 128 + signal));
        u8::try_from(code.unwrap_or(1)).unwrap_or(1)
    }

    /// The signal that ended it.
    pub(super) fn signal(self) -> Option<i32> {
        self.0.signal()
    }
}

/// Returns the command that runs the program.
pub(super) fn command(program: &Path, command: &OsStr, arguments: &[OsString]) -> Command {
    let mut child = Command::new(program);
    child.arg0(command).args(arguments);
    child
}

/// The files and the ways of a recording.
#[derive(Clone, Copy)]
pub(super) struct Way<'t> {
    /// The shim.
    pub(super) shim: &'t Path,
    /// The policy of the locks that replace the program's.
    pub(super) policy: Option<&'t str>,
    /// The most bytes that single waits may take in the recording.
    pub(super) limit: u64,
    /// True if switch records are taken. This process has a [`ring`] then.
    pub(super) has_switches: bool,
}

/// Has the waits of the command recorded in the table, and single ones in the log.
pub(super) fn record(command: &mut Command, way: Way<'_>, table: &Path, log: Option<&Path>) {
    let Way { shim, policy, has_switches, .. } = way;
    let mut preload = shim.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.env("LD_PRELOAD", preload).env("STANCHION_RECORD", table);
    match log {
        Some(log) => command.env("STANCHION_EVENTS", log),
        None => command.env_remove("STANCHION_EVENTS"),
    };
    match has_switches {
        true => command.env_remove("STANCHION_SWITCHES"),
        false => command.env("STANCHION_SWITCHES", "off"),
    };
    match policy {
        Some(policy) => command.env("STANCHION_LOCK", policy),
        None => command.env_remove("STANCHION_LOCK"),
    };
    match filters() {
        Some(filters) => command.env("STANCHION_FILTERS", filters.to_string()),
        None => command.env_remove("STANCHION_FILTERS"),
    };
}

/// Has the orders of the command's locks recorded in the table, if there is one.
pub(super) fn record_orders(command: &mut Command, table: Option<&Path>) {
    match table {
        Some(table) => command.env("STANCHION_ORDER_TABLE", table),
        None => command.env_remove("STANCHION_ORDER_TABLE"),
    };
}

/// Returns switch records of the calling thread, if the program may have its own, or else the
/// reason.
///
/// The first records of a system make the kernel wait for all processors. The program would do so
/// while it holds a lock. As long as this process has records, it does not.
///
/// The library takes the filters that this process runs under for harmless. One of them may end a
/// program that asks for records. So there are none under a filter.
pub(super) fn ring() -> Result<Ring, String> {
    match filters() {
        Some(0) => Ring::of_this_thread().map_err(|refused| refused.to_string()),
        Some(_) => {
            Err("this command runs under a filter of system calls, which may end a program \
             that asks for them"
                .to_owned())
        }
        None => Err("the kernel does not tell whether this command runs under a filter of system \
             calls (5.9 and later do)"
            .to_owned()),
    }
}

/// Returns the number of filters of system calls that this process runs under, if the kernel tells
/// it.
fn filters() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count?.trim().parse().ok()
}

/// Runs the command to its end, and passes signals on to it.
pub(super) fn run(mut child: Command, program: &Path) -> Result<Ended, Refusal> {
    let failed = |source| Refusal::Start { path: program.to_owned(), source };
    pass_on_signals();
    let mut child = child.spawn().map_err(failed)?;
    CHILD.store(child.id() as i32, Ordering::SeqCst);
    // SeqCst, with the handler: either it sees the child, or the signal is seen here.
    let early = EARLY.swap(0, Ordering::SeqCst);
    if early != 0 {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, early) };
    }
    // Its number is its own until it has been waited for: no signal may go there afterwards.
    // SAFETY: plain numbers, for which zeros are a value.
    let mut about: libc::siginfo_t = unsafe { mem::zeroed() };
    loop {
        let flags = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: writes to `about`.
        let result = unsafe { libc::waitid(libc::P_PID, child.id(), &mut about, flags) };
        if result == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted
        {
            break;
        }
    }
    CHILD.store(0, Ordering::SeqCst);
    child.wait().map(Ended).map_err(failed)
}

/// The program; 0 before it runs and when it has ended.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the program ran.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(
    signal: libc::c_int,
    about: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel's, for a handler that asked for it.
    let sender = unsafe { (*about).si_code };
    // What the terminal sends, it has sent to the program as well.
    if sender > 0 {
        return;
    }
    EARLY.store(signal, Ordering::SeqCst);
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 && EARLY.swap(0, Ordering::SeqCst) != 0 {
        // SAFETY: may be called in a handler. The child has not been waited for as long as its
        // number is there.
        unsafe { libc::kill(child, signal) };
    }
}

/// This process outlives the program, to write what was recorded.
fn pass_on_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: plain numbers and a set, for which zeros are a value.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = pass_on as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler only calls what a handler may.
        unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    }
}
