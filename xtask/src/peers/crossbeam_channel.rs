//! crossbeam-channel's tests, with the channels of `stanchion-activations`: each file twice, once
//! as it is, on kernel threads, and once on user-level threads.

use super::{Copy, LeftOut, Peer};
use crate::failure::Result;

/// crossbeam-channel.
pub(super) const PEER: Peer = Peer {
    name: "crossbeam-channel",
    version: "0.5.17",
    manifest: MANIFEST,
    copy,
    left_out: &[
        LeftOut { file: "tests/array.rs", test: "recv_in_send", why: EAGER },
        LeftOut { file: "tests/user_array.rs", test: "recv_in_send", why: EAGER },
    ],
};

/// The only decision that a test contradicts.
const EAGER: &str = "`select!` evaluates a message before it knows whether that is sent";

/// The files that are copied, with what is written otherwise here.
const FILES: [(&str, &[(&str, &str)]); 5] = [
    ("array", &[RANDOM[0], RANDOM[1], LEAKED]),
    ("iter", &[]),
    ("list", &RANDOM),
    ("mpsc", &[]),
    ("zero", &RANDOM),
];

/// The names of the version of `rand` that the workspace has.
const RANDOM: [(&str, &str); 2] = [
    ("use rand::{thread_rng, Rng};", "use rand::{rng as thread_rng, RngExt as Rng};"),
    (".gen_range(", ".random_range("),
];

/// A receiver drops all messages that are left, also if one panics.
const LEAKED: (&str, &str) =
    ("// Elements after the panicked element will leak.\n    assert!(!b);", "assert!(b);");

/// The calls by which the tests begin threads, and those that begin user-level threads.
const USER: [(&str, &str); 3] = [
    ("use std::thread;", "use crossbeam_channel::user::thread;"),
    ("use std::thread::JoinHandle;", "use crossbeam_channel::user::thread::JoinHandle;"),
    ("use crossbeam_utils::thread::scope;", "use crossbeam_channel::user::scope;"),
];

const MANIFEST: &str = r#"[package]
name = "crossbeam-channel"
version = "0.0.0"
edition = "2021"
publish = false

[lib]
doctest = false

[dependencies]
stanchion-activations = { path = "CRATES/activations" }

[dev-dependencies]
crossbeam-utils = "0.8"
rand = "0.10"

[workspace]
"#;

const LIBRARY: &str = r"//! Written by `cargo xtask peers`.

pub use stanchion_activations::select;
pub use stanchion_activations::sync::channel::*;

/// The macro through which the tests call `select!`.
#[macro_export]
macro_rules! crossbeam_channel_internal {
    ($($arms:tt)*) => { $crate::select! { $($arms)* } };
}

/// User-level threads under the names of kernel threads.
pub mod user {
    /// Threads of the calling thread's runtime.
    pub mod thread {
        pub use stanchion_activations::{JoinHandle, sleep, spawn, yield_now};
    }

    /// Runs a test on a thread of a runtime of its own.
    pub fn run(test: fn()) {
        let runtime = stanchion_activations::Runtime::builder();
        runtime.processors(2).stack_size(4 << 20).build().unwrap().run(test)
    }

    /// A scope. The closures of its threads have an argument that none of the tests uses.
    pub struct Scope<'scope, 'env>(&'scope stanchion_activations::Scope<'scope, 'env>);

    impl<'scope, 'env> Scope<'scope, 'env> {
        pub fn spawn<F, T>(&self, body: F) -> stanchion_activations::ScopedJoinHandle<'scope, T>
        where
            F: FnOnce(()) -> T + Send + 'scope,
            T: Send + 'scope,
        {
            self.0.spawn(|| body(()))
        }
    }

    /// Calls `body` with a scope. Panics if one of its threads does.
    pub fn scope<'env, F, T>(body: F) -> Result<T, ()>
    where
        F: for<'scope> FnOnce(&Scope<'scope, 'env>) -> T,
    {
        Ok(stanchion_activations::scope(|scope| body(&Scope(scope))))
    }
}
";

/// Copies the files, each once for kernel threads and once for user-level threads.
fn copy(copy: &Copy<'_>) -> Result {
    copy.write("src/lib.rs", LIBRARY)?;
    for (name, adapted) in FILES {
        let path = format!("tests/{name}.rs");
        let text = copy.adapt(&path, &copy.read(&path)?, adapted)?;
        copy.write(&path, &text)?;
        copy.write(&format!("tests/user_{name}.rs"), &on_user_threads(&text))?;
    }
    Ok(())
}

/// Has each test run on a thread of a runtime, and begin such threads.
fn on_user_threads(text: &str) -> String {
    let text = USER.iter().fold(text.to_owned(), |text, (kernel, user)| text.replace(kernel, user));
    let mut written = String::new();
    let mut is_test = false;
    for line in text.lines() {
        let name = line.trim().strip_prefix("fn ").and_then(|line| line.strip_suffix("() {"));
        match name.filter(|_| is_test) {
            Some(name) => {
                is_test = false;
                let run = format!("crossbeam_channel::user::run({name}_body);");
                written += &format!("fn {name}() {{ {run} }}\nfn {name}_body() {{");
            }
            None => {
                is_test |= line.trim() == "#[test]";
                written += line;
            }
        }
        written += "\n";
    }
    written
}
