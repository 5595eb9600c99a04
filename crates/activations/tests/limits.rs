//! Runtimes where the system sets limits. Each in a process of its own, which is this program again.
#![cfg(target_os = "linux")]

use std::process::Command;

use stanchion_activations::{BuildError, Runtime};

/// In the child: says that it is one.
const CHILD: &str = "STANCHION_LIMITS_CHILD";

#[test]
fn a_runtime_none_of_whose_kernel_threads_is_to_be_had_is_refused() {
    if std::env::var_os(CHILD).is_none() {
        let program = std::env::current_exe().expect("a program has a path");
        let output = Command::new(program)
            .args(["--nocapture", "--test-threads=1"])
            .env(CHILD, "")
            // No kernel thread has room for such a stack.
            .env("RUST_MIN_STACK", (1_u64 << 47).to_string())
            .output()
            .expect("this program runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{}\n{said}", output.status);
        return;
    }
    // SAFETY: ends this process if it should wait for ever.
    unsafe { libc::alarm(120) };
    let refused = Runtime::new(2).unwrap_err();
    assert!(matches!(refused, BuildError::Thread { number: 0, .. }), "{refused:?}");
}
