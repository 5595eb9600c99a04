//! Tests of stacks for user-level threads, and of the report of an overflow.
#![cfg(all(unix, not(miri)))]

mod overflow;
mod passed_on;
mod slabs;

use corosensei::stack::StackPointer;
use corosensei::{Coroutine, CoroutineResult};
use stanchion_machine::stack::{Guards, Size, Slab, Stack};

const ADVICE: &str = "make it larger by asking for more";

/// A stack in the form that a coroutine takes.
struct On(Stack);

// SAFETY: the stack has a guard below, and at least 15 KiB above it.
unsafe impl corosensei::stack::Stack for On {
    fn base(&self) -> StackPointer {
        self.0.base()
    }

    fn limit(&self) -> StackPointer {
        self.0.limit()
    }
}

/// Returns a slab of `stacks` stacks of 32 KiB.
fn slab(stacks: usize, guards: Guards) -> Slab {
    Slab::new(Size::of(32 << 10).unwrap(), stacks, guards, ADVICE).unwrap()
}

fn taken(slab: &mut Slab) -> Stack {
    slab.next_stack().unwrap().unwrap()
}

/// Runs `body` on `stack`, and gives the stack back.
fn on<R>(stack: Stack, body: impl FnOnce() -> R + 'static) -> (R, Stack)
where
    R: 'static,
{
    let mut coroutine = Coroutine::<(), (), R, On>::with_stack(On(stack), move |_, ()| body());
    let CoroutineResult::Return(result) = coroutine.resume(()) else { panic!("it does not yield") };
    (result, coroutine.into_stack().0)
}
