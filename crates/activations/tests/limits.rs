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

#[test]
fn more_spare_threads_than_there_can_be_are_refused_clearly() {
    for spares in [1 << 20, 1 << 40, usize::MAX] {
        let refused = Runtime::builder().processors(1).spare_threads(spares).build().unwrap_err();
        assert!(matches!(refused, BuildError::SpareThreads { .. }), "{refused:?}");
        assert!(refused.to_string().contains(&spares.to_string()), "{refused}");
    }
}

#[test]
fn absurd_settings_build_a_runtime_that_works_or_are_refused() {
    let runtime = Runtime::builder()
        .processors(1)
        .idle_spin(std::time::Duration::MAX)
        .trace(usize::MAX)
        .build()
        .unwrap();
    assert_eq!(runtime.run(|| 3), 3);
    assert!(Runtime::builder().processors(usize::MAX).build().is_err());
    // Room for one stack of the largest size, or for none.
    if let Ok(runtime) = Runtime::builder().processors(1).stack_size(1 << 36).build() {
        assert_eq!(runtime.run(|| 3), 3);
    }
}
