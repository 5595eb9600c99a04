//! A stack, and the loop at its base that runs threads on it.
//!
//! The loop runs one thread after another on the same stack, without a switch, for as long as they
//! end without having parked. A thread that parks takes the stack along: its worker goes on with
//! another one, and when the thread has ended the loop below it goes on where it is. So a thread
//! that never blocks costs no switch, and a stack is in use only by a thread that has begun.
//!
//! ```text
//! worker's scheduler_loop ──Run(thread)──► loop ──calls──► thread ──Paused──► scheduler_loop ──Go──► thread ──returns──► loop ──Free──► scheduler_loop
//! ```
//!
//! # Invariants
//!
//! 1. A fiber that left with `Free` has only this crate's frames on its stack, which hold no
//!    address of a thread-local: any worker may resume it.
//! 2. A fiber that left otherwise is its thread's.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 2 (a stack is allocated at start, not at
//! creation); Anderson, Bershad, Lazowska and Levy 1992.

mod sanitizer;

use corosensei::{Coroutine, CoroutineResult, Yielder};
use machine::stack::Label;

use crate::worker::context;
use crate::thread::stacks::FiberStack;
use crate::thread::park_state::Pause;
use crate::thread::header::Thread;

/// What a fiber is resumed with.
pub(crate) enum Resume {
    /// Run this thread: to one that is free.
    Run(Thread),
    /// Go on.
    Go,
    /// End: to one that is free.
    Quit,
}

/// Why a fiber has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// It runs nothing.
    Free,
    /// Its thread parks, or waits.
    Paused(Pause),
    /// Likewise, and its state says so already: whatever it waits for may have come.
    Settled,
    /// Its thread lets others run first.
    Yielded,
}

/// What a fiber leaves through.
pub(crate) type Suspender = Yielder<Resume, Suspended>;

/// A stack with the loop on it.
pub(crate) struct Fiber {
    stack: Coroutine<Resume, Suspended, (), FiberStack>,
    context: sanitizer::Context,
    /// Where its stack begins.
    base: usize,
}

// SAFETY: a free one may go anywhere (Invariant 1); one with a thread on it goes to another worker
// only if whoever spawned that has promised that it may.
unsafe impl Send for Fiber {}

impl Fiber {
    /// A free one.
    pub(crate) fn new(stack: FiberStack) -> Self {
        let (label, base) = (stack.label(), stack.address());
        let stack =
            Coroutine::with_stack(stack, move |exit, given| run_threads(&label, exit, given));
        Self { stack, context: sanitizer::Context::new(), base }
    }

    /// Where its stack begins.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Goes on with it until it leaves.
    pub(crate) fn resume(&mut self, given: Resume) -> Suspended {
        match self.context.run(|| self.stack.resume(given)) {
            CoroutineResult::Yield(left) => left,
            CoroutineResult::Return(()) => unreachable!("only `quit` ends the loop"),
        }
    }

    /// Ends a free one, and gives its stack back.
    pub(crate) fn quit(mut self) {
        let CoroutineResult::Return(()) = self.context.run(|| self.stack.resume(Resume::Quit))
        else {
            unreachable!("a free fiber's loop ends when told")
        };
    }
}

/// The loop.
fn run_threads(label: &Label, exit: &Suspender, mut given: Resume) {
    while let Resume::Run(thread) = given {
        let mut next = Some(thread);
        while let Some(thread) = next {
            label.set(thread.name());
            next = context::run(exit, thread);
        }
        label.set(None);
        given = exit.suspend(Suspended::Free);
    }
}
