#![allow(dead_code, unreachable_pub, reason = "not each test file uses all of it")]
//! Tests that need a process of their own: they set limits, install hooks, or end the process.

use std::process::Command;

/// Longer than any of these tests takes: a child that waits for ever is killed after so many
/// seconds.
const MOST_SECONDS: u32 = 120;

/// Runs `body`, the body of the test called `test`, in a child process. Fails if the child does.
#[track_caller]
pub fn alone(test: &str, body: impl FnOnce()) {
    alone_with(test, |_| (), body);
}

/// Does the same with a command that `prepare` has changed.
#[track_caller]
pub fn alone_with(test: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    stanchion_alone::alone_with(test, prepare, || {
        // SAFETY: only a number.
        unsafe { libc::alarm(MOST_SECONDS) };
        body();
    });
}
