//! Writes where this thread waits into the shared table while it waits, so that another process can
//! say where a program hangs.
//!
//! It costs one exchange and some stores. The first wait of a thread also asks the kernel for the
//! numbers of the process and the thread: two system calls.
//!
//! A thread that is cancelled in its wait, is killed there, or leaves it by `longjmp` does not
//! clear its slot. Nothing here runs at a cancellation, because the C library unwinds these frames
//! then. The slot stays taken, and a reader sees that the thread is gone or does something else.

use core::cell::Cell;

use stanchion_competitive::waits::Loss;
use stanchion_competitive::waits::current::{CurrentWait, Kind};
use stanchion_competitive::waits::shared::Shared;
use stanchion_machine::fork::generation;

use super::{errno, filter, table};

/// The numbers that the kernel has for a thread.
#[derive(Clone, Copy)]
struct Numbers {
    /// The [`generation`] of the process when they were asked for, or 0 before that.
    generation: u32,
    /// The number of the process, or 0 if the kernel did not tell it.
    process: u32,
    /// The number of the thread.
    thread: u32,
}

std::thread_local! {
    /// The numbers of this thread. The loader made room for them when it started the program or the
    /// thread, and nothing is done at the thread's end.
    static NUMBERS: Cell<Numbers> = const {
        Cell::new(Numbers { generation: 0, process: 0, thread: 0 })
    };
}

/// Returns the numbers of this thread.
#[inline]
fn numbers() -> Numbers {
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
    numbers
}

/// Returns nanoseconds on the monotonic clock. It makes no system call and needs no preparation.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
