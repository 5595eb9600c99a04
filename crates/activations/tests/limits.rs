//! Runtimes where the system sets limits. Each test has a process of its own.
#![cfg(target_os = "linux")]

mod alone;

use alone::{alone, alone_with};
use stanchion_activations::{BuildError, JoinHandle, Runtime, StackError, park};

#[test]
fn runtime_without_kernel_threads_is_refused() {
    let prepare = |child: &mut std::process::Command| {
        // No kernel thread has room for such a stack.
        child.env("RUST_MIN_STACK", (1_u64 << 47).to_string());
    };
    let test = "runtime_without_kernel_threads_is_refused";
    alone_with(test, prepare, || {
        let refused = Runtime::new(2).unwrap_err();
        assert!(matches!(refused, BuildError::Thread { number: 0, .. }), "{refused:?}");
    });
}

#[test]
fn more_spare_threads_than_there_can_be_are_refused_clearly() {
    for spares in [1 << 20, 1 << 40, usize::MAX] {
        let refused =
            Runtime::builder().processors(1).spare_kernel_threads(spares).build().unwrap_err();
        assert!(matches!(refused, BuildError::SpareKernelThreads { .. }), "{refused:?}");
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

/// Allows the process so many bytes of address space.
fn limit_address_space(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the structure is live.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
fn stacks_leave_address_space_to_the_rest_of_the_program() {
    let test = "stacks_leave_address_space_to_the_rest_of_the_program";
    alone(test, || {
        const LIMIT: u64 = 1 << 30;
        limit_address_space(LIMIT);
        let runtime = Runtime::builder().processors(2).stack_size(64 << 10).build().unwrap();
        let threads: Vec<_> = (0..30_000).map(|_| runtime.spawn(park)).collect();
        // Those that were refused have ended.
        while !threads.iter().any(JoinHandle::is_finished) {
            std::thread::yield_now();
        }
        // Larger than what an allocator keeps at hand.
        let allocated = vec![1_u8; (LIMIT / 16) as usize];
        threads.iter().for_each(|thread| thread.thread().unpark());
        let (mut ran, mut refused) = (0, 0);
        for thread in threads {
            match thread.join() {
                Ok(()) => ran += 1,
                Err(error) => {
                    let error = error.downcast::<StackError>().unwrap();
                    assert!(matches!(*error, StackError::AddressSpace { .. }), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(ran > 500 && refused > 0, "{ran} ran, {refused} were refused");
        // Their stacks serve others.
        assert_eq!(runtime.run(move || allocated.len()) as u64, LIMIT / 16);
    });
}
