//! A hundred thousand threads alive at once, each on a stack of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stanchion_activations::{Guards, Runtime, StackError, park};

#[test]
fn a_hundred_thousand_are_parked_at_once() {
    // Each stack is two mappings where guards are protected pages: then 32,000 are the end, and
    // the others are told so.
    let most = match stanchion_machine::stack::guards() {
        Guards::Installed => 100_000,
        Guards::Protected => 20_000,
    };
    let runtime = Runtime::builder().processors(2).stack_size(16 * 1024).build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..most)
        .map(|number: usize| {
            let begun = begun.clone();
            runtime.spawn(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                park();
                number
            })
        })
        .collect();
    while begun.load(Ordering::Relaxed) < most && !threads.iter().any(|thread| thread.is_finished())
    {
        runtime.run(stanchion_activations::yield_now);
    }
    threads.iter().for_each(|thread| thread.thread().unpark());
    for (number, thread) in threads.into_iter().enumerate() {
        match thread.join() {
            Ok(returned) => assert_eq!(returned, number),
            Err(refused) => panic!("{}", refused.downcast::<StackError>().unwrap()),
        }
    }
}
