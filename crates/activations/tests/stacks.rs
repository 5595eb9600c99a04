//! Stacks of threads: what is asked of their size. Many of them: `many.rs`.

#[cfg(target_os = "linux")]
mod alone;

use stanchion_activations::{BuildError, Runtime, StackError};

#[test]
fn a_size_that_cannot_be_had_is_refused_clearly() {
    let refused = Runtime::builder().processors(1).stack_size(usize::MAX).build().unwrap_err();
    assert!(matches!(refused, BuildError::Stack(StackError::TooLarge { .. })), "{refused:?}");
    assert!(refused.to_string().contains(&usize::MAX.to_string()), "{refused}");
}

#[test]
fn a_small_size_is_made_as_large_as_it_must_be() {
    let runtime = Runtime::builder().processors(1).stack_size(1).build();
    match runtime {
        Ok(runtime) => assert_eq!(runtime.run(|| 3), 3),
        Err(refused) => assert!(matches!(refused, BuildError::Stack(_)), "{refused}"),
    }
}

/// Uses three quarters of a stack of the default size, and returns something of it.
#[cfg(all(target_pointer_width = "64", not(stanchion_tsan)))]
#[inline(never)]
fn uses_much() -> usize {
    let much = [1_u8; 768 << 10];
    core::hint::black_box(&much).iter().map(|&byte| usize::from(byte)).sum()
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(stanchion_tsan)))]
#[test]
fn common_crates_fit_on_a_stack_of_the_default_size() {
    // Twice what the largest of `examples/stack_needs` takes that is no absurd case. An overflow
    // would end the process.
    let test = "common_crates_fit_on_a_stack_of_the_default_size";
    alone::alone(test, || {
        assert_eq!(Runtime::new(1).unwrap().run(uses_much), 768 << 10);
    });
}

// ThreadSanitizer maps memory of its own for each fiber.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(stanchion_tsan)))]
#[test]
fn many_stacks_of_the_default_size_take_few_mappings() {
    use stanchion_activations::{Builder, Guards, Priority, park, yield_now};

    const THREADS: usize = 20_000;
    if stanchion_machine::stack::guards() == Guards::Protected {
        // Two mappings each, whatever their size.
        return;
    }
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let before = mappings();
    // A kernel thread takes some mappings too.
    let runtime = Runtime::builder().processors(2).spare_kernel_threads(8).build().unwrap();
    let threads: Vec<_> = (0..THREADS).map(|_| runtime.spawn(park)).collect();
    // A thread of low urgency begins when they have.
    let last = Builder::new().priority(Priority::Low).on(&runtime).spawn(yield_now);
    last.join().unwrap();
    assert!(mappings() < before + 200, "{before}, then {}", mappings());
    threads.iter().for_each(|thread| thread.thread().unpark());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
