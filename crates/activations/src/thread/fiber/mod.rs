//! A stack, and the loop at its base that runs items on it: threads, one after another.
//!
//! The loop runs one thread after another on the same stack, without a switch, for as long as they
//! end without having parked. A thread that parks takes the stack along. Its worker goes on with
//! another stack, and when the thread has ended, the loop below it goes on where it is. So a thread
//! that never blocks costs no switch, and a stack is in use only by a thread that has begun.
//!
//! ```text
//! scheduler loop ──Run(thread)──► fiber's loop ──calls──► thread
//!       ▲                              │                    │
//!       ├─────────── Free ─────────────┘                    │ parks, waits, yields
//!       └─────────── Paused, Settled, Yielded ──────────────┘
//! scheduler loop ──Continue──► thread ──returns──► fiber's loop ──Free──► scheduler loop
//! ```
//!
//! # Invariants
//!
//! 1. A fiber that was left with `Free` has only this crate's frames on its stack, which hold no
//!    address of a thread-local. Any worker may resume it.
//! 2. A fiber that was left otherwise belongs to the thread on it.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 2 (a stack is allocated at start, not at
//! creation); Anderson, Bershad, Lazowska and Levy 1992.

mod sanitizer;

use corosensei::{Coroutine, CoroutineResult, Yielder};
use stanchion_machine::stack::Label;

use super::park_state::Pause;
use super::stacks::FiberStack;

/// The order with which a fiber is resumed.
pub(crate) enum Resume<I> {
    /// To a free fiber: run this item.
    Run(I),
    /// To a fiber with an item on it: continue.
    Continue,
    /// To a free fiber: end.
    Quit,
}

/// The reason for which a fiber was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// It runs nothing.
    Free,
    /// Its thread parks or waits.
    Paused(Pause),
    /// The same, and the thread's park state says so already. A wake-up may have come.
    Settled,
    /// Its thread lets others run first.
    Yielded,
}

/// The means by which the code on a fiber leaves it.
pub(crate) type Suspender<I> = Yielder<Resume<I>, Suspended>;

/// A function that runs an item on a fiber, and then others that it finds for the same fiber.
pub(crate) type RunItems<I> = fn(&Label, &Suspender<I>, I);

/// A stack with the loop on it. `I` is what it runs.
pub struct Fiber<I> {
    stack: Coroutine<Resume<I>, Suspended, (), FiberStack>,
    /// The fiber's context in ThreadSanitizer.
    context: sanitizer::Context,
    /// The address at which the stack begins.
    base: usize,
}

// SAFETY: a free fiber may go anywhere (Invariant 1). A fiber with a thread on it goes to another
// worker only if the spawner of that thread has promised that it may.
unsafe impl<I: Send> Send for Fiber<I> {}

impl<I: 'static> Fiber<I> {
    /// Returns a free fiber on this stack.
    pub(crate) fn new(stack: FiberStack, run: RunItems<I>) -> Self {
        let (label, base) = (stack.label(), stack.address());
        let stack = Coroutine::with_stack(stack, move |suspender: &Suspender<I>, resume| {
            fiber_loop(&label, suspender, resume, run);
        });
        Self { stack, context: sanitizer::Context::new(), base }
    }

    /// Returns the address at which the stack begins.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Continues on the fiber until it is left.
    pub(crate) fn resume(&mut self, resume: Resume<I>) -> Suspended {
        match self.context.run(|| self.stack.resume(resume)) {
            CoroutineResult::Yield(suspended) => suspended,
            CoroutineResult::Return(()) => unreachable!("only `quit` ends the loop"),
        }
    }

    /// Ends a free fiber, and gives its stack back.
    pub(crate) fn quit(mut self) {
        let CoroutineResult::Return(()) = self.context.run(|| self.stack.resume(Resume::Quit))
        else {
            unreachable!("the loop of a free fiber ends when it is ordered to")
        };
    }
}

fn fiber_loop<I>(label: &Label, suspender: &Suspender<I>, mut resume: Resume<I>, run: RunItems<I>) {
    while let Resume::Run(item) = resume {
        run(label, suspender, item);
        label.set(None);
        resume = suspender.suspend(Suspended::Free);
    }
}
