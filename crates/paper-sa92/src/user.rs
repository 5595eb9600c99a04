//! Forks and a lock for the program over user-level threads on this computer.
//!
//! The paper's threads go on wherever a processor is free. Here the threads of safe code stay on
//! the kernel thread on which they began, because compilers keep addresses of thread-locals. If a
//! program is known to keep none, its threads may migrate.

use std::panic::resume_unwind;

use stanchion_activations::{Builder, Runtime, Scope, ScopedJoinHandle, scope};
use stanchion_applications::nbody::Fork;

/// The lock around the data that user-level threads share.
pub(super) type UserLock = stanchion_activations::sync::RawMutex;

/// Forks user-level threads of the caller's runtime.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnRuntime {
    /// A thread may continue on any kernel thread.
    Migrating,
    /// A thread stays where it began.
    Staying,
}

impl OnRuntime {
    /// Runs `main` as the first thread of `runtime`.
    pub(super) fn run<R: Send>(self, runtime: &Runtime, main: impl FnOnce() -> R + Send) -> R {
        runtime.scope(|scope| joined(self.spawn(scope, main)))
    }

    /// Spawns `body`, which must be a part of the n-body program.
    fn spawn<'scope, R: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() -> R + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, R> {
        match self {
            // SAFETY: the program computes, takes memory and locks of this runtime, and sleeps:
            // nothing that it holds over a wait belongs to a kernel thread, and it uses no
            // thread-local but in calls of the standard library that are over before it waits.
            Self::Migrating => unsafe { Builder::new().spawn_scoped_migratable(scope, body) },
            Self::Staying => scope.spawn(body),
        }
    }
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Fork for OnRuntime {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        scope(|scope| {
            let other = self.spawn(scope, other);
            let one = one();
            (one, joined(other))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::real;
    use super::*;

    #[test]
    fn a_panic_of_either_half_is_the_joiners_when_both_have_ended() {
        for fork in [OnRuntime::Migrating, OnRuntime::Staying] {
            let runtime = real::runtime(true, 2).unwrap();
            let (mut first, mut second) = (0, 0);
            let panicked = |work: &mut (dyn FnMut() + Send)| {
                let caught = fork.run(&runtime, || catch_unwind(AssertUnwindSafe(work)));
                assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"of a half"));
            };
            panicked(&mut || {
                let _ = fork.join(|| first += 1, || panic!("of a half"));
            });
            panicked(&mut || {
                let _ = fork.join(|| panic!("of a half"), || second += 1);
            });
            assert_eq!((first, second), (1, 1), "{fork:?}");
        }
    }
}
