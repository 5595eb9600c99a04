//! The words of a control block in a pool: a function to run, and the closure that it runs.
//!
//! ```text
//! word 0      word 1 …
//! +---------+---------------------------------------------+
//! | run     | the closure, if it fits and is not aligned   |
//! |         | to more than a word; else a box with it      |
//! +---------+---------------------------------------------+
//! ```
//!
//! # Invariants
//!
//! 1. A filled block is run once. `run` moves the closure out first, so the block may be used again
//!    as soon as `run` returns it.
//! 2. `run` does not unwind: each closure that is written here catches panics.

use crate::strategy::blocks::{TASK_WORDS, Task};
use crate::workers::{Fate, Worker};

/// Runs a task that was filled by [`fill`]. Returns its block.
pub(crate) type Run = unsafe fn(Task, &Worker, Fate) -> Task;

const PAYLOAD: usize = TASK_WORDS - 1;

/// Returns whether an `F` lies in the block itself.
const fn fits<F>() -> bool {
    size_of::<F>() <= PAYLOAD * size_of::<usize>() && align_of::<F>() <= align_of::<usize>()
}

/// Writes `body` into the block. It must not unwind.
///
/// # Safety
///
/// Whatever `body` borrows lives until it has run, and it may be sent to the thread that runs it.
#[inline]
pub(crate) unsafe fn fill<F: FnOnce(&Worker, Fate)>(task: &Task, body: F) {
    if fits::<F>() {
        // SAFETY: the words are the caller's; an `F` fits.
        unsafe { write(task, run_inline::<F>, body) };
    } else {
        // SAFETY: as above.
        unsafe { write(task, run_boxed::<F>, Box::new(body)) };
    }
}

/// Writes the function and its payload.
///
/// # Safety
///
/// A `P` fits.
#[inline]
unsafe fn write<P>(task: &Task, run: Run, payload: P) {
    let words = task.words();
    // SAFETY: the first word of the block, which the caller has.
    unsafe { words.cast::<Run>().write(run) };
    // SAFETY: inside the block.
    let payload_at = unsafe { words.add(1) };
    // SAFETY: it fits.
    unsafe { payload_at.cast::<P>().write(payload) };
}

/// Takes the payload out.
///
/// # Safety
///
/// The task was filled with a `P`, which is taken out once.
#[inline]
unsafe fn read<P>(task: &Task) -> P {
    // SAFETY: inside the block.
    let payload_at = unsafe { task.words().add(1) };
    // SAFETY: the caller's promise.
    unsafe { payload_at.cast::<P>().read() }
}

unsafe fn run_inline<F: FnOnce(&Worker, Fate)>(task: Task, worker: &Worker, fate: Fate) -> Task {
    // SAFETY: filled with an `F`; runs once (Invariant 1).
    let body: F = unsafe { read(&task) };
    body(worker, fate);
    task
}

unsafe fn run_boxed<F: FnOnce(&Worker, Fate)>(task: Task, worker: &Worker, fate: Fate) -> Task {
    // SAFETY: filled with a box; runs once.
    let body: Box<F> = unsafe { read(&task) };
    body(worker, fate);
    task
}

/// Runs the closure in the block. Returns the block.
///
/// # Safety
///
/// The task was filled, and has not run.
#[inline]
pub(crate) unsafe fn run(task: Task, worker: &Worker, fate: Fate) -> Task {
    // SAFETY: the first word of a filled block.
    let run = unsafe { task.words().cast::<Run>().read() };
    // SAFETY: the caller's promise.
    unsafe { run(task, worker, fate) }
}
