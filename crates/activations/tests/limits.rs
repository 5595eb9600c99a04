//! Runtimes where the system sets limits. Each test has a process of its own.
#![cfg(target_os = "linux")]

mod alone;

use alone::alone_with;
use stanchion_activations::{BuildError, Runtime};

#[test]
fn a_runtime_none_of_whose_kernel_threads_is_to_be_had_is_refused() {
    let prepare = |child: &mut std::process::Command| {
        // No kernel thread has room for such a stack.
        child.env("RUST_MIN_STACK", (1_u64 << 47).to_string());
    };
    let test = "a_runtime_none_of_whose_kernel_threads_is_to_be_had_is_refused";
    alone_with(test, prepare, || {
        let refused = Runtime::new(2).unwrap_err();
        assert!(matches!(refused, BuildError::Thread { number: 0, .. }), "{refused:?}");
    });
}
