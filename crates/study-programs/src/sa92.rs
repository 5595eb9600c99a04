//! User-level threads of the runtime: forks and a lock for the n-body program, and the operations
//! of table IV.
//!
//! The paper's threads go on wherever a processor is free. Here the threads of safe code stay on
//! the kernel thread on which they began, because compilers keep addresses of thread-locals. If a
//! program is known to keep none, its threads may migrate.

use std::panic::resume_unwind;

use stanchion_activations::{
    Arbiter, BuildError, Builder, JoinHandle, Runtime, Scope, ScopedJoinHandle, current, park,
    scope, spawn, yield_now,
};
use stanchion_applications::nbody::Fork;
use stanchion_machine::clock;

/// The lock around the data that user-level threads share.
pub type UserLock = stanchion_activations::sync::RawMutex;

/// Bytes of a user-level thread's stack.
const STACK: usize = 128 << 10;

/// Makes a runtime of user-level threads, with activations or without.
///
/// # Errors
///
/// [`BuildError`].
pub fn runtime(activations: bool, processors: usize) -> Result<Runtime, BuildError> {
    let builder = Runtime::builder().processors(processors).stack_size(STACK);
    builder.activations(activations).build()
}

/// Makes a runtime on activations. The arbiters of several divide the processors among them.
///
/// # Errors
///
/// [`BuildError`].
pub fn divided_runtime(arbiter: Arbiter, processors: usize) -> Result<Runtime, BuildError> {
    Runtime::builder().processors(processors).stack_size(STACK).arbiter(arbiter).build()
}

/// Forks user-level threads of the caller's runtime.
#[derive(Clone, Copy, Debug)]
pub struct OnRuntime {
    /// Set if a thread may continue on any kernel thread.
    migrates: bool,
}

impl OnRuntime {
    /// Returns forks of threads that stay on the kernel thread on which they began.
    #[must_use]
    pub const fn staying() -> Self {
        Self { migrates: false }
    }

    /// Returns forks of threads that may continue on any kernel thread.
    ///
    /// # Safety
    ///
    /// What it runs and forks must keep the contract of [`Builder::spawn_migratable`]. The n-body
    /// program does: it computes, takes memory and locks of this runtime, and sleeps. Nothing that
    /// it holds over a wait belongs to a kernel thread. It uses no thread-local but in calls of the
    /// standard library that are over before it waits. [`user_fork`] and [`user_signal`] do too.
    #[must_use]
    pub const unsafe fn migrating() -> Self {
        Self { migrates: true }
    }

    /// Runs `main` as the first thread of `runtime`. If `main` panics, so does this.
    pub fn run<R: Send>(self, runtime: &Runtime, main: impl FnOnce() -> R + Send) -> R {
        runtime.scope(|scope| joined(self.spawn(scope, main)))
    }

    fn spawn<'scope, R: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() -> R + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, R> {
        if self.migrates {
            // SAFETY: the caller of `migrating` answers for it.
            unsafe { Builder::new().spawn_scoped_migratable(scope, body) }
        } else {
            scope.spawn(body)
        }
    }

    fn detached<R: Send + 'static>(
        self,
        body: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        if self.migrates {
            // SAFETY: as above.
            unsafe { Builder::new().spawn_migratable(body) }
        } else {
            spawn(body)
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

/// Returns the nanoseconds of `work` on the machine's clock, divided by `times`.
pub fn each(times: u32, work: impl FnOnce()) -> f64 {
    let began = clock::monotonic();
    work();
    (clock::monotonic() - began) as f64 / f64::from(times)
}

/// Measures Null Fork of a user-level thread: making a thread that does nothing, and waiting for
/// its end. Returns nanoseconds.
pub fn user_fork(runtime: &Runtime, threads: OnRuntime, times: u32) -> f64 {
    threads.run(runtime, move || {
        each(times, || {
            for _ in 0..times {
                let _ = threads.detached(|| ()).join();
            }
        })
    })
}

/// Measures Signal-Wait of user-level threads: half of a turn of two threads that wake each other
/// and wait. Returns nanoseconds.
pub fn user_signal(runtime: &Runtime, threads: OnRuntime, times: u32) -> f64 {
    threads.run(runtime, move || {
        let first = current();
        let second = threads.detached(move || {
            for _ in 0..times {
                park();
                first.unpark();
            }
        });
        let nanos = each(2 * times, || {
            for _ in 0..times {
                second.thread().unpark();
                park();
            }
        });
        // A park may return without a wake-up. Then the second thread has turns left, and gets them
        // here.
        while !second.is_finished() {
            second.thread().unpark();
            yield_now();
        }
        nanos
    })
}
