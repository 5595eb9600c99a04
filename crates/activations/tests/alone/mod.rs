#![allow(dead_code, unreachable_pub, reason = "not each test file uses all of it")]
//! Tests that need a process of their own: they set limits, install hooks, or end the process.

use std::process::Command;

/// Names the test that a child process runs.
const CHILD: &str = "STANCHION_TEST_ALONE";

/// Longer than any of these tests takes: a child that waits for ever is killed after so many
/// seconds.
const MOST_SECONDS: u32 = 120;

/// Runs `body`, the body of the test called `test`, in a child process. Fails if the child does.
pub fn alone(test: &str, body: impl FnOnce()) {
    alone_with(test, |_| (), body);
}

/// Does the same with a command that `prepare` has changed.
#[track_caller]
pub fn alone_with(test: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some_and(|which| which == test) {
        // SAFETY: only a number.
        unsafe { libc::alarm(MOST_SECONDS) };
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, test);
    prepare(&mut child);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(ran.contains("1 passed"), "there is no test of that name: {ran}");
}
