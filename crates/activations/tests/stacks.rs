//! Stacks of threads: many of them, and what is asked of their size.

use stanchion_activations::{BuildError, Guards, Runtime, StackError, park, spawn};

/// More threads than a runtime with guards of the older kind could have, all of them begun and parked.
#[test]
fn a_hundred_thousand_threads_that_wait_at_the_same_time() {
    let runtime = Runtime::builder().processors(1).stack_size(16 * 1024).build().unwrap();
    let installed = runtime.capabilities().guards == Guards::Installed;
    let threads = if installed { 100_000 } else { 10_000 };
    let ended = runtime.run(move || {
        let waiting: Vec<_> = (0..threads).map(|_| spawn(park)).collect();
        // All have begun when the last has.
        spawn(|| ()).join().unwrap();
        waiting.iter().for_each(|thread| thread.thread().unpark());
        waiting.into_iter().filter_map(|thread| thread.join().ok()).count()
    });
    assert_eq!(ended, threads);
}

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
