//! The traced process: a victim, and two other threads that are not traced.
//!
//! Tracer and child exchange data in [`Board`], on a page that both have.

use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::processors::Shared;
use crate::structures::Subject;

/// Threads beside the victim.
pub(crate) const OTHERS: usize = 2;

/// Operations of each of the others in a round, half of each kind.
pub(crate) const EACH: u64 = 16;

/// An operation of the victim.
pub(crate) type Operation = fn(&dyn Subject);

/// The stages of the victim.
pub(crate) mod stage {
    /// It makes the structure.
    pub(crate) const BEFORE: u32 = 0;
    /// Its operation has begun.
    pub(crate) const INSIDE: u32 = 1;
    /// Its operation has ended.
    pub(crate) const AFTER: u32 = 2;
}

/// A page that tracer and child share. All orderings are sequentially consistent: nothing here is
/// measured.
#[derive(Default)]
pub(crate) struct Board {
    /// See [`stage`].
    pub(crate) stage: AtomicU32,
    /// The round in which the others may run.
    pub(crate) go: AtomicU32,
    /// The number of the other threads that have ended the round.
    pub(crate) ended: AtomicU32,
    /// The number of operations that each of the other threads has done in all.
    pub(crate) done: [AtomicU64; OTHERS],
    /// Their numbers in the system.
    pub(crate) threads: [AtomicI32; OTHERS],
    /// Why tracing is not possible, an error number.
    pub(crate) refused: AtomicI32,
}

impl Board {
    /// A new page.
    pub(crate) fn new() -> io::Result<&'static Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let board: *mut Self = page.cast();
        // SAFETY: the page is as large as that, aligned, and used by no other object. `default` is
        // all zeros, too. The page is never unmapped.
        Ok(unsafe { &*board })
    }
}

/// Sleeps until `word` is not `value` any more, for `limit` at most; also across processes.
pub(crate) fn sleep_on(word: &AtomicU32, value: u32, limit: Duration) {
    if word.load(Ordering::SeqCst) != value {
        return;
    }
    let time = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the word and the time live as long as the call. Its result is not used: the caller
    // looks again.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time)
    };
}

/// Wakes all threads that sleep on `word`.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the call does not touch the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Stops the calling thread until its tracer lets it go on: the signal never arrives.
fn stop() {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGTRAP) };
}

/// The child: rounds until the tracer kills it.
pub(crate) fn main(
    board: &'static Board,
    processors: &Shared,
    make: fn() -> Arc<dyn Subject>,
    filled: u64,
    operation: Operation,
) -> ! {
    /// The structure of the round.
    static SUBJECT: AtomicPtr<Arc<dyn Subject>> = AtomicPtr::new(ptr::null_mut());

    processors.all.bind();
    for index in 0..OTHERS {
        std::thread::spawn(move || other(board, index, &SUBJECT));
    }
    while board.threads.iter().any(|thread| thread.load(Ordering::SeqCst) == 0) {
        std::thread::yield_now();
    }
    processors.one.bind();
    // SAFETY: the parent becomes the tracer of this thread; no memory is involved.
    let refused = unsafe {
        libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<u8>(), ptr::null_mut::<u8>())
    };
    if refused != 0 {
        let error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM);
        board.refused.store(error, Ordering::SeqCst);
        // SAFETY: the process is a fork of the tracer. It must not run the tracer's destructors or
        // write its buffers.
        unsafe { libc::_exit(0) };
    }
    loop {
        let mut subject = make();
        (0..filled).for_each(|value| _ = subject.put(value));
        SUBJECT.store(&raw mut subject, Ordering::SeqCst);
        board.stage.store(stage::INSIDE, Ordering::SeqCst);
        stop();
        operation(&*subject);
        board.stage.store(stage::AFTER, Ordering::SeqCst);
        // The tracer goes on when the others have ended the round, so the structure can go.
        stop();
        board.stage.store(stage::BEFORE, Ordering::SeqCst);
        drop(subject);
    }
}

fn other(board: &Board, index: usize, subject: &AtomicPtr<Arc<dyn Subject>>) {
    // SAFETY: no memory is involved.
    let thread = unsafe { libc::gettid() };
    board.threads[index].store(thread, Ordering::SeqCst);
    for round in 0.. {
        while board.go.load(Ordering::SeqCst) == round {
            // No time-out: a thread that sleeps here runs no code that a breakpoint may be in.
            sleep_on(&board.go, round, Duration::from_secs(100_000));
        }
        // SAFETY: the victim has stored it before the tracer said go, and keeps it until all have
        // ended the round.
        let subject = unsafe { &*subject.load(Ordering::SeqCst) };
        for operation in 0..EACH {
            if operation % 2 == 0 {
                subject.put(operation);
            } else {
                subject.take();
            }
            board.done[index].fetch_add(1, Ordering::SeqCst);
        }
        board.ended.fetch_add(1, Ordering::SeqCst);
        wake(&board.ended);
    }
}
