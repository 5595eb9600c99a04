//! Tests that need a process of their own: because they end it, or because they use up memory that
//! other tests need.

use std::env;
use std::process::{Command, Output};

const MARK: &str = "STANCHION_ARENA_CHILD";

/// Runs `body` in a child that runs this test alone; gives its end to the parent, and nothing to
/// the child itself.
pub(super) fn alone(test: &str, body: impl FnOnce()) -> Option<Output> {
    if env::var_os(MARK).is_some() {
        body();
        return None;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    Some(output)
}

/// As [`alone`], and the child must succeed.
pub(super) fn passes_alone(test: &str, body: impl FnOnce()) {
    let Some(output) = alone(test, body) else { return };
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}
