//! Stacks of threads: what is asked of their size. Many of them: `many.rs`.

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
