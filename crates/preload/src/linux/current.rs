//! Writes where this thread waits into the shared table while it waits, so that another process can
//! say where a program hangs. Counts the wait when it has ended.
//!
//! It costs one exchange and some stores. The first wait of a thread also asks the kernel for the
//! numbers of the process and the thread, and for the thread's name: three system calls.
//!
//! A thread that is cancelled in its wait, is killed there, or leaves it by `longjmp` does not
//! clear its slot. Nothing here runs at a cancellation, because the C library unwinds these frames
//! then. The slot stays taken, and a reader sees that the thread is gone or does something else.

use core::cell::Cell;

use stanchion_competitive::waits::current::{CurrentWait, Kind};
use stanchion_competitive::waits::log::Wait;
use stanchion_competitive::waits::shared::Shared;
use stanchion_competitive::waits::{Loss, Observation};
use stanchion_machine::fork::generation;

pub(super) use super::rings::now;
use super::rings::{self, Numbers};
use super::{errno, filter, log, table};

std::thread_local! {
    /// The numbers of this thread. The loader made room for them when it started the program or the
    /// thread, and nothing is done at the thread's end.
    static NUMBERS: Cell<Numbers> = const {
        Cell::new(Numbers { generation: 0, process: 0, thread: 0 })
    };
}

/// Returns the numbers of this thread.
#[inline]
pub(super) fn numbers() -> Numbers {
    let known = NUMBERS.get();
    // A child of a fork inherits its parent's.
    if known.generation == generation() { known } else { ask() }
}

/// Asks the kernel for the numbers of this thread.
#[cold]
fn ask() -> Numbers {
    let (mut process, mut thread) = (0, 0);
    if let Some(_permit) = filter::permit() {
        errno::kept(|| {
            // SAFETY: asks for a number.
            process = unsafe { libc::getpid() }.into();
            // SAFETY: as above.
            thread = unsafe { libc::syscall(libc::SYS_gettid) };
        });
    }
    let known = |number| u32::try_from(number).ok().filter(|&number| number > 0);
    let numbers = match (known(process), known(thread)) {
        (Some(process), Some(thread)) => Numbers { generation: generation(), process, thread },
        _ => {
            table::lose(Loss::Numbers);
            Numbers { generation: generation(), process: 0, thread: 0 }
        }
    };
    NUMBERS.set(numbers);
    if numbers.process != 0
        && let Some(_permit) = filter::permit()
    {
        errno::kept(|| log::note(numbers.process, numbers.thread));
    }
    numbers
}

/// A place where a thread waits.
pub(super) struct Place {
    /// The kind of the wait.
    pub(super) kind: Kind,
    /// The address of the lock, the condition or the word.
    pub(super) address: usize,
    /// The index of its name in the table.
    pub(super) name: Option<u32>,
    /// The time at which the wait began, in nanoseconds.
    pub(super) since: u64,
}

/// Calls `block`, and shows in the table meanwhile that this thread waits there.
#[inline]
pub(super) fn during<R>(table: &Shared, place: &Place, block: impl FnOnce() -> R) -> R {
    let numbers = numbers();
    let begin = || {
        table.begin_wait(&CurrentWait {
            process: numbers.process,
            thread: numbers.thread,
            since_ns: place.since,
            name: place.name,
            kind: place.kind,
            address: place.address as u64,
        })
    };
    let begun = if numbers.process == 0 { None } else { begin() };
    let result = block();
    // A child of a fork in a signal handler comes back from here too, and the wait is its parent's.
    if let Some(begun) = begun
        && numbers.generation == generation()
    {
        table.end_wait(begun);
    }
    result
}

/// Counts a wait of this thread that has ended. It began at `since`, and `waker` is the number of
/// the thread that ended it, or 0.
pub(super) fn count(table: &Shared, name: Option<u32>, wait: &Observation, since: u64, waker: u32) {
    table.add(name, wait);
    if !log::is_open() {
        return;
    }
    let numbers = numbers();
    if numbers.process == 0 {
        return;
    }
    log::add(&Wait {
        process: numbers.process,
        thread: numbers.thread,
        start_ns: since,
        length_ns: wait.length_ns,
        name,
        waker,
        meanwhile: rings::meanwhile(waker, since, since.saturating_add(wait.length_ns)),
    });
    errno::kept(|| rings::keep(numbers, now()));
}

/// Returns the number of a thread, unless it has ended. It makes no system call.
///
/// # Safety
///
/// The thread must not have been joined, nor have ended detached.
pub(super) unsafe fn number_of(handle: libc::pthread_t) -> Option<u32> {
    let mut clock = 0;
    // SAFETY: the caller's promise; writes to `clock`.
    let result = unsafe { libc::pthread_getcpuclockid(handle, &mut clock) };
    // The clock of a thread has the thread's number, inverted, above three bits.
    u32::try_from(!(clock >> 3)).ok().filter(|_| result == 0)
}

/// Notes that a thread of this process was given that name. Does not change `errno`.
pub(super) fn renamed(thread: u32, name: &[u8]) {
    let process = numbers().process;
    // Without the number, no wait of this process is in the log.
    if process != 0 {
        log::name(process, thread, name);
    }
}

/// Returns the number of this thread and the time, for a thread that is about to wake another one.
pub(super) fn waker() -> (u32, u64) {
    let numbers = numbers();
    if log::is_open() {
        errno::kept(|| rings::keep(numbers, now()));
    }
    (numbers.thread, now())
}
