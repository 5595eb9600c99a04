//! rayon-core's tests, with the pool of `stanchion-threadpool`.

use super::{Copy, LeftOut, Peer};
use crate::failure::Result;

/// rayon-core.
pub(super) const PEER: Peer = Peer {
    name: "rayon-core",
    version: "1.13",
    manifest: MANIFEST,
    copy,
    left_out: &[
        LeftOut {
            file: "src/broadcast/test.rs",
            test: "broadcast_after_spawn",
            why: "a broadcast comes before tasks that are ready: tasks without end cannot delay it",
        },
        LeftOut {
            file: "src/test.rs",
            test: "configuration",
            why: "rayon's deprecated `Configuration` is not offered; `ThreadPoolBuilder` is",
        },
        LeftOut {
            file: "src/thread_pool/test.rs",
            test: "check_thread_pool_new",
            why: "rayon's deprecated `Configuration` is not offered; `ThreadPoolBuilder` is",
        },
    ],
};

/// The tests beside the sources, with what asks our pool what they ask theirs.
const UNIT_TESTS: [(&str, &[Adapted]); 6] = [
    ("src/test.rs", &[]),
    ("src/broadcast/test.rs", &[]),
    ("src/join/test.rs", &[RNG]),
    ("src/scope/test.rs", &[RNG]),
    ("src/spawn/test.rs", &[]),
    (
        "src/thread_pool/test.rs",
        &[
            // That a pool's threads end is seen by its exit handler.
            (
                "let thread_pool = ThreadPoolBuilder::new().num_threads(22).build().unwrap();",
                "let (ends, thread_pool) = crate::Ends::of_pool(22);",
            ),
            ("Arc::clone(&thread_pool.registry)", "Arc::clone(&ends)"),
            // A panic of `thread_name` is an error of `build`.
            (
                "crate::unwind::halt_unwinding(|| builder.build())",
                "crate::unwind::halt_unwinding(|| builder.build()).unwrap()",
            ),
        ],
    ),
];

/// The tests of the public interface.
const TESTS: [(&str, &[Adapted]); 7] = [
    (
        "tests/double_init_fail.rs",
        &[(
            "The global thread pool has already been initialized.",
            "the global pool exists already: build it once, first of all in `main`",
        )],
    ),
    ("tests/init_zero_threads.rs", &[]),
    // A global pool is built only by a program that asks for it.
    (
        "tests/scope_join.rs",
        &[("fn scope_join() {", "fn scope_join() {\n    rayon_core::global();")],
    ),
    (
        "tests/simple_panic.rs",
        &[("fn simple_panic() {", "fn simple_panic() {\n    rayon_core::global();")],
    ),
    ("tests/scoped_threadpool.rs", &[]),
    ("tests/stack_overflow_crash.rs", &[]),
    ("tests/use_current_thread.rs", &[]),
];

/// A line of theirs, and what stands for it.
type Adapted = (&'static str, &'static str);

/// The tests are for rand 0.9, and the workspace has 0.10.
const RNG: Adapted = ("use rand::{Rng, SeedableRng};", "use rand::{RngExt as _, SeedableRng};");

const MANIFEST: &str = r#"[package]
name = "rayon-core"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
stanchion-threadpool = { path = "CRATES/threadpool" }

[dev-dependencies]
crossbeam-utils = "0.8"
libc = "0.2"
rand = "0.10"
rand_xorshift = "0.5"
scoped-tls = "1.0"

[workspace]
"#;

/// The library, before the tests.
const LIBRARY: &str = r#"//! Written by `cargo xtask peers`.
#![allow(warnings)]

pub use stanchion_threadpool::*;
pub use stanchion_threadpool::BuildError as ThreadPoolBuildError;

/// Builds the global pool, unless there is one.
pub fn global() {
    let _ = ThreadPoolBuilder::new().build_global();
}

// The tests take a global pool for granted: it is built before `main`.
#[cfg(test)]
#[used]
#[unsafe(link_section = ".init_array")]
static GLOBAL: extern "C" fn() = {
    extern "C" fn before_main() {
        global();
    }
    before_main
};

/// Tells when the threads of a pool have ended.
#[cfg(test)]
pub(crate) struct Ends {
    threads: usize,
    ended: std::sync::Mutex<usize>,
    changed: std::sync::Condvar,
}

#[cfg(test)]
impl Ends {
    pub(crate) fn of_pool(threads: usize) -> (std::sync::Arc<Self>, ThreadPool) {
        let ends = std::sync::Arc::new(Self {
            threads,
            ended: Default::default(),
            changed: Default::default(),
        });
        let told = ends.clone();
        let ended = move |_| {
            *told.ended.lock().unwrap() += 1;
            told.changed.notify_all();
        };
        let builder = ThreadPoolBuilder::new().num_threads(threads).exit_handler(ended);
        (ends, builder.build().unwrap())
    }

    pub(crate) fn num_threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn wait_until_stopped(&self) {
        let ended = self.ended.lock().unwrap();
        drop(self.changed.wait_while(ended, |ended| *ended < self.threads).unwrap());
    }
}

pub(crate) mod unwind {
    pub(crate) fn halt_unwinding<R>(body: impl FnOnce() -> R) -> std::thread::Result<R> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(body))
    }
}

#[cfg(test)]
mod registry {
    pub(crate) fn in_worker<R: Send>(body: impl FnOnce(&(), bool) -> R + Send) -> R {
        crate::scope(|_| body(&(), false))
    }
}

#[cfg(test)]
mod test;

#[cfg(test)]
mod broadcast {
    mod test;
}

#[cfg(test)]
mod join {
    use crate::{join, join_context, unwind};
    mod test;
}

#[cfg(test)]
mod scope {
    mod test;
}

#[cfg(test)]
mod spawn {
    use crate::{spawn, spawn_fifo};
    mod test;
}

#[cfg(test)]
mod thread_pool {
    mod test;
}
"#;

/// Copies the tests beside the sources, and those of the interface.
fn copy(copy: &Copy<'_>) -> Result {
    copy.write("src/lib.rs", LIBRARY)?;
    for (path, adapted) in UNIT_TESTS.into_iter().chain(TESTS) {
        copy.write(path, &copy.adapt(path, &copy.read(path)?, adapted)?)?;
    }
    Ok(())
}
