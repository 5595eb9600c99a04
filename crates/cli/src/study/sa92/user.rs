//! What the program asks of user-level threads on this computer: to fork, and a lock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use stanchion_applications::nbody::Fork;

/// The lock of what user-level threads share.
pub(super) type UserLock = stanchion_activations::sync::RawMutex;

/// Forks user-level threads of the runtime that the caller is a thread of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnRuntime;

impl Fork for OnRuntime {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let mut result = None;
        let half: Box<dyn FnOnce() + Send + '_> = Box::new(|| result = Some(other()));
        // SAFETY: only the lifetime changes, and the thread is joined before what it borrows goes: `one` is not left by a panic.
        let half = unsafe {
            core::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send + 'static>>(
                half,
            )
        };
        let thread = stanchion_activations::spawn(half);
        let here = catch_unwind(AssertUnwindSafe(one));
        let there = thread.join();
        match (here, there, result) {
            (Ok(here), Ok(()), Some(there)) => (here, there),
            (Err(panic), ..) | (_, Err(panic), _) => resume_unwind(panic),
            (Ok(_), Ok(()), None) => unreachable!("a thread that ended has left a result"),
        }
    }
}
